//! When answers fall due: the queries of a window, and the position of its stream.
//!
//! It has neither entries nor partials, so the code is compiled once for all windows.
//!
//! Invariants, once entries have been passed on (`last`):
//! 1. Every end up to `passed`, and every end before `last`, has been answered or left
//!    out. `due` has the first end after those for every query of time, and the next
//!    number of entries for every query of entries.
//! 2. The next edge of each axis is the first one that no entry has passed.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::data_driven::{DataDriven, MAX_FLAGS};
use super::plan::{Axis, Multiples, Query, Technique, Unit, Walk};
use crate::snapshot::{Codec, Reader, Result, Writer, damaged};

/// The next ends, each with its query, the earliest first.
type DueHeap = BinaryHeap<Reverse<(i64, usize)>>;

/// The options of a window, which do not change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScheduleOptions {
    /// An end of every query of time.
    pub offset: i64,
    /// How late entries may be; `None` if they come in order.
    pub late: Option<i64>,
    /// Whether windows without entries are answered.
    pub empty: bool,
    /// Whether slices are kept in place of entries. All queries are of time then, and `late` is
    /// given.
    pub slices: bool,
}

#[derive(Clone, Debug)]
pub struct Schedule {
    pub terms: ScheduleOptions,
    /// By number; `None` for a dropped query.
    queries: Vec<Option<Query>>,
    /// The shared plans of the queries of time and of entries.
    pub time: Axis,
    pub entries: Axis,
    /// The number of different ranges, and the range of each query.
    range_count: usize,
    range_of: Vec<usize>,
    /// The time of the latest entry that has arrived.
    pub youngest: Option<i64>,
    /// The time of `advance`: no more entries arrive at or before it.
    pub advanced: Option<i64>,
    /// The time of the earliest entry so far, evicted or not, until entries are passed on.
    first: Option<i64>,
    /// The time of the last entry that was passed on (at the beginning that of the first entry, if
    /// it was evicted before), the number of these entries, and the time up to which ends have
    /// been answered.
    pub last: Option<i64>,
    pub count: i64,
    passed: Option<i64>,
    due: DueHeap,
    due_entries: DueHeap,
    /// The next edge of each axis; the last position of int64 if there is none.
    edge: i64,
    edge_entries: i64,
    walk: Walk,
    walk_entries: Walk,
    /// The starts of the windows of data-driven queries.
    pub data_driven: DataDriven,
}

impl Schedule {
    pub fn new(terms: ScheduleOptions, queries: Vec<Option<Query>>) -> Self {
        let mut new = Self {
            terms,
            queries,
            time: Axis::new(&[], 0, Technique::Cutty),
            entries: Axis::new(&[], 0, Technique::Cutty),
            range_count: 0,
            range_of: Vec::new(),
            youngest: None,
            advanced: None,
            first: None,
            last: None,
            count: 0,
            passed: None,
            due: DueHeap::new(),
            due_entries: DueHeap::new(),
            edge: i64::MAX,
            edge_entries: i64::MAX,
            walk: Walk::default(),
            walk_entries: Walk::default(),
            data_driven: DataDriven::default(),
        };
        new.plan();
        new
    }

    /// Resets the position of the stream; the queries stay.
    pub fn restart(&mut self) {
        *self = Self::new(self.terms, std::mem::take(&mut self.queries));
    }

    pub fn queries(&self) -> &[Option<Query>] {
        &self.queries
    }

    /// Adds a query, whose first end is the next one that has not been passed.
    pub fn add(&mut self, query: Query) -> usize {
        self.queries.push(Some(query));
        self.plan();
        self.queries.len() - 1
    }

    /// Drops a query; false if there is none of that number.
    pub fn drop_query(&mut self, number: usize) -> bool {
        let found = self.queries.get_mut(number).and_then(Option::take);
        self.plan();
        found.is_some()
    }

    /// The queries that were not dropped, with their numbers.
    pub fn live(&self) -> impl Iterator<Item = (usize, Query)> {
        let numbered = self.queries.iter().enumerate();
        numbered.filter_map(|(number, query)| query.map(|query| (number, query)))
    }

