//! The costs promised on the cards of btree and fiba_published, asserted by counting
//! combines: window sizes from 2⁰ to 2¹³ (2²⁰ in `make test-long`), a non-commutative
//! monoid, a query after every operation.
//!
//! Refolding a node of arity a takes up to 2a − 2 combines, and on a spine one more: with
//! minimum arity μ, `node = 4μ − 1`. That is the constant of every bound. A tree of n
//! entries has at most `levels` levels, log to the base μ.

use crate::common::Random;
use crate::common::costs::{arrivals, combines, log2, sizes};
use crate::common::monoids::Affine;
use slidewise_core::monoid::Entry;
use slidewise_core::window::{Batch, Ties, Window};
use slidewise_papers::btree::BTree;
use slidewise_papers::btree::Options;

const ARITIES: [usize; 4] = [2, 4, 8, 16];
/// The gap between entries, for later ones.
const GAP: i64 = 1 << 20;

type Tree = BTree<Affine<0>>;

fn fiba(arity: usize) -> Tree {
    BTree::with_fingers(Affine::<0>, Ties::Combine, arity, Options::default())
}

fn filled(mut tree: Tree, n: usize) -> Tree {
    let mut batch = Batch::with_capacity(n);
    for item in 0..n as i64 {
        batch.push(item * GAP, Entry::Raw(item));
    }
    tree.insert_batch(batch);
    tree
}

/// The combines of refolding one node.
fn node(arity: usize) -> f64 {
    4.0 * arity as f64 - 1.0
}

/// Levels of a tree of n entries, at most.
fn levels(arity: usize, n: usize) -> f64 {
    1.0 + (2.0 + n as f64).log2() / (arity as f64).log2()
}

/// Checks a figure against its bound; the message has both.
fn require(figure: f64, bound: f64, what: std::fmt::Arguments<'_>) {
    if std::env::var("SLIDEWISE_SHOW").is_ok() {
        println!("{what}: {figure:.1} of {bound:.1} ({:.2})", figure / bound);
    }
    assert!(figure <= bound, "{what}: {figure} combines, bound {bound}");
}

#[test]
fn the_classic_tree_takes_o_log_n_worst_case() {
    let mut random = Random(2);
    for log in sizes() {
        let n = 1_usize << log;
        for arity in ARITIES {
            let mut tree = filled(BTree::new(Affine::<0>, Ties::Combine, arity), n);
            // Search path up, and as much again for splits and merges.
            let bound = (levels(arity, n) + 1.5) * node(arity);
            for item in 0..2000 {
                let time = random.below(n as u64 * GAP as u64) as i64;
                let late = combines(|| tree.insert(time, Entry::Raw(item)));
                require(late, bound, format_args!("insert, μ {arity}, n {n}"));
                let oldest = combines(|| tree.evict());
                require(oldest, bound, format_args!("evict, μ {arity}, n {n}"));
                let any = random.below(n as u64) as i64 * GAP;
                let inner = combines(|| tree.evict_at(any));
                require(inner, bound, format_args!("evict at, μ {arity}, n {n}"));
                let query = combines(|| tree.query());
                require(query, 0.0, format_args!("query, μ {arity}, n {n}"));
                tree.insert((n as i64 + item) * GAP, Entry::Raw(item));
            }
        }
    }
}

/// A change below an outermost child takes two combines per level. Beside them, a slide folds
/// its leaves and what splits and merges change.
#[test]
fn the_classic_tree_folds_no_node_again_for_a_change_at_its_ends() {
    for log in sizes().filter(|log| *log > 8) {
        let n = 1_usize << log;
        for arity in ARITIES {
            let mut tree = filled(BTree::new(Affine::<0>, Ties::Combine, arity), n);
            let slides = 4 * n;
            let mut total = 0.0;
            for item in n..n + slides {
                total += combines(|| tree.evict());
                total += combines(|| tree.insert(item as i64 * GAP, Entry::Raw(7)));
            }
            let each = total / slides as f64;
            let bound = 4.0 * levels(arity, n) + 4.0 * arity as f64;
            require(each, bound, format_args!("slide, μ {arity}, n {n}"));
        }
    }
}

#[test]
fn fiba_slides_in_order_in_amortised_constant_time() {
    for log in sizes() {
        let n = 1_usize << log;
        for arity in ARITIES {
            let mut tree = filled(fiba(arity), n);
            let slides = 20_000;
            let mut total = 0.0;
            for item in n..n + slides {
                total += combines(|| tree.insert(item as i64 * GAP, Entry::Raw(7)));
                total += combines(|| tree.evict());
                let query = combines(|| tree.query());
                require(query, 2.0, format_args!("query, μ {arity}, n {n}"));
            }
            let each = total / slides as f64;
            let bound = 2.0 * node(arity);
            require(each, bound, format_args!("slide, μ {arity}, n {n}"));
        }
    }
}

