//! Counts of FiBA's steps other than combines: nodes that a search visits, the coins of
//! Lemma C.1, nodes that bulk inserts touch and restructure (Lemmas 1 and 2), frees that the
//! free list puts off, entries that staging holds back, and the lower bound of Theorem 2.2.

use crate::common::Random;
use crate::common::costs::{all_sizes, combines, log2};
use crate::common::monoids::{Affine, Tally};
use crate::common::owned::in_bytes;
use slidewise_core::monoid::{Entry, Monoid};
use slidewise_core::window::fiba::Fiba;
use slidewise_core::window::shape::Shape;
use slidewise_core::window::steps::{Step, take};
use slidewise_core::window::{Batch, Ties, Window};
use slidewise_papers::btree::BTree;
use slidewise_papers::btree::Options;

const ARITIES: [usize; 4] = [2, 4, 8, 16];
/// Room between entries for others to come.
const GAP: i64 = 1 << 20;

fn exponents() -> impl Iterator<Item = u32> {
    [10, 13, 15, 20]
        .into_iter()
        .filter(|log| all_sizes() || *log < 15)
}

fn fill<M: Monoid<In: From<i64>>, W: Window<M>>(mut window: W, n: usize) -> W {
    let mut batch = Batch::with_capacity(n);
    for item in 0..n as i64 {
        batch.push(item * GAP, Entry::Raw(item.into()));
    }
    window.insert_batch(batch);
    window
}

fn published<M: Monoid>(monoid: M, arity: usize, options: Options) -> BTree<M> {
    BTree::with_fingers(monoid, Ties::Combine, arity, options)
}

fn fingers(arity: usize) -> BTree<Affine<0>> {
    published(Affine::<0>, arity, Options::default())
}

fn steps<T>(step: Step, work: impl FnOnce() -> T) -> u64 {
    take(step);
    work();
    take(step)
}

/// log of 1 + x to the base of the arity, rounded up.
fn levels(arity: usize, x: usize) -> f64 {
    ((1.0 + x as f64).log2() / (arity as f64).log2()).ceil()
}

/// Up a spine and down again, each as far as d entries reach; the root's separators.
fn search_bound(arity: usize, d: usize) -> u64 {
    2 * levels(arity, d) as u64 + 3
}

/// The most visits of inserts at distance d from the later end, evicts at distance d from
/// both, and queries of entries d to 2d from the earlier one.
fn search_visits(mut tree: BTree<Affine<0>>, n: usize, d: usize) -> [u64; 3] {
    let mut most = [0; 3];
    for round in 0..20 {
        let at = |item: usize| item as i64 * GAP;
        let late = at(n - 1 - d) - 1 - round;
        let insert = steps(Step::Visit, || tree.insert(late, Entry::Raw(1)));
        let undo = steps(Step::Visit, || assert!(tree.evict_at(late)));
        let early = at(d) + 1 + round;
        tree.insert(early, Entry::Raw(1));
        let evict = steps(Step::Visit, || assert!(tree.evict_at(early)));
        let range = steps(Step::Visit, || tree.query_range(at(d), at(2 * d)));
        most = [
            most[0].max(insert),
            most[1].max(undo).max(evict),
            most[2].max(range),
        ];
    }
    most
}

#[test]
fn a_search_visits_nodes_by_the_distance() {
    for log in exponents() {
        let n = 1_usize << log;
        for arity in ARITIES {
            let full = fill(fingers(arity), n);
            for d in [0, 1, 5, 64, 1000, 30_000]
                .into_iter()
                .filter(|d| 4 * d < n)
            {
                let bound = search_bound(arity, d);
                let [insert, evict, range] = search_visits(full.clone(), n, d);
                let what = format!("μ {arity}, n {n}, d {d}: bound {bound}");
                assert!(insert <= bound, "insert visits {insert}, {what}");
                assert!(evict <= bound, "evict visits {evict}, {what}");
                assert!(range <= 2 * bound, "range visits {range}, {what}");
                assert!(insert.min(evict).min(range) > 0, "{what}");
            }
        }
    }
}

/// The bound would tell: from the root, as the classic tree searches, all ends are as far
/// as the tree is high.
#[test]
fn a_search_from_the_root_visits_more_than_the_bound() {
    let n = 1 << 15;
    for arity in [2, 4, 8] {
        let classic = fill(BTree::new(Affine::<0>, Ties::Combine, arity), n);
        let [insert, evict, _] = search_visits(classic, n, 0);
        let bound = search_bound(arity, 0);
        assert!(
            insert > bound && evict > bound,
            "{insert}, {evict}: {bound}"
        );
    }
}