    pub fn range_count(&self) -> usize {
        self.range_count
    }

    pub fn range_of(&self, number: usize) -> usize {
        self.range_of[number]
    }

    fn plan(&mut self) {
        let of = |by_time| {
            self.live()
                .map(|(_, query)| query)
                .filter(move |query| query.unit.slides_by_time() == Some(by_time))
        };
        let of_time = |query: &Query| query.unit == Unit::TimeByEntries;
        let reach = self.live().map(|(_, query)| query).filter(of_time);
        let reach = reach.map(|query| query.range).max().unwrap_or(0);
        let timed: Vec<Query> = of(true).collect();
        // A range of time with a slide of entries has no planned edges.
        let planned = |query: Query| match query.unit {
            Unit::TimeByEntries => Query {
                range: query.slide,
                ..query
            },
            _ => query,
        };
        let counted: Vec<Query> = of(false).map(planned).collect();
        let mut ranges = HashMap::new();
        let mut range_of = vec![0; self.queries.len()];
        for (number, query) in self.live() {
            let next = ranges.len();
            range_of[number] = *ranges.entry((query.unit, query.range)).or_insert(next);
        }
        (self.range_count, self.range_of) = (ranges.len(), range_of);
        let technique = match self.terms.slices {
            true => Technique::Pairs,
            false => Technique::Cutty,
        };
        self.time = Axis::new(&timed, self.terms.offset, technique);
        self.time.longest = self.time.longest.max(reach);
        self.entries = Axis::new(&counted, 0, Technique::Cutty);
        self.data_driven.plan(&self.queries);
        self.find_next();
    }

    /// The next edge and the next ends are at or after this position.
    fn reached(&self) -> Option<i64> {
        let behind = self.passed.map(|passed| passed.saturating_add(1));
        self.last.max(behind)
    }

    /// Finds the next edges, and the next end of each query.
    fn find_next(&mut self) {
        let next = self.count + 1;
        self.walk_entries = self.entries.edges.walk(next);
        self.edge_entries = self.entries.edges.step(&mut self.walk_entries, next);
        self.due_entries = self.next_ends(false, next);
        (self.edge, self.due) = (i64::MAX, DueHeap::new());
        let over = self.passed == Some(i64::MAX);
        if !over && let (Some(from), Some(_)) = (self.reached(), self.last) {
            self.walk = self.time.edges.walk(from);
            self.edge = self.time.edges.step(&mut self.walk, from);
            self.due = self.next_ends(true, from);
        }
    }

    /// The first end at or after a position of each query that slides by time, or by
    /// entries.
    fn next_ends(&self, by_time: bool, from: i64) -> DueHeap {
        let of = self
            .live()
            .filter(|(_, query)| query.unit.slides_by_time() == Some(by_time));
        of.filter_map(|(number, query)| Some(Reverse((self.ends(query).next(from)?, number))))
            .collect()
    }

    fn ends(&self, query: Query) -> Multiples {
        let from = match query.unit.slides_by_time() {
            Some(true) => self.terms.offset,
            _ => 0,
        };
        Multiples::new(query.slide, from.into())
    }

    /// The time at or before which no more entries arrive; `None` if any may.
    pub fn closed(&self) -> Option<i64> {
        let late = self.terms.late.unwrap_or(0);
        let behind = self.youngest.and_then(|time| time.checked_sub(late));
        let behind = behind.and_then(|time| time.checked_sub(1));
        behind.max(self.advanced)
    }

    /// The time up to which entries go on to slices: `closed`, or the last edge at or before it if
    /// only slices are kept. No answer falls due in between, because every end is an edge.
    pub fn settled(&self) -> Option<i64> {
        self.edge_until(self.closed()?)
    }

    /// A time, or the last edge at or before it if only slices are kept.
    fn edge_until(&self, time: i64) -> Option<i64> {
        match self.terms.slices {
            true => self.time.edges.last(time),
            false => Some(time),
        }
    }

