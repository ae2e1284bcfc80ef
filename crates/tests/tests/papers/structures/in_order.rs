//! The structures of the papers for entries in order, beside recalculate.

use crate::suite::in_order::in_order;
use slidewise_papers::fifo::aba::Aba;
use slidewise_papers::fifo::amta::Amta;
use slidewise_papers::fifo::b_int::BInt;
use slidewise_papers::fifo::daba::Daba;
use slidewise_papers::fifo::daba_chain::DabaChain;
use slidewise_papers::fifo::flat_fat::FlatFatQueue;
use slidewise_papers::fifo::two_stacks::TwoStacks;

in_order! {
    amta: Amta::new;
    b_int: BInt::new;
    flat_fat: |monoid| FlatFatQueue::new(monoid, 1);
    two_stacks: |monoid| TwoStacks::new(monoid, true);
    two_stacks_uncached: |monoid| TwoStacks::new(monoid, false);
    aba: |monoid| Aba::new(monoid, true);
    aba_uncached: |monoid| Aba::new(monoid, false);
    daba: |monoid| Daba::new(monoid, true);
    daba_uncached: |monoid| Daba::new(monoid, false);
    daba_chain: |monoid| DabaChain::new(monoid, 1);
}
