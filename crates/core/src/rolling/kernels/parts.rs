//! Parts: one fold of one column over the windows of a span, and what is made of it.

use super::flip::{Flip, Scan};
use super::scans::{Distances, Extreme, Moments, Number, Sum, Values};
use super::sink::Sink;
use super::{Block, Counts};
use crate::aggregate::twofold::Twofold;
use crate::aggregate::{AggSpec, Kind, extreme_value};
use crate::rolling::Error;
use crate::rolling::sorted::{Dense, Numbers};

/// What is folded. Aggregations that need the same of one column share a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Count,
    Sum,
    Extreme { min: bool },
    Moments,
    End { last: bool },
}

impl What {
    /// `None` if there is no kernel for it.
    pub(super) fn of(kind: Kind) -> Option<Self> {
        Some(match kind {
            Kind::Count => Self::Count,
            Kind::Sum | Kind::Mean => Self::Sum,
            Kind::Min => Self::Extreme { min: true },
            Kind::Max => Self::Extreme { min: false },
            Kind::Variance | Kind::Stddev => Self::Moments,
            Kind::First => Self::End { last: false },
            Kind::Last => Self::End { last: true },
            _ => return None,
        })
    }
}

/// Answers some aggregations block by block, each block following the one before.
pub(super) trait Part {
    fn answer(&mut self, block: &Block<'_>, sink: &mut Sink<'_>) -> Result<(), Error>;
}

/// An aggregation and its place among those asked for.
pub(super) type Asked = (usize, AggSpec);

/// `dense` is the column; none for a count of rows.
pub(super) fn part<'a>(
    what: What,
    dense: Option<&'a Dense<'a>>,
    asked: Vec<Asked>,
) -> Box<dyn Part + 'a> {
    let counts = Counts(dense.and_then(|dense| dense.presence.as_ref()));
    match dense.map(|dense| &dense.numbers) {
        Some(Numbers::I64(values)) => {
            let values = Values::new(values, counts);
            match what {
                What::Sum => ExactSum::boxed(values, counts, asked),
                what => of_number(what, values, counts, asked),
            }
        }
        Some(Numbers::F64(values)) => {
            let values = Values::new(values, counts);
            match what {
                What::Sum => Folded::boxed(Sum(values), counts, asked),
                what => of_number(what, values, counts, asked),
            }
        }
        None => Box::new(Count { counts, asked }),
    }
}

fn of_number<'a, V: Number + 'a>(
    what: What,
    values: Values<'a, V>,
    counts: Counts<'a>,
    asked: Vec<Asked>,
) -> Box<dyn Part + 'a> {
    match what {
        What::Extreme { min } => Folded::boxed(Extreme { values, min }, counts, asked),
        What::Moments => Folded::boxed(Moments::new(values, counts), counts, asked),
        What::End { last } => End::boxed(values, counts, last, asked),
        What::Count | What::Sum => Box::new(Count { counts, asked }),
    }
}

struct Count<'a> {
    counts: Counts<'a>,
    asked: Vec<Asked>,
}

impl Part for Count<'_> {
    fn answer(&mut self, block: &Block<'_>, sink: &mut Sink<'_>) -> Result<(), Error> {
        for (index, _) in &self.asked {
            let counts = block
                .windows()
                .map(|(lo, hi)| self.counts.of(lo, hi) as i64);
            sink.numbers(*index, counts);
        }
        Ok(())
    }
}

/// Sums of integers: differences of running sums, exact however long.
struct ExactSum<'a> {
    running: Running,
    counts: Counts<'a>,
    asked: Vec<Asked>,
}

enum Running {
    /// No sum over any part of the column leaves 64 bits.
    Narrow(Vec<i64>),
    Wide(Vec<i128>),
}

impl Running {
    fn new(values: Values<'_, i64>) -> Self {
        let greatest = values
            .all
            .iter()
            .fold(0, |most, value| value.unsigned_abs().max(most));
        let narrow = u64::try_from(values.all.len())
            .ok()
            .and_then(|count| greatest.checked_mul(count))
            .is_some_and(|bound| bound <= i64::MAX as u64);
        if narrow {
            Self::Narrow(running(values, |value| value))
        } else {
            Self::Wide(running(values, i128::from))
        }
    }
}

fn running<S: Copy + Default + std::ops::Add<Output = S>>(
    values: Values<'_, i64>,
    widen: impl Fn(i64) -> S,
) -> Vec<S> {
    let mut sum = S::default();
    let mut sums = Vec::with_capacity(values.all.len() + 1);
    sums.push(sum);
    for at in 0..values.all.len() {
        sum = sum + values.map(at, S::default(), &widen);
        sums.push(sum);
    }
    sums
}

impl<'a> ExactSum<'a> {
    fn boxed(values: Values<'a, i64>, counts: Counts<'a>, asked: Vec<Asked>) -> Box<dyn Part + 'a> {
        Box::new(Self {
            running: Running::new(values),
            counts,
            asked,
        })
    }
}

