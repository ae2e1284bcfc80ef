//! Bytes that were changed, read into the flat structures: refused, or a sound window. And
//! memory that must come back.

use crate::common::Random;
use slidewise_core::aggregate::word::SumI64;
use slidewise_core::monoid::Entry;
use slidewise_core::snapshot::{Reader, Writer};
use slidewise_core::window::amta::Amta;
use slidewise_core::window::b_int::BInt;
use slidewise_core::window::flat_fat::FlatFatQueue;
use slidewise_core::window::flat_fit::FlatFit;
use slidewise_core::window::in_order::InOrder;
use slidewise_core::window::reactive::Reactive;
use slidewise_core::window::{Ties, Window};

fn filled<W: Window<SumI64>>(fresh: &W, random: &mut Random, count: i64) -> W {
    let mut window = fresh.clone();
    for time in 0..count {
        window.insert(time, Entry::Raw(1));
        if random.below(3) == 0 {
            window.evict();
        }
        if random.below(4) == 0 {
            window.query();
        }
        let any = time - random.below(9) as i64;
        if random.below(5) == 0 && window.admits_evict(any).is_ok() {
            window.evict_at(any);
        }
    }
    window
}

fn survives_damage<W: Window<SumI64>>(fresh: W) {
    let mut random = Random(31);
    for round in 0..60 {
        let window = filled(&fresh, &mut random, round);
        let mut out = Writer::default();
        window.write(&mut out);
        let bytes = out.finish().expect("sums have a binary form");
        for _ in 0..200 {
            let mut bytes = bytes.clone();
            if random.below(4) == 0 {
                bytes.truncate(random.below(bytes.len() as u64) as usize);
            } else {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = random.pick(&[0, 1, 2, 3, 8, 63, 64, 128, 255]);
            }
            let mut read = fresh.clone();
            if read.read(&mut Reader::new(&bytes)).is_ok() {
                read.check().expect("what was accepted is sound");
                let youngest = read.youngest().unwrap_or_default();
                read.insert(youngest, Entry::Raw(1));
                read.query();
                read.evict();
                read.evict_until(youngest);
                read.query();
            }
        }
    }
}

#[test]
fn amta() {
    survives_damage(InOrder::new(Amta::new(SumI64), Ties::Combine));
}

#[test]
fn b_int() {
    survives_damage(InOrder::new(BInt::new(SumI64), Ties::Keep));
}

#[test]
fn flat_fat() {
    survives_damage(InOrder::new(FlatFatQueue::new(SumI64, 4), Ties::Combine));
}

#[test]
fn flat_fit() {
    survives_damage(InOrder::new(FlatFit::new(SumI64), Ties::Keep));
}

#[test]
fn reactive() {
    survives_damage(Reactive::new(SumI64, Ties::Combine));
    survives_damage(Reactive::new(SumI64, Ties::Keep));
}

fn gives_back<W: Window<SumI64>>(mut window: W) {
    for time in 0..100_000 {
        window.insert(time, Entry::Raw(1));
        window.query();
    }
    assert!(window.bytes() > 3_000_000);
    window.evict_until(99_990);
    window.query();
    assert!(window.bytes() < 500_000, "{} held", window.bytes());
    window.check().expect("a sound window");
}

#[test]
fn memory_comes_back() {
    gives_back(Reactive::new(SumI64, Ties::Combine));
    gives_back(InOrder::new(Amta::new(SumI64), Ties::Combine));
    gives_back(InOrder::new(BInt::new(SumI64), Ties::Combine));
    gives_back(InOrder::new(FlatFit::new(SumI64), Ties::Combine));
    gives_back(InOrder::new(FlatFatQueue::new(SumI64, 8), Ties::Combine));
}
