//! Running sums compared with a scan of every window, over data that ends epochs in all
//! ways.

use super::ops::Terms;
use super::ops::{Moments, NullableColumn, Sum};
use super::prefix_sums::PrefixSums;
use super::{PresentCounts, RowBlock};
use crate::aggregate::twofold::Twofold;
use crate::rolling::sorted_view::Presence;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005) + 1;
        (self.0 >> 33) as usize % bound
    }

    fn float(&mut self) -> f64 {
        self.below(1 << 30) as f64 / (1 << 29) as f64 - 1.0
    }

    /// Blocks of rows, each of another kind.
    fn values(&mut self, count: usize) -> Vec<f64> {
        let mut values = Vec::new();
        let mut walk = 0.0;
        while values.len() < count {
            let (kind, scale) = (self.below(10), 10.0_f64.powi(self.below(24) as i32 - 12));
            for at in 0..1 + self.below(count / 3 + 2) {
                walk += self.float();
                values.push(match kind {
                    0 => scale * self.float(),
                    1 => 1e6 + self.float(),
                    2 => scale,
                    3 => walk,
                    4 => 10.0_f64.powf(40.0 * self.float()),
                    5 => scale * 0.7_f64.powi(at as i32),
                    6 if self.below(40) == 0 => f64::NAN,
                    7 if self.below(40) == 0 => f64::INFINITY,
                    8 => [1e16, 1.0, -1e16, 0.0][self.below(4)],
                    9 => [1e-300, 1e-310, 0.0, 1.0][self.below(4)],
                    _ => self.below(1000) as f64 / 8.0,
                });
            }
        }
        values.truncate(count);
        values
    }

    /// Windows whose ends only move forward; some are empty, some share no rows.
    fn windows(&mut self, count: usize, length: usize) -> (Vec<usize>, Vec<usize>) {
        let (mut lo, mut hi) = (Vec::new(), Vec::new());
        let (mut old, mut young) = (0, 0);
        while young < count {
            let step = if self.below(50) == 0 { length * 2 } else { 3 };
            young = (young + self.below(step + 1)).min(count);
            old = old.max(young.saturating_sub(self.below(length) + length / 2));
            lo.push(old);
            hi.push(young);
        }
        (lo, hi)
    }
}

/// The answers, in blocks of random lengths.
fn answers<'a, T: Terms<K>, const K: usize>(
    terms: T,
    counts: PresentCounts<'a>,
    (lo, hi): (&[usize], &[usize]),
    random: &mut Random,
) -> Vec<f64> {
    let mut running = PrefixSums::new(terms, counts);
    let mut answers = vec![0.0; lo.len()];
    let mut at = 0;
    while at < lo.len() {
        let until = (at + 1 + random.below(300)).min(lo.len());
        let (lo, hi) = (&lo[at..until], &hi[at..until]);
        let floats: Vec<f64> = lo
            .iter()
            .zip(hi)
            .map(|(lo, hi)| counts.float(*lo, *hi))
            .collect();
        let block = RowBlock { lo, hi, own: false };
        running.answer(&block, &floats, &mut answers[at..until]);
        at = until;
    }
    answers
}

/// Equality to the last bit.
fn same(some: &[f64], others: &[f64], seed: u64) {
    let mut pairs = some.iter().zip(others);
    let apart = pairs.position(|(a, b)| a.to_bits() != b.to_bits());
    assert_eq!(apart, None, "seed {seed}");
}