    /// The time of an entry in the window: if only slices are kept, the first of its slice. This
    /// begins behind an edge, or behind what was passed on, which may be an edge of a query that
    /// was dropped.
    pub fn time_of(&self, time: i64) -> i64 {
        if !self.terms.slices {
            return time;
        }
        let edge = time.checked_sub(1).and_then(|time| self.edge_until(time));
        let passed = self.passed.filter(|passed| *passed < time);
        edge.max(passed).map_or(i64::MIN, |edge| edge + 1)
    }

    /// Whether no held slice has entries on both sides of a time.
    pub fn is_between_slices(&self, time: i64) -> bool {
        !self.terms.slices || self.edge_until(time) == Some(time) || self.youngest <= Some(time)
    }

    /// Whether a query can be added: where only slices are kept, its windows consist of those
    /// that are held.
    pub fn admits_query(&self, query: Query) -> bool {
        !self.terms.slices
            || self.youngest.is_none()
            || query.range <= self.time.longest && self.time.edges.has(query, self.terms.offset)
    }

    /// The end of the windows of `query`; `None` before the first entry.
    pub fn now(&self) -> Option<i64> {
        self.youngest
            .map(|time| self.advanced.map_or(time, |to| to.max(time)))
    }

    /// Entries at or before this time are in no later window, nor in one that ends now.
    pub fn expired_until(&self) -> Option<i64> {
        let now = self.now()?;
        let open = self
            .closed()
            .map_or(i64::MIN, |closed| closed.saturating_add(1));
        self.edge_until(now.min(open).checked_sub(self.time.longest)?)
    }

    /// Records an entry before which others may still arrive.
    #[inline]
    pub fn note_first(&mut self, time: i64) {
        if self.last.is_none() {
            self.first = Some(self.first.map_or(time, |first| first.min(time)));
        }
    }

    /// The earliest entry so far, until entries are passed on.
    pub fn first(&self) -> Option<i64> {
        self.first.filter(|_| self.last.is_none())
    }

    /// Begins with the first entry, if no more arrive before it. It may have been evicted:
    /// windows without entries begin with it, too.
    pub fn begin(&mut self, closed: i64) -> bool {
        let first = self.first().filter(|first| *first <= closed);
        if let Some(first) = first {
            self.last = Some(first);
            self.data_driven.find_open_until(first);
            self.find_next();
        }
        first.is_some()
    }

    // -- entries that were passed on -----------------------------------------------------

    /// Whether a slice or window closes before an entry of this time.
    #[inline]
    pub fn closes_before(&self, time: i64) -> bool {
        time > self.open_until()
    }

    /// The last time up to which entries join the open slice and no answer falls due.
    pub fn open_until(&self) -> i64 {
        let end = self.due.peek().map_or(i64::MAX, |Reverse((end, _))| *end);
        self.edge.min(end).min(self.data_driven.open_until)
    }

    /// The number of entries up to the next one, included, that is an edge, an end or flagged.
    pub fn open_entries(&self) -> i64 {
        let end = self.due_entries.peek();
        let end = end.map_or(i64::MAX, |Reverse((end, _))| *end);
        let flagged = self.data_driven.next_flagged;
        self.edge_entries.min(end).min(flagged) - self.count
    }

    /// Records entries that were passed on; the last has this time.
    #[inline]
    pub fn pass_entries(&mut self, time: i64, count: i64) {
        let first = self.last.is_none();
        self.last = Some(time);
        self.count += count;
        if self.data_driven.has_sessions() {
            self.data_driven.pass(time, self.count - count + 1);
        }
        if first {
            self.find_first(time, count);
        }
    }

    /// Sets the start of time, by the first entry.
    #[cold]
    fn find_first(&mut self, time: i64, count: i64) {
        self.count -= count;
        self.find_next();
        self.count += count;
        debug_assert!(self.last == Some(time));
    }

    /// Whether the slice ends with the last entry, by its number.
    pub fn cuts_entries(&mut self) -> bool {
        if self.count != self.edge_entries {
            return false;
        }
        let edges = &self.entries.edges;
        self.edge_entries = edges.step(&mut self.walk_entries, self.count + 1);
        true
    }

