//! Deferred partials in windows: the right value in the right order after any failure.

use std::cell::RefCell;

use crate::algorithms::{self, Known};
use crate::common::Random;
use crate::common::script::{Claims, Generator, Op as Step, seeds};
use slidewise_core::aggregate::collect::Seq;
use slidewise_core::aggregate::deferred::{Term, UdafCall, UdafFunction};
use slidewise_core::aggregate::{AggSpec, Answer, Cell, DType, Kind};
use slidewise_core::monoid::Law;
use slidewise_core::snapshot::{Reader, Writer};
use slidewise_core::window::planned::algorithm::Algorithm;
use slidewise_core::window::planned::any::AnyWindow;
use slidewise_core::window::planned::plain::window;
use slidewise_core::window::{Refused, Ties};

/// A text, by its place among those held: windows over another type would be compiled once
/// more, all of them, which takes a minute.
pub type Text = i64;

thread_local! {
    static HELD: RefCell<Vec<Seq<i64>>> = const { RefCell::new(Vec::new()) };
}

fn hold(text: Seq<i64>) -> Text {
    HELD.with_borrow_mut(|held| {
        held.push(text);
        held.len() as Text - 1
    })
}

pub fn one(value: i64) -> Text {
    hold(Seq::One(value))
}

fn held(text: &Text) -> Seq<i64> {
    HELD.with_borrow(|held| held[*text as usize].clone())
}

fn read(text: &Text) -> Vec<i64> {
    held(text).to_vec()
}

fn udaf() -> Kind {
    Kind::Udaf {
        number: 7,
        commutative: false,
        invertible: true,
    }
}

fn request(kind: Kind) -> AggSpec {
    AggSpec {
        kind,
        of: Some(0),
        by: None,
        ddof: 1,
    }
}

/// Concatenation, and its inverse.
pub fn call(call: UdafCall, a: &Text, b: &Text) -> Text {
    assert_eq!(call.udaf, 7);
    match call.function {
        UdafFunction::Combine => hold(held(a).then(&held(b))),
        UdafFunction::Inverse => {
            let (whole, oldest) = (read(a), read(b));
            assert_eq!(whole[..oldest.len()], oldest, "not its oldest part");
            let rest = whole[oldest.len()..].iter();
            hold(rest.fold(Seq::Empty, |text, value| text.then(&Seq::One(*value))))
        }
    }
}

/// Fails at the k-th call, for every k.
fn force_with_faults(term: &Term<Text>) -> Vec<i64> {
    for k in 0.. {
        let mut calls = 0;
        let forced = term.force(&mut |what, a, b| {
            calls += 1;
            if calls > k {
                Err(())
            } else {
                Ok(call(what, a, b))
            }
        });
        if let Ok(value) = forced {
            return value.map_or_else(Vec::new, |text| read(&text));
        }
        assert_eq!(calls, k + 1, "it goes on where it stopped");
    }
    unreachable!()
}

pub fn force(term: &Term<Text>) -> Vec<i64> {
    let forced = term.force(&mut |what, a, b| Ok::<_, ()>(call(what, a, b)));
    forced.unwrap().map_or_else(Vec::new, |text| read(&text))
}

fn values(answers: &[Answer<Text>], faults: bool) -> Vec<i64> {
    match answers {
        [Answer::Term(term)] if faults => force_with_faults(term),
        [Answer::Term(term)] => force(term),
        [Answer::List(cells)] => {
            let texts = cells.iter().map(|cell| match cell {
                Cell::Object(text) => read(text),
                cell => panic!("{cell:?}"),
            });
            texts.flatten().collect()
        }
        other => panic!("{other:?}"),
    }
}

type AnyText = Box<dyn AnyWindow<Text>>;

fn make(known: Known, ties: Ties) -> AnyText {
    known.window(&[request(udaf())], &[DType::Object], ties)
}

