//! Windows over holistic aggregations: distinct counts, modes, quantiles.
//!
//! | card   |                                                                          |
//! |--------|--------------------------------------------------------------------------|
//! | paper  | none; FiBA (2018) for the rows, order statistics for their values        |
//! | order  | any                                                                      |
//! | laws   | none: nothing is combined                                                |
//! | costs  | insert, evict anywhere O(log n); the whole window's answer O(log n), a   |
//! |        | distinct count O(1); a part's answer O(m log m) for m rows in it         |
//! | space  | 16 bytes per row and column, and those of [`ranks`] and [`tally`]        |
//!
//! Idea: structures over all values replace the partials of a monoid:
//! [`Ranks`](ranks::Ranks) finds a value by its rank, [`Tally`](tally::Tally) counts each
//! value. Both can remove a value in any order, so an evicted row must be found: a FiBA tree
//! holds the rows by time, each as an entry of its own (ties are kept there), for both
//! treatments of equal times in this window.
//!
//! The aggregations that have a monoid run in a window of their own, which gets the same
//! calls.
//!
//! Invariants, checked by `check`:
//! 1. All columns, and the monoid window, have the same times.
//! 2. The structures of a column hold the values of its rows, each as often.
//! 3. Under [`Ties::Combine`] an entry is all rows of a time, and `times` counts these.

pub mod ranks;
mod rows;
pub mod tally;
mod value_index;

use std::sync::Arc;

use super::any::{AnyWindow, Granted};
use crate::aggregate::collect::Element;
use crate::aggregate::column::Column;
use crate::aggregate::deferred::Ledger;
use crate::aggregate::widening::{self, Erased};
use crate::aggregate::{AggSpec, Answer, Cell, DType, Kind};
use crate::snapshot::{Reader, Result, Writer, damaged};
use crate::window::shape::Shape;
use crate::window::{Refused, Ties};
use rows::Row;
use value_index::{Needs, ValueIndex};

struct Holistic<T> {
    ties: Ties,
    /// The part that answers each aggregation.
    sources: Vec<Source>,
    /// The aggregations that have a monoid, if there are any.
    monoid_window: Option<Box<dyn AnyWindow<T>>>,
    /// The columns that others are of, at least one.
    columns: Vec<ValueIndex<T>>,
    /// Different times, where ties combine.
    times: usize,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    Monoid,
    Column { at: usize, kind: Kind },
}

/// An empty window for a request some of which is holistic, given a window for the rest of
/// the request. If not `indexed` it keeps no structure over values, and computes all answers
/// from the rows.
pub fn window<T: Element>(
    indexed: bool,
    aggs: &[AggSpec],
    dtypes: &[DType],
    ties: Ties,
    beside: impl FnOnce(&[AggSpec]) -> Box<dyn AnyWindow<T>>,
) -> Box<dyn AnyWindow<T>> {
    let (sources, needs) = sources(aggs);
    let others = aggs.iter().filter(|agg| !agg.kind.is_holistic());
    let others: Vec<AggSpec> = others.copied().collect();
    let columns = needs.into_iter().map(|(of, needs)| {
        let needs = if indexed { needs } else { Needs::default() };
        ValueIndex::new(of, dtypes[of], needs)
    });
    Box::new(Holistic {
        ties,
        sources,
        monoid_window: (!others.is_empty()).then(|| beside(&others)),
        columns: columns.collect(),
        times: 0,
    })
}

/// The part that answers each aggregation, and the structures that each column needs.
fn sources(aggs: &[AggSpec]) -> (Vec<Source>, Vec<(usize, Needs)>) {
    let mut needs: Vec<(usize, Needs)> = Vec::new();
    let sources = aggs.iter().map(|agg| {
        if !agg.kind.is_holistic() {
            return Source::Monoid;
        }
        let of = agg.of.expect("holistic aggregations have a column");
        let known = needs.iter().position(|(column, _)| *column == of);
        let at = known.unwrap_or_else(|| {
            needs.push((of, Needs::default()));
            needs.len() - 1
        });
        needs[at].1.add(agg.kind);
        let kind = agg.kind;
        Source::Column { at, kind }
    });
    (sources.collect(), needs)
}

impl<T: Element> Holistic<T> {
    /// Answers of the sources, given those of the window beside.
    fn answer(
        &mut self,
        monoids: Vec<Answer<T>>,
        out: &mut Vec<Answer<T>>,
        mut column: impl FnMut(&mut ValueIndex<T>, Kind) -> Answer<T>,
    ) {
        let mut monoids = monoids.into_iter();
        for source in &self.sources {
            out.push(match *source {
                Source::Monoid => monoids.next().expect("one per request"),
                Source::Column { at, kind } => column(&mut self.columns[at], kind),
            });
        }
    }