/// The same of `fiba`, whose leaves and nodes are as small as can be here, and so its tree
/// high; a query after each insert leaves nothing staged.
#[test]
fn fiba_visits_nodes_by_the_distance() {
    for log in exponents() {
        let n = 1_usize << log;
        let full = fill(Fiba::<_, 4, 4>::new(Affine::<0>, Ties::Combine), n);
        let height = full.clone().shape().expect("a tree").nodes[0].level as u64;
        assert!(height >= 4 && height > search_bound(2, 0) - 3, "{height}");
        for d in [0, 1, 5, 64, 1000, 30_000]
            .into_iter()
            .filter(|d| 4 * d < n)
        {
            let bound = 2 * levels(2, d) as u64 + 4;
            let mut tree = full.clone();
            for round in 0..20 {
                for base in [(n - 1 - d) as i64, d as i64] {
                    let time = base * GAP - 1 - round;
                    let insert = steps(Step::Visit, || {
                        tree.insert(time, Entry::Raw(1));
                        tree.query();
                    });
                    let evict = steps(Step::Visit, || tree.evict_at(time));
                    let what = format!("n {n}, d {d}: bound {bound}, height {height}");
                    assert!(insert <= bound, "insert visits {insert}, {what}");
                    assert!(evict <= bound, "evict visits {evict}, {what}");
                }
            }
        }
    }
}

/// The coins of Lemma C.1 that a tree holds.
pub fn coins<P>(shape: &Shape<P>, arity: usize) -> i64 {
    let of = |(at, node): (usize, &slidewise_core::window::shape::Node<P>)| {
        let a = node.times.len() + 1;
        match (at == 0, a) {
            (_, a) if a > 2 * arity => 4,
            (_, a) if a == 2 * arity => 2,
            (false, a) if a < arity => 2,
            (false, a) if a == arity => 1,
            _ => 0,
        }
    };
    shape.nodes.iter().enumerate().map(of).sum()
}

/// Splits, merges and moves since the last call: a coin each.
fn spent() -> u64 {
    [Step::Split, Step::Merge, Step::Borrow]
        .map(take)
        .iter()
        .sum()
}

/// Lemma C.1: a split, merge or move costs a coin, and no insert or evict is billed more
/// than two for what it spends and what the tree then holds.
#[test]
fn no_operation_is_billed_more_than_two_coins() {
    let mut most = 0;
    for arity in [2, 4, 8] {
        for seed in 0..12 {
            let mut random = Random(seed);
            let mut tree = fingers(arity);
            let mut held = 0;
            spent();
            for step in 0..700_i64 {
                // Grows, then shrinks; at the ends, and anywhere.
                let grows = random.below(10) < if step % 400 < 250 { 8 } else { 3 };
                match (seed % 3, grows) {
                    (0, true) => tree.insert(step * GAP, Entry::Raw(1)),
                    (1, true) => tree.insert(-step * GAP, Entry::Raw(1)),
                    (_, true) => tree.insert(random.below(1 << 40) as i64, Entry::Raw(1)),
                    (0, false) => _ = tree.evict(),
                    (_, false) => {
                        let mut times = Vec::new();
                        tree.for_each(&mut |time, _| times.push(time));
                        if !times.is_empty() {
                            tree.evict_at(random.pick(&times));
                        }
                    }
                }
                let holds = coins(&tree.shape().expect("a tree"), arity);
                let billed = spent() as i64 + holds - held;
                assert!(
                    billed <= 2,
                    "{billed} coins at step {step}, μ {arity}, {seed}"
                );
                most = most.max(billed);
                held = holds;
            }
        }
    }
    assert_eq!(most, 2, "an operation needs both");
}

