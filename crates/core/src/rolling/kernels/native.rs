//! Native functions: two stacks over adjacent records.
//!
//! ```text
//!     lo           mid          hi
//!      | suffixes   | backs      |      answer = suffixes[lo] ⊗ backs[hi]
//! ```
//!
//! A column is lifted once for all spans that one thread answers, without its missing
//! values: the ends of windows are counted in present values. When `lo` reaches `mid`, the
//! window is folded anew from its latest row backwards and `mid` moves to `hi`. So a window
//! that shares no row with the previous one begins anew. Equal windows share one answer. ≤
//! 3 combines per row; if windows shrink after a block, folds made ahead are unused, at
//! worst one combine per row.

use super::ops::Number;
use super::parts::{IndexedAgg, Part};
use super::sink::ColumnSink;
use super::{PresentCounts, RowBlock};
use crate::aggregate::DType;
use crate::aggregate::native::{Binary, Functions, Lift, NativeLower};
use crate::rolling::Error;
use crate::rolling::sorted_view::{Dense, Numbers};

/// The records of a column's values, in order.
#[derive(Debug)]
pub(super) struct Records<'a> {
    functions: Functions,
    source: RecordSource<'a>,
    /// The number of records.
    len: usize,
    counts: PresentCounts<'a>,
}

#[derive(Debug)]
enum RecordSource<'a> {
    /// The values are the records, and none is missing.
    Column(&'a Numbers<'a>),
    Lifted(Vec<u64>),
}

impl<'a> Records<'a> {
    pub(super) fn new(functions: Functions, column: &'a Dense<'a>) -> Self {
        let words = functions.words;
        let counts = PresentCounts(column.presence.as_ref());
        let rows = column.len();
        let len = counts.of(0, rows);
        if matches!(functions.lift, Lift::Store) && words == 1 && len == rows {
            return Self {
                functions,
                source: RecordSource::Column(&column.numbers),
                len,
                counts: PresentCounts(None),
            };
        }
        let mut lifted = vec![0; len * words];
        let mut slots = lifted.chunks_exact_mut(words);
        column.each_present(|bits| {
            let slot = slots.next().expect("a record per value");
            functions.lift_into(bits, slot);
        });
        Self {
            functions,
            source: RecordSource::Lifted(lifted),
            len,
            counts,
        }
    }

    pub(super) fn are_of(&self, functions: &Functions) -> bool {
        self.functions == *functions
    }

    fn first(&self) -> *const u64 {
        match &self.source {
            RecordSource::Column(Numbers::I64(values)) => values.as_ptr().cast(),
            RecordSource::Column(Numbers::F64(values)) => values.as_ptr().cast(),
            RecordSource::Lifted(words) => words.as_ptr(),
        }
    }

    /// Copies one of them.
    fn write(&self, at: usize, out: &mut [u64]) {
        match &self.source {
            RecordSource::Column(Numbers::I64(values)) => out[0] = values[at].bits(),
            RecordSource::Column(Numbers::F64(values)) => out[0] = values[at].bits(),
            RecordSource::Lifted(words) => {
                out.copy_from_slice(&words[at * out.len()..][..out.len()])
            }
        }
    }
}

/// The number of words to fold ahead of the current windows; they stay in the cache.
const WORDS_AHEAD: usize = 1 << 13;

/// The folds of windows over records, one after the other.
#[derive(Debug)]
struct Stacks {
    words: usize,
    combine: Binary,
    /// The record of `base + k..mid` for each `k`.
    suffixes: Vec<u64>,
    base: usize,
    mid: usize,
    /// The record of `mid..=first + k` for each `k`, up to all of `mid..hi`.
    backs: Vec<u64>,
    first: usize,
    hi: usize,
}

impl Stacks {
    fn new(functions: &Functions) -> Self {
        Self {
            words: functions.words,
            combine: functions.combine,
            suffixes: Vec::new(),
            base: 0,
            mid: 0,
            backs: Vec::new(),
            first: 0,
            hi: 0,
        }
    }

