//! The structures of the papers that answer for many ranges.

use crate::suite::shared::ranges;
use slidewise_papers::fifo::amta::Amta;
use slidewise_papers::fifo::b_int::BInt;
use slidewise_papers::fifo::daba_chain::DabaChain;
use slidewise_papers::fifo::flat_fat::FlatFatQueue;

ranges! {
    amta: |monoid, _| Amta::new(monoid);
    b_int: |monoid, _| BInt::new(monoid);
    daba_chain: DabaChain::new;
    flat_fat: |monoid, _| FlatFatQueue::new(monoid, 1);
}