/// So all of them together spend at most two each, from an empty tree; filling one spends
/// a coin for each node at least.
#[test]
fn restructuring_takes_two_steps_at_most_amortised() {
    for log in exponents() {
        let n = 1_i64 << log;
        for arity in ARITIES {
            let mut random = Random(3);
            let mut tree = fingers(arity);
            spent();
            for item in 0..n {
                tree.insert(item * GAP, Entry::Raw(1));
            }
            let filling = spent() as i64;
            assert!(filling <= 2 * n, "{filling} steps, μ {arity}, n {n}");
            assert!(
                filling >= n / (2 * arity as i64),
                "{filling} steps, μ {arity}, n {n}"
            );
            let mut operations = n;
            for item in n..2 * n {
                tree.evict();
                tree.insert(
                    item * GAP - random.below(n as u64) as i64 * GAP,
                    Entry::Raw(1),
                );
                tree.evict_at((item - random.below(n as u64) as i64) * GAP);
                operations += 3;
            }
            let all = filling + spent() as i64;
            assert!(all <= 2 * operations, "{all} steps, μ {arity}, n {n}");
        }
    }
}

/// Times within d entries from the later end, m of them.
fn late(random: &mut Random, n: usize, d: usize, m: usize) -> Batch<Affine<0>> {
    let mut batch = Batch::with_capacity(m);
    for _ in 0..m {
        let back = random.below(d as u64 * GAP as u64) as i64;
        batch.push((n as i64 - 1) * GAP - back, Entry::Raw(1));
    }
    batch.sort();
    batch.combine_ties(&Affine::<0>, Ties::Combine);
    batch
}

/// Lemmas 1 and 2: nodes on the ways to m sites within d, and splits.
#[test]
fn a_bulk_insert_shares_ways_and_splits() {
    let mut random = Random(17);
    for log in exponents() {
        let n = 1_usize << log;
        for arity in ARITIES {
            let full = fill(fingers(arity), n);
            for d in [1, 100, 10_000, 500_000].into_iter().filter(|d| *d <= n) {
                for m in [1, 10, 1000, 20_000] {
                    let mut tree = full.clone();
                    let batch = late(&mut random, n, d, m);
                    spent();
                    let visits = steps(Step::Visit, || tree.insert_batch(batch));
                    let restructuring = spent();
                    // Nodes below the top, per site.
                    let nodes = (d + m) as f64 / arity as f64 / m as f64;
                    let shared = 1.0 + (1.0 + nodes).log2() / (2.0 * arity as f64).log2();
                    let ends = search_bound(arity, d) as f64;
                    let bound = ends + 2.0 * m as f64 * shared;
                    let what = format!("μ {arity}, n {n}, d {d}, m {m}");
                    assert!(visits as f64 <= bound, "{visits} visits, {what}: {bound}");
                    assert!(
                        restructuring <= 2 * m as u64 + 2,
                        "{restructuring} splits, {what}"
                    );
                    let nodes = m.saturating_sub(2 * arity * d.min(m)) as u64;
                    assert!(restructuring >= nodes / (2 * arity as u64), "{what}");
                }
            }
        }
    }
}

/// Lemma 2, amortised over bulk inserts and evicts by turns: two coins per entry, and what
/// a bulk evict spends on the levels it passes.
#[test]
fn bulk_operations_restructure_two_steps_per_entry() {
    let mut random = Random(19);
    for arity in ARITIES {
        for m in [1, 7, 64, 1000] {
            let n = 1 << 13;
            let mut tree = fill(fingers(arity), n);
            let (mut steps, mut bound) = (0, 0.0);
            spent();
            for round in 1..=100 {
                tree.insert_batch(late(&mut random, n, 4096, m));
                tree.evict_until(round * 20 * GAP);
                steps += spent();
                bound += 2.0 * m as f64 + 2.0 * levels(arity, m + 20) + 2.0;
            }
            assert!(
                steps as f64 <= bound,
                "{steps} steps, μ {arity}, m {m}: {bound}"
            );
        }
    }
}

/// Claim 1: any number of entries splits a node into others of arities that are allowed.
#[test]
fn a_node_splits_into_any_number() {
    for arity in ARITIES {
        for p in 1..=40 * arity as i64 {
            let mut tree = fingers(arity);
            for item in 0..2 * arity as i64 - 1 {
                tree.insert(item * GAP, Entry::Raw(1));
            }
            let mut batch = Batch::with_capacity(p as usize);
            (1..=p).for_each(|item| batch.push(item, Entry::Raw(1)));
            tree.insert_batch(batch);
            tree.check()
                .unwrap_or_else(|error| panic!("μ {arity}, {p} more: {error}"));
        }
    }
}

struct Freed {
    cut: u64,
    freed: u64,
    /// Of inserts that follow: the most nodes freed beyond those that were allocated.
    excess: i64,
}