/// One way up and one down for each level that d entries make, and what is amortised.
fn by_distance(arity: usize, d: usize) -> f64 {
    1.5 * (1.0 + levels(arity, d)) * node(arity)
}

#[test]
fn fiba_inserts_in_amortised_o_log_d() {
    let mut random = Random(3);
    for log in sizes() {
        let n = 1_usize << log;
        for arity in ARITIES {
            let full = filled(fiba(arity), n);
            for d in [0, 1, 5, 64, 1000, 30_000].into_iter().filter(|d| *d <= n) {
                let mut tree = full.clone();
                let count = 4_000.max(2 * d);
                let mut total = 0.0;
                for item in arrivals(&mut random, count, d) {
                    let time = (n as i64 + item) * GAP;
                    total += combines(|| tree.insert(time, Entry::Raw(item)));
                    tree.evict();
                }
                let each = total / count as f64;
                let what = format_args!("insert, μ {arity}, n {n}, d {d}");
                require(each, by_distance(arity, d), what);
            }
        }
    }
}

/// Times below an inner child of the root, of a tree grown in order until it has one.
fn grown(tree: &mut Tree) -> (i64, i64) {
    for item in 0.. {
        tree.insert(item * GAP, Entry::Raw(item));
        if item >= 5_000 && item % 500 == 0 {
            let root = tree.shape().expect("a tree").nodes.swap_remove(0);
            if root.children.len() > 2 {
                return (root.times[0], root.times[1]);
            }
        }
    }
    unreachable!("roots split at last");
}

/// The root hands nothing down, so a change below its inner children costs the path up, as
/// in the classic tree of the same nodes.
#[test]
fn a_change_of_the_root_alone_goes_no_further() {
    for arity in ARITIES {
        let mut classic = BTree::new(Affine::<0>, Ties::Combine, arity);
        let mut with_fingers = fiba(arity);
        let (from, to) = grown(&mut classic);
        assert_eq!(grown(&mut with_fingers), (from, to));
        for part in 1..8 {
            let time = from + (to - from) / 8 * part + 1;
            let bound = combines(|| classic.insert(time, Entry::Raw(part)));
            let insert = combines(|| with_fingers.insert(time, Entry::Raw(part)));
            require(insert, bound, format_args!("insert, μ {arity}"));
            let bound = combines(|| classic.evict_at(time));
            let evict = combines(|| with_fingers.evict_at(time));
            require(evict, bound, format_args!("evict at, μ {arity}"));
        }
    }
}

#[test]
fn fiba_counts_distance_from_the_old_end_too() {
    let mut random = Random(5);
    for log in sizes() {
        let n = 1_usize << log;
        for arity in ARITIES {
            let mut slid = filled(fiba(arity), n + n.min(50_000));
            for _ in 0..n.min(50_000) - 1 {
                slid.evict();
            }
            for d in [0, 3, 100, 3000].into_iter().filter(|d| *d < n) {
                let mut tree = slid.clone();
                let oldest = tree.oldest().expect("n entries");
                let rounds = 3000;
                let total = combines(|| {
                    for round in 0..rounds {
                        let site = oldest + random.below(d as u64 + 1) as i64 * GAP;
                        tree.insert(site - GAP + 1 + round % (GAP - 1), Entry::Raw(round));
                    }
                });
                let each = total / rounds as f64;
                let bound = by_distance(arity, d + rounds as usize);
                let what = format_args!("early insert, μ {arity}, n {n}, d {d}");
                require(each, bound, what);
            }
        }
    }
}

#[test]
fn fiba_evicts_anywhere_in_amortised_o_log_d() {
    let mut random = Random(11);
    for log in sizes() {
        let n = 1_usize << log;
        for arity in ARITIES {
            let full = filled(fiba(arity), n);
            for d in [0, 10, 1000, 20_000].into_iter().filter(|d| 2 * d < n) {
                for from_old_end in [false, true] {
                    let mut tree = full.clone();
                    let (mut total, mut hits) = (0.0, 0);
                    for _ in 0..4000 {
                        let from_end = random.below(d as u64 + 1) as i64;
                        let item = match from_old_end {
                            true => from_end,
                            false => n as i64 - 1 - from_end,
                        };
                        total += combines(|| hits += usize::from(tree.evict_at(item * GAP)));
                    }
                    let each = total / hits as f64;
                    let what = format_args!("evict at, μ {arity}, n {n}, d {d}");
                    require(each, by_distance(arity, d), what);
                }
            }
        }
    }
}

