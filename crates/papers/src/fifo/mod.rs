//! Structures for entries in order.

pub mod aba;
pub mod amta;
pub mod b_int;
pub mod daba;
pub mod daba_chain;
mod dyadic;
pub mod flat_fat;
mod items;
pub mod two_stacks;

/// The last answer, kept while nothing changes: query caching (DABA §4, figure 17).
#[derive(Clone, Debug)]
pub struct QueryCache<P> {
    /// Whether answers are kept at all.
    on: bool,
    answer: Option<P>,
}

impl<P: Clone> QueryCache<P> {
    pub fn new(on: bool) -> Self {
        Self { on, answer: None }
    }

    pub fn is_on(&self) -> bool {
        self.on
    }

    /// To be called by every operation that changes the window.
    #[inline]
    pub fn invalidate(&mut self) {
        self.answer = None;
    }

    #[inline]
    pub fn kept(&self) -> Option<P> {
        self.answer.clone()
    }

    #[inline]
    pub fn keep(&mut self, answer: &P) {
        if self.on {
            self.answer = Some(answer.clone());
        }
    }
}
