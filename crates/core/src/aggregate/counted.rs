//! The sum of float64 for algorithms that subtract.
//!
//! After all values are subtracted, a sum is a zero that does not show whether there are
//! values. So this sum counts them; [`SumF64`] needs no count.
//!
//! [`SumF64`]: super::word::SumF64

use super::column::Column;
use super::packing::get_i128;
use super::twofold::Twofold;
use super::widening::{self, Erased};
use super::word::{SumF64, SumI64};
use super::{Aggregation, Answer, BatchVisitor, Cell};
use crate::batch::Batch;
use crate::monoid::{Entry, Invertible, Monoid};
use crate::snapshot::{Codec, Reader, Result, Writer};

#[derive(Clone, Copy, Debug)]
pub struct CountedSumF64;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counted {
    pub sum: Twofold,
    pub count: u64,
}

impl Monoid for CountedSumF64 {
    type In = f64;
    type Partial = Counted;
    const SMALL: usize = SumF64::SMALL;

    #[inline]
    fn commutative(&self) -> bool {
        true
    }
    #[inline]
    fn identity(&self) -> Counted {
        Counted {
            sum: Twofold::EMPTY,
            count: 0,
        }
    }
    #[inline]
    fn lift(&self, value: &f64) -> Counted {
        Counted {
            sum: Twofold::new(*value),
            count: 1,
        }
    }
    #[inline]
    fn combine(&self, a: &Counted, b: &Counted) -> Counted {
        Counted {
            sum: SumF64.combine(&a.sum, &b.sum),
            count: a.count.wrapping_add(b.count),
        }
    }
    fn unlift(&self, partial: Counted) -> std::result::Result<f64, Counted> {
        let one = partial.count == 1;
        let value = one.then(|| SumF64.unlift(partial.sum).ok()).flatten();
        value.ok_or(partial)
    }
    fn read_in(&self, input: &mut Reader<'_>) -> Result<f64> {
        SumF64.read_in(input)
    }
    fn read_partial(&self, input: &mut Reader<'_>) -> Result<Counted> {
        Ok(Counted {
            sum: SumF64.read_partial(input)?,
            count: u64::read(input)?,
        })
    }
    fn same(&self, a: &Counted, b: &Counted) -> bool {
        a.count == b.count
    }
}

impl Invertible for CountedSumF64 {
    #[inline]
    fn inverse(&self, whole: &Counted, oldest: &Counted) -> Counted {
        let count = whole.count.wrapping_sub(oldest.count);
        if count == 0 {
            return self.identity();
        }
        Counted {
            sum: whole.sum.without(oldest.sum),
            count,
        }
    }
    #[inline]
    fn undoes(&self, partial: &Counted) -> bool {
        partial.sum.is_finite()
    }
}

impl<T> Aggregation<T> for CountedSumF64 {
    fn entry(&self, row: &[Cell<T>]) -> Entry<Self> {
        match SumF64.entry(row) {
            Entry::Raw(value) => Entry::Raw(value),
            Entry::Lifted(_) => Entry::Lifted(self.identity()),
        }
    }
    fn answers(&self, partial: &Counted, out: &mut Vec<Answer<T>>) {
        out.push(match partial.count {
            0 => Answer::Null,
            _ => Answer::F64(partial.sum.value()),
        });
    }
    fn stage_columns(&self, times: Vec<i64>, columns: &[Column<'_, T>]) -> Batch<Self>
    where
        T: Clone,
    {
        let batch = SumF64.stage_columns(times, columns);
        let lifted = batch.lifted.into_iter();
        Batch {
            times: batch.times,
            values: batch.values,
            lifted: lifted.map(|(at, _)| (at, self.identity())).collect(),
        }
    }
    fn hand_over<V: BatchVisitor<T>>(self, batch: Batch<Self>, visitor: V) -> V::Out {
        let mut sums = Batch::with_capacity(batch.len());
        for (time, entry) in batch.into_entries() {
            let entry = match entry {
                Entry::Raw(value) => Entry::Raw(value),
                Entry::Lifted(counted) if counted.count == 0 => Entry::Lifted(Twofold::EMPTY),
                // Several values, whose sum may equal one value if they are not counted.
                Entry::Lifted(counted) => Entry::from_partial(&SumF64, counted.sum.of_some()),
            };
            sums.push(time, entry);
        }
        visitor.visit_batch(SumF64, sums)
    }
    fn widen(&self, entries: Erased, _widened: &[bool]) -> widening::Result<Batch<Self>> {
        let entry = |sum, count| {
            let sum = if count == 0 {
                Twofold::EMPTY
            } else {
                widening::twofold(sum)
            };
            Entry::from_partial(self, Counted { sum, count })
        };
        entries.into_entries(
            |words| entry(i128::from(words[0] as i64), 1),
            |words, _| {
                let (sum, some) = SumI64::split(get_i128(words, 0));
                // The entry is evicted with the same count, so 1 is enough for several
                // values.
                Ok(entry(sum, u64::from(some)))
            },
        )
    }
}

impl Codec for Counted {
    const MIN_BYTES: usize = 24;
    fn write(&self, out: &mut Writer) {
        self.sum.write(out);
        self.count.write(out);
    }
    fn read(input: &mut Reader<'_>) -> Result<Self> {
        Ok(Self {
            sum: Twofold::read(input)?,
            count: u64::read(input)?,
        })
    }
}