    /// Writes the record of each window that is not empty. Windows follow those of the last
    /// call, and their ends do not move backwards.
    fn answer(&mut self, records: &Records<'_>, lo: &[usize], hi: &[usize], out: &mut [u64]) {
        // SAFETY of the calls below rests on these bounds: compiled functions write wherever
        // their pointers lead.
        let inside = hi.last().is_none_or(|last| *last <= records.len);
        let ahead = lo.first().is_none_or(|first| *first >= self.base);
        let windows = lo.iter().zip(hi);
        let ordered = windows.fold(lo.is_sorted() && hi.is_sorted(), |all, (lo, hi)| {
            all & (lo <= hi)
        });
        assert!(inside && ahead && ordered && out.len() == lo.len() * self.words);
        if lo.first().is_some_and(|lo| *lo < self.mid) {
            self.drop_backs(hi[0].min(self.hi) - 1);
        }
        let mut at = 0;
        while at < lo.len() {
            let flips = lo[at] >= self.mid;
            if flips && lo[at] == hi[at] {
                at += 1;
                continue;
            }
            let mid = if flips { hi[at] } else { self.mid };
            let until = at + lo[at..].partition_point(|lo| *lo < mid);
            let end = hi[until - 1];
            if flips {
                // If these windows continue in the next block, it will probably have as
                // many rows behind `mid` again.
                let more = match until < lo.len() {
                    true => 0,
                    false => (mid - lo[at]).min(WORDS_AHEAD / self.words),
                };
                let ahead = end.max((mid + more).min(records.len));
                self.flip(records, lo[at], mid, ahead);
            }
            self.grow(records, end);
            let out = &mut out[at * self.words..until * self.words];
            self.join(&lo[at..until], &hi[at..until], out);
            at = until;
        }
    }

    /// Folds `lo..mid` from its latest row backwards and, interleaved, the rows from `mid`
    /// to `ahead`, so that neither chain of calls waits for the other. This reduced a
    /// combine that divides from 25 to 15 ns per row.
    #[allow(unsafe_code)]
    fn flip(&mut self, records: &Records<'_>, lo: usize, mid: usize, ahead: usize) {
        let (words, combine) = (self.words, self.combine);
        (self.base, self.mid, self.first, self.hi) = (lo, mid, mid, mid);
        let count = mid - lo;
        fit(&mut self.suffixes, count * words);
        records.write(mid - 1, &mut self.suffixes[(count - 1) * words..][..words]);
        let both = (ahead - mid).min(count);
        self.grow(records, mid + both.min(1));
        fit(&mut self.backs, both * words);
        // Pointers are to whole records: `mid <= ahead <= records.len`, and the buffers
        // were resized above for `count` suffixes and `both` backs.
        let record = |at| records.first().wrapping_add(at * words);
        let suffixes = self.suffixes.as_mut_ptr();
        let suffix = |at| suffixes.wrapping_add((at - lo) * words);
        let backs = self.backs.as_mut_ptr();
        let back = |at| backs.wrapping_add((at - mid) * words);
        for step in 1..both {
            let at = mid - 1 - step;
            // SAFETY: `lo <= at < mid - 1`, since `step < both <= count`; the suffix of
            // `at + 1` was written before, and that of `at` lies beside it.
            unsafe { combine(record(at), suffix(at + 1), suffix(at)) };
            let at = mid + step;
            // SAFETY: `mid < at < mid + both <= ahead`; the back before it is written.
            unsafe { combine(back(at - 1), record(at), back(at)) };
        }
        for at in (lo..mid - both.max(1)).rev() {
            // SAFETY: as in the loop above, which this one continues.
            unsafe { combine(record(at), suffix(at + 1), suffix(at)) };
        }
        self.hi = mid + both;
    }

    /// Folds the rows from `mid` to `end`.
    #[allow(unsafe_code)]
    fn grow(&mut self, records: &Records<'_>, end: usize) {
        let (words, first) = (self.words, self.first);
        if end <= self.hi {
            return;
        }
        fit(&mut self.backs, (end - first) * words);
        if self.hi == self.mid {
            records.write(self.mid, &mut self.backs[..words]);
            self.hi += 1;
        }
        let backs = self.backs.as_mut_ptr();
        let back = |at| backs.wrapping_add((at - first) * words);
        for at in self.hi..end {
            let record = records.first().wrapping_add(at * words);
            // SAFETY: `first <= mid < at < end <= records.len`, or `at` follows an existing
            // back: the buffer holds the backs up to `end`, and that of `at - 1` is
            // written.
            unsafe { (self.combine)(back(at - 1), record, back(at)) };
        }
        self.hi = end;
    }

    /// Drops backs before a position now and then.
    fn drop_backs(&mut self, to: usize) {
        let words = self.words;
        if to < self.first + 2 * WORDS_AHEAD / words {
            return;
        }
        let kept = (to - self.first) * words..(self.hi - self.first) * words;
        self.backs.copy_within(kept, 0);
        self.first = to;
    }

