//! Central moments of runs of rows, in one pass about the approximate mean: distances are
//! exact as two floats each, and so are their powers up to some 100 bits.

use super::double::Double;
use super::packing::get_i128;
use super::rounding::{two_product, two_sum};
use super::twofold::{Twofold, Wide};
use crate::simd::{SimdTask, dispatch_simd};

const LANES: usize = 4;

/// A value of about `term[0]`, exactly the sum of both.
type Term = [f64; 2];

/// A column of complete rows, and its approximate mean.
#[derive(Clone, Copy, Debug)]
pub struct Centred {
    col: usize,
    floats: bool,
    mean: f64,
    pivot: i128,
}

impl Centred {
    /// `out` holds the count and the sum of the run.
    pub fn new((col, floats): (usize, bool), out: &[u64], (n, sum): (usize, usize)) -> Self {
        let (mean, pivot) = match floats {
            true => (Twofold::from_words(&out[sum..]).mean(out[n] as f64), 0),
            false => (0.0, get_i128(out, sum) / i128::from(out[n].max(1))),
        };
        Self {
            col,
            floats,
            mean,
            pivot,
        }
    }

    #[inline(always)]
    fn distance(&self, row: &[u64]) -> Term {
        let bits = row[self.col];
        if self.floats {
            let (high, low) = two_sum(f64::from_bits(bits), -self.mean);
            return [high, low];
        }
        let Double { high, low } = Double::of_integer(i128::from(bits as i64) - self.pivot);
        [high, low]
    }

    /// The rounded distance times 1, or ½ for distances that exceed the floats.
    fn rounded(&self, row: &[u64], scale: f64) -> f64 {
        match self.floats {
            true => f64::from_bits(row[self.col]) * scale - self.mean * scale,
            false => self.distance(row)[0] * scale,
        }
    }
}

#[inline(always)]
fn product(x: Term, y: Term) -> Term {
    let (high, low) = two_product(x[0], y[0]);
    [high, low + (x[0] * y[1] + x[1] * y[0])]
}

/// The sums of `K` terms of each row.
struct Sums<'a, R, F, const K: usize> {
    rows: &'a [R],
    terms: F,
}

impl<R: AsRef<[u64]>, F: Fn(&[u64]) -> [Term; K], const K: usize> SimdTask for Sums<'_, R, F, K> {
    type Out = [Twofold; K];

    #[inline(always)]
    fn run(self) -> [Twofold; K] {
        let (mut sums, mut errors) = ([[0.0; LANES]; K], [[0.0; LANES]; K]);
        let mut chunks = self.rows.chunks_exact(LANES);
        for chunk in &mut chunks {
            for (lane, row) in chunk.iter().enumerate() {
                let terms = (self.terms)(row.as_ref());
                for of in 0..K {
                    let (sum, error) = two_sum(sums[of][lane], terms[of][0]);
                    sums[of][lane] = sum;
                    errors[of][lane] += error + terms[of][1];
                }
            }
        }
        for (lane, row) in chunks.remainder().iter().enumerate() {
            let terms = (self.terms)(row.as_ref());
            for of in 0..K {
                let (sum, error) = two_sum(sums[of][lane], terms[of][0]);
                sums[of][lane] = sum;
                errors[of][lane] += error + terms[of][1];
            }
        }
        std::array::from_fn(|of| {
            let lanes = (0..LANES).map(|lane| Twofold {
                sum: sums[of][lane],
                error: errors[of][lane],
            });
            lanes
                .reduce(Twofold::combine_within)
                .expect("there are lanes")
        })
    }
}

/// `None` if a step leaves the floats.
#[inline(always)]
fn sums<R: AsRef<[u64]>, const K: usize>(
    rows: &[R],
    terms: impl Fn(&[u64]) -> [Term; K],
) -> Option<[Twofold; K]> {
    let sums = dispatch_simd(Sums { rows, terms });
    let finite = sums.iter().all(|sum| (sum.sum + sum.error).is_finite());
    finite.then_some(sums)
}

/// Sum of squared distances from the mean.
pub fn squares<R: AsRef<[u64]>>(rows: &[R], x: Centred) -> Twofold {
    let count = rows.len() as f64;
    let found = sums(rows, |row| {
        let distance = x.distance(row);
        [distance, product(distance, distance)]
    });
    let Some([first, second]) = found else {
        return far_products(rows, x, x);
    };
    let drift = first.value();
    let corrected = second.plus(-(drift * drift) / count);
    match corrected.value() < 0.0 {
        true => Twofold::new(0.0),
        false => corrected,
    }
}

/// Sum of the products of distances from the means of two columns.
pub fn products<R: AsRef<[u64]>>(rows: &[R], x: Centred, y: Centred) -> Twofold {
    let count = rows.len() as f64;
    let found = sums(rows, |row| {
        let (x, y) = (x.distance(row), y.distance(row));
        [x, y, product(x, y)]
    });
    match found {
        Some([x, y, both]) => both.plus(-(x.value() * y.value()) / count),
        None => far_products(rows, x, y),
    }
}

/// Products of distances of which some leave the floats.
#[cold]
#[inline(never)]
fn far_products<R: AsRef<[u64]>>(rows: &[R], x: Centred, y: Centred) -> Twofold {
    let half = |of: &Centred, row: &R| of.rounded(row.as_ref(), 0.5);
    let drift = |of: &Centred| {
        let halves = rows.iter().map(|row| half(of, row));
        halves
            .fold(Twofold::new(0.0), Twofold::plus)
            .mean(rows.len() as f64)
    };
    let (x_drift, y_drift) = (drift(&x), drift(&y));
    let products = rows.iter().map(|row| {
        let (x, y) = (half(&x, row) - x_drift, half(&y, row) - y_drift);
        Wide::of_halves(x, y, 1.0)
    });
    products.fold(Twofold::new(0.0), Twofold::combine)
}

/// Sum of the third powers of distances from the mean.
pub fn third<R: AsRef<[u64]>>(rows: &[R], x: Centred) -> Twofold {
    let found = sums(rows, |row| {
        let distance = x.distance(row);
        let square = product(distance, distance);
        [distance, square, product(square, distance)]
    });
    let Some([first, second, third]) = found else {
        return far_powers(rows, x, 3);
    };
    let count = rows.len() as f64;
    let drift = first.value() / count;
    third.plus(drift * (2.0 * drift * first.value() - 3.0 * second.value()))
}

/// Sum of the fourth powers of distances from the mean.
pub fn fourth<R: AsRef<[u64]>>(rows: &[R], x: Centred) -> Twofold {
    let found = sums(rows, |row| {
        let distance = x.distance(row);
        let square = product(distance, distance);
        let powers = [product(square, distance), product(square, square)];
        [distance, square, powers[0], powers[1]]
    });
    let Some([first, second, third, fourth]) = found else {
        return far_powers(rows, x, 4);
    };
    let count = rows.len() as f64;
    let drift = first.value() / count;
    let squares = 6.0 * second.value() - 3.0 * drift * first.value();
    fourth.plus(drift * (drift * squares - 4.0 * third.value()))
}

/// Powers of distances of which some leave the floats.
#[cold]
#[inline(never)]
fn far_powers<R: AsRef<[u64]>>(rows: &[R], x: Centred, power: i32) -> Twofold {
    let powers = rows
        .iter()
        .map(|row| x.rounded(row.as_ref(), 1.0).powi(power));
    powers.fold(Twofold::new(0.0), Twofold::plus)
}
