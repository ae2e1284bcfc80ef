//! Components over many partials at once, with one dispatch per component.

use super::component::Component;
use super::double::Double;
use super::extreme_word;
use super::merges::squares_between;
use super::op::Op;
use super::packing::{Words, get_i128, put, put_i128};
use super::twofold::Twofold;
use crate::simd::{SimdTask, dispatch_simd};

/// Appends the folds of `acc` with the first one, two, ... of some complete rows, by
/// components that absorb.
pub fn folds<R: AsRef<[u64]>, P: Words>(
    components: &[Component],
    rows: &[R],
    acc: &P,
    out: &mut Vec<P>,
) {
    let from = out.len();
    out.resize(from + rows.len(), acc.clone());
    for component in components {
        component.folds(
            rows.iter().map(AsRef::as_ref),
            acc.as_ref(),
            &mut out[from..],
        );
    }
}

/// Appends the folds of the last one, two, ... rows with `acc` after them, likewise.
pub fn folds_back<R: AsRef<[u64]>, P: Words>(
    components: &[Component],
    rows: &[R],
    acc: &P,
    out: &mut Vec<P>,
) {
    let from = out.len();
    out.resize(from + rows.len(), acc.clone());
    for component in components {
        let back = rows.iter().rev().map(AsRef::as_ref);
        component.folds_back(back, acc.as_ref(), &mut out[from..]);
    }
}

/// The most partials that `combine_run` combines at a time.
const RUN: usize = 16;

/// The fold of `acc` and some partials, in order. Component by component: the steps of one
/// overlap in the processor, and are dispatched once.
pub fn combine_run<'a, P: Words>(
    components: &[Component],
    mut acc: P,
    mut run: impl ExactSizeIterator<Item = &'a P> + Clone,
) -> P {
    // The folds of `acc` and the first one, two, ... of them.
    let mut folds: [P; RUN] = std::array::from_fn(|_| acc.clone());
    while run.len() > 0 {
        let count = run.len().min(RUN);
        let partials = run.clone().take(count).map(AsRef::as_ref);
        for component in components {
            component.combine_run(acc.as_ref(), partials.clone(), &mut folds[..count]);
        }
        acc.clone_from(&folds[count - 1]);
        run.nth(count - 1);
    }
    acc
}

/// Counts, sums and errors of the older and the younger side of each combine of a run.
type Sides = [[[f64; RUN]; 2]; 3];

/// For each combine, the part of the squares that lies between the means of both sides.
struct BetweenMeans<'a>(&'a Sides);

impl SimdTask for BetweenMeans<'_> {
    type Out = [[f64; RUN]; 2];

    #[inline(always)]
    fn run(self) -> Self::Out {
        let [counts, sums, errors] = self.0;
        let mut between = [[0.0; RUN]; 2];
        for at in 0..RUN {
            let sum = |side: usize| Twofold {
                sum: sums[side][at],
                error: errors[side][at],
            };
            let counts = (counts[0][at], counts[1][at]);
            let one = squares_between(counts, (sum(0), sum(1)));
            (between[0][at], between[1][at]) = (one.high, one.low);
        }
        between
    }
}

