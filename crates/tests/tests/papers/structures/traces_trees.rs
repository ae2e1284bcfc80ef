//! The trees that the papers draw: FiBA (2018), figures 1, 3 to 6 and 9, and bulk FiBA
//! (2023), figures 1 to 6, both with MIN_ARITY 2.
//!
//! Of figure 1 and of figure 3, (A), the texts tell the root, the middle and the aggregates
//! of all spines. What else the pictures hold they do not tell: the other trees here are the
//! smallest on which the steps do what the text says of them. A time is ten of the
//! figures', so that more fit between; letter and time go together, from a at 1 on.

use crate::common::monoids::{Largest, Spelled, spelling};
use crate::costs_steps::coins;
use slidewise_core::monoid::Entry;
use slidewise_core::window::shape::{PartialKind, Shape};
use slidewise_core::window::steps::{Step, take};
use slidewise_core::window::{Batch, Ties, Window};
use slidewise_papers::btree::BTree;
use slidewise_papers::btree::Options;

const A: i64 = 'a' as i64;

/// Letters that come in between are capitals.
fn letter(time: i64) -> i64 {
    match time % 10 {
        0 => A + time / 10 - 1,
        between => 'A' as i64 + between - 1,
    }
}

#[derive(Clone)]
struct Tree {
    tree: BTree<Spelled>,
    arity: usize,
}

fn fingers(arity: usize) -> Tree {
    let tree = BTree::with_fingers(Spelled, Ties::Combine, arity, Options::default());
    Tree { tree, arity }
}

fn classic() -> Tree {
    let tree = BTree::new(Spelled, Ties::Combine, 2);
    Tree { tree, arity: 2 }
}

/// Of splits, merges and moves.
fn steps() -> [u64; 3] {
    [Step::Split, Step::Merge, Step::Borrow].map(take)
}

impl Tree {
    fn shape(&mut self) -> Shape<Box<[u64]>> {
        self.tree.check().expect("the invariants");
        self.tree.shape().expect("a tree")
    }

    /// The nodes: entries, and the children in brackets between them.
    fn drawn(&mut self) -> String {
        fn draw(shape: &Shape<Box<[u64]>>, at: usize) -> String {
            let node = &shape.nodes[at];
            let times = node.times.iter().map(|time| (time / 10, time % 10));
            let mut parts: Vec<String> = times
                .map(|(whole, tenth)| match tenth {
                    0 => whole.to_string(),
                    tenth => format!("{whole}.{tenth}"),
                })
                .collect();
            for (place, child) in node.children.iter().enumerate() {
                parts.insert(2 * place, format!("[{}]", draw(shape, *child)));
            }
            parts.join(" ")
        }
        draw(&self.shape(), 0)
    }

    /// Kind and aggregate of the node with the entry of that time.
    fn kept(&mut self, time: i64) -> (PartialKind, String) {
        let shape = self.shape();
        let mut nodes = shape.nodes.iter();
        let node = nodes
            .find(|node| node.times.contains(&time))
            .expect("a node");
        (node.kind, spelling(&node.aggregate))
    }

    /// One operation, billed two coins at most; gives its splits, merges and moves.
    fn step(&mut self, operation: impl FnOnce(&mut BTree<Spelled>)) -> [u64; 3] {
        let held = coins(&self.shape(), self.arity);
        steps();
        operation(&mut self.tree);
        let taken = steps();
        let holds = coins(&self.shape(), self.arity);
        let billed = taken.iter().sum::<u64>() as i64 + holds - held;
        assert!(billed <= 2, "{billed} coins");
        self.answers();
        taken
    }

    fn answers(&mut self) {
        let mut all = String::new();
        self.tree
            .for_each(&mut |_, partial| all += &spelling(&partial));
        assert_eq!(spelling(&self.tree.query()), all);
    }

    fn insert(&mut self, time: i64) -> [u64; 3] {
        self.step(|tree| tree.insert(time, Entry::Raw(letter(time))))
    }

    fn evict(&mut self, time: i64) -> [u64; 3] {
        self.step(|tree| assert!(tree.evict_at(time), "{time} is there"))
    }

    /// Inserts times in order.
    fn grown(mut self, times: impl IntoIterator<Item = i64>) -> Self {
        times.into_iter().for_each(|time| _ = self.insert(time));
        self
    }

    /// Evicts times one by one.
    fn cut(mut self, times: impl IntoIterator<Item = i64>) -> Self {
        times.into_iter().for_each(|time| _ = self.evict(time));
        self
    }
}

/// Entries 1 to `last`, in order.
fn ascending(last: i64) -> impl Iterator<Item = i64> {
    (1..=last).map(|time| 10 * time)
}

const NOTHING: [u64; 3] = [0; 3];
const SPLIT: [u64; 3] = [1, 0, 0];
const MERGE: [u64; 3] = [0, 1, 0];
const MOVE: [u64; 3] = [0, 0, 1];