fn row(value: i64) -> [Cell<Text>; 1] {
    [Cell::Object(one(value))]
}

fn step(window: &mut AnyText, op: &Step) -> Result<Option<usize>, Refused> {
    match op {
        Step::Insert(time, value) => window.insert(*time, &row(*value))?,
        Step::InsertMissing(time) => window.insert(*time, &[Cell::Null])?,
        Step::InsertMany(items) => {
            let mut items = items.clone();
            items.sort_by_key(|(time, _)| *time);
            for (time, value) in items {
                window.insert(time, &row(value))?;
            }
        }
        Step::Evict => return Ok(window.evict().map(|_| 1)),
        Step::EvictAt(time) => return Ok(Some(usize::from(window.evict_at(*time)?))),
        Step::EvictOldest => match window.oldest() {
            Some(oldest) => assert_eq!(window.evict_at(oldest), Ok(true)),
            None => assert_eq!(window.evict_at(0), Ok(false)),
        },
        Step::EvictUntil(time) => return Ok(Some(window.evict_until(*time))),
        Step::Clear => window.clear(),
        Step::Range(..) | Step::WholeRange | Step::Restore | Step::Query => {}
    }
    Ok(None)
}

fn restored(window: &AnyText, fresh: AnyText) -> AnyText {
    loop {
        let mut out = Writer::default();
        window.write(&mut out);
        let postponed = out.take_postponed();
        if postponed.is_empty() {
            let bytes = out.finish().unwrap();
            let mut restored = fresh;
            restored.read(&mut Reader::new(&bytes)).unwrap();
            return restored;
        }
        for term in postponed {
            force(term.downcast_ref::<Term<Text>>().unwrap());
        }
    }
}

fn compare(known: Known, claims: Claims, ties: Ties, seed: u64) {
    HELD.with_borrow_mut(Vec::clear);
    let mut windows = [
        make(known, ties),
        window(
            Algorithm::Recalculate,
            &[request(Kind::Collect)],
            &[DType::Object],
            ties,
        ),
    ];
    let mut generator = Generator::new(seed, claims);
    let mut random = Random(seed);
    let steps_per_query = random.pick(&[1, 4, 40]);
    for at in 0..64 {
        let op = generator.op();
        if let Ok(outcome) = step(&mut windows[0], &op) {
            assert_eq!(
                Ok(outcome),
                step(&mut windows[1], &op),
                "seed {seed}, step {at}"
            );
        } else {
            assert_ne!(claims, Claims::AnyOrder, "seed {seed}, step {at}");
        }
        if matches!(op, Step::Restore) {
            windows[0] = restored(&windows[0], make(known, ties));
        }
        if random.below(steps_per_query) > 0 {
            continue;
        }
        let range = match op {
            Step::Range(lo, hi) if claims != Claims::WholeOnly => (lo, hi),
            _ => (i64::MIN, i64::MAX),
        };
        let answers = windows.each_mut().map(|window| {
            let mut out = Vec::new();
            match range {
                (i64::MIN, i64::MAX) => window.query(&mut out),
                (lo, hi) => window.query_range(lo, hi, &mut out).expect("parts"),
            }
            values(&out, at % 3 == 0)
        });
        assert_eq!(answers[0], answers[1], "seed {seed}, step {at}: {op:?}");
        windows[0].check().unwrap();
    }
}

#[test]
fn every_algorithm_gives_the_entries_in_order_whatever_fails() {
    for seed in seeds(5) {
        let ties = [Ties::Keep, Ties::Combine][seed as usize % 2];
        for known in algorithms::all() {
            let info = known.properties;
            let claims = match (info.in_order, info.ranges) {
                (true, false) => Claims::WholeOnly,
                (true, true) => Claims::InOrder,
                (false, _) => Claims::AnyOrder,
            };
            if info.law != Some(Law::Selection) {
                compare(known, claims, ties, seed);
            }
        }
    }
}
