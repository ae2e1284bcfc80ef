//! The state under a window's lock: the core's window and the dtypes of its columns.
//!
//! No Python code runs in here, so that no callback can meet a locked window.

use std::sync::Arc;

use pyo3::Py;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use slidewise_core::aggregate::column::Column;
use slidewise_core::aggregate::{Answer, Cell, DType};
use slidewise_core::snapshot::{Codec, Reader, Result, Writer, damaged};
use slidewise_core::window::Ties;
use slidewise_core::window::fifo::shared::Reach;
use slidewise_core::window::planned::any::{AnyWindow, Granted};
use slidewise_core::window::queries::Due;
use slidewise_core::window::queries::schedule::Schedule;
use slidewise_core::window::row_log::RowLog;

use crate::clock::Clock;
use crate::errors::busy_error;
use crate::inputs::{InputColumn, Role, Type};
use crate::object_store::{Object, ObjectStore};
use crate::spec::Spec;
use crate::untyped::widened_cell;

pub(crate) type Row = Vec<Cell<Object>>;
pub(crate) type Types = Vec<Option<Type>>;

pub(crate) struct State {
    pub(crate) window: Box<dyn AnyWindow<Object>>,
    pub(crate) dtypes: Types,
    /// The rows, while the type of a column is open because it has had only nulls.
    log: Option<Log>,
    answers: Vec<Answer<Object>>,
    timing: Timing,
    /// The inputs that are not null in entries with each flag of the queries.
    flags: Vec<usize>,
    /// The queries of the caller, once some were added or dropped.
    pub(crate) queries: Option<Py<PyTuple>>,
    /// Answers that fell due and have not been returned. No snapshot holds them.
    pub(crate) due: Vec<Due<Vec<Answer<Object>>>>,
    /// Whether they are left from a call that raised.
    pub(crate) due_left: bool,
}

/// What the clock of the first entry decides for the core.
#[derive(Clone, Copy, Debug)]
struct Timing {
    /// The latency bound in ticks.
    latency: Option<i64>,
    /// Nanoseconds per tick; 1 for ints.
    tick: u64,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            latency: None,
            tick: 1,
        }
    }
}

impl Timing {
    fn of(clock: &Clock) -> Self {
        Self {
            latency: clock.latency,
            tick: clock.tick,
        }
    }
}

/// The contents that a window is filled with.
pub(crate) struct WindowParts {
    pub(crate) state: State,
    pub(crate) store: Option<ObjectStore>,
    pub(crate) clock: Option<Arc<Clock>>,
}

impl State {
    pub(crate) fn new(spec: &Spec) -> Self {
        let dtypes = spec.inputs.iter().map(|input| input.dtype).collect();
        Self::typed(spec, dtypes, Timing::default())
    }

    fn typed(spec: &Spec, dtypes: Types, timing: Timing) -> Self {
        Self {
            window: empty(spec, &dtypes, timing),
            log: dtypes.contains(&None).then(Log::default),
            dtypes,
            answers: Vec::new(),
            timing,
            flags: spec.flags.clone(),
            queries: None,
            due: Vec::new(),
            due_left: false,
        }
    }

    /// Sets what is in ticks, and the queries, from the clock of the first entry.
    pub(crate) fn start(&mut self, spec: &Spec, clock: &Clock) -> PyResult<()> {
        self.timing = Timing::of(clock);
        if clock.latency.is_some() || spec.reads_ticks() {
            self.window = empty(spec, &self.dtypes, self.timing);
        }
        self.start_queries(clock)
    }

    /// Starts the queries by the clock of the first entry.
    fn start_queries(&mut self, clock: &Clock) -> PyResult<()> {
        let (Some(planning), Some(schedule)) = (self.window.planning(), &clock.schedule) else {
            return Ok(());
        };
        if planning.schedule().queries().len() != schedule.queries().len() {
            return Err(busy_error(
                "another thread added a query just now: try again",
            ));
        }
        planning.start(schedule.clone());
        Ok(())
    }

    /// Keeps the answers that fell due.
    #[inline]
    pub(crate) fn collect_due(&mut self) {
        let due = self.window.take_due();
        if !due.is_empty() {
            self.due.extend(due);
        }
    }