const FIGURE_3_A: &str = "[[1 2] 3 [4 5 6]] 7 [[8] 9 [10 11] 12 [13 14]] 15 [[17] 18 [19] 20 [21]]";

/// State (A) of figure 3, of which figure 1 is the classic form.
fn figure_3_a(tree: Tree) -> Tree {
    let times = [
        1, 2, 5, 10, 20, 30, 40, 50, 70, 80, 81, 90, 100, 110, 120, 130, 140, 150, 170, 171, 180,
        190, 191, 200, 210, 211,
    ];
    let tree = tree.grown(times).cut([1, 2, 5, 81, 171, 191, 211]);
    tree.grown([60])
}

#[test]
fn fiba_figure_1() {
    let mut tree = figure_3_a(classic());
    assert_eq!(tree.drawn(), FIGURE_3_A);
    assert_eq!(
        tree.kept(70),
        (PartialKind::Up, "abcdefghijklmnoqrstu".into())
    );
    assert_eq!(tree.kept(90), (PartialKind::Up, "hijklmn".into()));
}

#[test]
fn fiba_figure_3() {
    let mut tree = figure_3_a(fingers(2));
    let kept = |tree: &mut Tree, times: &[i64]| -> Vec<String> {
        times.iter().map(|time| tree.kept(*time).1).collect()
    };
    // (A), and the nodes whose aggregates the text names.
    assert_eq!(tree.drawn(), FIGURE_3_A);
    assert_eq!(tree.kept(70), (PartialKind::Inner, "ghijklmno".into()));
    assert_eq!(tree.kept(90), (PartialKind::Up, "hijklmn".into()));
    assert_eq!(tree.kept(30), (PartialKind::Left, "cdef".into()));
    assert_eq!(tree.kept(10), (PartialKind::Left, "abcdef".into()));
    assert_eq!(tree.kept(180), (PartialKind::Right, "qrst".into()));
    assert_eq!(tree.kept(210), (PartialKind::Right, "qrstu".into()));
    let right = [70, 170, 180, 210];
    // A to B: in order, the right finger alone.
    let before = kept(&mut tree, &right);
    assert_eq!(tree.insert(220), NOTHING);
    let after = kept(&mut tree, &right);
    assert_eq!(before[..3], after[..3]);
    assert_eq!(after[3], "qrstuv");
    // B to C: out of order, on a walk to the right finger.
    assert_eq!(tree.insert(160), NOTHING);
    let expected = ["ghijklmno", "pq", "pqrst", "pqrstuv"];
    assert_eq!(kept(&mut tree, &right), expected);
    // C to D: the oldest, the left finger alone.
    let left = [20, 30, 40, 70];
    let before = kept(&mut tree, &left);
    assert_eq!(tree.evict(10), NOTHING);
    let after = kept(&mut tree, &left);
    assert_eq!(before[1..], after[1..]);
    assert_eq!(after[0], "bcdef");
    // D to E: out of order, into the node with 4, 5 and 6, which is split.
    assert_eq!(tree.insert(45), SPLIT);
    let drawn = tree.drawn();
    assert!(drawn.starts_with("[[2] 3 [4 4.5] 5 [6]] 7 "), "{drawn}");
    assert_eq!(
        kept(&mut tree, &left),
        ["bcdEef", "cdEef", "dE", "ghijklmno"]
    );
    // E to F: a node of MIN_ARITY, beside one that is no larger once 4.5 is gone.
    assert_eq!(tree.evict(45), NOTHING);
    assert_eq!(tree.evict(60), MERGE);
    let drawn = tree.drawn();
    assert!(drawn.starts_with("[[2] 3 [4 5]] 7 "), "{drawn}");
    assert_eq!(kept(&mut tree, &left), ["bcde", "cde", "de", "ghijklmno"]);
}

/// G to H: full up to the root, which grows by a level and is split.
#[test]
fn fiba_figure_4() {
    for mut tree in [fingers(2), classic()] {
        tree = tree.grown(ascending(12));
        assert_eq!(tree.drawn(), "[1 2] 3 [4 5] 6 [7 8] 9 [10 11 12]");
        assert_eq!(tree.insert(130), [2, 0, 0]);
        let drawn = tree.drawn();
        assert_eq!(drawn, "[[1 2] 3 [4 5] 6 [7 8]] 9 [[10 11] 12 [13]]");
    }
    let mut tree = fingers(2).grown(ascending(13));
    let spine = |tree: &mut Tree, times: [i64; 3]| times.map(|time| tree.kept(time).1);
    assert_eq!(spine(&mut tree, [10, 30, 90]), ["abcdefgh", "cdefgh", "i"]);
    assert_eq!(spine(&mut tree, [90, 120, 130]), ["i", "jkl", "jklm"]);
    // The same out of order, in the middle of the full node.
    let mut late = fingers(2).grown(ascending(12));
    assert_eq!(late.insert(111), [2, 0, 0]);
    let drawn = late.drawn();
    assert_eq!(drawn, "[[1 2] 3 [4 5] 6 [7 8]] 9 [[10 11] 11.1 [12]]");
}

