//! Lists of distinct values: the rows of a window that are the first with their code.
//!
//! A row is a first occurrence while the previous row with its code is outside of the
//! window. When it leaves, the next row with its code replaces it, if that is inside. So a
//! row enters and leaves a set of positions a few times, and an answer reads the set in
//! order. Cost: O(log n) per row, and O(length) per answer. For windows whose ends only
//! move forward.

use std::collections::{BTreeSet, HashMap};

use super::multiset::WindowMultiset;
use super::{Request, Sorted, WordColumn};
use crate::aggregate::{AggSpec, Answer, Cell, Kind};

pub(super) struct FirstOccurrence<'a> {
    request: &'a Request<'a>,
    sorted: &'a Sorted<'a>,
    codes: &'a WordColumn<'a>,
    agg: usize,
    of: usize,
    /// The previous and the next row with the code of a position; [`NONE`] without one.
    before: Vec<usize>,
    behind: Vec<usize>,
    firsts: BTreeSet<usize>,
    lo: usize,
    hi: usize,
}

const NONE: usize = usize::MAX;

/// Whether [`FirstOccurrence`] answers it: rows that are collected by a code.
pub(in crate::rolling) fn supports(request: &Request<'_>, agg: &AggSpec) -> bool {
    let forward = request.arrival.is_none();
    forward && agg.kind == Kind::Collect && agg.by.is_some()
}

impl<'a> FirstOccurrence<'a> {
    pub(super) fn new(
        request: &'a Request<'a>,
        sorted: &'a Sorted<'a>,
        codes: &'a WordColumn<'a>,
        (index, agg): &(usize, AggSpec),
    ) -> Self {
        let mut firsts = Self {
            request,
            sorted,
            codes,
            agg: *index,
            of: agg.of.expect("there is a column to collect"),
            before: vec![NONE; codes.words.len()],
            behind: vec![NONE; codes.words.len()],
            firsts: BTreeSet::new(),
            lo: 0,
            hi: 0,
        };
        firsts.link();
        firsts
    }

    fn link(&mut self) {
        let mut last = HashMap::new();
        for position in 0..self.codes.words.len() {
            let Some(code) = self.codes.words.get(position) else {
                continue;
            };
            if self.cell(position) == Cell::Null {
                continue;
            }
            if let Some(before) = last.insert(code, position) {
                self.before[position] = before;
                self.behind[before] = position;
            }
        }
    }

    fn cell(&self, position: usize) -> Cell<i64> {
        self.request.columns[self.of].cell(self.sorted.row(position))
    }
}

impl WindowMultiset for FirstOccurrence<'_> {
    fn end(&self) -> usize {
        self.codes.words.len()
    }

    fn renew(&mut self, from: usize, _to: usize) {
        self.firsts.clear();
        (self.lo, self.hi) = (from, from);
    }

    fn enter(&mut self, position: usize) {
        if self.hi != position {
            // The window shares no row with the previous one.
            self.lo = position;
        }
        self.hi = position + 1;
        if self.codes.words.get(position).is_none() || self.cell(position) == Cell::Null {
            return;
        }
        let before = self.before[position];
        if before == NONE || before < self.lo {
            self.firsts.insert(position);
        }
    }

    fn leave(&mut self, position: usize) {
        self.lo = position + 1;
        let behind = self.behind[position];
        if self.firsts.remove(&position) && behind < self.hi {
            self.firsts.insert(behind);
        }
    }

    fn answers(&mut self, _own: Option<usize>, put: &mut impl FnMut(usize, Answer<i64>)) {
        let rows = self.firsts.iter().map(|position| self.cell(*position));
        put(self.agg, Answer::List(rows.collect()));
    }
}