    /// The schedule of the queries, for a window that replaces this one, and whether it
    /// has been started.
    fn schedule(&mut self) -> Option<(Schedule, bool)> {
        let planning = self.window.planning()?;
        Some((planning.schedule().clone(), planning.is_started()))
    }

    /// Takes over the queries of the previous window, over the present entries.
    fn resume(&mut self, schedule: Option<(Schedule, bool)>) {
        match (self.window.planning(), schedule) {
            (Some(planning), Some((schedule, true))) => planning.start(schedule),
            (Some(planning), Some((schedule, false))) => planning.expect(schedule),
            _ => {}
        }
    }

    /// Fixes types that were open; those already fixed stay as they are.
    ///
    /// Answers over a column of nulls do not depend on its type, so the window runs as if open
    /// columns were int64, and is filled again if the type differs, and also when a column
    /// of integers widens.
    ///
    /// # Errors
    /// The reason why the integers cannot become floats; nothing has changed.
    pub(crate) fn resolve_dtypes(
        &mut self,
        spec: &Spec,
        dtypes: Types,
    ) -> std::result::Result<(), String> {
        if dtypes == self.dtypes {
            return Ok(());
        }
        let decided = self.dtypes.iter().zip(&dtypes);
        let floats = decided.map(|(old, new)| {
            let ints = old.is_none_or(|old| old.core() == DType::I64);
            ints && new.is_some_and(Type::is_float)
        });
        let widened: Vec<bool> = floats.collect();
        if widened.contains(&true) {
            self.refill(spec, &dtypes, &widened)?;
        }
        self.dtypes = dtypes;
        if !self.dtypes.contains(&None) {
            self.log = None;
        }
        Ok(())
    }

    /// Switches to a window over other types: `widened` columns become those of floats.
    fn refill(
        &mut self,
        spec: &Spec,
        dtypes: &Types,
        widened: &[bool],
    ) -> std::result::Result<(), String> {
        let mut window = empty(spec, dtypes, self.timing);
        if let Some(cause) = self.window.cause() {
            window.migrate(cause);
        }
        if let Some(log) = &mut self.log {
            let mut floats = Log::default();
            log.for_each(dtypes.len(), |time, row| {
                let cells = row.iter().zip(widened);
                let cells = cells.map(|(cell, widened)| match widened {
                    true => widened_cell(cell.clone()),
                    false => cell.clone(),
                });
                let row: Row = cells.collect();
                let inserted = window.insert(time, &row);
                inserted.expect("logged rows are in order");
                floats.insert(time, row);
            });
            *log = floats;
        } else {
            // A copy is widened, so that nothing is lost if that fails.
            let entries = self.window.boxed_clone().take_erased();
            window.insert_widened(entries, widened)?;
        }
        let schedule = self.schedule();
        self.collect_due();
        self.window = window;
        self.resume(schedule);
        Ok(())
    }

    /// The types under a wider spec; `None` if a column that would hold objects has had
    /// numbers meanwhile, or the window has gone over to another spec.
    pub(crate) fn widened(&self, old: &Spec, new: &Spec) -> Option<Types> {
        let kept = old.places_of(new);
        let gone = |at: usize| !kept.contains(&Some(at));
        let begins = |input: &InputColumn| {
            let mut begun = kept.iter().zip(&new.inputs);
            begun.any(|(place, new)| place.is_none() && new.reads_cells_of(input))
        };
        let numbers = old.inputs.iter().zip(&self.dtypes).enumerate();
        let mut numbers = numbers.filter(|(_, (input, dtype))| input.is_open() && dtype.is_some());
        if self.dtypes.len() != old.inputs.len()
            || numbers.any(|(at, (input, _))| gone(at) || begins(input))
        {
            return None;
        }
        let types = kept.iter().zip(&new.inputs);
        let types = types.map(|(place, input)| match place {
            Some(at) => self.dtypes[*at],
            None => input.dtype,
        });
        Some(types.collect())
    }