/// I to J: a merge, and above it a move, as the neighbour is too big to merge.
#[test]
fn fiba_figure_5() {
    for finger in [true, false] {
        let tree = if finger { fingers(2) } else { classic() };
        let mut tree = tree.grown(ascending(22)).cut([10, 20, 30, 40, 80]);
        assert_eq!(
            tree.drawn(),
            "[[5] 6 [7]] 9 [[10 11] 12 [13 14] 15 [16 17]] 18 [[19 20] 21 [22]]"
        );
        assert_eq!(tree.evict(50), [0, 1, 1]);
        assert_eq!(
            tree.drawn(),
            "[[6 7] 9 [10 11]] 12 [[13 14] 15 [16 17]] 18 [[19 20] 21 [22]]"
        );
        if finger {
            assert_eq!(tree.kept(60), (PartialKind::Left, "fgijk".into()));
            assert_eq!(tree.kept(90), (PartialKind::Left, "ijk".into()));
            assert_eq!(tree.kept(120), (PartialKind::Inner, "lmnopqr".into()));
            assert_eq!(tree.kept(150), (PartialKind::Up, "mnopq".into()));
        }
    }
}

/// K to L: merges up to the root, which is eliminated.
#[test]
fn fiba_figure_6() {
    for finger in [true, false] {
        let tree = if finger { fingers(2) } else { classic() };
        let tree = tree.grown(ascending(13));
        let mut tree = tree.cut([10, 20, 30, 40, 80, 110]);
        assert_eq!(tree.drawn(), "[[5] 6 [7]] 9 [[10] 12 [13]]");
        assert_eq!(tree.evict(50), [0, 2, 0]);
        assert_eq!(tree.drawn(), "[6 7] 9 [10] 12 [13]");
        if finger {
            assert_eq!(tree.kept(60), (PartialKind::Left, "fg".into()));
            assert_eq!(tree.kept(90), (PartialKind::Inner, "ijl".into()));
            assert_eq!(tree.kept(130), (PartialKind::Right, "m".into()));
        }
    }
}

/// Out of an inner node: the oldest below on the right takes the place if that child can
/// spare it, else the youngest below on the left, whose leaf is then rebalanced.
#[test]
fn fiba_figure_9() {
    let full = fingers(2).grown(ascending(13));
    let after = |cuts: &[i64]| {
        let mut tree = full.clone().cut(cuts[..cuts.len() - 1].iter().copied());
        let steps = tree.evict(cuts[cuts.len() - 1]);
        (steps, tree.drawn())
    };
    let tree = "[[1 2] 3 [4 5] 7 [8]] 9 [[10 11] 12 [13]]";
    assert_eq!(after(&[60]), (NOTHING, tree.into()));
    let tree = "[[1 2] 3 [4 5] 6 [7]] 8 [[10 11] 12 [13]]";
    assert_eq!(after(&[90]), (NOTHING, tree.into()));
    let tree = "[[1 2] 3 [4] 5 [6]] 7 [[10 11] 12 [13]]";
    assert_eq!(after(&[90, 80]), (MOVE, tree.into()));
    // A merge below the node whose entry is replaced.
    let cuts = [90, 80, 10, 50];
    let tree = "[[2 3] 4 [6]] 7 [[10 11] 12 [13]]";
    assert_eq!(after(&cuts), (MERGE, tree.into()));
    let mut tree = full.clone().cut(cuts);
    assert_eq!(tree.kept(70), (PartialKind::Inner, "g".into()));
    assert_eq!(tree.kept(40), (PartialKind::Left, "df".into()));
    // Merges from the leaf up past the node, which is the root.
    let mut tree = full.clone().cut([10, 20, 30, 40, 80, 110]);
    assert_eq!(tree.evict(90), [0, 2, 0]);
    assert_eq!(tree.drawn(), "[5 6] 7 [10] 12 [13]");
}

/// Bulk FiBA, figure 1: the tree of figure 3, (B), and what its aggregates come to if h
/// to n are 4, 5, 1, 3, 5, 4 and 2 and the monoid is max; and section 1, five of eleven
/// that leave at once.
#[test]
fn bulk_figure_1() {
    let mut tree = figure_3_a(fingers(2)).grown([220]);
    assert_eq!(tree.kept(10), (PartialKind::Left, "abcdef".into()));
    assert_eq!(tree.kept(210), (PartialKind::Right, "qrstuv".into()));
    let mut largest = BTree::with_fingers(Largest, Ties::Combine, 2, Options::default());
    for (time, value) in (8..).zip([4, 5, 1, 3, 5, 4, 2]) {
        largest.insert(time, Entry::Raw(value));
    }
    assert_eq!(largest.query_range(8, 14), 5);
    let mut window = fingers(2).grown([1, 2, 3, 4, 5, 100, 200, 300, 400, 500, 600]);
    assert_eq!(window.tree.evict_until(610 - 600), 5);
}