#[test]
fn fiba_evicts_in_bulk_in_amortised_o_log_m() {
    for log in sizes() {
        let n = 1_usize << log;
        for arity in ARITIES {
            let full = filled(fiba(arity), n);
            let mut m = 1;
            while m < n {
                let mut tree = full.clone();
                let rounds = (n / m).min(64);
                let (mut total, mut worst) = (0.0, 0.0_f64);
                for round in 1..=rounds {
                    let time = (round * m - 1) as i64 * GAP;
                    let spent = combines(|| assert_eq!(tree.evict_until(time), m));
                    total += spent;
                    worst = worst.max(spent);
                }
                let what = format_args!("bulk evict, μ {arity}, n {n}, m {m}");
                require(total / rounds as f64, by_distance(arity, m), what);
                let bound = (1.0 + levels(arity, n)) * node(arity);
                let what = format_args!("worst bulk evict, μ {arity}, n {n}, m {m}");
                require(worst, bound, what);
                m *= 8;
            }
        }
    }
}

#[test]
fn fiba_inserts_in_bulk_sharing_paths() {
    let mut random = Random(17);
    for log in sizes() {
        let n = 1_usize << log;
        for arity in ARITIES {
            let full = filled(fiba(arity), n);
            for d in [1, 100, 10_000, 500_000].into_iter().filter(|d| *d <= n) {
                for m in [1, 10, 1000, 20_000] {
                    let mut tree = full.clone();
                    let youngest = n as i64 * GAP;
                    let mut batch = Batch::with_capacity(m);
                    for _ in 0..m {
                        let back = random.below(d as u64 * GAP as u64) as i64;
                        batch.push(youngest - back, Entry::Raw(back));
                    }
                    batch.sort();
                    batch.combine_ties(&Affine::<0>, Ties::Combine);
                    let spent = combines(|| tree.insert_batch(batch));
                    let shared = 1.0 + (1.0 + d as f64 / m as f64).log2() / (arity as f64).log2();
                    let bound = by_distance(arity, d) + m as f64 * shared * node(arity) / 2.0;
                    let what = format_args!("bulk insert, μ {arity}, n {n}, d {d}, m {m}");
                    require(spent, bound, what);
                }
            }
        }
    }
}

#[test]
fn both_answer_ranges_in_o_log() {
    let mut random = Random(23);
    for log in sizes() {
        let n = 1_usize << log;
        for arity in ARITIES {
            let mut fingers = filled(fiba(arity), n);
            let mut classic = filled(BTree::new(Affine::<0>, Ties::Combine, arity), n);
            for _ in 0..500 {
                let sub = random.below(n as u64) as usize + 1;
                let from = random.below((n - sub) as u64 + 1) as usize;
                let to = from + sub - 1;
                let (lo, hi) = (from as i64 * GAP, to as i64 * GAP);
                let spent = combines(|| fingers.query_range(lo, hi));
                let ends = log2(from.min(n - from)) + log2(to.min(n - to)) + log2(sub);
                let bound = node(arity) * (1.0 + ends / (arity as f64).log2());
                require(spent, bound, format_args!("range, μ {arity}, n {n}"));
                let spent = combines(|| classic.query_range(lo, hi));
                let bound = node(arity) * levels(arity, n);
                require(
                    spent,
                    bound,
                    format_args!("classic range, μ {arity}, n {n}"),
                );
            }
        }
    }
}

/// A fixed gap, filled upwards and downwards: splits must not come in rows.
#[test]
fn fiba_fills_one_gap() {
    for log in sizes() {
        let n = 1_usize << log;
        for arity in ARITIES {
            let full = filled(fiba(arity), n);
            for d in [0, 50, 5000].into_iter().filter(|d| *d < n) {
                for down in [false, true] {
                    let mut tree = full.clone();
                    let site = (n - d) as i64 * GAP - GAP;
                    let rounds = 5000;
                    let total = combines(|| {
                        for round in 1..=rounds {
                            let offset = if down { rounds + 1 - round } else { round };
                            tree.insert(site + offset, Entry::Raw(round));
                        }
                    });
                    let reach = d + if down { rounds as usize } else { 0 };
                    let what = format_args!("gap, μ {arity}, n {n}, d {d}, down {down}");
                    require(total / rounds as f64, by_distance(arity, reach), what);
                }
            }
        }
    }
}

/// Filling and draining around a split: the amortised bound must hold for each return.
#[test]
fn fiba_oscillates_at_any_size() {
    for log in sizes() {
        let n = 1_usize << log;
        for arity in ARITIES {
            let full = filled(fiba(arity), n);
            for swing in [1, arity, 3 * arity] {
                let mut tree = full.clone();
                let rounds = 2000;
                let total = combines(|| {
                    for round in 0..rounds {
                        for item in 0..swing as i64 {
                            tree.insert((n as i64 + item) * GAP, Entry::Raw(round));
                        }
                        for item in (0..swing as i64).rev() {
                            tree.evict_at((n as i64 + item) * GAP);
                        }
                    }
                });
                let each = total / (2 * rounds * swing as i64) as f64;
                let what = format_args!("swing {swing}, μ {arity}, n {n}");
                require(each, by_distance(arity, swing), what);
            }
        }
    }
}
