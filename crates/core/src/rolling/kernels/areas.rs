//! Areas under values that hold until the next one, or go to it in a straight line: sums of the
//! areas between adjacent values, from the first of a window to its last.
//!
//! Each of these is a pair of floats, whose high parts and low parts add up apart. A window
//! takes the running sums of both up to its last value, so its sums are those of floats.

use super::ops::{NullableColumn, Sum};
use super::parts::{IndexedAgg, Kernel, Part, nearest};
use super::prefix_sums::PrefixSums;
use super::sink::ColumnSink;
use super::{PresentCounts, RowBlock};
use crate::aggregate::area;
use crate::aggregate::{AggSpec, Kind};
use crate::rolling::Error;
use crate::rolling::sorted_view::{Dense, Numbers};
use crate::simd::{SimdTask, dispatch_simd};

/// The greatest magnitude of finite values: no time leads a sum of areas beyond the floats.
pub(super) const LARGEST: f64 = 1e270;

/// The areas from each value of a column to the next one.
#[derive(Debug)]
pub(super) struct Areas<'a> {
    of: Source,
    /// The floats nearest to the areas, and what these lack; none lacks anything without.
    parts: Vec<Vec<f64>>,
    /// For each position that of the last value up to it, if some are missing.
    latest: Option<Vec<usize>>,
    counts: PresentCounts<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Source {
    linear: bool,
    of: Option<usize>,
    by: Option<usize>,
}

impl Source {
    fn new(agg: &AggSpec) -> Option<Self> {
        let Kind::Area { linear, .. } = agg.kind else {
            return None;
        };
        let (of, by) = (agg.of, agg.by);
        Some(Self { linear, of, by })
    }
}

/// The areas of all aggregations that need some, each once.
pub(super) fn areas<'a>(aggs: &[IndexedAgg], columns: &'a [Option<Dense<'a>>]) -> Vec<Areas<'a>> {
    let mut all: Vec<Areas<'a>> = Vec::new();
    for source in aggs.iter().filter_map(|(_, agg)| Source::new(agg)) {
        let column = |at: Option<usize>| at.and_then(|at| columns[at].as_ref());
        let (Some(values), Some(times)) = (column(source.of), column(source.by)) else {
            continue;
        };
        if all.iter().all(|one| one.of != source) {
            all.push(Areas::new(source, values, times));
        }
    }
    all
}

impl<'a> Areas<'a> {
    fn new(of: Source, values: &'a Dense<'a>, times: &Dense<'_>) -> Self {
        let Numbers::I64(times) = &times.numbers else {
            unreachable!("times are integers");
        };
        let [highs, lows] = match &values.numbers {
            Numbers::I64(all) => dispatch_simd(Between(of.linear, values, times, |at: usize| {
                (all[at] as u64, false)
            })),
            Numbers::F64(all) => dispatch_simd(Between(of.linear, values, times, |at: usize| {
                (all[at].to_bits(), true)
            })),
        };
        let is_exact = lows.iter().fold(true, |all, low| all & (*low == 0.0));
        let counts = PresentCounts(values.presence.as_ref());
        let present = counts.0.map(|presence| presence.present.iter().copied());
        Self {
            of,
            parts: if is_exact {
                vec![highs]
            } else {
                vec![highs, lows]
            },
            latest: present.map(|present| nearest(present.enumerate())),
            counts,
        }
    }
}

/// The areas between adjacent values, given the bits of each and whether it is a float, as
/// floats and what these lack. Those between two groups are no harm: the first value is the
/// last of every window that holds it.
struct Between<'a, V>(bool, &'a Dense<'a>, &'a [i64], V);

impl<V: Fn(usize) -> (u64, bool)> SimdTask for Between<'_, V> {
    type Out = [Vec<f64>; 2];

    #[inline(always)]
    fn run(self) -> Self::Out {
        let Self(linear, dense, times, value) = self;
        let [mut highs, mut lows] = [(); 2].map(|()| vec![0.0; dense.len()]);
        let mut put = |from: usize, to: usize| {
            let ((bits, float), (next, _)) = (value(from), value(to));
            let times = [times[from] as u64, times[to] as u64];
            let area = area::between(linear, [bits, next], times, float);
            (highs[from], lows[from]) = (area.sum, area.error);
        };
        match &dense.presence {
            None => (1..dense.len()).for_each(|to| put(to - 1, to)),
            Some(presence) => {
                let all = presence.present.iter().enumerate();
                let mut there = all.filter(|(_, there)| **there).map(|(at, _)| at);
                let Some(mut from) = there.next() else {
                    return [highs, lows];
                };
                for to in there {
                    put(from, to);
                    from = to;
                }
            }
        }
        [highs, lows]
    }
}

/// The part of an aggregation over areas that [`areas`] has made.
pub(super) fn part<'a>(all: &'a [Areas<'a>], aggs: Vec<IndexedAgg>) -> Box<dyn Part + 'a> {
    let source = Source::new(&aggs[0].1);
    let found = all.iter().find(|one| Some(one.of) == source);
    let areas = found.expect("areas of all aggregations");
    let none = PresentCounts(None);
    let running = |part: &'a Vec<f64>| PrefixSums::new(Sum(NullableColumn::new(part, none)), none);
    Box::new(Summed {
        running: areas.parts.iter().map(running).collect(),
        ends: Vec::new(),
        counts: Vec::new(),
        sums: Vec::new(),
        total: Vec::new(),
        areas,
        aggs,
    })
}

struct Summed<'a> {
    running: Vec<PrefixSums<'a, Sum<'a>, 1>>,
    /// The positions of the last values of the windows.
    ends: Vec<usize>,
    counts: Vec<f64>,
    sums: Vec<f64>,
    total: Vec<f64>,
    areas: &'a Areas<'a>,
    aggs: Vec<IndexedAgg>,
}

impl Kernel for Summed<'_> {
    #[inline(always)]
    fn run(&mut self, block: &RowBlock<'_>, sink: &mut ColumnSink<'_, '_>) -> Result<(), Error> {
        let rows = block.lo.len();
        let last = |hi: usize| hi.saturating_sub(1);
        self.ends.resize(rows, 0);
        let ends = self.ends.iter_mut().zip(block.windows());
        match &self.areas.latest {
            None => ends.for_each(|(end, (lo, hi))| *end = last(hi).max(lo)),
            Some(latest) => ends.for_each(|(end, (lo, hi))| *end = latest[last(hi)].max(lo)),
        }
        let windows = RowBlock {
            lo: block.lo,
            hi: &self.ends,
            own: false,
        };
        self.counts.resize(rows, 0.0);
        self.sums.resize(rows, 0.0);
        self.total.clear();
        self.total.resize(rows, 0.0);
        for running in &mut self.running {
            running.answer(&windows, &self.counts, &mut self.sums);
            for (total, sum) in self.total.iter_mut().zip(&self.sums) {
                *total += sum;
            }
        }
        for (index, _) in &self.aggs {
            sink.numbers(*index, self.total.iter().copied());
            sink.leave_out(*index, block, self.areas.counts, 1);
        }
        Ok(())
    }
}
