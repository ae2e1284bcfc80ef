//! The buffer of staged late entries, which are inserted together.

use crate::monoid::{HandleSlot, Monoid};

/// Entries in order of arrival that are not in the tree yet.
#[derive(Clone, Debug)]
pub(super) struct LateBuffer<M: Monoid> {
    pub(super) entries: Vec<(i64, M::In)>,
    /// The least time and the greatest, `MAX` and `MIN` without entries.
    pub(super) oldest: i64,
    pub(super) youngest: i64,
    /// The fold of the entries, in order of arrival; kept if combining commutes.
    pub(super) agg: M::Partial,
    /// Late entries are frequent, so all arrivals are staged: a branch on "late" would be
    /// mispredicted.
    pub(super) stages_all: bool,
    /// The number of late arrivals since the tree held `since` entries.
    pub(super) late: u64,
    pub(super) since: u64,
}

impl<M: Monoid> LateBuffer<M> {
    pub(super) fn new(monoid: &M) -> Self {
        Self {
            entries: Vec::new(),
            oldest: i64::MAX,
            youngest: i64::MIN,
            agg: monoid.identity(),
            stages_all: false,
            late: 0,
            since: 0,
        }
    }

    /// A commutative tail can take a value at once, wherever it belongs; so does `agg`.
    #[inline(always)]
    pub(super) fn push(&mut self, monoid: &M, time: i64, value: M::In) {
        if monoid.commutative() {
            monoid.absorb(&mut self.agg, &value);
        }
        self.late += u64::from(time < self.youngest || !self.stages_all);
        self.oldest = self.oldest.min(time);
        self.youngest = self.youngest.max(time);
        self.entries.push((time, value));
    }

    /// Takes the entries out, in order of time.
    pub(super) fn take_sorted(&mut self, monoid: &M) -> Vec<(i64, M::In)> {
        let mut entries = std::mem::take(&mut self.entries);
        sort_arrivals(&mut entries, self.oldest, self.youngest);
        self.oldest = i64::MAX;
        self.youngest = i64::MIN;
        self.agg = monoid.identity();
        entries
    }

    /// Whether to stage all arrivals from now on, by the share of late ones if there were
    /// enough. `inserted` counts all entries ever put into the tree.
    pub(super) fn judge(&mut self, inserted: u64, enough: usize) -> bool {
        let arrivals = self.arrivals(inserted);
        if arrivals < enough as u64 {
            return self.stages_all;
        }
        let share = if self.stages_all { 8 } else { 4 };
        let often = self.late >= arrivals / share;
        self.late = 0;
        self.since = inserted;
        often
    }

    pub(super) fn arrivals(&self, inserted: u64) -> u64 {
        inserted.wrapping_sub(self.since)
    }
}

/// Sorts by time, which lies in `oldest..=youngest`; equal times stay in order of arrival.
///
/// One pass over as many buckets as there are entries leaves all but bursts nearly
/// sorted, and without a branch to mispredict; insertion does the rest while it is cheap.
fn sort_arrivals<In: HandleSlot>(entries: &mut Vec<(i64, In)>, oldest: i64, youngest: i64) {
    if entries.is_sorted_by_key(|(time, _)| *time) {
        return;
    }
    let buckets = entries.len().next_power_of_two();
    let span = youngest.wrapping_sub(oldest) as u64;
    let shift = (u64::BITS - span.leading_zeros()).saturating_sub(buckets.trailing_zeros());
    let bucket = |time: i64| (time.wrapping_sub(oldest) as u64 >> shift) as usize;
    let mut ends = vec![0_u32; buckets];
    for (time, _) in entries.iter() {
        ends[bucket(*time)] += 1;
    }
    let mut total = 0;
    for end in &mut ends {
        total += std::mem::replace(end, total);
    }
    let mut sorted = vec![(0, In::default()); entries.len()];
    for entry in entries.drain(..) {
        let end = &mut ends[bucket(entry.0)];
        sorted[*end as usize] = entry;
        *end += 1;
    }
    finish_sorting(&mut sorted);
    *entries = sorted;
}

/// Insertion, until it has moved so much that a merge sort is better.
fn finish_sorting<In: HandleSlot>(entries: &mut [(i64, In)]) {
    let mut budget = 8 * entries.len();
    for at in 1..entries.len() {
        let mut site = at;
        while site > 0 && entries[site - 1].0 > entries[site].0 {
            entries.swap(site - 1, site);
            site -= 1;
        }
        match budget.checked_sub(at - site) {
            Some(left) => budget = left,
            None => return entries.sort_by_key(|(time, _)| *time),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values have the order of arrival, which shows whether the sort is stable.
    #[test]
    fn sort_arrivals_is_a_stable_sort() {
        let mut random = 7_u64;
        for len in [1, 2, 3, 64, 100, 4096] {
            for span in [1, 2, 50, 1 << 20, u64::MAX] {
                for burst in [false, true] {
                    let mut entries: Vec<(i64, i64)> = Vec::new();
                    for at in 0..len {
                        random = random.wrapping_mul(6364136223846793005).wrapping_add(99);
                        let spread = ((u128::from(random) * u128::from(span)) >> 64) as i64;
                        let time = if burst && at % 7 > 0 { at / 50 } else { spread };
                        entries.push((time.wrapping_add(i64::MIN), at));
                    }
                    let times = || entries.iter().map(|(time, _)| *time);
                    let (oldest, youngest) = (times().min().unwrap(), times().max().unwrap());
                    let mut expected = entries.clone();
                    expected.sort_by_key(|(time, _)| *time);
                    sort_arrivals(&mut entries, oldest, youngest);
                    assert_eq!(entries, expected, "{len} over {span}");
                }
            }
        }
    }
}