    /// Switches to a wider spec, which [`State::widened`] allows. Columns that hold objects
    /// from now on have had only nulls.
    pub(crate) fn widen(&mut self, old: &Spec, new: &Spec) {
        let kept = old.places_of(new);
        let types = self.widened(old, new).expect("checked before");
        let log = self.log.take().unwrap_or_default();
        let cause = self.window.cause();
        let schedule = self.schedule();
        *self = Self {
            queries: self.queries.take(),
            due: std::mem::take(&mut self.due),
            due_left: self.due_left,
            ..Self::typed(new, types, self.timing)
        };
        if let Some(cause) = cause {
            self.window.migrate(cause);
        }
        log.for_each(old.inputs.len(), |time, row| {
            let cell = |(place, input): (&Option<usize>, &InputColumn)| match place {
                Some(at) => row[*at].clone(),
                None if input.role == Role::Time => Cell::I64(time),
                None => Cell::Null,
            };
            let row: Row = kept.iter().zip(&new.inputs).map(cell).collect();
            let inserted = self.insert(time, &row);
            inserted.expect("logged rows are in order");
        });
        self.resume(schedule);
    }

    /// Passes the flags of the next rows to the queries.
    #[cold]
    fn announce(&mut self, times: &[i64], is_flagged: impl Fn(usize, usize) -> bool) {
        let flags = |row: usize| {
            let set = self.flags.iter().enumerate();
            let set = set.filter(|(_, input)| is_flagged(row, **input));
            set.fold(0_u64, |set, (flag, _)| set | 1 << flag)
        };
        let mut rows: Vec<usize> = (0..times.len()).collect();
        if !times.is_sorted() {
            rows.sort_by_key(|row| times[*row]);
        }
        let flagged = rows.iter().enumerate();
        let flagged: Vec<_> = flagged
            .map(|(place, row)| (place, flags(*row)))
            .filter(|(_, flags)| *flags != 0)
            .collect();
        if let Some(planning) = self.window.planning() {
            planning.announce(&flagged);
        }
    }

    #[inline]
    pub(crate) fn insert(&mut self, time: i64, row: &[Cell<Object>]) -> Granted<()> {
        if !self.flags.is_empty() {
            self.window.admits(time)?;
            self.announce(&[time], |_, input| !matches!(row[input], Cell::Null));
        }
        self.window.insert(time, row)?;
        if let Some(log) = &mut self.log {
            log.insert(time, row.iter().cloned());
        }
        Ok(())
    }

    /// The end of the window for answers over a range of times: its upper bound, or the time
    /// of the latest entry.
    pub(crate) fn end(&mut self, range: Option<(i64, i64)>) -> Option<i64> {
        match range {
            Some((_, hi)) if hi < i64::MAX => Some(hi),
            _ => self.window.youngest(),
        }
    }

    /// Whether entries may be inserted at these times.
    pub(crate) fn admits(&mut self, times: &[i64]) -> Granted<()> {
        let ends = times.iter().fold(None, |ends: Option<(i64, i64)>, time| {
            let (first, last) = ends.unwrap_or((*time, *time));
            Some((first.min(*time), last.max(*time)))
        });
        let Some((first, last)) = ends else {
            return Ok(());
        };
        self.window.admits(first)?;
        match last == first {
            true => Ok(()),
            false => self.window.admits(last),
        }
    }

    /// Whether few enough answers fall due between entries at these times, where there are
    /// queries: those that the clock has in ticks, until they are started.
    pub(crate) fn admits_batch(&mut self, times: &[i64], clock: Option<&Clock>) -> Granted<()> {
        let Some(planning) = self.window.planning() else {
            return Ok(());
        };
        match clock.and_then(|clock| clock.schedule.as_ref()) {
            Some(schedule) if !planning.is_started() => schedule.admits_batch(times),
            _ => planning.schedule().admits_batch(times),
        }
    }

