//! btree and fiba_published against recalculate: random scripts, compared after every
//! operation, invariants checked, all arities, both ties.
//!
//! `SLIDEWISE_SCRIPTS` sets the number of scripts per structure, `SLIDEWISE_SEED` the first
//! seed.

use std::fmt::Debug;

use crate::common::Random;
use crate::common::monoids::{Affine, Tally};
use crate::common::script::compare;
use slidewise_core::aggregate::word::SumI64;
use slidewise_core::monoid::{Entry, Monoid};
use slidewise_core::snapshot::{Reader, Writer};
use slidewise_core::window::btree::BTree;
use slidewise_core::window::fiba_published::Options;
use slidewise_core::window::{Batch, Ties, Window};

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// Runs `share` percent of all scripts.
fn run<M, W>(monoid: M, make: impl Fn(Ties) -> W, share: u64)
where
    M: Monoid<In = i64>,
    W: Window<M> + Debug,
{
    let first = setting("SLIDEWISE_SEED", 1);
    let scripts = setting("SLIDEWISE_SCRIPTS", 24_000) * share / 100;
    for seed in first..first + scripts {
        let ties = match seed % 2 {
            0 => Ties::Keep,
            _ => Ties::Combine,
        };
        let length = if seed % 32 < 2 { 300 } else { 48 };
        compare(&make, &monoid, ties, seed, length);
    }
}

const ON: Options = Options {
    bulk: true,
    free_list: true,
};

fn fiba(arity: usize, options: Options, share: u64) {
    let monoid = Affine::<0>;
    run(
        monoid,
        |ties| BTree::with_fingers(Affine::<0>, ties, arity, options),
        share,
    );
}

#[test]
fn fiba_published_arity_2() {
    fiba(2, ON, 40);
}

#[test]
fn fiba_published_arity_4() {
    fiba(4, ON, 20);
}

#[test]
fn fiba_published_arity_8() {
    fiba(8, ON, 10);
}

#[test]
fn fiba_published_arity_16() {
    fiba(16, ON, 10);
}

#[test]
fn fiba_published_with_an_odd_arity() {
    fiba(3, ON, 10);
}

#[test]
fn fiba_published_that_frees_at_once() {
    let options = Options {
        free_list: false,
        ..ON
    };
    fiba(2, options, 10);
}

#[test]
fn fiba_published_without_bulk() {
    let options = Options { bulk: false, ..ON };
    fiba(2, options, 20);
}

#[test]
fn fiba_published_over_a_commutative_monoid() {
    run(
        Tally::<0>,
        |ties| BTree::with_fingers(Tally::<0>, ties, 4, ON),
        10,
    );
}

#[test]
fn btree_of_all_arities() {
    for (arity, share) in [(2, 50), (3, 10), (4, 20), (8, 10), (16, 10)] {
        run(
            Affine::<0>,
            |ties| BTree::new(Affine::<0>, ties, arity),
            share,
        );
    }
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
