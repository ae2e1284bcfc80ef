//! The structures by name, behind one interface.

use slidewise_core::aggregate::collect::Collect;
use slidewise_core::monoid::{Invertible, Selective};
use slidewise_core::window::fiba::Fiba;
use slidewise_core::window::fifo::Fifo;
use slidewise_core::window::fifo::daba_lite::DabaLite;
use slidewise_core::window::fifo::flat_fit::FlatFit;
use slidewise_core::window::fifo::in_order::InOrder;
use slidewise_core::window::fifo::shared::Shared;
use slidewise_core::window::fifo::slick_deque::SlickDeque;
use slidewise_core::window::fifo::slick_deque_inv::SlickDequeInv;
use slidewise_core::window::fifo::subtract_on_evict::SubtractOnEvict;
use slidewise_core::window::fifo::two_stacks_lite::TwoStacksLite;
use slidewise_core::window::recalculate::RecalculateQueue;
use slidewise_core::window::{Ties, Window};
use slidewise_papers::btree::BTree;
use slidewise_papers::btree::Options;
use slidewise_papers::daba_late::DabaLate;
use slidewise_papers::fifo::aba::Aba;
use slidewise_papers::fifo::amta::Amta;
use slidewise_papers::fifo::b_int::BInt;
use slidewise_papers::fifo::daba::Daba;
use slidewise_papers::fifo::daba_chain::DabaChain;
use slidewise_papers::fifo::flat_fat::FlatFatQueue;
use slidewise_papers::fifo::two_stacks::TwoStacks;
use slidewise_papers::reactive::Reactive;

use crate::counted::Counted;
use crate::measure;
use crate::operators::{Bloom, Few, GeometricMean, Max, Operator, Sum};
use crate::order::{Mode, Order};
use crate::subjects::{Answer, Bare, Timed};

/// Lateness within which `daba_late` admits entries; here all come in order.
const BOUND: i64 = 1000;

/// An operator, with the structures that ask for a law, if it has one.
pub trait Lawful: Operator {
    /// Runs an order on such a structure.
    fn lawful(&self, _order: &Order) -> Option<Answer> {
        None
    }
}

impl Lawful for Sum {
    fn lawful(&self, order: &Order) -> Option<Answer> {
        inverting(order, self)
    }
}

impl Lawful for Max {
    fn lawful(&self, order: &Order) -> Option<Answer> {
        selecting(order, self)
    }
}

impl Lawful for Counted<Sum> {
    fn lawful(&self, order: &Order) -> Option<Answer> {
        inverting(order, self)
    }
}

impl Lawful for Counted<Max> {
    fn lawful(&self, order: &Order) -> Option<Answer> {
        selecting(order, self)
    }
}

impl Lawful for Bloom {}
impl Lawful for Collect<i64> {}
impl Lawful for Few {}
impl Lawful for GeometricMean {}

