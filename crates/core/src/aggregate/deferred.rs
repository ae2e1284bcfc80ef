//! User-defined aggregations: partials that are computed later.
//!
//! A user's combine may raise, run for long, or call back into the very window that is
//! in the middle of an insert. So no window ever calls it. Combining two partials makes a
//! *pending* term that holds its operands, in constant time; this cannot fail. A caller
//! that needs an answer computes it by [`Term::force`], outside of any window, and the term
//! keeps the value for all that share it. This makes every algorithm all-or-nothing by
//! construction: code that can raise runs only in calls that change nothing.
//!
//! Invariants:
//!
//! 1. A term is *ready* (holds its value) or *pending* (holds its operands); it becomes
//!    ready once, and then drops its operands.
//! 2. The [`Mark`] of a term is that of its leaves in their order, however grouped: two
//!    terms over the same entries have equal marks, so [`Monoid::same`] detects a wrong
//!    order of combining without calling user code.
//! 3. Chains grow as deep as a window is long; nothing here recurses.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::collect::Element;
use super::{Aggregation, Answer, Cell};
use crate::monoid::{Entry, HandleSlot, Invertible, Monoid};
use crate::snapshot::{Codec, Reader, Result, Writer, damaged};

/// The function that a pending term calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UdafFunction {
    /// Combines the earlier and the later partial.
    Combine,
    /// Removes the earliest part from the whole.
    Inverse,
}

/// A call to make: the aggregation by its number, and the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdafCall {
    pub udaf: u16,
    pub function: UdafFunction,
}

/// The fingerprint of a sequence of leaves: a polynomial in [`BASE`] modulo 2⁶⁴, whose
/// `power` is that of the length. If order does not matter, all powers are 1 and the hash
/// is a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    hash: u64,
    power: u64,
}

const BASE: u64 = 0x9e37_79b9_7f4a_7c15;

impl Mark {
    const NOTHING: Self = Self { hash: 0, power: 1 };

    fn leaf(number: u64, commutative: bool) -> Self {
        let mixed = (number.wrapping_add(1)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Self {
            hash: (mixed ^ (mixed >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb) | 1,
            power: if commutative { 1 } else { BASE },
        }
    }

    fn then(self, younger: Self) -> Self {
        Self {
            hash: self
                .hash
                .wrapping_mul(younger.power)
                .wrapping_add(younger.hash),
            power: self.power.wrapping_mul(younger.power),
        }
    }

    /// The `rest` for which `oldest.then(rest)` is `self`.
    fn without(self, oldest: Self) -> Self {
        let power = self.power.wrapping_mul(inverse_of_odd(oldest.power));
        Self {
            hash: self.hash.wrapping_sub(oldest.hash.wrapping_mul(power)),
            power,
        }
    }
}

/// Modulo 2⁶⁴; each of Newton's steps doubles the bits that are right.
fn inverse_of_odd(number: u64) -> u64 {
    let mut inverse = number;
    for _ in 0..5 {
        let error = number.wrapping_mul(inverse);
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(error));
    }
    inverse
}

enum TermState<T> {
    Ready(T),
    Pending(UdafCall, Arc<Node<T>>, Arc<Node<T>>),
    /// Only while it is being dropped.
    Gone,
}

struct Node<T> {
    mark: Mark,
    state: Mutex<TermState<T>>,
}

impl<T> Node<T> {
    fn new(mark: Mark, state: TermState<T>) -> Arc<Self> {
        Arc::new(Self {
            mark,
            state: Mutex::new(state),
        })
    }

    fn lock(&self) -> MutexGuard<'_, TermState<T>> {
        // No code that could panic runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&mut self) -> TermState<T> {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(state, TermState::Gone)
    }
}

impl<T: Clone> Node<T> {
    fn ready(&self) -> Option<T> {
        match &*self.lock() {
            TermState::Ready(value) => Some(value.clone()),
            _ => None,
        }
    }

    /// The pending call and its operands; `None` if the value is ready.
    fn pending(&self) -> Option<(UdafCall, Arc<Self>, Arc<Self>)> {
        match &*self.lock() {
            TermState::Pending(call, first, second) => {
                Some((*call, Arc::clone(first), Arc::clone(second)))
            }
            _ => None,
        }
    }

    /// Stores a value, unless another thread has stored one. The operands are dropped after
    /// the lock is released.
    fn set_value(&self, value: T) {
        let mut state = self.lock();
        let old = match &*state {
            TermState::Pending(..) => std::mem::replace(&mut *state, TermState::Ready(value)),
            _ => TermState::Ready(value),
        };
        drop(state);
        drop(old);
    }
}

impl<T> Drop for Node<T> {
    /// Unlinks terms that only this one holds, so that dropping them does not recurse.
    fn drop(&mut self) {
        let TermState::Pending(_, first, second) = self.take() else {
            return;
        };
        let mut linked = vec![first, second];
        while let Some(node) = linked.pop() {
            if let Some(mut node) = Arc::into_inner(node)
                && let TermState::Pending(_, first, second) = node.take()
            {
                linked.extend([first, second]);
            }
        }
    }
}