    /// The queries of entries that fall due with the last entry.
    pub fn due_entries(&mut self, due: &mut Vec<usize>) {
        due.clear();
        while let Some(Reverse((end, number))) = self.due_entries.peek().copied()
            && end == self.count
        {
            self.due_entries.pop();
            due.push(number);
            let slide = self.queries[number]
                .expect("only live queries fall due")
                .slide;
            if let Some(next) = end.checked_add(slide) {
                self.due_entries.push(Reverse((next, number)));
            }
        }
    }

    /// The flags of the last entry; `closed` receives the queries whose windows it closes.
    pub fn flags_of_last(&mut self, closed: &mut Vec<usize>) -> u64 {
        let flags = self.data_driven.flags_of(self.count);
        closed.clear();
        let closes = |unit| matches!(unit, Unit::Until(flag) if flags & (1 << flag) != 0);
        closed.extend(
            self.live()
                .filter(|(_, query)| closes(query.unit))
                .map(|(number, _)| number),
        );
        flags
    }

    /// Begins the session of an added query with the last `held` entries.
    pub fn begin_session(&mut self, number: usize, held: i64) {
        let Some(last) = self.last else {
            return;
        };
        let first = if held > 0 { self.count - held + 1 } else { 0 };
        self.data_driven.begin_session(number, first, last);
        let over = self
            .passed
            .map(|passed| self.data_driven.over(last, passed));
        if over.is_some_and(|over| over.contains(&number)) {
            self.data_driven.end_sessions(&[number], last);
        }
    }

    /// Whether there is an edge at or before `limit`, where the slice ends.
    pub fn cuts(&mut self, limit: i64) -> bool {
        if self.edge > limit {
            return false;
        }
        let (edges, from) = (&self.time.edges, limit.saturating_add(1));
        self.edge = edges.step(&mut self.walk, from);
        true
    }

    /// The next end at or before `limit`, and the queries that have it.
    pub fn next_due(&mut self, limit: i64, due: &mut Vec<usize>) -> Option<i64> {
        due.clear();
        let Reverse((end, _)) = *self.due.peek()?;
        if end > limit {
            return None;
        }
        while let Some(Reverse((other, number))) = self.due.peek().copied()
            && other == end
        {
            self.due.pop();
            due.push(number);
            if let Some(next) = self.end_behind(number, end, limit) {
                self.due.push(Reverse((next, number)));
            }
        }
        Some(end)
    }

    /// The end of a query after another one; skips those whose windows have no entries.
    fn end_behind(&self, number: usize, end: i64, limit: i64) -> Option<i64> {
        let query = self.queries[number].expect("only live queries fall due");
        let next = end.checked_add(query.slide)?;
        let begin = i128::from(next) - i128::from(query.range);
        let void = self.last.is_none_or(|last| begin >= last.into());
        if void && !self.terms.empty && next <= limit {
            return self.ends(query).next(limit.checked_add(1)?);
        }
        Some(next)
    }

    /// The time up to which ends have been answered.
    pub fn passed(&self) -> Option<i64> {
        self.passed
    }

    /// Records that every end up to a time has been answered.
    pub fn pass(&mut self, limit: i64) {
        self.passed = self.passed.max(Some(limit));
    }

    // -- bytes ---------------------------------------------------------------------------

    pub fn bytes(&self) -> usize {
        let words = 4 * self.queries.capacity();
        let due = self.due.capacity() + self.due_entries.capacity();
        (words + self.range_of.capacity()) * size_of::<usize>() + due * size_of::<(i64, usize)>()
    }

    pub fn check(&self) -> std::result::Result<(), String> {
        let mut again = self.clone();
        again.find_next();
        let sorted = |due: &DueHeap| due.clone().into_sorted_vec();
        let same = sorted(&again.due) == sorted(&self.due)
            && sorted(&again.due_entries) == sorted(&self.due_entries)
            && (again.edge, again.edge_entries) == (self.edge, self.edge_entries);
        if same && (self.last.is_none() || self.youngest >= self.last) {
            return Ok(());
        }
        Err(format!("due {:?} instead of {:?}", self.due, again.due))
    }

