//! Entries to insert together.

use crate::monoid::{Entry, Monoid};

/// The effect of an insert at a time that is present.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Ties {
    /// Combine behind the value there: one entry per time.
    #[default]
    Combine,
    /// A further entry, behind those of its time.
    Keep,
}

/// The times in order, each with its place; equal ones as they were. One function for all
/// monoids: the sort is 5 kB.
fn sorted_places(times: &[i64]) -> Vec<(i64, usize)> {
    let mut order: Vec<(i64, usize)> = times.iter().copied().zip(0..).collect();
    order.sort_unstable();
    order
}

/// Columns of times and values, with the few promoted entries aside.
#[derive(Clone, Debug)]
pub struct Batch<M: Monoid> {
    pub times: Vec<i64>,
    pub values: Vec<M::In>,
    /// `(position, partial)` by rising position: entries that no input expresses. Their
    /// place in `values` holds a default.
    pub lifted: Vec<(usize, M::Partial)>,
}

impl<M: Monoid> Default for Batch<M> {
    fn default() -> Self {
        Self::with_capacity(0)
    }
}

impl<M: Monoid> Batch<M> {
    pub fn with_capacity(count: usize) -> Self {
        Self {
            times: Vec::with_capacity(count),
            values: Vec::with_capacity(count),
            lifted: Vec::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.times.len()
    }

    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    pub fn push(&mut self, time: i64, entry: Entry<M>) {
        match entry {
            Entry::Raw(value) => self.values.push(value),
            Entry::Lifted(partial) => {
                self.lifted.push((self.times.len(), partial));
                self.values.push(M::In::default());
            }
        }
        self.times.push(time);
    }

    /// Iterates in order, promoted entries in their places.
    pub fn into_entries(self) -> impl Iterator<Item = (i64, Entry<M>)> {
        let mut lifted = self.lifted.into_iter().peekable();
        let rows = self.times.into_iter().zip(self.values).enumerate();
        rows.map(move |(position, (time, value))| {
            let entry = match lifted.next_if(|(at, _)| *at == position) {
                Some((_, partial)) => Entry::Lifted(partial),
                None => Entry::Raw(value),
            };
            (time, entry)
        })
    }

    /// Sorts by time, stably.
    pub fn sort(&mut self) {
        if self.times.is_sorted() {
            return;
        }
        let order = sorted_places(&self.times);
        let mut sorted = Self::with_capacity(self.len());
        // Which of the lifted partials a row has, if there are any. They are put in order
        // with the rows: a sort of their own would be compiled for every monoid.
        let mut lifted: Vec<Option<M::Partial>> = Vec::with_capacity(self.lifted.len());
        let mut which = vec![usize::MAX; self.lifted.last().map_or(0, |(last, _)| last + 1)];
        for (from, partial) in std::mem::take(&mut self.lifted) {
            which[from] = lifted.len();
            lifted.push(Some(partial));
        }
        for (position, &(time, from)) in order.iter().enumerate() {
            sorted.times.push(time);
            sorted.values.push(std::mem::take(&mut self.values[from]));
            let partial = which.get(from).and_then(|at| lifted.get_mut(*at));
            if let Some(partial) = partial.and_then(Option::take) {
                sorted.lifted.push((position, partial));
            }
        }
        *self = sorted;
    }

    /// Under [`Ties::Combine`], makes one entry of each time. Wants a sorted batch.
    pub fn combine_ties(&mut self, monoid: &M, ties: Ties) {
        let repeats = |pair: &[i64]| pair[0] == pair[1];
        if ties == Ties::Keep || !self.times.windows(2).any(repeats) {
            return;
        }
        let mut combined = Self::with_capacity(self.len());
        let mut open: Option<(i64, Entry<M>)> = None;
        for (time, entry) in std::mem::take(self).into_entries() {
            open = Some(match open {
                Some((at, older)) if at == time => {
                    let whole = monoid.combine(&older.partial(monoid), &entry.partial(monoid));
                    (at, Entry::from_partial(monoid, whole))
                }
                Some((at, older)) => {
                    combined.push(at, older);
                    (time, entry)
                }
                None => (time, entry),
            });
        }
        if let Some((time, entry)) = open {
            combined.push(time, entry);
        }
        *self = combined;
    }
}
