//! Tests of the driver of the experiments, `benches/experiments`: it knows every algorithm
//! of the package, and its counts are those of the monoids that the tests count with.

#![allow(dead_code, reason = "the driver has more operators than are counted")]

#[path = "../../common/mod.rs"]
mod common;
#[path = "../../../../papers/benches/experiments/counted.rs"]
mod counted;
#[path = "../../../../papers/benches/experiments/measure.rs"]
mod measure;
#[path = "../../../../papers/benches/experiments/operators.rs"]
mod operators;
#[path = "../../../../papers/benches/experiments/order.rs"]
mod order;
#[path = "../../../../papers/benches/experiments/resident.rs"]
mod resident;
#[path = "../../../../papers/benches/latency/samples.rs"]
mod samples;
#[path = "../../../../papers/benches/experiments/structures.rs"]
mod structures;
#[path = "../../../../papers/benches/experiments/subjects.rs"]
mod subjects;

use slidewise_core::monoid::{Entry, Monoid};
use slidewise_core::window::fifo::Fifo;
use slidewise_core::window::fifo::flat_fit::FlatFit;
use slidewise_core::window::planned::algorithm as core;
use slidewise_core::window::{Ties, Window};
use slidewise_papers::btree::BTree;
use slidewise_papers::btree::Options;
use slidewise_papers::fifo::daba::Daba;
use slidewise_papers::fifo::two_stacks::TwoStacks;

use common::monoids::{Affine, take_combines};
use counted::Counted;
use operators::Sum;
use order::Order;

/// Entries, and the slides that the driver counts for so many.
const N: usize = 64;
const ROUNDS: usize = 1024;

const TREES: [&str; 2] = ["btree", "fiba_published"];

fn counted(words: &str) -> String {
    let order = Order::read(&format!("metric=counts {words}")).expect("words of an order");
    structures::run(&order, &Counted(Sum)).unwrap_or_else(|error| panic!("{words}: {error}"))
}