/// Two full nodes of level 1 beside the right spine.
fn full() -> Tree {
    let mut tree = fingers(2).grown(ascending(25));
    assert_eq!(
        tree.drawn(),
        "[[1 2] 3 [4 5] 6 [7 8]] 9 [[10 11] 12 [13 14] 15 [16 17]] 18 \
         [[19 20] 21 [22 23] 24 [25]]"
    );
    tree
}

/// Evicts in bulk; gives how many, and the splits, merges and moves.
fn bulk_evict(tree: &mut Tree, until: i64) -> (usize, [u64; 3]) {
    steps();
    let count = tree.tree.evict_until(until);
    let taken = steps();
    tree.answers();
    (count, taken)
}

/// Move batch: the node takes what it lacks from a neighbour that is no sibling, through
/// the entry of their ancestor.
#[test]
fn bulk_figure_2() {
    let mut tree = full();
    assert_eq!(bulk_evict(&mut tree, 80), (8, [0, 0, 2]));
    assert_eq!(
        tree.drawn(),
        "[[9] 10 [11]] 12 [[13 14] 15 [16 17]] 18 [[19 20] 21 [22 23] 24 [25]]"
    );
    assert_eq!(tree.kept(90), (PartialKind::Left, "ijk".into()));
    // Two at a time, as the node has arity 2 of 4.
    let mut tree = fingers(4).grown(ascending(12));
    assert_eq!(tree.drawn(), "[1 2 3 4] 5 [6 7 8 9 10 11 12]");
    assert_eq!(bulk_evict(&mut tree, 30), (3, MOVE));
    assert_eq!(tree.drawn(), "[4 5 6] 7 [8 9 10 11 12]");
}

/// Merge with a neighbour that is no sibling: what is between them goes along.
#[test]
fn bulk_figure_3() {
    let mut tree = full().cut([100]);
    assert_eq!(bulk_evict(&mut tree, 80), (8, MERGE));
    assert_eq!(
        tree.drawn(),
        "[[9 11] 12 [13 14] 15 [16 17]] 18 [[19 20] 21 [22 23] 24 [25]]"
    );
    assert_eq!(tree.kept(90), (PartialKind::Left, "iklmnopq".into()));
}

/// Make node root, and make child root where one child is left of it.
#[test]
fn bulk_figures_4_and_5() {
    let mut tree = full();
    assert_eq!(bulk_evict(&mut tree, 190), (19, NOTHING));
    assert_eq!(tree.drawn(), "[20] 21 [22 23] 24 [25]");
    assert_eq!(tree.kept(210), (PartialKind::Inner, "uvwx".into()));
    let mut tree = full();
    assert_eq!(bulk_evict(&mut tree, 230), (23, MERGE));
    assert_eq!(tree.drawn(), "24 25");
}

fn bulk_insert(tree: &mut Tree, times: impl IntoIterator<Item = i64>) {
    let mut batch = Batch::with_capacity(0);
    for time in times {
        batch.push(time, Entry::Raw(letter(time)));
    }
    tree.tree.insert_batch(batch);
    tree.answers();
}

/// Interleave and split, level by level: treelets of two leaves, one of which overflows;
/// what it promotes makes the level above overflow.
#[test]
fn bulk_figure_6() {
    let mut tree = fingers(2).grown(ascending(12));
    steps();
    bulk_insert(&mut tree, [41, 42, 43, 44, 71]);
    assert_eq!(steps(), [2, 0, 0]);
    assert_eq!(
        tree.drawn(),
        "[[1 2] 3 [4 4.1] 4.2 [4.3 4.4 5]] 6 [[7 7.1 8] 9 [10 11 12]]"
    );
}

/// The examples of Claim 1: 2μ + 3 = (μ + 1) + (μ + 2) for μ = 4, and 7μ + 2 in four nodes
/// of μ + 1 and one of 2μ for μ = 2.
#[test]
fn bulk_claim_1() {
    let mut tree = fingers(4);
    bulk_insert(&mut tree, ascending(10));
    assert_eq!(tree.drawn(), "[1 2 3 4] 5 [6 7 8 9 10]");
    let mut tree = fingers(2);
    bulk_insert(&mut tree, ascending(15));
    assert_eq!(
        tree.drawn(),
        "[[1 2] 3 [4 5] 6 [7 8]] 9 [[10 11] 12 [13 14 15]]"
    );
}