    pub fn write(&self, out: &mut Writer) {
        self.terms.offset.write(out);
        write_option(self.terms.late, out);
        (u8::from(self.terms.empty) | u8::from(self.terms.slices) << 1).write(out);
        (self.queries.len() as u64).write(out);
        for query in &self.queries {
            match query {
                None => 0_u8.write(out),
                Some(Query { unit, range, slide }) => {
                    let tag: u8 = match unit {
                        Unit::Time => 1,
                        Unit::Entries => 2,
                        Unit::Session => 3,
                        Unit::Until(_) => 4,
                        Unit::LandmarkTime(_) => 5,
                        Unit::LandmarkEntries(_) => 6,
                        Unit::TimeByEntries => 7,
                    };
                    tag.write(out);
                    if let Some(flag) = unit.flag() {
                        flag.write(out);
                    }
                    out.all(&[*range, *slide]);
                }
            }
        }
        for time in [
            self.youngest,
            self.advanced,
            self.first,
            self.last,
            self.passed,
        ] {
            write_option(time, out);
        }
        self.count.write(out);
        self.data_driven.write(out);
    }

    pub fn read(input: &mut Reader<'_>) -> Result<Self> {
        let offset = i64::read(input)?;
        let late = read_option(input)?;
        let flags = u8::read(input)?;
        if flags > 3 {
            return damaged(format!("{flags} are not flags of windows with queries"));
        }
        let count = input.length::<u8>()?;
        let mut queries = Vec::with_capacity(count);
        for _ in 0..count {
            queries.push(match u8::read(input)? {
                0 => None,
                tag @ 1..=7 => {
                    let unit = match tag {
                        1 => Unit::Time,
                        2 => Unit::Entries,
                        3 => Unit::Session,
                        4 => Unit::Until(u32::read(input)?),
                        5 => Unit::LandmarkTime(u32::read(input)?),
                        7 => Unit::TimeByEntries,
                        _ => Unit::LandmarkEntries(u32::read(input)?),
                    };
                    let (range, slide) = (i64::read(input)?, i64::read(input)?);
                    let flag = unit.flag().unwrap_or(0);
                    if range < 1 || slide < 1 || flag >= MAX_FLAGS {
                        return damaged(format!("a query of range {range} and slide {slide}"));
                    }
                    Some(Query { unit, range, slide })
                }
                tag => return damaged(format!("a query of kind {tag}")),
            });
        }
        let terms = ScheduleOptions {
            offset,
            late,
            empty: flags & 1 != 0,
            slices: flags & 2 != 0,
        };
        let mut new = Self::new(terms, queries);
        new.youngest = read_option(input)?;
        new.advanced = read_option(input)?;
        new.first = read_option(input)?;
        new.last = read_option(input)?;
        new.passed = read_option(input)?;
        new.count = i64::read(input)?;
        let late = terms.late.is_some_and(|late| late < 0);
        let of_time = |query: &Query| query.unit == Unit::Time;
        let slices = terms.late.is_some() && new.queries.iter().flatten().all(of_time);
        if terms.slices && !slices {
            return damaged("slices without entries for other queries than of time");
        }
        if late || new.first.max(new.last) > new.youngest || !(0..i64::MAX).contains(&new.count) {
            return damaged(format!("a stream at {:?} of {:?}", new.last, new.youngest));
        }
        let (last, count) = (new.last, new.count);
        new.data_driven.read(input, last, count)?;
        new.find_next();
        Ok(new)
    }
}

fn write_option(time: Option<i64>, out: &mut Writer) {
    u8::from(time.is_some()).write(out);
    if let Some(time) = time {
        time.write(out);
    }
}

fn read_option(input: &mut Reader<'_>) -> Result<Option<i64>> {
    match u8::read(input)? {
        0 => Ok(None),
        1 => i64::read(input).map(Some),
        tag => damaged(format!("a time of kind {tag}")),
    }
}
