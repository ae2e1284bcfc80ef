//! SlickDeque's Table 1, §4.2: how many partials a structure keeps per entry of a window
//! that has slid for a while. Partials are so wide that nothing beside them counts: the
//! table counts FlatFIT's pointers and SlickDeque's positions, too, one for each partial.
//! Rings are as large as the next power of two, so sizes are powers of two.

use slidewise_core::aggregate::record::{RecordPlan, Words};
use slidewise_core::aggregate::short_words::{ShortRecord, ShortRow};
use slidewise_core::aggregate::{AggSpec, DType, Kind};
use slidewise_core::monoid::{Invertible, Monoid, Selective};
use slidewise_core::window::fifo::Fifo;
use slidewise_core::window::fifo::daba_lite::DabaLite;
use slidewise_core::window::fifo::flat_fit::FlatFit;
use slidewise_core::window::fifo::shared::Shared;
use slidewise_core::window::fifo::slick_deque::SlickDeque;
use slidewise_core::window::fifo::slick_deque_inv::SlickDequeInv;
use slidewise_core::window::fifo::subtract_on_evict::SubtractOnEvict;
use slidewise_core::window::fifo::two_stacks_lite::TwoStacksLite;
use slidewise_core::window::recalculate::RecalculateQueue;
use slidewise_papers::fifo::aba::Aba;
use slidewise_papers::fifo::b_int::BInt;
use slidewise_papers::fifo::daba::Daba;
use slidewise_papers::fifo::flat_fat::FlatFatQueue;
use slidewise_papers::fifo::two_stacks::TwoStacks;

type Wide = [u64; 64];

/// A word in a partial of many: its sum, or by `dominates` its maximum.
#[derive(Clone, Debug)]
struct WideWord;

impl Monoid for WideWord {
    type In = i64;
    type Partial = Wide;
    const SMALL: usize = 0;

    fn commutative(&self) -> bool {
        true
    }
    fn identity(&self) -> Wide {
        [0; 64]
    }
    fn lift(&self, value: &i64) -> Wide {
        let mut partial = self.identity();
        partial[0] = *value as u64;
        partial
    }
    fn combine(&self, x: &Wide, y: &Wide) -> Wide {
        self.lift(&(x[0].wrapping_add(y[0]) as i64))
    }
    fn unlift(&self, partial: Wide) -> Result<i64, Wide> {
        Err(partial)
    }
    fn same(&self, a: &Wide, b: &Wide) -> bool {
        a == b
    }
}

impl Invertible for WideWord {
    fn inverse(&self, whole: &Wide, oldest: &Wide) -> Wide {
        self.lift(&(whole[0].wrapping_sub(oldest[0]) as i64))
    }
}

impl Selective for WideWord {
    type Part = Wide;

    fn part(&self, _part: usize, partial: &Wide) -> Wide {
        *partial
    }
    fn replace(&self, _part: usize, partial: &mut Wide, by: &Wide) {
        *partial = *by;
    }
    fn dominates(&self, _part: usize, younger: &Wide, older: &Wide) -> bool {
        younger[0] >= older[0]
    }
}

/// Partials per entry of a full window that has slid by four of its lengths; of values
/// that rise, or that fall.
fn partials<F: Fifo<WideWord>>(mut fifo: F, n: usize, rising: bool) -> f64 {
    for at in 0..5 * n {
        let value = if rising { at } else { 5 * n - at };
        if at >= n {
            fifo.evict();
        }
        fifo.insert(WideWord.lift(&(value as i64)));
        fifo.query();
    }
    fifo.bytes() as f64 / (n * size_of::<Wide>()) as f64
}

#[test]
fn structures_keep_the_partials_of_table_1() {
    for n in [64, 256] {
        let kept = [
            (
                "naive",
                1.0,
                partials(RecalculateQueue::new(WideWord), n, true),
            ),
            (
                "FlatFAT",
                2.0,
                partials(FlatFatQueue::new(WideWord, n), n, true),
            ),
            ("B-Int", 2.0, partials(BInt::new(WideWord), n, true)),
            ("FlatFIT", 1.0, partials(FlatFit::new(WideWord), n, true)),
            ("DABA", 2.0, partials(Daba::new(WideWord, false), n, true)),
            (
                "Inv",
                1.0,
                partials(SlickDequeInv::new(WideWord, 1), n, true),
            ),
            (
                "Non-Inv, the best",
                0.0,
                partials(SlickDeque::new(WideWord), n, true),
            ),
            (
                "Non-Inv, the worst",
                1.0,
                partials(SlickDeque::new(WideWord), n, false),
            ),
            // Each stack keeps room for all entries, which the table leaves out.
            (
                "TwoStacks",
                4.0,
                partials(TwoStacks::new(WideWord, false), n, true),
            ),
            // Not in the table.
            ("ABA", 2.0, partials(Aba::new(WideWord, false), n, true)),
            ("DABA Lite", 1.0, partials(DabaLite::new(WideWord), n, true)),
            (
                "Two-Stacks Lite",
                1.0,
                partials(TwoStacksLite::new(WideWord), n, true),
            ),
            (
                "Panes (Inv)",
                1.0,
                partials(SubtractOnEvict::new(WideWord), n, true),
            ),
        ];
        for (name, expected, found) in kept {
            assert!((found - expected).abs() < 0.2, "{name}: {found} of {n}");
        }
    }
}

/// Inv keeps an answer for each range beside its entries: n + n of them.
#[test]
fn ranges_take_a_partial_each() {
    let n = 64;
    let mut fifo = SlickDequeInv::new(WideWord, n);
    for at in 0..3 * n {
        if at >= n {
            fifo.evict();
        }
        fifo.insert(WideWord.lift(&1));
        let counts: Vec<usize> = (1..=n).rev().map(|range| range.min(fifo.len())).collect();
        fifo.slide(&counts);
    }
    let found = fifo.bytes() as f64 / (n * size_of::<Wide>()) as f64;
    assert!((found - 2.0).abs() < 0.2, "{found}");
}

/// A candidate is a position and one part, up to three words, however many parts there are.
#[test]
fn candidates_keep_one_part_each() {
    let n = 256;
    for columns in [1, 2, 24] {
        let max = |of| AggSpec {
            kind: Kind::Max,
            of: Some(of),
            by: None,
            ddof: 0,
        };
        let aggs: Vec<AggSpec> = (0..columns).map(max).collect();
        let plan = RecordPlan::selective(&aggs, &vec![DType::I64; columns]);
        let record = ShortRecord::new(plan.expect("maxima select"));
        let mut fifo = SlickDeque::new(record.clone());
        // Falling values are all candidates for the maxima.
        for value in (0..n as u64).rev() {
            let mut row = ShortRow::zeroed(columns);
            row.as_mut()[..columns].fill(value);
            fifo.insert(record.lift(&row));
        }
        let deques = columns * (n + 8);
        let most = deques * 4 * size_of::<u64>();
        assert!(fifo.bytes() <= most, "{} of {columns}", fifo.bytes());
    }
}