    /// The records of windows that begin before `mid`, combined from suffixes and backs.
    #[allow(unsafe_code)]
    fn join(&self, lo: &[usize], hi: &[usize], out: &mut [u64]) {
        let (words, combine, base, mid) = (self.words, self.combine, self.base, self.mid);
        let (suffixes, backs) = (self.suffixes.as_ptr(), self.backs.as_ptr());
        let first = self.first;
        let mut known = (mid, mid);
        for (at, (&lo, &hi)) in lo.iter().zip(hi).enumerate() {
            if (lo, hi) == known {
                out.copy_within((at - 1) * words..at * words, at * words);
                continue;
            }
            known = (lo, hi);
            let slot = &mut out[at * words..][..words];
            let front = (lo - base) * words;
            if hi == mid {
                slot.copy_from_slice(&self.suffixes[front..front + words]);
                continue;
            }
            let back = backs.wrapping_add((hi - 1 - first) * words);
            // SAFETY: `base <= lo < mid`, so there is a suffix; `mid < hi <= self.hi`, and
            // the backs from `first` up to there are kept; `slot` has the size of a record
            // and is in another buffer.
            unsafe { combine(suffixes.wrapping_add(front), back, slot.as_mut_ptr()) };
        }
    }
}

/// Resizes; old content is overwritten.
fn fit(words: &mut Vec<u64>, count: usize) {
    if words.len() < count {
        words.resize(count, 0);
    }
}

/// One compiled aggregation over a column.
pub(super) struct Native<'a> {
    records: &'a Records<'a>,
    stacks: Stacks,
    /// The ends of windows in present values, if some are missing.
    lo: Vec<usize>,
    hi: Vec<usize>,
    /// The record and the lowered value of each window.
    folds: Vec<u64>,
    lowered: Vec<u64>,
    aggs: Vec<IndexedAgg>,
}

impl<'a> Native<'a> {
    pub(super) fn boxed(records: &'a Records<'a>, aggs: Vec<IndexedAgg>) -> Box<dyn Part + 'a> {
        Box::new(Self {
            records,
            stacks: Stacks::new(&records.functions),
            lo: Vec::new(),
            hi: Vec::new(),
            folds: Vec::new(),
            lowered: Vec::new(),
            aggs,
        })
    }

    fn put(&self, block: &RowBlock<'_>, sink: &mut ColumnSink<'_, '_>) {
        let (words, counts) = (self.records.functions.words, self.records.counts);
        let numbers = self.lowered.iter().copied();
        for (index, _) in &self.aggs {
            match self.records.functions.lower {
                NativeLower::Record => {
                    let folds = self.folds.chunks_exact(words);
                    let windows = block.windows().map(|(lo, hi)| counts.of(lo, hi) > 0);
                    sink.records(*index, folds.zip(windows));
                    continue;
                }
                NativeLower::I64(_) | NativeLower::Word(DType::I64) => {
                    sink.numbers(*index, numbers.clone().map(i64::of_bits));
                }
                NativeLower::F64(_) | NativeLower::Word(_) => {
                    sink.numbers(*index, numbers.clone().map(f64::of_bits));
                }
            }
            sink.leave_out(*index, block, counts, 1);
        }
    }
}

impl Part for Native<'_> {
    #[allow(unsafe_code)]
    fn answer(&mut self, block: &RowBlock<'_>, sink: &mut ColumnSink<'_, '_>) -> Result<(), Error> {
        let Records {
            functions, counts, ..
        } = self.records;
        let (lo, hi) = match counts.0 {
            None => (block.lo, block.hi),
            Some(presence) => {
                presence.before(block.lo, &mut self.lo);
                presence.before(block.hi, &mut self.hi);
                (&self.lo[..], &self.hi[..])
            }
        };
        self.folds.resize(lo.len() * functions.words, 0);
        self.stacks.answer(self.records, lo, hi, &mut self.folds);
        let folds = self.folds.chunks_exact(functions.words);
        let windows = lo.iter().zip(hi).zip(folds);
        let lowered = &mut self.lowered;
        match functions.lower {
            NativeLower::Record => {}
            NativeLower::Word(_) => {
                lowered.clear();
                lowered.extend(windows.map(|(_, fold)| fold[0]));
            }
            // SAFETY: `each` passes records of windows that are not empty.
            NativeLower::I64(lower) => each(windows, lowered, |fold| unsafe { lower(fold) } as u64),
            // SAFETY: the same.
            NativeLower::F64(lower) => {
                each(windows, lowered, |fold| unsafe { lower(fold) }.to_bits())
            }
        }
        self.put(block, sink);
        Ok(())
    }
}

/// Lowers the records of windows that are not empty; equal windows are lowered once.
fn each<'a>(
    windows: impl Iterator<Item = ((&'a usize, &'a usize), &'a [u64])>,
    lowered: &mut Vec<u64>,
    lower: impl Fn(*const u64) -> u64,
) {
    let (mut known, mut answer) = ((&0, &0), 0);
    lowered.clear();
    lowered.extend(windows.map(|((lo, hi), fold)| {
        if lo < hi && (lo, hi) != known {
            (known, answer) = ((lo, hi), lower(fold.as_ptr()));
        }
        answer
    }));
}