/// The number behind a member's name.
fn member(figures: &str, name: &str) -> f64 {
    let (_, rest) = figures.split_once(&format!(r#""{name}": "#)).expect(name);
    let end = rest.find(',').unwrap_or(rest.len());
    rest[..end].parse().expect("a number")
}

#[test]
fn the_driver_runs_every_algorithm() {
    let core = core::ALGORITHMS.iter().map(|(known, _)| known);
    let papers = slidewise_papers::algorithm::ALGORITHMS.iter();
    for info in core.chain(papers.map(|(known, _)| known)) {
        let arity = if TREES.contains(&info.name) { ":4" } else { "" };
        let figures = counted(&format!("structure={}{arity} n=64", info.name));
        assert!(
            member(&figures, "combines") > 0.0,
            "{}: {figures}",
            info.name
        );
    }
}

/// The counts of a driver of n = 64 in order: slides behind a fill and two windows of them.
fn by_hand(mut slide: impl FnMut()) -> (f64, f64) {
    (0..2 * N).for_each(|_| slide());
    take_combines();
    let (mut all, mut most) = (0, 0);
    for _ in 0..ROUNDS {
        slide();
        let combines = take_combines();
        all += combines;
        most = most.max(combines);
    }
    (all as f64 / ROUNDS as f64, most as f64)
}

fn agrees(structure: &str, (combines, most): (f64, f64)) {
    let figures = counted(&format!("structure={structure} n={N}"));
    assert_eq!(member(&figures, "items"), ROUNDS as f64, "{structure}");
    assert_eq!(member(&figures, "most"), most, "{structure}");
    assert!(
        (member(&figures, "combines") - combines).abs() < 1e-6,
        "{structure}: {figures}"
    );
}

fn fifo(structure: &str, mut fifo: impl Fifo<Affine<0>>) {
    for value in 0..N {
        fifo.insert(Affine::<0>.lift(&(value as i64)));
    }
    let counts = by_hand(|| {
        fifo.evict();
        fifo.insert(Affine::<0>.lift(&7));
        fifo.query();
    });
    agrees(structure, counts);
}

fn tree(structure: &str, mut window: impl Window<Affine<0>>) {
    let mut next = 0;
    for _ in 0..N {
        window.insert(next, Entry::Raw(next));
        next += 1;
    }
    let counts = by_hand(|| {
        window.evict();
        window.insert(next, Entry::Raw(next));
        next += 1;
        window.query();
    });
    agrees(structure, counts);
}

#[test]
fn the_driver_counts_what_the_tests_count() {
    fifo("two_stacks", TwoStacks::new(Affine::<0>, true));
    fifo("daba", Daba::new(Affine::<0>, true));
    fifo("daba:uncached", Daba::new(Affine::<0>, false));
    fifo("flat_fit", FlatFit::new(Affine::<0>));
    tree("btree:4", BTree::new(Affine::<0>, Ties::Combine, 4));
    let options = Options::default();
    tree(
        "fiba_published:2",
        BTree::with_fingers(Affine::<0>, Ties::Combine, 2, options),
    );
}

/// Late entries, bulks and ranges: figures that the structures' cards promise.
#[test]
fn the_driver_runs_its_orders() {
    let figures = counted("structure=slick_deque mode=ranges n=32 q=32");
    assert_eq!(member(&figures, "combines"), 64.0, "{figures}");
    let figures = counted("structure=recalculate n=32");
    assert_eq!(member(&figures, "most"), 31.0, "{figures}");
    let late = counted("structure=fiba_published:4 n=4096 d=1024");
    let in_order = counted("structure=fiba_published:4 n=4096");
    assert!(member(&late, "combines") > 1.5 * member(&in_order, "combines"));
    let single = counted("structure=fiba_published:4 n=4096 m=256 mode=bulk-evict");
    let bulk = counted("structure=fiba_published:4 n=4096 m=256 mode=bulk");
    assert!(member(&bulk, "combines") < member(&single, "combines"));
}

fn measured(words: &str) -> String {
    let order = Order::read(words).expect("words of an order");
    structures::run(&order, &Sum).unwrap_or_else(|error| panic!("{words}: {error}"))
}

/// Bytes are those of a window that has slid: DABA's rings no longer hold what it grew by.
#[test]
fn memory_is_taken_after_slides() {
    let figures = measured("metric=memory structure=daba n=4096");
    let mut queue = Daba::new(Sum, true);
    for value in 0..2 * 4096 {
        if value >= 4096 {
            queue.evict();
        }
        queue.insert(Sum.lift(&value));
        queue.query();
    }
    let bytes = queue.bytes() + size_of_val(&queue);
    assert_eq!(member(&figures, "bytes"), bytes as f64, "{figures}");
    assert!(member(&figures, "resident") > bytes as f64, "{figures}");
}

/// One range needs no list of ranges: the package takes subtract-on-evict, too.
#[test]
fn slick_deque_of_one_range_is_subtract_on_evict() {
    for words in ["metric=memory n=1024", "metric=counts n=64"] {
        let one = measured(&format!("structure=slick_deque {words}"));
        let other = measured(&format!("structure=subtract_on_evict {words}"));
        let name = if words.contains("memory") {
            "bytes"
        } else {
            "combines"
        };
        assert_eq!(member(&one, name), member(&other, name), "{words}");
    }
}

/// FlatFIT keeps the way of a query on a stack beside two words per entry (SlickDeque, §4.2):
/// n words for one range, whose window reset goes over all entries, and n/q for q evenly
/// spread ones, which have been answered since the window grew.
#[test]
fn memory_counts_what_answers_keep() {
    const ENTRIES: usize = 4096;
    for (q, stack) in [(1, ENTRIES), (2, ENTRIES / 2), (4, ENTRIES / 4)] {
        let words = format!("metric=memory mode=ranges structure=flat_fit n={ENTRIES} q={q}");
        let figures = measured(&words);
        let bytes = size_of::<u64>() * (2 * ENTRIES + stack);
        assert_eq!(member(&figures, "bytes"), bytes as f64, "{q}: {figures}");
    }
}

/// A tree with range queries for some small windows, or as many trees.
#[test]
fn small_windows_are_as_many_as_asked() {
    let bytes = |mode: &str, m: usize| {
        let words = format!("metric=memory mode={mode} structure=fiba_published:4 n=1024 q=512");
        member(&measured(&format!("{words} m={m}")), "bytes")
    };
    assert_eq!(bytes("range", 8), bytes("range", 1));
    // Of 64, 128, to 512 entries: more than four times the largest of them.
    assert!(bytes("twin", 8) - bytes("range", 8) > 3.0 * (bytes("twin", 1) - bytes("range", 1)));
    let combines = |mode: &str, m: usize| {
        let words = format!("mode={mode} structure=fiba_published:4 n=1024 q=512 m={m}");
        member(&counted(&words), "combines")
    };
    for mode in ["twin", "range"] {
        assert!(combines(mode, 8) > 2.0 * combines(mode, 1), "{mode}");
    }
    let words = "mode=twin structure=fiba_published:4 n=64 q=16 m=4 d=8";
    let order = Order::read(words).expect("words of an order");
    assert!(
        structures::run(&order, &Sum).is_err(),
        "windows of four entries, eight younger"
    );
}

/// A full Reactive Aggregator of n entries doubles: the insert and its query fold all of it.
#[test]
fn an_insert_that_finds_no_room_is_timed() {
    let figures = measured("metric=latency mode=grow structure=reactive n=256 millis=1");
    assert!(member(&figures, "samples") >= 1.0, "{figures}");
    let order = Order::read("structure=reactive n=256 mode=grow").expect("words of an order");
    let monoid = Counted(Sum);
    take_combines();
    counted::take_combines();
    structures::run(&Order { millis: 0, ..order }, &monoid).expect("an order for reactive");
    assert!(
        counted::take_combines() >= 256 + 255,
        "the fill and the resize"
    );
}

/// A fence and what the system reports change no answer.
#[test]
fn a_fence_and_page_faults_are_beside_the_rate() {
    let words = "mode=bulk structure=fiba_published:4 n=1024 m=64 millis=1 fence=1";
    let figures = measured(words);
    assert!(member(&figures, "rate") > 0.0, "{figures}");
    assert!(member(&figures, "faults") >= 0.0, "{figures}");
    assert!(Order::read(words).expect("words of an order").fence);
    if cfg!(target_os = "linux") {
        let before = resident::faults();
        let pages = std::hint::black_box(vec![1_u8; 4 << 20]);
        assert!(resident::faults() > before + 100, "{} bytes", pages.len());
        assert!(resident::most_resident() > 4 << 20);
    }
}

#[test]
fn the_driver_refuses_what_it_does_not_know() {
    for words in ["structure=tree", "structure=btree:3", "structure=btree"] {
        let order = Order::read(words).expect("words of an order");
        assert!(structures::run(&order, &Sum).is_err(), "{words}");
    }
    for words in [
        "n=0",
        "n=4 m=8",
        "n=4 d=8",
        "n=x",
        "metric=speed",
        "mode=x",
        "size=1",
    ] {
        assert!(Order::read(words).is_err(), "{words}");
    }
}
