//! Deferred partials by themselves: chains of any depth, and a ledger that does not grow.

use std::sync::Arc;

use crate::deferred::{Text, call, force, one};
use slidewise_core::aggregate::deferred::{Deferred, Ledger, Term};
use slidewise_core::monoid::Monoid;
use slidewise_core::snapshot::{Codec, Reader, Writer};

const DEEP: i64 = 1_000_000;

#[test]
fn chains_of_any_depth_are_worked_out_and_dropped() {
    let monoid = Deferred::new(7, false, Arc::<Ledger<Text>>::default());
    let leaves = || (0..DEEP).map(|value| monoid.leaf(one(value)));
    let left = leaves().fold(Term::default(), |acc, leaf| monoid.combine(&acc, &leaf));
    let right = leaves()
        .rev()
        .fold(Term::default(), |acc, leaf| monoid.combine(&leaf, &acc));
    assert!(force(&left).into_iter().eq(0..DEEP));
    drop(right); // never computed
    let untouched = leaves().fold(Term::default(), |acc, leaf| monoid.combine(&acc, &leaf));
    drop(untouched);
}

#[test]
fn a_ledger_holds_what_is_alive_and_gives_operands_first() {
    let ledger = Arc::<Ledger<Text>>::default();
    let monoid = Deferred::new(7, false, Arc::clone(&ledger));
    let mut acc = Term::default();
    for value in 0..100 {
        acc = monoid.combine(&acc, &monoid.leaf(one(value)));
    }
    for term in ledger.take(usize::MAX) {
        let (what, a, b) = term.next_step().expect("its operands came before");
        term.set_value(call(what, &a, &b));
    }
    assert!(ledger.is_empty());
    assert!(force(&acc).into_iter().eq(0..100));
    for value in 0..DEEP {
        acc = monoid.combine(&monoid.leaf(one(value)), &monoid.leaf(one(0)));
    }
    assert!(ledger.len() <= 1 << 12, "{}", ledger.len());
    drop(acc);
    assert!(ledger.take(10).is_empty(), "it keeps nothing alive");
}

#[test]
fn marks_tell_another_order_and_another_rest() {
    let monoid = Deferred::new(7, false, Arc::<Ledger<Text>>::default());
    let [a, b, c] = [1, 2, 3].map(|value| monoid.leaf(one(value)));
    let ab = monoid.combine(&a, &b);
    let abc = monoid.combine(&ab, &c);
    assert!(monoid.same(&abc, &monoid.combine(&a, &monoid.combine(&b, &c))));
    assert!(!monoid.same(&ab, &monoid.combine(&b, &a)));
    let rest = monoid.inverse_of(&abc, &a);
    assert!(monoid.same(&rest, &monoid.combine(&b, &c)));
    assert_eq!(force(&rest), [2, 3]);
    assert!(monoid.inverse_of(&abc, &abc).is_nothing());
    let any = Deferred::new(7, true, Arc::<Ledger<Text>>::default());
    let [a, b] = [1, 2].map(|value| any.leaf(one(value)));
    assert!(any.same(&any.combine(&a, &b), &any.combine(&b, &a)));
    assert!(!any.same(&any.combine(&a, &b), &a));
}

#[test]
fn a_pending_term_has_no_bytes_yet() {
    let monoid = Deferred::new(7, false, Arc::<Ledger<Text>>::default());
    let pair = monoid.combine(&monoid.leaf(one(1)), &monoid.leaf(one(2)));
    let mut out = Writer::default();
    pair.write(&mut out);
    assert_eq!(out.take_postponed().len(), 1);
    force(&pair);
    let mut out = Writer::default();
    pair.write(&mut out);
    let bytes = out.finish().unwrap();
    let read = Term::<Text>::read(&mut Reader::new(&bytes)).unwrap();
    assert!(monoid.same(&read, &pair));
    assert_eq!(force(&read), [1, 2]);
}