fn freed<M: Monoid<In: From<i64>>, W: Window<M>>(mut tree: W, n: usize, m: usize) -> Freed {
    _ = [Step::Cut, Step::Free].map(take);
    assert_eq!(tree.evict_until((m as i64 - 1) * GAP), m);
    let (cut, freed) = (take(Step::Cut), take(Step::Free));
    let mut excess = i64::MIN;
    for item in n..n + 2 * m {
        take(Step::Allocate);
        tree.insert(item as i64 * GAP, Entry::Raw(1.into()));
        excess = excess.max(take(Step::Free) as i64 - take(Step::Allocate) as i64);
    }
    tree.check().expect("a sound tree");
    Freed { cut, freed, excess }
}

/// §6: a bulk evict of m entries cuts O(log m) subtrees and frees O(log m) nodes; the rest
/// goes a node per allocation. Without the list, and where partials own memory, all
/// nodes of m entries go at once, each once.
#[test]
fn the_free_list_puts_off_all_but_a_path() {
    let deferred = Options::default();
    let at_once = Options {
        free_list: false,
        ..deferred
    };
    for log in exponents() {
        let n = 1_usize << log;
        for arity in ARITIES {
            for m in [1, 20, 500, 20_000].into_iter().filter(|m| 2 * m < n) {
                let what = format!("μ {arity}, n {n}, m {m}");
                let path = levels(arity, m) as u64 + 2;
                let later = freed(fill(fingers(arity), n), n, m);
                assert!(
                    later.cut <= 2 * arity as u64 * path,
                    "{} cuts, {what}",
                    later.cut
                );
                assert!(later.freed <= 2 * path, "{} freed, {what}", later.freed);
                assert!(later.excess <= 0, "{what}");

                // Of each 2μ entries a node, at most of each μ.
                let [least, most] = [m / (2 * arity), m / (arity - 1) + 2 * path as usize];
                let now = freed(fill(published(Affine::<0>, arity, at_once), n), n, m);
                let owned = in_bytes(Affine::<0>);
                let owners = freed(fill(published(owned, arity, deferred), n), n, m);
                for found in [now.freed, owners.freed] {
                    let range = least.saturating_sub(2) as u64..=most as u64;
                    assert!(range.contains(&found), "{found} freed, {range:?}, {what}");
                }
            }
        }
        let full = || fill(Fiba::<_, 64, 32>::new(Affine::<0>, Ties::Combine), n);
        for m in [100, 500, 20_000].into_iter().filter(|m| 2 * m < n) {
            let later = freed(full(), n, m);
            assert!(
                later.cut <= 32 * (log2(m) / 2.0) as u64,
                "{} cuts",
                later.cut
            );
            assert!(later.freed == 0 && later.excess <= 0, "n {n}, m {m}");
        }
    }
}

/// Where combining commutes, one late insert in `most` moves them all into the tree: n/256,
/// at least a leaf, at most 16,384. It costs no more than a bulk insert of so many.
#[test]
fn staging_holds_back_its_number_of_entries() {
    let sizes = [10, 14, 15].into_iter().chain(all_sizes().then_some(22));
    for log in sizes {
        let n = 1_usize << log;
        let mut random = Random(23);
        let mut window = fill(Fiba::<_, 64, 32>::new(Tally::<0>, Ties::Combine), n);
        let most = (n / 256).clamp(64, 16_384);
        let (mut staged, mut groups) = (0, Vec::new());
        while groups.len() < 4 {
            let back = random.below(n as u64 / 2 * GAP as u64) as i64;
            let time = (n as i64 - 2) * GAP - back;
            staged += 1;
            let spent = combines(|| window.insert(time, Entry::Raw(1)));
            let query = combines(|| window.query());
            assert!(query <= 2.0, "{query} for a query with {staged} staged");
            if spent > 2.0 {
                groups.push(staged);
                // Full leaves split at first, which folds 64 values anew for each entry.
                let each = 64.0 + 2.0 * log2(n / staged);
                let bound = staged as f64 * each + 64.0 * log2(n);
                let what = format!("{spent} for {staged} at once, n {n}: {bound}");
                assert!((staged as f64..=bound).contains(&spent), "{what}");
                staged = 0;
            }
        }
        // The tree has grown by those before.
        let last = (n + groups[..3].iter().sum::<usize>()) / 256;
        let last = last.clamp(64, 16_384);
        assert_eq!((groups[0], groups[3]), (most, last), "n {n}: {groups:?}");
    }
}