/// A partial: nothing, a value, or a pending call.
pub struct Term<T>(Option<Arc<Node<T>>>);

impl<T: Clone> Term<T> {
    /// The value, computed if it is pending; `None` for the empty partial.
    ///
    /// `call` gets the operands of one operation at a time; operands are computed first,
    /// and no operation runs twice. Values computed before a failure stay.
    pub fn force<E>(
        &self,
        call: &mut impl FnMut(UdafCall, &T, &T) -> std::result::Result<T, E>,
    ) -> std::result::Result<Option<T>, E> {
        let Some(root) = &self.0 else { return Ok(None) };
        let mut path = Vec::new();
        let mut node = Arc::clone(root);
        loop {
            if let Some((what, first, second)) = node.pending() {
                match (first.ready(), second.ready()) {
                    (Some(a), Some(b)) => node.set_value(call(what, &a, &b)?),
                    (None, _) => {
                        path.push(std::mem::replace(&mut node, first));
                        continue;
                    }
                    (_, None) => {
                        path.push(std::mem::replace(&mut node, second));
                        continue;
                    }
                }
            }
            match path.pop() {
                Some(parent) => node = parent,
                None => return Ok(node.ready()),
            }
        }
    }

    /// The next operation whose operands are ready, with the operands.
    pub fn next_step(&self) -> Option<(UdafCall, T, T)> {
        let (call, first, second) = self.0.as_ref()?.pending()?;
        Some((call, first.ready()?, second.ready()?))
    }

    /// Stores the value of the operation that [`Term::next_step`] returned.
    pub fn set_value(&self, value: T) {
        if let Some(node) = &self.0 {
            node.set_value(value);
        }
    }

    pub fn is_nothing(&self) -> bool {
        self.0.is_none()
    }
}

impl<T> Term<T> {
    fn mark(&self) -> Mark {
        self.0.as_ref().map_or(Mark::NOTHING, |node| node.mark)
    }
}

impl<T> Clone for Term<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Default for Term<T> {
    fn default() -> Self {
        Self(None)
    }
}

/// Over the same leaves in the same order.
impl<T> PartialEq for Term<T> {
    fn eq(&self, other: &Self) -> bool {
        self.mark() == other.mark()
    }
}

impl<T: fmt::Debug> fmt::Debug for Term<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(node) = &self.0 else {
            return f.write_str("Nothing");
        };
        match &*node.lock() {
            TermState::Ready(value) => f.debug_tuple("Ready").field(value).finish(),
            _ => f.debug_tuple("Pending").field(&node.mark.hash).finish(),
        }
    }
}

/// Only ready terms have bytes. Pending ones are left with the writer; the caller forces
/// them and writes again.
impl<T: Element> Codec for Term<T> {
    const MIN_BYTES: usize = 1;
    fn write(&self, out: &mut Writer) {
        let Some(node) = &self.0 else {
            return 0_u8.write(out);
        };
        match node.ready() {
            Some(value) => {
                1_u8.write(out);
                out.all(&[node.mark.hash, node.mark.power]);
                value.write(out);
            }
            None => out.postpone(Box::new(self.clone())),
        }
    }
    fn read(input: &mut Reader<'_>) -> Result<Self> {
        match u8::read(input)? {
            0 => Ok(Self::default()),
            1 => {
                let (hash, power) = (u64::read(input)?, u64::read(input)?);
                let value = T::read(input)?;
                Ok(Self(Some(Node::new(
                    Mark { hash, power },
                    TermState::Ready(value),
                ))))
            }
            tag => damaged(format!("unknown partial tag {tag}")),
        }
    }
}

impl<T: Element> HandleSlot for Term<T> {
    /// Every partial is an input, so a term is never promoted.
    fn from_handle(_: u32) -> Self {
        Self::default()
    }
    fn handle(&self) -> u32 {
        unreachable!("a term is never promoted")
    }
}

/// The pending terms of a window, earliest first, so that the caller can compute them
/// before a query. It keeps no term alive.
pub struct Ledger<T> {
    made: Mutex<Made<T>>,
    leaves: AtomicU64,
}

struct Made<T> {
    nodes: VecDeque<Weak<Node<T>>>,
    /// At this length, dropped and ready terms are removed.
    limit: usize,
}

const MIN_LEDGER_LIMIT: usize = 1 << 12;

impl<T> Default for Ledger<T> {
    fn default() -> Self {
        Self {
            made: Mutex::new(Made {
                nodes: VecDeque::new(),
                limit: MIN_LEDGER_LIMIT,
            }),
            leaves: AtomicU64::new(0),
        }
    }
}

impl<T> fmt::Debug for Ledger<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger").finish_non_exhaustive()
    }
}

