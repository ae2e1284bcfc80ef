//! Many ranges over one stream: answers against their definition, and their costs.

mod common;

use common::Random;
use common::monoids::{Affine, FirstTop, Tally, take_combines, take_inverses};
use slidewise_core::aggregate::DType;
use slidewise_core::aggregate::word::{Extreme, Top};
use slidewise_core::monoid::Monoid;
use slidewise_core::window::fifo::fold;
use slidewise_core::window::slick_deque::{Shared, SharedSums, SlickDequeRanges};

/// Random streams and ranges that move ahead by fits and starts, some past all values.
fn compare<M: Monoid<In = i64>, S: Shared<M>>(monoid: &M, make: impl Fn(usize) -> S) {
    for seed in 0..2000 {
        let mut random = Random(seed);
        let ranges = 1 + random.below(5) as usize;
        let mut shared = make(ranges);
        let mut starts = vec![0; ranges];
        let mut values: Vec<M::Partial> = Vec::new();
        let haste = random.pick(&[1, 3, 20]);
        for step in 0..80 {
            let value = monoid.lift(&((random.next() >> 40) as i64));
            values.push(value.clone());
            shared.insert(value);
            // From the shortest range on, so that none overtakes a shorter one.
            let mut limit = values.len();
            for range in (0..ranges).rev() {
                let most = limit - starts[range];
                starts[range] += random.below(haste + 1).min(most as u64) as usize;
                limit = starts[range];
                shared.advance(range, starts[range]);
            }
            let mut answers = Vec::new();
            shared.answers(&mut answers);
            assert_eq!(answers.len(), ranges);
            for (start, got) in starts.iter().zip(&answers) {
                let want = fold(monoid, &values[*start..]);
                assert!(
                    monoid.same(got, &want),
                    "seed {seed}, step {step}: {got:?} instead of {want:?}"
                );
            }
        }
    }
}

#[test]
fn answers_are_folds_of_what_is_inside() {
    compare(&FirstTop, |ranges| SlickDequeRanges::new(FirstTop, ranges));
    compare(&Affine::<0>, |ranges| SharedSums::new(Affine, ranges));
    compare(&Tally::<0>, |ranges| SharedSums::new(Tally, ranges));
}

/// SlickDeque, example 3: max over the last 5 and the last 3 of a stream.
#[test]
fn the_example_of_the_paper() {
    let max = Extreme {
        dtype: DType::I64,
        min: false,
    };
    let mut shared = SlickDequeRanges::new(max, 2);
    let mut said = Vec::new();
    for (at, value) in [6, 5, 0, 1, 3, 4, 2, 7].into_iter().enumerate() {
        shared.insert(max.lift(&value));
        shared.advance(1, (at + 1).saturating_sub(3));
        shared.advance(0, (at + 1).saturating_sub(5));
        let mut answers = Vec::new();
        shared.answers(&mut answers);
        said.push([answers[0], answers[1]].map(|Top { word, .. }| word));
    }
    let wanted = [
        [6, 6],
        [6, 6],
        [6, 6],
        [6, 5],
        [6, 3],
        [5, 4],
        [4, 4],
        [7, 7],
    ];
    assert_eq!(said, wanted);
}

fn slide<M: Monoid, S: Shared<M>>(shared: &mut S, ranges: &[usize], at: usize, value: M::Partial) {
    shared.insert(value);
    for (range, length) in ranges.iter().enumerate().rev() {
        shared.advance(range, (at + 1).saturating_sub(*length));
    }
    shared.answers(&mut Vec::new());
}

/// Inv: a combine and an inverse per slide and range, whatever the range.
#[test]
fn sums_cost_two_per_slide_and_range() {
    for log in [0, 4, 10] {
        let ranges: Vec<usize> = (1..=1 << log).rev().collect();
        let mut shared = SharedSums::new(Affine::<0>, ranges.len());
        let full = ranges[0] + 10;
        for at in 0..full + 20 {
            take_combines();
            take_inverses();
            slide(&mut shared, &ranges, at, Affine::<0>.lift(&7));
            if at >= full {
                let (combines, inverses) = (take_combines(), take_inverses());
                let count = ranges.len() as u64;
                // A range of one value is emptied, which needs no inverse.
                assert!(
                    combines == count && inverses <= count,
                    "{combines}, {inverses}"
                );
            }
        }
    }
}

/// The value at a position.
type Order = fn(i64) -> i64;

/// Non-Inv: fewer than two comparisons per slide, amortised, for all ranges together,
/// whatever the input; descending input is where the deque fills up.
#[test]
fn extremes_cost_less_than_two_per_slide() {
    let orders: [(&str, Order); 4] = [
        ("descending", |at| -at),
        ("ascending", |at| at),
        ("a saw", |at| at % 1000),
        ("descending teeth", |at| -(at % 1000)),
    ];
    for (order, value) in orders {
        let mut total = 0;
        let mut shared = SlickDequeRanges::new(Counting, 3);
        let slides = 1 << 17;
        for at in 0..slides {
            take_combines();
            let value = Counting.lift(&value(at as i64));
            slide(&mut shared, &[1 << 16, 1 << 10, 16], at, value);
            total += take_combines();
        }
        assert!(
            total < 2 * slides as u64,
            "{order}: {total} in {slides} slides"
        );
    }
}

/// The maximum, counting comparisons.
#[derive(Clone, Debug)]
struct Counting;

impl Monoid for Counting {
    type In = i64;
    type Partial = i64;
    const SMALL: usize = 0;

    fn commutative(&self) -> bool {
        true
    }
    fn identity(&self) -> i64 {
        i64::MIN
    }
    fn lift(&self, value: &i64) -> i64 {
        *value
    }
    fn combine(&self, a: &i64, b: &i64) -> i64 {
        // Counted by the monoid that this borrows its counter from.
        FirstTop.combine(&FirstTop.identity(), &FirstTop.identity());
        *a.max(b)
    }
    fn unlift(&self, partial: i64) -> Result<i64, i64> {
        Ok(partial)
    }
    fn same(&self, a: &i64, b: &i64) -> bool {
        a == b
    }
}

impl slidewise_core::monoid::Selective for Counting {
    fn outdoes(&self, younger: &i64, older: &i64) -> bool {
        self.combine(older, younger) == *younger
    }
}