/// Runs an order with an operator.
pub fn run<M: Lawful>(order: &Order, monoid: &M) -> Answer {
    let m = || monoid.clone();
    let mut words = order.structure.split(':');
    let name = words.next().unwrap_or_default();
    let options: Vec<&str> = words.collect();
    let is = |option: &str| options.contains(&option);
    match name {
        "two_stacks" => fifo(order, TwoStacks::new(m(), !is("uncached"))),
        "two_stacks_lite" if is("timed") => in_order(order, TwoStacksLite::new(m())),
        "two_stacks_lite" => fifo(order, TwoStacksLite::new(m())),
        "aba" => fifo(order, Aba::new(m(), !is("uncached"))),
        "daba" => fifo(order, Daba::new(m(), !is("uncached"))),
        "daba_lite" if is("timed") => in_order(order, DabaLite::new(m())),
        "daba_lite" => fifo(order, DabaLite::new(m())),
        "daba_chain" => shared(order, DabaChain::new(m(), ranges(order))),
        "flat_fit" => shared(order, FlatFit::new(m())),
        "flat_fat" => shared(order, FlatFatQueue::new(m(), order.n)),
        "b_int" => shared(order, BInt::new(m())),
        "amta" if is("timed") => in_order(order, Amta::new(m())),
        "amta" => shared(order, Amta::new(m())),
        "recalculate" => shared(order, RecalculateQueue::new(m())),
        "reactive" => periodic(order, Reactive::new(m(), Ties::Combine)),
        "daba_late" => periodic(order, DabaLate::new(m(), Ties::Combine, BOUND)),
        // The forms that the package takes for cheap partials and for wide ones.
        "fiba" if size_of::<M::Partial>() <= 64 => {
            tree(order, || Fiba::<M, 64, 32>::new(m(), Ties::Combine))
        }
        "fiba" => tree(order, || Fiba::<M, 16, 8>::new(m(), Ties::Combine)),
        "btree" => {
            let arity = arity(&options)?;
            tree(order, || BTree::new(m(), Ties::Combine, arity))
        }
        "fiba_published" => {
            let (bulk, free_list) = (!is("loop"), !is("nofl"));
            let published = Options { bulk, free_list };
            let arity = arity(&options)?;
            tree(order, || {
                BTree::with_fingers(m(), Ties::Combine, arity, published)
            })
        }
        "subtract_on_evict" | "slick_deque" => monoid
            .lawful(order)
            .unwrap_or_else(|| Err(format!("{name} has no {}", order.operator))),
        _ => Err(format!("unknown structure {name}")),
    }
}

/// Structures for operators with an inverse.
fn inverting<M: Operator + Invertible>(order: &Order, monoid: &M) -> Option<Answer> {
    let monoid = monoid.clone();
    Some(match order.structure.as_str() {
        // SlickDeque of one range is this structure, in the package as well.
        _ if order.mode != Mode::Ranges => fifo(order, SubtractOnEvict::new(monoid)),
        _ => shared(order, SlickDequeInv::new(monoid, ranges(order))),
    })
}

/// Structures for operators that give one of their operands.
fn selecting<M: Operator + Selective>(order: &Order, monoid: &M) -> Option<Answer> {
    let slick_deque = order.structure == "slick_deque";
    slick_deque.then(|| shared(order, SlickDeque::new(monoid.clone())))
}

fn arity(options: &[&str]) -> Result<usize, String> {
    let arity = options.first().and_then(|word| word.parse().ok());
    arity
        .filter(|arity| [2, 4, 8, 16].contains(arity))
        .ok_or("a tree has :2, :4, :8 or :16 as its least arity".into())
}

fn ranges(order: &Order) -> usize {
    match order.mode {
        Mode::Ranges => order.q,
        _ => 1,
    }
}

fn in_order<M: Operator, F: Fifo<M>>(order: &Order, fifo: F) -> Answer {
    periodic(order, InOrder::new(fifo, Ties::Combine))
}

fn fifo<M: Operator, F: Fifo<M>>(order: &Order, fifo: F) -> Answer {
    let monoid = fifo.monoid().clone();
    measure::alone(order, &monoid, Bare(fifo))
}

fn shared<M: Operator, F: Shared<M>>(order: &Order, structure: F) -> Answer {
    if order.mode == Mode::Ranges {
        return measure::ranges(order, structure);
    }
    fifo(order, structure)
}

fn periodic<M: Operator, W: Window<M>>(order: &Order, window: W) -> Answer {
    let monoid = window.monoid().clone();
    if order.mode == Mode::Grow {
        return measure::grow(order, &monoid, &window);
    }
    measure::alone(order, &monoid, Timed::<W, true>(window))
}

fn tree<M: Operator, W: Window<M>>(order: &Order, make: impl Fn() -> W) -> Answer {
    let window = make();
    let monoid = window.monoid().clone();
    match order.mode {
        Mode::Twin => measure::twin(order, &monoid, make),
        Mode::Range => measure::range(order, &monoid, window),
        Mode::Replay => measure::replay(order, &monoid, window),
        _ => measure::alone(order, &monoid, Timed::<W, false>(window)),
    }
}