    /// Inserts entries that [`State::admits`].
    pub(crate) fn insert_many(&mut self, times: &[i64], columns: &[Column<'_, Object>]) {
        if !self.flags.is_empty() {
            let is_flagged = |row, input: usize| !matches!(columns[input].cell(row), Cell::Null);
            self.announce(times, is_flagged);
        }
        if let Some(log) = &mut self.log {
            for (row, time) in times.iter().enumerate() {
                log.insert(*time, columns.iter().map(|column| column.cell(row)));
            }
        }
        // Sorted entries are inserted in chunks whose copies stay in the cache. The window
        // sorts each chunk itself.
        let chunk = if times.is_sorted() {
            BULK_CHUNK_ROWS
        } else {
            times.len().max(1)
        };
        for (at, times) in times.chunks(chunk).enumerate() {
            let from = at * chunk;
            let columns: Vec<_> = columns
                .iter()
                .map(|column| column.slice(from, times.len()))
                .collect();
            let inserted = self.window.insert_many(times.to_vec(), &columns);
            inserted.expect("the first of these times is admitted");
        }
    }

    pub(crate) fn evict(&mut self, ties: Ties) -> Option<i64> {
        let time = self.window.evict()?;
        if let Some(log) = &mut self.log {
            log.evict_at(time, ties);
        }
        if self.keeps_slices() {
            self.truncate_log();
        }
        Some(time)
    }

    pub(crate) fn evict_at(&mut self, time: i64, ties: Ties) -> Granted<bool> {
        let found = self.window.evict_at(time)?;
        if let Some(log) = &mut self.log
            && found
        {
            log.evict_at(time, ties);
        }
        Ok(found)
    }

    pub(crate) fn evict_until(&mut self, time: i64) -> usize {
        if let Some(log) = &mut self.log {
            log.evict_until(time);
        }
        self.window.evict_until(time)
    }

    pub(crate) fn clear(&mut self) {
        if let Some(log) = &mut self.log {
            log.clear();
        }
        self.window.clear();
        self.due.clear();
        self.due_left = false;
    }

    /// Evicts the entries outside `last=`.
    #[inline]
    pub(crate) fn evict_by_clock(&mut self, clock: &Clock, spec: &Spec) {
        if spec.queries.is_some() {
            self.collect_due();
            self.truncate_log();
            return;
        }
        if spec.is_shared() {
            self.slide(&clock.reaches);
            return;
        }
        if let Some(length) = clock.last
            && let Some(youngest) = self.window.youngest()
            && let Some(until) = youngest.checked_sub(length)
        {
            self.evict_until(until);
        }
        if let Some(rows) = spec.rows {
            for _ in rows..self.window.len() {
                self.evict(spec.ties);
            }
        }
    }

    /// Evicts the entries that no range reaches any more.
    fn slide(&mut self, reaches: &[Reach]) {
        self.window.slide(reaches);
        self.truncate_log();
    }

    /// Takes the rows out of the log whose entries have left.
    pub(crate) fn truncate_log(&mut self) {
        let slices = self.keeps_slices();
        let Some(log) = &mut self.log else {
            return;
        };
        match self.window.oldest() {
            // A slice has rows from its time on.
            Some(oldest) if slices => {
                if let Some(before) = oldest.checked_sub(1) {
                    log.evict_until(before);
                }
            }
            // Entries of equal time stay apart, so there is one for each row.
            _ => log.evict_oldest(log.len() - self.window.len()),
        }
    }

    /// Whether the window keeps slices in place of entries.
    fn keeps_slices(&mut self) -> bool {
        let planning = self.window.planning();
        planning.is_some_and(|planning| planning.schedule().terms.slices)
    }

    /// One answer per aggregation, over all entries or those with `lo <= time <= hi`; for a
    /// shared window the answers over each range in turn.
    pub(crate) fn answers(&mut self, range: Option<(i64, i64)>) -> Granted<Vec<Answer<Object>>> {
        let mut answers = std::mem::take(&mut self.answers);
        match range {
            None => self.window.query(&mut answers),
            Some((lo, hi)) => self.window.query_range(lo, hi, &mut answers)?,
        }
        Ok(answers)
    }

    /// The same where there is one aggregation, without allocating.
    #[inline]
    pub(crate) fn answer(&mut self, range: Option<(i64, i64)>) -> Granted<Option<Answer<Object>>> {
        let mut answers = self.answers(range)?;
        let only = answers.pop();
        answers.clear();
        self.answers = answers;
        Ok(only)
    }

    pub(crate) fn check(&mut self) -> std::result::Result<(), String> {
        self.window.check()?;
        let slices = self.keeps_slices();
        let Some(log) = &self.log else { return Ok(()) };
        let mut times = Vec::new();
        self.window.for_each(&mut |time, _| times.push(time));
        log.check()?;
        let mut logged: Vec<i64> = log.times().collect();
        if slices {
            for time in &mut logged {
                let behind = times.partition_point(|begin| *begin <= *time);
                *time = behind.checked_sub(1).map_or(*time, |at| times[at]);
            }
        }
        if times.windows(2).all(|pair| pair[0] < pair[1]) {
            logged.dedup();
        }
        if times == logged {
            return Ok(());
        }
        Err(format!("window has times {times:?}, its log {logged:?}"))
    }

    pub(crate) fn bytes(&self) -> usize {
        let log = self.log.as_ref().map_or(0, RowLog::bytes);
        self.window.bytes() + log + size_of::<Self>()
    }

    /// A copy; for windows without objects, whose tokens would belong to both.
    pub(crate) fn copied(&self, py: Python<'_>) -> Self {
        Self {
            window: self.window.boxed_clone(),
            dtypes: self.dtypes.clone(),
            log: self.log.clone(),
            answers: Vec::new(),
            timing: self.timing,
            flags: self.flags.clone(),
            queries: self.queries.as_ref().map(|now| now.clone_ref(py)),
            due: self.due.clone(),
            due_left: self.due_left,
        }
    }

    pub(crate) fn write(&self, out: &mut Writer) {
        if let Some(log) = &self.log {
            write_log(log, self.dtypes.len(), out);
        }
        self.window.write(out);
    }

    pub(crate) fn read(
        spec: &Spec,
        dtypes: Types,
        clock: Option<&Clock>,
        input: &mut Reader<'_>,
    ) -> Result<Self> {
        let timing = clock.map(Timing::of).unwrap_or_default();
        let mut state = Self::typed(spec, dtypes, timing);
        if let Some(log) = &mut state.log {
            *log = read_log(input, &state.dtypes)?;
        }
        state.window.read(input)?;
        input.end()?;
        state.check().or_else(damaged)?;
        Ok(state)
    }
}

fn empty(spec: &Spec, dtypes: &Types, timing: Timing) -> Box<dyn AnyWindow<Object>> {
    let dtypes: Vec<DType> = dtypes
        .iter()
        .map(|dtype| dtype.map_or(DType::I64, Type::core))
        .collect();
    let mut algorithm = spec.begins(&dtypes);
    if let Some(bound) = timing.latency {
        algorithm = algorithm.with_latency(bound);
    }
    let aggs = spec.aggs_of(timing.tick);
    if let Some(queries) = spec.queries {
        return algorithm.queries(queries, &aggs, &dtypes);
    }
    if spec.is_shared() {
        return algorithm.shared(spec.ranges, &aggs, &dtypes);
    }
    if spec.auto {
        return algorithm.auto(&aggs, &dtypes, spec.ties);
    }
    algorithm.window(&aggs, &dtypes, spec.ties)
}

type Log = RowLog<Object>;

fn write_log(log: &Log, width: usize, out: &mut Writer) {
    (log.len() as u64).write(out);
    log.for_each(width, |time, row| {
        time.write(out);
        out.all(row);
    });
}

fn read_log(input: &mut Reader<'_>, dtypes: &Types) -> Result<Log> {
    let count = input.length::<i64>()?;
    let mut log = Log::default();
    let mut last = i64::MIN;
    for _ in 0..count {
        let time = i64::read(input)?;
        let row: Row = input.many(dtypes.len())?;
        let mut columns = row.iter().zip(dtypes);
        if columns.any(|(cell, dtype)| !fits(cell, *dtype)) {
            return damaged("a logged row does not fit its columns");
        }
        if time < last {
            return damaged("logged rows are out of order");
        }
        last = time;
        log.insert(time, row);
    }
    Ok(log)
}

fn fits(cell: &Cell<Object>, dtype: Option<Type>) -> bool {
    matches!(
        (cell, dtype.map(Type::core)),
        (Cell::Null, _)
            | (_, Some(DType::Object))
            | (Cell::I64(_), Some(DType::I64))
            | (Cell::F64(_), Some(DType::F64))
    )
}

/// Entries per piece of a bulk insert in order.
const BULK_CHUNK_ROWS: usize = 1 << 14;
