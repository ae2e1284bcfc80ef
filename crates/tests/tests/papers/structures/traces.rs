//! The traces that the papers print of queues, state by state: Two-Stacks, ABA and DABA
//! over one window, the tree of the Reactive Aggregator, and what SlickDeque counts. Those
//! of trees: `traces_trees`.

use crate::common::monoids::{
    Affine, Largest, Spelled, Total, spelling, take_combines, take_inverses,
};
use slidewise_core::monoid::Monoid;
use slidewise_core::snapshot::{Reader, Writer};
use slidewise_core::window::fifo::Fifo;
use slidewise_core::window::fifo::daba_pointers::{DabaStep, Pointers};
use slidewise_core::window::fifo::shared::Shared;
use slidewise_core::window::fifo::slick_deque::SlickDeque;
use slidewise_core::window::fifo::slick_deque_inv::SlickDequeInv;
use slidewise_core::window::recalculate::RecalculateQueue;
use slidewise_papers::fifo::aba::Aba;
use slidewise_papers::fifo::daba::Daba;
use slidewise_papers::fifo::flat_fat::FlatFat;
use slidewise_papers::fifo::two_stacks::TwoStacks;

/// DABA, figure 1: the window of each state (a) to (i). State (a), that 1 is inserted first
/// and that evicts and inserts alternate are the paper's; the report's text does not tell
/// the last three values.
const WINDOWS: [&str; 9] = [
    "26353", "6353", "63531", "3531", "35314", "5314", "53142", "3142", "31420",
];

fn insert<F: Fifo<Spelled>>(fifo: &mut F, letters: &str) {
    for letter in letters.chars() {
        fifo.insert(Spelled.lift(&i64::from(u32::from(letter))));
    }
}

/// A structure's state as it goes into a snapshot.
fn bytes<F: Fifo<Spelled>>(fifo: &F) -> Vec<u8> {
    let mut out = Writer::default();
    fifo.write(&mut out);
    out.finish().expect("it can be written")
}

/// Spells the aggregates of items, each behind its value.
fn aggregates(input: &mut Reader<'_>, count: usize) -> Vec<String> {
    let parts: Vec<Box<[u64]>> = input.many(2 * count).expect("items");
    parts.chunks(2).map(|item| spelling(&item[1])).collect()
}

fn place(input: &mut Reader<'_>) -> usize {
    input.many::<u64>(1).expect("a place")[0] as usize
}

/// Takes a structure in state (a) through the others; gives the states as `show` does.
fn trace<F: Fifo<Spelled>>(mut fifo: F, show: impl Fn(&[u8]) -> String) -> Vec<String> {
    let mut states = Vec::new();
    for (at, window) in WINDOWS.into_iter().enumerate() {
        match at {
            0 => {}
            odd if odd % 2 == 1 => fifo.evict(),
            _ => insert(&mut fifo, &window[window.len() - 1..]),
        }
        let before = bytes(&fifo);
        assert_eq!(spelling(&fifo.query()), window, "state {at}");
        let lift = |one| Spelled.lift(&i64::from(u32::from(one)));
        let values: Vec<_> = window.chars().map(lift).collect();
        fifo.check(&values).expect("the invariants");
        states.push(show(&before));
    }
    states
}

/// Figures 3 and 9: the stacks of both, which flip at the evict from (e) to (f); an evict
/// that flipped before leads to state (a).
#[test]
fn two_stacks_and_aba_take_the_states_of_figures_3_and_9() {
    let expected = [
        "26 6 | 3 35 353",
        "6 | 3 35 353",
        "6 | 3 35 353 3531",
        "| 3 35 353 3531",
        "| 3 35 353 3531 35314",
        "5314 314 14 4 |",
        "5314 314 14 4 | 2",
        "314 14 4 | 2",
        "314 14 4 | 2 20",
    ];
    let shown = |front: &[String], back: &[String]| {
        let bar = ["|".to_string()];
        [front, &bar, back].concat().join(" ")
    };
    let mut stacks = TwoStacks::new(Spelled, false);
    insert(&mut stacks, "826");
    stacks.evict();
    insert(&mut stacks, "353");
    let states = trace(stacks, |bytes| {
        let mut input = Reader::new(bytes);
        let (count, front) = (place(&mut input), place(&mut input));
        let mut items = aggregates(&mut input, count);
        items[..front].reverse();
        shown(&items[..front], &items[front..])
    });
    assert_eq!(states, expected);
    let mut aba = Aba::new(Spelled, false);
    insert(&mut aba, "826");
    aba.evict();
    insert(&mut aba, "353");
    let states = trace(aba, |bytes| {
        let mut input = Reader::new(bytes);
        let count = place(&mut input);
        let items = aggregates(&mut input, count);
        let b = place(&mut input);
        shown(&items[..b], &items[b..])
    });
    assert_eq!(states, expected);
}