impl Component {
    /// `out[i] := acc ⊗ run[0] ⊗ … ⊗ run[i]`. `out` holds those of the components before.
    fn combine_run<'a, P: Words>(
        &self,
        acc: &[u64],
        run: impl Iterator<Item = &'a [u64]> + Clone,
        out: &mut [P],
    ) {
        let at = self.at;
        match self.op {
            Op::Rows | Op::Count => {
                let mut count = acc[at];
                for (partial, out) in run.zip(out) {
                    count = count.wrapping_add(partial[at]);
                    out.as_mut()[at] = count;
                }
            }
            Op::SumF | Op::Logs | Op::Weighted { .. } => {
                let mut sum = Twofold::from_words(&acc[at..]);
                for (partial, out) in run.zip(out) {
                    sum = sum.combine(Twofold::from_words(&partial[at..]));
                    put(out.as_mut(), at, sum.to_words());
                }
            }
            Op::SumI => {
                let mut sum = get_i128(acc, at);
                for (partial, out) in run.zip(out) {
                    sum = sum.wrapping_add(get_i128(partial, at));
                    put_i128(out.as_mut(), at, sum);
                }
            }
            Op::Extreme { .. } => {
                let mut most = acc[at] as i64;
                for (partial, out) in run.zip(out) {
                    most = most.max(partial[at] as i64);
                    out.as_mut()[at] = most as u64;
                }
            }
            Op::SquaresF { n, sum } => {
                let mut sides: Sides = [[[0.0; RUN]; 2]; 3];
                let mut older = acc;
                for ((index, partial), fold) in run.clone().enumerate().zip(&*out) {
                    for (side, words) in [older, partial].into_iter().enumerate() {
                        sides[0][side][index] = words[n] as f64;
                        sides[1][side][index] = f64::from_bits(words[sum]);
                        sides[2][side][index] = f64::from_bits(words[sum + 1]);
                    }
                    older = fold.as_ref();
                }
                let between = dispatch_simd(BetweenMeans(&sides));
                let mut squares = Twofold::from_words(&acc[at..]);
                for (index, partial) in run.enumerate() {
                    let younger = Twofold::from_words(&partial[at..]);
                    let [counts, ..] = &sides;
                    let [high, low] = [between[0][index], between[1][index]];
                    let between = Double { high, low };
                    squares = match (counts[0][index] == 0.0, counts[1][index] == 0.0) {
                        (true, _) => younger,
                        (_, true) => squares,
                        _ if between.is_finite() => squares.combine(younger).plus_double(between),
                        _ => {
                            let (before, from) = out.split_at_mut(index);
                            let older = before.last().map_or(acc, AsRef::as_ref);
                            self.combine(older, partial, from[0].as_mut());
                            Twofold::from_words(&from[0].as_ref()[at..])
                        }
                    };
                    put(out[index].as_mut(), at, squares.to_words());
                }
            }
            _ => {
                for (index, partial) in run.enumerate() {
                    let (before, from) = out.split_at_mut(index);
                    let older = before.last().map_or(acc, AsRef::as_ref);
                    self.combine(older, partial, from[0].as_mut());
                }
            }
        }
    }

    fn folds<'a, P: AsMut<[u64]>>(
        &self,
        rows: impl Iterator<Item = &'a [u64]>,
        acc: &[u64],
        out: &mut [P],
    ) {
        let at = self.at;
        let steps = rows.zip(out.iter_mut().map(AsMut::as_mut));
        match self.op {
            Op::Rows | Op::Count => {
                let mut count = acc[at];
                for (_, out) in steps {
                    count = count.wrapping_add(1);
                    out[at] = count;
                }
            }
            Op::SumF => {
                let mut sum = Twofold::from_words(&acc[at..]);
                for (row, out) in steps {
                    sum = sum.plus(f64::from_bits(row[self.col]) + 0.0);
                    put(out, at, sum.to_words());
                }
            }
            Op::Extreme { min } => {
                let mut most = acc[at] as i64;
                for (row, out) in steps {
                    most = most.max(extreme_word(row[self.col], self.dtype, min));
                    out[at] = most as u64;
                }
            }
            _ => {
                let mut acc = acc.to_vec();
                for (row, out) in steps {
                    self.absorb(&mut acc, row);
                    self.copy(&acc, out);
                }
            }
        }
    }

    fn folds_back<'a, P: AsMut<[u64]>>(
        &self,
        rows: impl Iterator<Item = &'a [u64]>,
        acc: &[u64],
        out: &mut [P],
    ) {
        match self.op {
            // Equal to the last bit in any order.
            Op::Rows | Op::Count | Op::SumI | Op::SumF | Op::Extreme { .. } => {
                self.folds(rows, acc, out);
            }
            _ => {
                let (mut acc, mut one) = (acc.to_vec(), acc.to_vec());
                for (row, out) in rows.zip(out) {
                    self.identity(&mut one);
                    self.lift(|col| Some(row[col]), &mut one);
                    let younger = acc.clone();
                    self.combine(&one, &younger, &mut acc);
                    self.copy(&acc, out.as_mut());
                }
            }
        }
    }

    /// `out[i] := older[a] ⊗ younger[b]` for pair `i`.
    pub fn combine_pairs<P: AsRef<[u64]> + AsMut<[u64]>>(
        &self,
        (older, younger): (&[P], &[P]),
        pairs: &[(u32, u32)],
        out: &mut [P],
    ) {
        let at = self.at;
        let steps = pairs.iter().zip(out).map(|((a, b), out)| {
            let (a, b) = (&older[*a as usize], &younger[*b as usize]);
            (a.as_ref(), b.as_ref(), out.as_mut())
        });
        match self.op {
            Op::Rows | Op::Count => steps.for_each(|(a, b, out)| {
                out[at] = a[at].wrapping_add(b[at]);
            }),
            Op::SumF | Op::Weighted { .. } => steps.for_each(|(a, b, out)| {
                let older = Twofold::from_words(&a[at..]);
                let sum = older.combine(Twofold::from_words(&b[at..]));
                put(out, at, sum.to_words());
            }),
            Op::SumI => steps.for_each(|(a, b, out)| {
                put_i128(out, at, get_i128(a, at).wrapping_add(get_i128(b, at)));
            }),
            Op::Extreme { .. } => steps.for_each(|(a, b, out)| {
                out[at] = (a[at] as i64).max(b[at] as i64) as u64;
            }),
            _ => steps.for_each(|(a, b, out)| self.combine(a, b, out)),
        }
    }

    fn copy(&self, from: &[u64], to: &mut [u64]) {
        let words = self.words();
        to[words.clone()].copy_from_slice(&from[words]);
    }
}
