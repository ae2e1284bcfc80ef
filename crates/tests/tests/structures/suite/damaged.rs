//! The structures refuse damaged bytes, or read them as a sound window. Shrunk windows free
//! their memory.

use crate::common::Random;
use crate::each;
use crate::suite::each::Test;
use slidewise_core::aggregate::DType;
use slidewise_core::aggregate::word::{Extreme, SumI64};
use slidewise_core::monoid::{Entry, Monoid};
use slidewise_core::snapshot::{Reader, Writer};
use slidewise_core::window::{Ties, Window};

fn filled<M: Monoid<In = i64>, W: Window<M>>(fresh: &W, random: &mut Random, count: i64) -> W {
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

fn survives_damage<M: Monoid<In = i64>, W: Window<M>>(name: &str, fresh: W) {
    let mut random = Random(31);
    for round in (0..60).step_by(3) {
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
                let fault = read.check().err();
                assert!(fault.is_none(), "{name} accepted {fault:?}");
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

struct Damage;

impl<M: Monoid<In = i64>> Test<M> for Damage {
    fn window<W: Window<M>>(&mut self, name: &str, fresh: W) {
        survives_damage(name, fresh);
    }
}

/// The largest value.
const MAX: Extreme = Extreme {
    dtype: DType::I64,
    min: false,
};

#[test]
fn damaged_windows_are_refused_or_sound() {
    for ties in [Ties::Combine, Ties::Keep] {
        each::associative(&SumI64, ties, &mut Damage);
        each::invertible(&SumI64, ties, &mut Damage);
        each::selective(&MAX, ties, &mut Damage);
    }
}

struct Memory;

impl<M: Monoid<In = i64>> Test<M> for Memory {
    fn window<W: Window<M>>(&mut self, name: &str, fresh: W) {
        // This one is all tree, which keeps its nodes for later ones.
        if name != "daba_late, no bound" {
            gives_back(name, fresh);
        }
    }
}

fn gives_back<M: Monoid<In = i64>, W: Window<M>>(name: &str, mut window: W) {
    for time in 0..100_000 {
        window.insert(time, Entry::Raw(1));
        window.query();
    }
    let full = window.bytes();
    window.evict_until(99_990);
    window.query();
    let left = window.bytes();
    assert!(
        left < 500_000 && full > 1_600_000,
        "{name}: {left} of {full}"
    );
    window.check().expect("a sound window");
}

#[test]
fn memory_comes_back() {
    each::associative(&SumI64, Ties::Combine, &mut Memory);
    each::invertible(&SumI64, Ties::Combine, &mut Memory);
    // Only a descending stream fills it; the times and the values are many enough.
    each::selective(&MAX, Ties::Combine, &mut Memory);
}
