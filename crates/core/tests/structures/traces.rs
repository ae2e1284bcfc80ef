//! The traces that the papers print, by their operations: which steps DABA takes, what
//! SlickDeque counts, and why the Reactive Aggregator asks for a suffix and a prefix.

use crate::common::monoids::{Affine, Largest, Total, take_combines, take_inverses};
use slidewise_core::monoid::Monoid;
use slidewise_core::window::daba_pointers::{Pointers, Step};
use slidewise_core::window::flat_fat::FlatFat;
use slidewise_core::window::shared::Shared;
use slidewise_core::window::slick_deque::SlickDeque;
use slidewise_core::window::slick_deque_inv::SlickDequeInv;

/// DABA, figure 15: steps (a) to (i) alternate between evict and insert. Seven inserts and
/// two evicts are the shortest way to its state (a).
#[test]
fn daba_takes_the_steps_of_figure_15() {
    let (mut front, mut end, mut at) = (0, 0, Pointers::default());
    let mut fixup = |front: usize, end: usize| {
        let step = at.step(front);
        let kind = match step {
            Step::Restart => {
                at.restart(end);
                "restart"
            }
            Step::Flip => {
                at.flip(front, end);
                at.shrink();
                "flip, shrink"
            }
            Step::GoOn if at.is_shrinking() => {
                at.shrink();
                "shrink"
            }
            Step::GoOn => {
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
    for (at, value) in TUPLES.iter().enumerate() {
        fifo.insert(monoid.lift(value));
        if fifo.len() > 5 {
            fifo.evict();
        }
        let counts = [(at + 1).min(5), (at + 1).min(3)];
        fifo.slide(&counts);
        let pair = answers(&mut fifo, &counts);
        given.push(pair.try_into().expect("two ranges"));
    }
    given
}

/// Example 2, figure 8: two operations per query and tuple, 32 in all, of which the paper
/// spends eight on subtracting the zeros that fill its array; entries that were never
/// there are not subtracted here.
#[test]
fn slickdeque_inv_counts_as_example_2() {
    take_combines();
    take_inverses();
    let given = shared(SlickDequeInv::new(Total, 2), &Total);
    let sums: Vec<_> = given.iter().map(|[five, three]| [*three, *five]).collect();
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
    assert_eq!(sums, printed);
    assert_eq!((take_combines(), take_inverses()), (16, 8));
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