    /// Counts a time that is about to be inserted, if it is new.
    fn count_time(&mut self, time: i64) {
        if self.ties == Ties::Combine && !self.columns[0].has(time) {
            self.times += 1;
        }
    }

    /// Evicts one entry of a time that the window has.
    fn evict_entry(&mut self, time: i64) {
        match self.ties {
            Ties::Keep => self
                .columns
                .iter_mut()
                .for_each(|column| column.evict_first(time)),
            Ties::Combine => {
                self.columns
                    .iter_mut()
                    .for_each(|column| column.evict_all(time));
                self.times -= 1;
            }
        }
    }

    /// Entries in order: their time, and per column where their rows lie in `rows`.
    fn entries(&self, rows: &[(i64, Row)]) -> Vec<(usize, usize)> {
        let mut entries = Vec::new();
        let mut start = 0;
        while start < rows.len() {
            let same = |row: &&(i64, Row)| row.0 == rows[start].0;
            let count = match self.ties {
                Ties::Keep => 1,
                Ties::Combine => rows[start..].iter().take_while(same).count(),
            };
            entries.push((start, start + count));
            start += count;
        }
        entries
    }

    fn count_times(&mut self) -> usize {
        let rows = self.columns[0].timed_rows();
        match self.ties {
            Ties::Keep => 0,
            Ties::Combine => rows.chunk_by(|a, b| a.0 == b.0).count(),
        }
    }

    /// The times of all entries agree; O(n).
    fn check_times(&mut self) -> std::result::Result<(), String> {
        let counted = self.count_times();
        if counted != self.times {
            return Err(format!("{counted} different times, {} counted", self.times));
        }
        let times = |column: &mut ValueIndex<T>| -> Vec<i64> {
            column
                .timed_rows()
                .into_iter()
                .map(|(time, _)| time)
                .collect()
        };
        let mut first = times(&mut self.columns[0]);
        if !self.columns[1..]
            .iter_mut()
            .all(|column| times(column) == first)
        {
            return Err("columns differ in their times".to_owned());
        }
        if let Some(monoids) = &mut self.monoid_window {
            let mut others = Vec::new();
            monoids.for_each(&mut |time, _| others.push(time));
            if self.ties == Ties::Combine {
                first.dedup();
            }
            if others != first {
                return Err("the window beside differs in its times".to_owned());
            }
        }
        Ok(())
    }

    fn copied(&self) -> Self {
        Self {
            ties: self.ties,
            sources: self.sources.clone(),
            monoid_window: self
                .monoid_window
                .as_ref()
                .map(|monoids| monoids.boxed_clone()),
            columns: self.columns.clone(),
            times: self.times,
        }
    }
}