impl Part for ExactSum<'_> {
    fn answer(&mut self, block: &Block<'_>, sink: &mut Sink<'_>) -> Result<(), Error> {
        for (index, agg) in &self.asked {
            let windows = block.windows();
            match (&self.running, agg.kind) {
                (Running::Narrow(sums), Kind::Sum) => {
                    sink.numbers(*index, windows.map(|(lo, hi)| sums[hi] - sums[lo]));
                }
                (Running::Wide(sums), Kind::Sum) => {
                    let sums = windows.map(|(lo, hi)| sums[hi] - sums[lo]);
                    sink.wide_integers(*index, sums)?;
                }
                (Running::Narrow(sums), _) => {
                    let mean = |(lo, hi)| (sums[hi] - sums[lo]) as f64 / self.counts.float(lo, hi);
                    sink.numbers(*index, windows.map(mean));
                }
                (Running::Wide(sums), _) => {
                    let mean = |(lo, hi)| (sums[hi] - sums[lo]) as f64 / self.counts.float(lo, hi);
                    sink.numbers(*index, windows.map(mean));
                }
            }
            sink.leave_out(*index, block, self.counts, 1);
        }
        Ok(())
    }
}

/// The first or the last value of each window.
struct End<'a, V> {
    values: Values<'a, V>,
    counts: Counts<'a>,
    last: bool,
    /// Where to look for the end at a position, if some values are missing.
    places: Option<Vec<usize>>,
    asked: Vec<Asked>,
}

impl<'a, V: Number + 'a> End<'a, V> {
    fn boxed(
        values: Values<'a, V>,
        counts: Counts<'a>,
        last: bool,
        asked: Vec<Asked>,
    ) -> Box<dyn Part + 'a> {
        let places = values.present.map(|present| match last {
            false => nearest(present.iter().copied().enumerate().rev()),
            true => nearest(present.iter().copied().enumerate()),
        });
        Box::new(Self {
            values,
            counts,
            last,
            places,
            asked,
        })
    }

    fn place(&self, (lo, hi): (usize, usize)) -> usize {
        let end = if self.last { hi.saturating_sub(1) } else { lo };
        // A window without values is left out: any place will do for it.
        let end = end.min(self.values.all.len() - 1);
        self.places.as_ref().map_or(end, |places| places[end])
    }
}

/// For each position, the last one that was there on the way to it.
fn nearest(present: impl ExactSizeIterator<Item = (usize, bool)>) -> Vec<usize> {
    let mut places = vec![0; present.len()];
    let mut place = 0;
    for (at, there) in present {
        if there {
            place = at;
        }
        places[at] = place;
    }
    places
}

impl<V: Number> Part for End<'_, V> {
    fn answer(&mut self, block: &Block<'_>, sink: &mut Sink<'_>) -> Result<(), Error> {
        for (index, _) in &self.asked {
            let values = block
                .windows()
                .map(|window| self.values.all[self.place(window)]);
            sink.numbers(*index, values);
            sink.leave_out(*index, block, self.counts, 1);
        }
        Ok(())
    }
}

/// What two stacks fold.
struct Folded<'a, S: Scan> {
    flip: Flip<S>,
    folds: Vec<S::Fold>,
    counts: Counts<'a>,
    asked: Vec<Asked>,
}

impl<'a, S: Finish + 'a> Folded<'a, S> {
    fn boxed(scan: S, counts: Counts<'a>, asked: Vec<Asked>) -> Box<dyn Part + 'a> {
        Box::new(Self {
            flip: Flip::new(scan),
            folds: Vec::new(),
            counts,
            asked,
        })
    }
}

impl<S: Finish> Part for Folded<'_, S> {
    fn answer(&mut self, block: &Block<'_>, sink: &mut Sink<'_>) -> Result<(), Error> {
        self.folds.clear();
        self.flip.answer(block, &mut self.folds);
        for (index, agg) in &self.asked {
            let counts = block.windows().map(|(lo, hi)| self.counts.float(lo, hi));
            let folds = self.folds.iter().copied().zip(counts);
            let least = self.flip.scan.finish((*index, agg), folds, sink);
            sink.leave_out(*index, block, self.counts, least);
        }
        Ok(())
    }
}

/// From folds, each with the number of values below it, to answers.
trait Finish: Scan {
    /// Gives how many values an answer takes.
    fn finish(
        &self,
        asked: (usize, &AggSpec),
        folds: impl ExactSizeIterator<Item = (Self::Fold, f64)>,
        sink: &mut Sink<'_>,
    ) -> usize;
}

impl Finish for Sum<'_> {
    fn finish(
        &self,
        (index, agg): (usize, &AggSpec),
        folds: impl ExactSizeIterator<Item = (Twofold, f64)>,
        sink: &mut Sink<'_>,
    ) -> usize {
        match agg.kind {
            Kind::Mean => sink.numbers(index, folds.map(|(sum, count)| sum.value() / count)),
            _ => sink.numbers(index, folds.map(|(sum, _)| sum.value())),
        }
        1
    }
}

impl<V: Number> Finish for Extreme<'_, V> {
    fn finish(
        &self,
        (index, _): (usize, &AggSpec),
        folds: impl ExactSizeIterator<Item = (i64, f64)>,
        sink: &mut Sink<'_>,
    ) -> usize {
        let value = |word| V::of_bits(extreme_value(word, V::DTYPE, self.min));
        sink.numbers(index, folds.map(|(word, _)| value(word)));
        1
    }
}

impl<V: Number> Finish for Moments<'_, V> {
    fn finish(
        &self,
        (index, agg): (usize, &AggSpec),
        folds: impl ExactSizeIterator<Item = (Distances, f64)>,
        sink: &mut Sink<'_>,
    ) -> usize {
        let ddof = f64::from(agg.ddof);
        let variance = |(fold, count): (Distances, f64)| fold.squares(count) / (count - ddof);
        match agg.kind {
            Kind::Stddev => sink.numbers(index, folds.map(|fold| variance(fold).sqrt())),
            _ => sink.numbers(index, folds.map(variance)),
        }
        agg.ddof as usize + 1
    }
}
