//! A bulk of one entry costs no more than the operation for one.

use crate::common::monoids::{Affine, Largest, Total, take_combines, take_inverses};
use crate::each;
use crate::suite::each::Test;
use slidewise_core::monoid::{Entry, Monoid};
use slidewise_core::window::{Batch, Ties, Window};

/// More entries than two levels of any tree here, and slides for several rounds of a window.
const ENTRIES: i64 = 700;
const SLIDES: i64 = 3 * ENTRIES;

struct Bulks;

fn batch<M: Monoid<In: From<i64>>>(time: i64) -> Batch<M> {
    let mut batch = Batch::with_capacity(1);
    batch.push(time, Entry::Raw(time.into()));
    batch
}

/// The combines of each insert, and of each evict with a query behind it.
fn slides<M: Monoid<In: From<i64>>, W: Window<M>>(
    mut window: W,
    insert: impl Fn(&mut W, i64),
    evict: impl Fn(&mut W, i64) -> bool,
) -> [u64; 2] {
    for time in 0..ENTRIES {
        insert(&mut window, time);
    }
    let spent = || take_combines() + take_inverses();
    spent();
    let mut total = [0; 2];
    for time in 0..SLIDES {
        insert(&mut window, ENTRIES + time);
        total[0] += spent();
        assert!(evict(&mut window, time));
        window.query();
        total[1] += spent();
    }
    total
}

impl<M: Monoid<In: From<i64>>> Test<M> for Bulks {
    fn window<W: Window<M>>(&mut self, name: &str, fresh: W) {
        let one = slides(
            fresh.clone(),
            |window, time| window.insert(time, Entry::Raw(time.into())),
            |window, _| window.evict().is_some(),
        );
        let bulk = slides(
            fresh,
            |window, time| window.insert_batch(batch(time)),
            |window, time| window.evict_until(time) == 1,
        );
        assert!(
            bulk[0] <= one[0] && bulk[1] <= one[1],
            "{name}: combines of inserts and evicts {bulk:?} in bulks of one, {one:?} singly"
        );
    }
}

#[test]
fn of_one_cost_no_more_than_one() {
    for ties in [Ties::Keep, Ties::Combine] {
        each::trees(&Affine::<0>, ties, &mut Bulks);
        each::associative(&Affine::<0>, ties, &mut Bulks);
        each::invertible(&Total, ties, &mut Bulks);
        each::selective(&Largest, ties, &mut Bulks);
    }
}
