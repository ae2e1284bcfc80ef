//! What a list of structures passes to.

use slidewise_core::monoid::Monoid;
use slidewise_core::window::fifo::Fifo;
use slidewise_core::window::fifo::in_order::InOrder;
use slidewise_core::window::{Ties, Window};

/// A test of a window, given an empty one.
pub trait Test<M: Monoid> {
    fn window<W: Window<M>>(&mut self, name: &str, fresh: W);

    fn queue<F: Fifo<M>>(&mut self, name: &str, fifo: F, ties: Ties) {
        self.window(name, InOrder::new(fifo, ties));
    }
}