fn check(seed: u64) {
    let mut random = Random(seed);
    let count = 1 + random.below(3000);
    let values = random.values(count);
    let present: Vec<bool> = (0..count).map(|_| random.below(5) > 0).collect();
    let presence = Presence::new(present.clone());
    let counts = PresentCounts((seed.is_multiple_of(2)).then_some(&presence));
    let column = NullableColumn::new(&values, counts);
    let length = [2, 9, 40, 700][random.below(4)];
    let (lo, hi) = random.windows(count, length);
    let there = |at: &usize| counts.0.is_none() || present[*at];

    let sums = answers(Sum(column), counts, (&lo, &hi), &mut random);
    let again = answers(Sum(column), counts, (&lo, &hi), &mut random);
    same(&sums, &again, seed);
    for ((&lo, &hi), &sum) in lo.iter().zip(&hi).zip(&sums) {
        let rows: Vec<f64> = (lo..hi).filter(there).map(|at| values[at]).collect();
        let expected = Twofold::fold_slice(&rows).value();
        let size: f64 = rows.iter().map(|value| value.abs()).sum();
        let near = (sum - expected).abs() <= size * f64::EPSILON * 4.0;
        let same = sum.to_bits() == expected.to_bits() || (sum.is_nan() && expected.is_nan());
        assert!(
            near || same || rows.is_empty(),
            "seed {seed}: {lo}..{hi} {sum} {expected}"
        );
    }

    let moments = Moments::new(column, counts);
    let squares = answers(moments, counts, (&lo, &hi), &mut random);
    let again = answers(moments, counts, (&lo, &hi), &mut random);
    same(&squares, &again, seed);
    for ((&lo, &hi), &squares) in lo.iter().zip(&hi).zip(&squares) {
        let rows: Vec<f64> = (lo..hi).filter(there).map(|at| values[at]).collect();
        if rows.len() < 2 {
            let finite = rows.iter().all(|value| value.is_finite());
            assert!(
                squares == 0.0 || !finite,
                "seed {seed}: {lo}..{hi} {squares}"
            );
            continue;
        }
        let n = rows.len() as f64;
        let deviations = |about: f64| rows.iter().map(move |value| value - about);
        let mut mean = rows[0];
        for _ in 0..3 {
            mean += Twofold::fold(deviations(mean)).value() / n;
        }
        let about: Vec<f64> = deviations(mean).map(|value| value * value).collect();
        let expected = Twofold::fold_slice(&about).value() * n;
        // The distance of a value far from all others cannot hold all its digits.
        let grain = rows
            .iter()
            .fold(0.0_f64, |most, value| most.max(value.abs()));
        let slack =
            expected * 1e-13 + n * n * (grain * f64::EPSILON).powi(2) + n * n * f64::MIN_POSITIVE;
        let near = (squares - expected).abs() <= slack;
        assert!(
            near || (!squares.is_finite() && !expected.is_finite()),
            "seed {seed}: {lo}..{hi} {squares} {expected}"
        );
    }
}

#[test]
fn running_sums_are_those_of_every_window() {
    let first = first_seed();
    for seed in first..first + 100 {
        check(seed);
    }
}

/// The seed, which `make test` changes every day.
fn first_seed() -> u64 {
    let seed = std::env::var("SLIDEWISE_SEED").unwrap_or_default();
    seed.parse().unwrap_or_default()
}

/// Consecutive groups of a column answer as if each were alone.
#[test]
fn a_window_that_shares_nothing_begins_anew() {
    for seed in 0..200 {
        let mut random = Random(seed);
        let counts = PresentCounts(None);
        let first = random.values(500);
        let second = random.values(500);
        let (lo, hi) = random.windows(500, 40);
        let alone = Moments::new(NullableColumn::new(&second, counts), counts);
        let alone = answers(alone, counts, (&lo, &hi), &mut random);
        let both = [first, second].concat();
        let then = |ends: &[usize]| -> Vec<usize> {
            ends.iter()
                .copied()
                .chain(ends.iter().map(|end| end + 500))
                .collect()
        };
        let together = Moments::new(NullableColumn::new(&both, counts), counts);
        let windows = (&then(&lo)[..], &then(&hi)[..]);
        let together = answers(together, counts, windows, &mut random);
        same(&together[lo.len()..], &alone, seed);
    }
}
