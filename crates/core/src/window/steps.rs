//! Counts the steps of structures besides combines, for the tests of costs.
//!
//! Builds with debug assertions count per thread; other builds contain no counters.

use std::cell::Cell;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A search or a walk comes to a node of a tree, or to a candidate of a deque.
    Visit,
    /// A node is split in two.
    Split,
    /// Two nodes become one.
    Merge,
    /// A node takes entries from another one beside it.
    Borrow,
    /// A subtree of any size is cut off.
    Cut,
    /// A node goes to the free list by itself.
    Free,
    /// A node is taken from the free list, or made.
    Allocate,
    /// An entry is moved to other memory.
    Move,
    /// A ring of a queue is searched.
    Ring,
}

const KINDS: usize = Step::Ring as usize + 1;

thread_local! {
    static COUNTS: [Cell<u64>; KINDS] = const { [const { Cell::new(0) }; KINDS] };
}

impl Step {
    /// Counts the step.
    #[inline(always)]
    pub fn note(self) {
        if cfg!(debug_assertions) {
            COUNTS.with(|counts| {
                let count = &counts[self as usize];
                count.set(count.get() + 1);
            });
        }
    }
}

/// The number of steps of a kind that this thread took since the last call.
pub fn take(step: Step) -> u64 {
    COUNTS.with(|counts| counts[step as usize].replace(0))
}
