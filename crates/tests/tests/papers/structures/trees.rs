//! btree and fiba_published against recalculate: random scripts, compared after every
//! operation, invariants checked, all arities, both ties; partials that are words, records,
//! bytes and objects, all but the first revealing any wrong order.

use std::fmt::Debug;

use crate::common::Random;
use crate::common::monoids::{Affine, Tally};
use crate::common::owned::{as_objects, in_bytes};
use crate::common::script::{OTHER, compare, form, seeds};
use slidewise_core::aggregate::word::SumI64;
use slidewise_core::monoid::{Entry, Monoid};
use slidewise_core::snapshot::{Reader, Writer};
use slidewise_core::window::{Batch, Ties, Window};
use slidewise_papers::btree::BTree;
use slidewise_papers::btree::Options;

fn run<M, W>(monoid: &M, make: impl Fn(Ties) -> W)
where
    M: Monoid<In = i64>,
    W: Window<M> + Debug,
{
    for seed in seeds(OTHER) {
        let (ties, length) = form::<M::Partial>(seed);
        compare(&make, monoid, ties, seed, length);
    }
}

const ON: Options = Options {
    bulk: true,
    free_list: true,
};
const FREES_AT_ONCE: Options = Options {
    free_list: false,
    ..ON
};
const ONE_BY_ONE: Options = Options { bulk: false, ..ON };

fn fiba<M: Monoid<In = i64> + Debug>(monoid: M, arity: usize, options: Options) {
    let make = |ties| BTree::with_fingers(monoid.clone(), ties, arity, options);
    run(&monoid, make);
}

fn btree<M: Monoid<In = i64> + Debug>(monoid: M, arity: usize) {
    run(&monoid, |ties| BTree::new(monoid.clone(), ties, arity));
}

macro_rules! trees {
    ($($name:ident: $tree:ident($monoid:expr, $($setting:expr),*);)*) => {$(
        #[test]
        fn $name() {
            $tree($monoid, $($setting),*);
        }
    )*};
}

trees! {
    fiba_records_2: fiba(Affine::<0>, 2, ON);
    fiba_records_3: fiba(Affine::<0>, 3, ON);
    fiba_records_4: fiba(Affine::<0>, 4, ON);
    fiba_records_8: fiba(Affine::<0>, 8, ON);
    fiba_records_16: fiba(Affine::<0>, 16, ON);
    fiba_that_frees_at_once: fiba(Affine::<0>, 2, FREES_AT_ONCE);
    fiba_without_bulk: fiba(Affine::<0>, 2, ONE_BY_ONE);
    fiba_words_2: fiba(Tally::<0>, 2, ON);
    fiba_words_4: fiba(Tally::<0>, 4, ON);
    fiba_bytes_2: fiba(in_bytes(Affine::<0>), 2, ON);
    fiba_bytes_4: fiba(in_bytes(Affine::<0>), 4, FREES_AT_ONCE);
    fiba_objects_2: fiba(as_objects(Affine::<0>), 2, ON);
    fiba_objects_4: fiba(as_objects(Affine::<0>), 4, ONE_BY_ONE);
    btree_records_2: btree(Affine::<0>, 2);
    btree_records_3: btree(Affine::<0>, 3);
    btree_records_4: btree(Affine::<0>, 4);
    btree_records_8: btree(Affine::<0>, 8);
    btree_records_16: btree(Affine::<0>, 16);
    btree_words_2: btree(Tally::<0>, 2);
    btree_words_4: btree(Tally::<0>, 4);
    btree_bytes_2: btree(in_bytes(Affine::<0>), 2);
    btree_bytes_4: btree(in_bytes(Affine::<0>), 4);
    btree_objects_2: btree(as_objects(Affine::<0>), 2);
    btree_objects_4: btree(as_objects(Affine::<0>), 4);
}

/// Times that inner nodes hold already, beside new ones that split what is below them.
#[test]
fn a_bulk_insert_meets_times_that_are_present() {
    for arity in [2, 4] {
        let mut tree = BTree::with_fingers(Affine::<0>, Ties::Combine, arity, ON);
        let mut single = BTree::new(Affine::<0>, Ties::Combine, arity);
        for item in 0..8 {
            tree.insert(item * 10, Entry::Raw(item));
            single.insert(item * 10, Entry::Raw(item));
        }
        let mut batch = Batch::default();
        for time in [5, 9, 36, 43, 50, 61, 76] {
            batch.push(time, Entry::Raw(time));
            single.insert(time, Entry::Raw(time));
        }
        tree.insert_batch(batch);
        tree.check().expect("a sound tree");
        assert_eq!(tree.query(), single.query());
        assert_eq!(tree.evict_until(40), single.evict_until(40));
        assert_eq!((tree.len(), tree.query()), (6, single.query()));
    }
}

#[test]
fn damaged_bytes_are_refused_or_harmless() {
    let mut random = Random(77);
    let fresh = BTree::with_fingers(SumI64, Ties::Combine, 2, ON);
    for seed in 0..40 {
        let mut tree = fresh.clone();
        for _ in 0..seed * 3 {
            tree.insert(random.below(100) as i64, Entry::Raw(1));
        }
        let mut out = Writer::default();
        tree.write(&mut out);
        let bytes = out.finish().expect("sums have a binary form");
        for _ in 0..300 {
            let mut bytes = bytes.clone();
            match random.below(4) {
                0 => bytes.truncate(random.below(bytes.len() as u64) as usize),
                _ => {
                    let at = random.below(bytes.len() as u64) as usize;
                    bytes[at] = random.pick(&[0, 1, 2, 3, 63, 128, 255]);
                }
            }
            let mut read = fresh.clone();
            if read.read(&mut Reader::new(&bytes)).is_ok() {
                read.check().expect("what was accepted is sound");
                read.insert(50, Entry::Raw(1));
                read.evict_until(40);
                read.query();
            }
        }
    }
}

#[test]
fn memory_comes_back() {
    for options in [ON, Options { bulk: false, ..ON }] {
        let mut tree = BTree::with_fingers(SumI64, Ties::Combine, 4, options);
        for left in [3, 0] {
            for time in 0..100_000 {
                tree.insert(time, Entry::Raw(1));
            }
            assert!(tree.bytes() > 3_000_000);
            assert_eq!(tree.evict_until(99_999 - left), 100_000 - left as usize);
            assert!(tree.bytes() < 20_000, "{left} left: {}", tree.bytes());
            tree.check().expect("a sound tree");
            tree.clear();
        }
    }
}