/// Figure 15: aggregates, and before which of them L, R, A and B point.
#[test]
fn daba_takes_the_states_of_figure_15() {
    let expected = [
        "26353 L 6 R 3 A 53 3 B",
        "6353 L R A 353 53 3 B",
        "6353 353 L R A 53 3 B 1",
        "353 53 L R A 3 B 1",
        "353 53 3 L R A B 1 14",
        "5314 L 3 R 1 A 4 B",
        "5314 314 L R A 14 4 B 2",
        "314 14 L R A 4 B 2",
        "314 14 4 L R A B 2 20",
    ];
    for caching in [false, true] {
        let mut daba = Daba::new(Spelled, caching);
        insert(&mut daba, "8926353");
        daba.evict();
        daba.evict();
        let states = trace(daba, |bytes| {
            let mut input = Reader::new(bytes);
            let _r_plus_a: Vec<Box<[u64]>> = input.many(1).expect("a partial");
            let count = place(&mut input);
            let items = aggregates(&mut input, count);
            let pointers = ["L", "R", "A", "B"].map(|name| (name, place(&mut input)));
            let mut shown = Vec::new();
            for at in 0..=count {
                let here = pointers.iter().filter(|(_, place)| *place == at);
                shown.extend(here.map(|(name, _)| *name));
                shown.extend(items.get(at).map(String::as_str));
            }
            shown.join(" ")
        });
        assert_eq!(states, expected);
    }
}

/// DABA, figure 15: steps (a) to (i) alternate between evict and insert. Seven inserts and
/// two evicts are the shortest way to its state (a).
#[test]
fn daba_takes_the_steps_of_figure_15() {
    let (mut front, mut end, mut at) = (0, 0, Pointers::default());
    let mut fixup = |front: usize, end: usize| {
        let step = at.step(front);
        let kind = match step {
            DabaStep::Restart => {
                at.restart(end);
                "restart"
            }
            DabaStep::Flip => {
                at.flip(front, end);
                at.shrink();
                "flip, shrink"
            }
            DabaStep::Step if at.is_shrinking() => {
                at.shrink();
                "shrink"
            }
            DabaStep::Step => {
                at.ride();
                "free ride"
            }
        };
        at.check(front, end).expect("the invariants of section 6.3");
        kind
    };
    for _ in 0..7 {
        end += 1;
        fixup(front, end);
    }
    for _ in 0..2 {
        front += 1;
        fixup(front, end);
    }
    assert_eq!(end - front, 5, "state (a) holds 2, 6, 3, 5, 3");
    let expected = [
        "shrink",       // (a) to (b)
        "free ride",    // (b) to (c)
        "free ride",    // (c) to (d)
        "free ride",    // (d) to (e)
        "flip, shrink", // (e) to (f)
        "shrink",       // (f) to (g)
        "free ride",    // (g) to (h)
        "free ride",    // (h) to (i)
    ];
    for (at, kind) in expected.into_iter().enumerate() {
        if at % 2 == 0 {
            front += 1;
        } else {
            end += 1;
        }
        assert_eq!(fixup(front, end), kind, "step {at}");
    }
}

const TUPLES: [i64; 8] = [6, 5, 0, 1, 3, 4, 2, 7];

fn answers<M: Monoid, F: Shared<M>>(fifo: &mut F, counts: &[usize]) -> Vec<M::Partial> {
    let mut found = vec![None; counts.len()];
    fifo.answers(counts, |range, partial| found[range] = Some(partial));
    found.into_iter().flatten().collect()
}

/// Slides ranges of 5 and 3 over the tuples; gives each pair of answers.
fn shared<M, F>(mut fifo: F, monoid: &M) -> Vec<[M::Partial; 2]>
where
    M: Monoid<In = i64>,
    F: Shared<M>,
{
    let mut given = Vec::new();
    for value in &TUPLES {
        fifo.insert(monoid.lift(value));
        if fifo.len() > 5 {
            fifo.evict();
        }
        let counts = [5, 3].map(|range: usize| range.min(fifo.len()));
        fifo.slide(&counts);
        let pair = answers(&mut fifo, &counts);
        given.push(pair.try_into().expect("two ranges"));
    }
    given
}

/// The zeros, or −∞, that fill the papers' array before the first tuple.
fn filled<M: Monoid<In = i64>, F: Fifo<M>>(mut fifo: F, monoid: &M) -> F {
    (0..5).for_each(|_| fifo.insert(monoid.identity()));
    fifo
}