/// Where it does not commute, a query moves them in: as many combines as one by one, and
/// those that follow take two again.
#[test]
fn a_query_moves_in_what_does_not_commute() {
    let n = 1 << 14;
    let mut window = fill(Fiba::<_, 64, 32>::new(Affine::<0>, Ties::Combine), n);
    for item in 1..40 {
        let time = (n as i64 - 100 * item) * GAP - 1;
        assert_eq!(combines(|| window.insert(time, Entry::Raw(1))), 0.0);
    }
    let first = combines(|| window.query());
    assert!((39.0..=39.0 * 160.0).contains(&first), "{first}");
    assert!(combines(|| window.query()) <= 2.0);
}

/// The earliest value: x ⊗ y = x, of Appendix A.
#[derive(Clone, Debug)]
struct First;

impl Monoid for First {
    type In = i64;
    type Partial = i64;
    const SMALL: usize = 0;

    fn commutative(&self) -> bool {
        false
    }
    fn identity(&self) -> i64 {
        i64::MIN
    }
    fn lift(&self, value: &i64) -> i64 {
        *value
    }
    fn combine(&self, x: &i64, y: &i64) -> i64 {
        if *x == self.identity() { *y } else { *x }
    }
    fn unlift(&self, partial: i64) -> Result<i64, i64> {
        Ok(partial)
    }
    fn same(&self, a: &i64, b: &i64) -> bool {
        a == b
    }
}

/// A permutation of 0..m drawn from G_d: each element has at most d greater ones before it,
/// any number of them as often as any other (Lemma A.1).
fn drawn(random: &mut Random, m: usize, d: usize) -> Vec<i64> {
    let greater: Vec<usize> = (0..m)
        .map(|at| random.below(at.min(d) as u64 + 1) as usize)
        .collect();
    let mut left: Vec<i64> = (0..m as i64).collect();
    let taken = greater.iter().enumerate().rev();
    let mut order: Vec<i64> = taken.map(|(at, more)| left.remove(at - more)).collect();
    order.reverse();
    order
}

/// log₂ |G_d|, of Lemma A.1: d! (d + 1)^(m − d).
fn information(m: usize, d: usize) -> f64 {
    (0..m).map(|at| (at.min(d) as f64 + 1.0).log2()).sum()
}

/// Theorem 2.2: a window of the earliest value sorts what comes in any order of G_d, with
/// 3m operations. So they tell the orders apart: a visit has at most 2μ outcomes, and so has
/// the look at the finger that every insert begins with. They are O(m log(1 + d)), too.
#[test]
fn sorting_by_a_window_takes_the_lower_bound() {
    let mut random = Random(31);
    let m = 4000;
    for arity in ARITIES {
        for d in [0, 1, 3, 30, 300, 3999] {
            let order = drawn(&mut random, m, d);
            let mut window = published(First, arity, Options::default());
            let visits = steps(Step::Visit, || {
                for element in &order {
                    window.insert(*element, Entry::Raw(*element));
                }
            });
            let mut sorted = Vec::new();
            while window.len() > 0 {
                sorted.push(window.query());
                window.evict();
            }
            assert!(sorted.iter().copied().eq(0..m as i64), "μ {arity}, d {d}");
            let revealed = (visits + m as u64) as f64 * (2.0 * arity as f64).log2();
            let needed = information(m, d);
            assert!(
                revealed >= needed,
                "{revealed} bits of {needed}, μ {arity}, d {d}"
            );
            let bound = m as u64 * search_bound(arity, d);
            assert!(
                visits <= bound,
                "{visits} visits, μ {arity}, d {d}: {bound}"
            );
        }
    }
}

/// Lemma A.1, by listing them.
#[test]
fn orders_within_a_distance_are_counted() {
    let mut random = Random(37);
    for (m, d) in [(4, 0), (4, 1), (5, 2), (4, 3)] {
        let count = information(m, d).exp2().round() as usize;
        let mut seen: Vec<Vec<i64>> = (0..100 * count).map(|_| drawn(&mut random, m, d)).collect();
        let late =
            |order: &[i64], at: usize| order[..at].iter().filter(|x| **x > order[at]).count();
        assert!(
            seen.iter()
                .all(|order| (0..m).all(|at| late(order, at) <= d))
        );
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), count, "m {m}, d {d}");
    }
}
