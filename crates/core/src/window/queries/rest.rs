//! Folds of the entries before the first slice, as in the front stack of Two-Stacks.
//!
//! ```text
//!   entries   b c | d e | f g h i | j k        a is evicted
//!             rest    slices          open
//! ```
//! A window that begins before the first slice begins in the rest, and one eviction may leave a
//! large rest. So the suffix folds of the rest are kept: a window takes one combine for a rest of
//! any length. They are computed when a window first needs them; evictions drop them from the
//! front.

use super::super::fifo::join;
use crate::monoid::Monoid;

/// Invariant: `folds[i]` is the fold of the entries at positions `end - 1 - i` to `end`.
#[derive(Clone)]
pub struct Rest<M: Monoid> {
    end: usize,
    folds: Vec<M::Partial>,
}

impl<M: Monoid> Default for Rest<M> {
    fn default() -> Self {
        Self {
            end: 0,
            folds: Vec::new(),
        }
    }
}

impl<M: Monoid> Rest<M> {
    /// The fold of the entries at positions `from` to `end`, at least one.
    pub fn fold(
        &mut self,
        monoid: &M,
        (from, end): (usize, usize),
        partial: impl Fn(usize) -> M::Partial,
    ) -> M::Partial {
        if self.end != end {
            let folds = Vec::with_capacity(end - from);
            *self = Self { end, folds };
        }
        while self.folds.len() < end - from {
            let older = partial(end - 1 - self.folds.len());
            self.folds
                .push(join(monoid, Some(&older), self.folds.last()));
        }
        self.folds[end - from - 1].clone()
    }

    pub fn check(&self, monoid: &M, partial: impl Fn(usize) -> M::Partial) -> Result<(), String> {
        let mut whole: Option<M::Partial> = None;
        for (behind, fold) in (1..).zip(&self.folds) {
            let older = partial(self.end - behind);
            let folded = join(monoid, Some(&older), whole.as_ref());
            if !monoid.same(fold, &folded) {
                return Err(format!("a rest of {fold:?} instead of {folded:?}"));
            }
            whole = Some(folded);
        }
        Ok(())
    }

    /// Drops the folds of entries before a position.
    pub fn evict(&mut self, head: usize) {
        if head < self.end {
            self.folds.truncate(self.end - head);
        } else {
            *self = Self::default();
        }
    }

    pub fn bytes(&self) -> usize {
        self.folds.capacity() * size_of::<M::Partial>()
    }
}