/// Examples 2 and 3: 48 operations of the naive way.
#[test]
fn the_naive_way_counts_as_examples_2_and_3() {
    fn spent<M: Monoid<In = i64>>(monoid: &M) -> u64 {
        let mut fifo = filled(RecalculateQueue::new(monoid.clone()), monoid);
        take_combines();
        for value in &TUPLES {
            fifo.evict();
            fifo.insert(monoid.lift(value));
            answers(&mut fifo, &[5, 3]);
        }
        take_combines()
    }
    assert_eq!([spent(&Total), spent(&Largest)], [48, 48]);
}

/// Example 2, figure 8: two operations per query and tuple, 32 in all, if the window begins
/// with five zeros as there. From an empty window eight fewer are subtracted.
#[test]
fn slickdeque_inv_counts_as_example_2() {
    let printed = [
        [6, 6],
        [11, 11],
        [11, 11],
        [6, 12],
        [4, 15],
        [8, 13],
        [9, 10],
        [13, 17],
    ];
    for (zeros, inverses) in [(true, 16), (false, 8)] {
        let mut fifo = SlickDequeInv::new(Total, 2);
        if zeros {
            fifo = filled(fifo, &Total);
            fifo.slide(&[5, 3]);
            answers(&mut fifo, &[5, 3]);
        }
        take_combines();
        take_inverses();
        let given = shared(fifo, &Total);
        let sums: Vec<_> = given.iter().map(|[five, three]| [*three, *five]).collect();
        assert_eq!(sums, printed);
        assert_eq!((take_combines(), take_inverses()), (16, inverses));
    }
}

/// Example 3, figure 9: the naive way takes 48 comparisons, this one 11.
#[test]
fn slickdeque_non_inv_counts_as_example_3() {
    take_combines();
    let given = shared(SlickDeque::new(Largest), &Largest);
    let maxima: Vec<_> = given.iter().map(|[five, three]| [*three, *five]).collect();
    let printed = [
        [6, 6],
        [6, 6],
        [6, 6],
        [5, 6],
        [3, 6],
        [4, 5],
        [4, 4],
        [7, 7],
    ];
    assert_eq!(maxima, printed);
    assert_eq!(take_combines(), 11);
}

/// Figure 5: four slots, of which the first was taken again, hold 9, 7, 3, 2 for the
/// window 7, 3, 2, 9; `aggregate` follows the slots, suffix and prefix the window.
#[test]
fn the_buffer_of_figure_5_is_inverted() {
    let monoid = Affine::<0>;
    let lift = |value: i64| monoid.lift(&value);
    let fold = |values: [i64; 4]| {
        let all = values.map(lift);
        all[1..]
            .iter()
            .fold(all[0], |whole, next| monoid.combine(&whole, next))
    };
    let mut tree = FlatFat::new(monoid.clone(), [4, 7, 3, 2].map(lift).into_iter());
    assert!(monoid.same(&tree.aggregate(), &fold([4, 7, 3, 2])));
    tree.set(0, lift(9));
    take_combines();
    tree.update(&[0]);
    assert_eq!(take_combines(), 2, "log₂ 4 nodes above one leaf");
    assert!(monoid.same(&tree.aggregate(), &fold([9, 7, 3, 2])));
    assert!(monoid.same(&tree.circular(1, 4), &fold([7, 3, 2, 9])));
}

/// Figures 3 and 4: a tree over eight leaves takes seven combines; updates of the first,
/// second, fourth and seventh touch the six nodes circled; prefix(7) combines T(e), T(c)
/// and the leaf.
#[test]
fn the_tree_of_figures_3_and_4_updates_six_nodes() {
    let lift = |letter: char| Spelled.lift(&i64::from(letter as u32));
    take_combines();
    let mut tree = FlatFat::new(
        Spelled,
        ('1'..='8').map(lift).collect::<Vec<_>>().into_iter(),
    );
    assert_eq!(take_combines(), 7);
    assert_eq!(spelling(&tree.aggregate()), "12345678");
    for (leaf, letter) in [(0, 'A'), (1, 'B'), (3, 'D'), (6, 'G')] {
        tree.set(leaf, lift(letter));
    }
    tree.update(&[0, 1, 3, 6]);
    assert_eq!(take_combines(), 6);
    assert_eq!(spelling(&tree.aggregate()), "AB3D56G8");
    assert_eq!(take_combines(), 0);
    assert_eq!(spelling(&tree.prefix(6)), "AB3D56G");
    assert_eq!(take_combines(), 2);
}
