//! The costs promised on fiba's card, asserted by counting combines.
//!
//! Every test runs window sizes from 2⁰ to 2¹³ (2²⁰ in `make test-long`) and a non-
//! commutative monoid that is queried after every single operation, so that no work is
//! deferred. Leaves of `L` and arity `F` are constants of the bounds: refolding a leaf takes
//! L − 1 combines, refolding a node F − 1.

use crate::common::Random;
use crate::common::costs::{arrivals, combines, log2, sizes};
use crate::common::monoids::{Affine, Tally, take_combines};
use slidewise_core::monoid::{Entry, Monoid};
use slidewise_core::window::fiba::Fiba;
use slidewise_core::window::{Batch, Ties, Window};

/// The gap between entries, for later ones.
const GAP: i64 = 1 << 20;

fn filled<M: Monoid<In = i64>, const L: usize, const F: usize>(
    monoid: M,
    n: usize,
) -> Fiba<M, L, F> {
    let mut window = Fiba::new(monoid, Ties::Combine);
    for item in 0..n as i64 {
        window.insert(item * GAP, Entry::Raw(item));
    }
    window.query();
    take_combines();
    window
}

/// Runs a test body for both extremes of shape.
macro_rules! both_shapes {
    ($($name:ident => $body:ident;)*) => {$(
        mod $name {
            #[test]
            fn narrow() {
                super::$body::<4, 4>();
            }
            #[test]
            fn wide() {
                super::$body::<64, 32>();
            }
            #[test]
            fn heavy() {
                super::$body::<16, 8>();
            }
        }
    )*};
}

both_shapes! {
    in_order => slides_in_order;
    by_time => slides_by_time;
    at_distance => permutations_of_distance;
    old_end => inserts_near_the_old_end;
    anywhere => evicts_at_distance;
    bulk_evict => evicts_in_bulk;
    bulk_insert => inserts_in_bulk;
    range => queries_ranges;
    fixed_gap => inserts_into_one_gap;
}

/// One level's share of a repair: a node and a product of the spine, both spines.
fn per_level<const F: usize>() -> f64 {
    4.0 * F as f64
}

fn slides_in_order<const L: usize, const F: usize>() {
    for log in sizes() {
        let n = 1_usize << log;
        let mut window = filled::<_, L, F>(Affine::<0>, n);
        let slides = 20_000;
        let mut total = 0.0;
        for item in n..n + slides {
            total += combines(|| {
                window.insert(item as i64 * GAP, Entry::Raw(7));
            });
            total += combines(|| {
                window.evict();
            });
            let query = combines(|| {
                window.query();
            });
            assert!(query <= 2.0, "a query took {query} combines at n = {n}");
        }
        let each = total / slides as f64;
        let bound = 4.0 + per_level::<F>() / L as f64 * 2.0;
        assert!(
            each <= bound,
            "{each} combines per slide at n = {n}, bound {bound}"
        );
    }
}

/// Eviction by time costs what eviction by count does, for any number of entries at once.
fn slides_by_time<const L: usize, const F: usize>() {
    for log in sizes() {
        let n = 1_usize << log;
        for m in [1, 2, 3, L / 3, L / 2, L, 3 * L]
            .into_iter()
            .filter(|m| *m <= n)
        {
            let mut window = filled::<_, L, F>(Affine::<0>, n);
            let slides = 20_000 / m * m;
            let total = combines(|| {
                for slide in (0..slides).step_by(m) {
                    for item in n + slide..n + slide + m {
                        window.insert(item as i64 * GAP, Entry::Raw(7));
                    }
                    assert_eq!(window.evict_until((slide + m - 1) as i64 * GAP), m);
                }
            });
            let each = total / slides as f64;
            let bound = 4.0 + per_level::<F>() / L as f64 * 2.0;
            assert!(
                each <= bound,
                "{each} per entry for m = {m} of n = {n}, bound {bound}"
            );
        }
    }
}