impl<T: Element> AnyWindow<T> for Holistic<T> {
    fn admits(&mut self, _time: i64) -> Granted<()> {
        Ok(())
    }
    fn insert(&mut self, time: i64, row: &[Cell<T>]) -> Granted<()> {
        if let Some(window) = &mut self.monoid_window {
            window.insert(time, row)?;
        }
        self.count_time(time);
        for column in &mut self.columns {
            column.insert(time, &row[column.of]);
        }
        Ok(())
    }
    fn insert_many(&mut self, times: Vec<i64>, columns: &[Column<'_, T>]) -> Granted<()> {
        if let Some(window) = &mut self.monoid_window {
            window.insert_many(times.clone(), columns)?;
        }
        if self.ties == Ties::Combine {
            let mut different = times.clone();
            different.sort_unstable();
            different.dedup();
            different.iter().for_each(|time| self.count_time(*time));
        }
        for values in &mut self.columns {
            let column = &columns[values.of];
            values.insert_many(&times, (0..times.len()).map(|row| column.cell(row)));
        }
        Ok(())
    }
    fn evict(&mut self) -> Option<i64> {
        let time = self.oldest()?;
        if let Some(window) = &mut self.monoid_window {
            window.evict();
        }
        self.evict_entry(time);
        Some(time)
    }
    fn evict_at(&mut self, time: i64) -> Granted<bool> {
        if !self.columns[0].has(time) {
            return Ok(false);
        }
        if let Some(window) = &mut self.monoid_window {
            window.evict_at(time)?;
        }
        self.evict_entry(time);
        Ok(true)
    }
    fn evict_until(&mut self, time: i64) -> usize {
        let before = self.len();
        if let Some(window) = &mut self.monoid_window {
            window.evict_until(time);
        }
        if self.ties == Ties::Combine {
            let mut gone = 0;
            let mut last = None;
            self.columns[0].for_each_until(time, |time| {
                gone += usize::from(last != Some(time));
                last = Some(time);
            });
            self.times -= gone;
        }
        for column in &mut self.columns {
            column.evict_until(time);
        }
        before - self.len()
    }
    fn query(&mut self, out: &mut Vec<Answer<T>>) {
        let mut monoids = Vec::new();
        if let Some(window) = &mut self.monoid_window {
            window.query(&mut monoids);
        }
        self.answer(monoids, out, |column, kind| column.answer(kind));
    }
    fn query_range(&mut self, lo: i64, hi: i64, out: &mut Vec<Answer<T>>) -> Granted<()> {
        let mut monoids = Vec::new();
        if let Some(window) = &mut self.monoid_window {
            window.query_range(lo, hi, &mut monoids)?;
        }
        let whole = self.oldest().is_none_or(|oldest| lo <= oldest)
            && self.youngest().is_none_or(|youngest| youngest <= hi);
        self.answer(monoids, out, |column, kind| match whole {
            true => column.answer(kind),
            false => column.answer_between(kind, lo, hi),
        });
        Ok(())
    }
    fn len(&mut self) -> usize {
        match self.ties {
            Ties::Keep => self.columns[0].len(),
            Ties::Combine => self.times,
        }
    }
    fn is_empty(&mut self) -> bool {
        self.oldest().is_none()
    }
    fn oldest(&mut self) -> Option<i64> {
        self.columns[0].oldest()
    }
    fn youngest(&mut self) -> Option<i64> {
        self.columns[0].youngest()
    }
    fn clear(&mut self) {
        if let Some(window) = &mut self.monoid_window {
            window.clear();
        }
        self.columns.iter_mut().for_each(ValueIndex::clear);
        self.times = 0;
    }
    fn for_each(&mut self, visit: &mut dyn FnMut(i64, Vec<Answer<T>>)) {
        let mut monoids = Vec::new();
        if let Some(window) = &mut self.monoid_window {
            window.for_each(&mut |_, answers| monoids.push(answers));
        }
        let columns = self.columns.iter_mut();
        let rows: Vec<Vec<(i64, Row)>> = columns.map(ValueIndex::timed_rows).collect();
        let mut monoids = monoids.into_iter();
        for (from, to) in self.entries(&rows[0]) {
            let mut answers = monoids.next().unwrap_or_default().into_iter();
            let answers = self.sources.iter().map(|source| match *source {
                Source::Monoid => answers.next().expect("one per request"),
                Source::Column { at, kind } => {
                    let rows = rows[at][from..to].iter();
                    let mut words: Vec<i64> = rows.filter_map(|(_, row)| row.word()).collect();
                    self.columns[at].answer_over(kind, &mut words)
                }
            });
            visit(rows[0][from].0, answers.collect());
        }
    }
    fn check(&self) -> std::result::Result<(), String> {
        if let Some(window) = &self.monoid_window {
            window.check()?;
        }
        self.columns.iter().try_for_each(ValueIndex::check)?;
        self.copied().check_times()
    }
    fn bytes(&self) -> usize {
        let columns: usize = self.columns.iter().map(ValueIndex::bytes).sum();
        let monoids = self
            .monoid_window
            .as_ref()
            .map_or(0, |monoids| monoids.bytes());
        size_of::<Self>() + self.sources.capacity() * size_of::<Source>() + columns + monoids
    }
    fn ledger(&self) -> Option<Arc<Ledger<T>>> {
        self.monoid_window.as_ref()?.ledger()
    }
    fn write(&self, out: &mut Writer) {
        if let Some(window) = &self.monoid_window {
            window.write(out);
        }
        for column in &self.columns {
            column.write(out);
        }
    }
    fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        if let Some(window) = &mut self.monoid_window {
            window.read(input)?;
        }
        for column in &mut self.columns {
            column.read(input)?;
        }
        self.times = self.count_times();
        self.check_times().or_else(damaged)
    }
    fn boxed_clone(&self) -> Box<dyn AnyWindow<T>> {
        Box::new(self.copied())
    }
    fn shape(&mut self) -> Option<Shape<Vec<Answer<T>>>> {
        None
    }
    /// It is a fiba already, as far as a holistic window can be.
    fn hand_over(&mut self) -> Box<dyn AnyWindow<T>> {
        let copy = self.copied();
        self.clear();
        Box::new(copy)
    }
    fn take_erased(&mut self) -> Erased {
        let window = self.monoid_window.iter_mut();
        let window = window.map(|window| window.take_erased());
        let mut parts: Vec<Erased> = window.collect();
        parts.extend(self.columns.iter().map(ValueIndex::erased));
        self.clear();
        Erased::Parts(parts)
    }
    fn insert_widened(&mut self, entries: Erased, widened: &[bool]) -> widening::Result<()> {
        let mut parts = entries.into_parts()?.into_iter();
        if let Some(window) = &mut self.monoid_window {
            let part = parts.next().ok_or("no entries of the window beside")?;
            window.insert_widened(part, widened)?;
        }
        for (column, part) in self.columns.iter_mut().zip(parts) {
            *column = column.widened(part.downcast()?, widened);
        }
        self.times = self.count_times();
        Ok(())
    }
    fn migrate(&mut self, _cause: Refused) {}
}