impl<T: Clone> Ledger<T> {
    fn lock(&self) -> MutexGuard<'_, Made<T>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, node: &Arc<Node<T>>) {
        let mut made = self.lock();
        if made.nodes.len() >= made.limit {
            made.nodes.retain(|node| {
                let node = node.upgrade();
                node.is_some_and(|node| node.ready().is_none())
            });
            made.limit = MIN_LEDGER_LIMIT.max(2 * made.nodes.len());
        }
        made.nodes.push_back(Arc::downgrade(node));
    }

    /// The number of terms made since terms were last taken, including dropped ones.
    pub fn len(&self) -> usize {
        self.lock().nodes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes up to `most` pending terms, the earliest first, each after its operands.
    pub fn take(&self, most: usize) -> Vec<Term<T>> {
        let mut made = self.lock();
        let mut taken = Vec::new();
        while taken.len() < most
            && let Some(node) = made.nodes.pop_front()
        {
            if let Some(node) = node.upgrade()
                && node.ready().is_none()
            {
                taken.push(Term(Some(node)));
            }
        }
        taken
    }
}

/// The monoid of terms of one aggregation.
#[derive(Debug)]
pub struct Deferred<T> {
    udaf: u16,
    commutative: bool,
    ledger: Arc<Ledger<T>>,
}

impl<T> Clone for Deferred<T> {
    fn clone(&self) -> Self {
        Self {
            ledger: Arc::clone(&self.ledger),
            ..*self
        }
    }
}

impl<T: Element> Deferred<T> {
    /// `udaf` is the number of the aggregation, for [`UdafCall`].
    pub fn new(udaf: u16, commutative: bool, ledger: Arc<Ledger<T>>) -> Self {
        Self {
            udaf,
            commutative,
            ledger,
        }
    }

    /// A lifted value as a term.
    pub fn leaf(&self, value: T) -> Term<T> {
        let number = self.ledger.leaves.fetch_add(1, Ordering::Relaxed);
        let mark = Mark::leaf(number, self.commutative);
        Term(Some(Node::new(mark, TermState::Ready(value))))
    }

    /// The term of a row's cell, which is missing or has been lifted.
    pub fn leaf_of(&self, cell: &Cell<T>) -> Term<T> {
        match cell {
            Cell::Object(value) => self.leaf(value.clone()),
            _ => Term::default(),
        }
    }

    fn pend(
        &self,
        function: UdafFunction,
        mark: Mark,
        first: &Arc<Node<T>>,
        second: &Arc<Node<T>>,
    ) -> Term<T> {
        let call = UdafCall {
            udaf: self.udaf,
            function,
        };
        let state = TermState::Pending(call, Arc::clone(first), Arc::clone(second));
        let node = Node::new(mark, state);
        self.ledger.note(&node);
        Term(Some(node))
    }

    /// `whole` without its earliest part.
    pub fn inverse_of(&self, whole: &Term<T>, oldest: &Term<T>) -> Term<T> {
        let (Some(a), Some(b)) = (&whole.0, &oldest.0) else {
            return whole.clone();
        };
        let mark = a.mark.without(b.mark);
        if mark == Mark::NOTHING {
            return Term::default();
        }
        self.pend(UdafFunction::Inverse, mark, a, b)
    }
}

impl<T: Element> Monoid for Deferred<T> {
    type In = Term<T>;
    type Partial = Term<T>;
    const SMALL: usize = 0;

    fn commutative(&self) -> bool {
        self.commutative
    }
    fn identity(&self) -> Term<T> {
        Term::default()
    }
    fn lift(&self, value: &Term<T>) -> Term<T> {
        value.clone()
    }
    fn combine(&self, a: &Term<T>, b: &Term<T>) -> Term<T> {
        match (&a.0, &b.0) {
            (Some(older), Some(younger)) => self.pend(
                UdafFunction::Combine,
                older.mark.then(younger.mark),
                older,
                younger,
            ),
            (Some(_), None) => a.clone(),
            (None, _) => b.clone(),
        }
    }
    fn unlift(&self, partial: Term<T>) -> std::result::Result<Term<T>, Term<T>> {
        Ok(partial)
    }
    fn same(&self, a: &Term<T>, b: &Term<T>) -> bool {
        a == b
    }
}

/// For aggregations that have an inverse among their functions.
impl<T: Element> Invertible for Deferred<T> {
    fn inverse(&self, whole: &Term<T>, oldest: &Term<T>) -> Term<T> {
        self.inverse_of(whole, oldest)
    }
}

impl<T: Element> Aggregation<T> for Deferred<T> {
    fn entry(&self, row: &[Cell<T>]) -> Entry<Self> {
        Entry::Raw(self.leaf_of(&row[0]))
    }
    fn answers(&self, partial: &Term<T>, out: &mut Vec<Answer<T>>) {
        out.push(Answer::Term(partial.clone()));
    }
    fn ledger(&self) -> Option<&Arc<Ledger<T>>> {
        Some(&self.ledger)
    }
}