fn permutations_of_distance<const L: usize, const F: usize>() {
    let mut random = Random(3);
    for log in sizes() {
        let n = 1_usize << log;
        for d in [0, 1, 5, 64, 1000, 30_000].into_iter().filter(|d| *d <= n) {
            let mut window = filled::<_, L, F>(Affine::<0>, n);
            let count = 8_000.max(2 * d);
            let mut total = 0.0;
            for item in arrivals(&mut random, count, d) {
                total += combines(|| {
                    window.insert((n as i64 + item) * GAP, Entry::Raw(item));
                    window.query();
                });
                window.evict();
            }
            let each = total / count as f64;
            let bound = 6.0 + 2.5 * L as f64 + per_level::<F>() * log2(d) / 2.0;
            assert!(
                each <= bound,
                "{each} combines at n = {n}, d = {d}, bound {bound}"
            );
        }
    }
}

/// The left spine keeps its arity: `d` counts from the old end too, also after the
/// window has slid far and its old end was eaten away.
fn inserts_near_the_old_end<const L: usize, const F: usize>() {
    let mut random = Random(5);
    for log in sizes() {
        let n = 1_usize << log;
        for d in [0, 3, 100, 3000].into_iter().filter(|d| *d < n) {
            let mut window = filled::<_, L, F>(Affine::<0>, 2 * n);
            for _ in 0..n - 1 {
                window.evict();
            }
            let oldest = window.oldest().expect("n entries");
            let rounds = 3000;
            let total = combines(|| {
                for round in 0..rounds {
                    let site = oldest + random.below(d as u64 + 1) as i64 * GAP;
                    let early = site - GAP + 1 + round % (GAP - 1);
                    window.insert(early, Entry::Raw(round));
                    window.query();
                }
            });
            let each = total / rounds as f64;
            let reach = d + rounds as usize;
            let bound = 8.0 + 3.0 * L as f64 + per_level::<F>() * log2(reach) / 2.0;
            assert!(
                each <= bound,
                "{each} combines at n = {n}, d = {d}, bound {bound}"
            );
        }
    }
}

fn evicts_at_distance<const L: usize, const F: usize>() {
    let mut random = Random(11);
    for log in sizes() {
        let n = 1_usize << log;
        for d in [0, 10, 1000, 20_000].into_iter().filter(|d| 2 * d < n) {
            for from_old_end in [false, true] {
                let mut window = filled::<_, L, F>(Affine::<0>, n);
                let (mut total, mut hits) = (0.0, 0);
                for _ in 0..4000 {
                    let from_end = random.below(d as u64 + 1) as i64;
                    let item = if from_old_end {
                        from_end
                    } else {
                        n as i64 - 1 - from_end
                    };
                    total += combines(|| {
                        hits += usize::from(window.evict_at(item * GAP));
                        window.query();
                    });
                }
                let each = total / hits as f64;
                let misses = 2.0 * 4000.0 / hits as f64;
                let bound = misses + 5.0 * L as f64 + per_level::<F>() * log2(d) / 2.0;
                assert!(
                    each <= bound,
                    "{each} combines at n = {n}, d = {d}, bound {bound}"
                );
            }
        }
    }
}

fn evicts_in_bulk<const L: usize, const F: usize>() {
    for log in sizes() {
        let n = 1_usize << log;
        let mut m = 1;
        while m < n {
            let mut window = filled::<_, L, F>(Affine::<0>, n);
            let rounds = (n / m).min(64);
            let (mut total, mut worst) = (0.0, 0.0_f64);
            for round in 1..=rounds {
                let spent = combines(|| {
                    assert_eq!(window.evict_until((round * m - 1) as i64 * GAP), m);
                    window.query();
                });
                total += spent;
                worst = worst.max(spent);
            }
            let levels = log2(n) / log2(F / 2 - 2) + 3.0;
            let ends = 4.0 * L as f64 + 6.0;
            let bound = ends + per_level::<F>() * log2(m) / 2.0;
            let each = total / rounds as f64;
            assert!(
                each <= bound,
                "{each} combines for m = {m} of n = {n}, bound {bound}"
            );
            let bound = ends + per_level::<F>() * levels;
            assert!(
                worst <= bound,
                "worst {worst} for m = {m} of n = {n}, bound {bound}"
            );
            m *= 4;
        }
    }
}

fn inserts_in_bulk<const L: usize, const F: usize>() {
    let mut random = Random(17);
    for log in sizes() {
        let n = 1_usize << log;
        for d in [1, 100, 10_000, 500_000].into_iter().filter(|d| *d <= n) {
            for m in [1, 10, 1000, 20_000] {
                let mut window = filled::<_, L, F>(Affine::<0>, n);
                let youngest = n as i64 * GAP;
                let mut batch = Batch::with_capacity(m);
                for _ in 0..m {
                    let back = random.below(d as u64 * GAP as u64) as i64;
                    batch.push(youngest - back, Entry::Raw(back));
                }
                batch.sort();
                let spent = combines(|| {
                    batch.combine_ties(&Affine::<0>, Ties::Combine);
                    window.insert_batch(batch);
                    window.query();
                });
                let per_entry = 1.0 + (1.0 + d as f64 / m as f64).log2();
                let level = per_level::<F>();
                let constant = 3.0 * L as f64 + level;
                let bound = constant + level * log2(d) + m as f64 * per_entry * constant / 6.0;
                assert!(
                    spent <= bound,
                    "{spent} for m = {m}, d = {d}, n = {n}, bound {bound}"
                );
            }
        }
    }
}

fn queries_ranges<const L: usize, const F: usize>() {
    let mut random = Random(23);
    for log in sizes() {
        let n = 1_usize << log;
        let mut window = filled::<_, L, F>(Affine::<0>, n);
        for _ in 0..2000 {
            let sub = random.below(n as u64) as usize + 1;
            let from = random.below((n - sub) as u64 + 1) as usize;
            let to = from + sub - 1;
            let spent = combines(|| {
                window.query_range(from as i64 * GAP, to as i64 * GAP);
            });
            let d_from = from.min(n - from);
            let d_to = to.min(n - to);
            let levels = log2(d_from) + log2(d_to) + log2(sub);
            let bound = 2.0 * L as f64 + F as f64 * levels;
            assert!(
                spent <= bound,
                "{spent} for {from}..={to} of {n}, bound {bound}"
            );
        }
    }
}

/// A fixed gap, filled upwards and downwards: splits must not come in rows.
fn inserts_into_one_gap<const L: usize, const F: usize>() {
    for log in sizes() {
        let n = 1_usize << log;
        for down in [false, true] {
            for d in [0, 50, 5000].into_iter().filter(|d| *d < n) {
                let mut window = filled::<_, L, F>(Affine::<0>, n);
                let site = (n - d) as i64 * GAP - GAP;
                let rounds = 5000;
                let total = combines(|| {
                    for round in 1..=rounds {
                        let offset = if down { rounds + 1 - round } else { round };
                        window.insert(site + offset, Entry::Raw(round));
                        window.query();
                    }
                });
                let each = total / rounds as f64;
                let reach = d + if down { rounds as usize } else { 0 };
                let bound = 8.0 + 3.0 * L as f64 + per_level::<F>() * log2(reach) / 2.0;
                assert!(
                    each <= bound,
                    "{each} at n = {n}, d = {d}, down {down}, bound {bound}"
                );
            }
        }
    }
}

/// A commutative monoid stages: the amortised cost of a late insert is a few combines,
/// for any leaf size, and a query takes 2 with entries staged.
#[test]
fn staging_costs_few_combines() {
    let mut random = Random(29);
    for log in sizes() {
        let n = 1_usize << log;
        for d in [1, 64, 4096].into_iter().filter(|d| *d <= n) {
            let mut window = filled::<_, 64, 32>(Tally::<0>, n);
            let count = 40_000;
            let mut total = 0.0;
            for item in arrivals(&mut random, count, d) {
                total += combines(|| window.insert((n as i64 + item) * GAP, Entry::Raw(item)));
                let query = combines(|| {
                    window.query();
                });
                assert!(
                    query <= 2.0,
                    "a query took {query} combines at n = {n}, d = {d}"
                );
                window.evict();
            }
            let each = total / count as f64;
            let bound = 10.0 + 4.0 * log2(d);
            assert!(
                each <= bound,
                "{each} combines at n = {n}, d = {d}, bound {bound}"
            );
        }
    }
}
