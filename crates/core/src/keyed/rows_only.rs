//! A store without aggregations: entries are times and the numbers of rows.

use crate::aggregate::column::Column;
use crate::aggregate::{Aggregation, Answer, Cell};
use crate::batch::Batch;
use crate::monoid::{Entry, Monoid};

/// An aggregation without results; its values take no memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowsOnly;

impl Monoid for RowsOnly {
    type In = [u64; 0];
    type Partial = [u64; 0];
    const SMALL: usize = usize::MAX;

    fn commutative(&self) -> bool {
        true
    }
    fn identity(&self) -> [u64; 0] {
        []
    }
    fn lift(&self, _value: &[u64; 0]) -> [u64; 0] {
        []
    }
    fn combine(&self, _a: &[u64; 0], _b: &[u64; 0]) -> [u64; 0] {
        []
    }
    fn unlift(&self, _partial: [u64; 0]) -> Result<[u64; 0], [u64; 0]> {
        Ok([])
    }
    fn same(&self, _a: &[u64; 0], _b: &[u64; 0]) -> bool {
        true
    }
}

impl Aggregation<i64> for RowsOnly {
    fn entry(&self, _row: &[Cell<i64>]) -> Entry<Self> {
        Entry::Raw([])
    }
    fn answers(&self, _partial: &[u64; 0], _out: &mut Vec<Answer<i64>>) {}

    fn stage_columns(&self, times: Vec<i64>, _columns: &[Column<'_, i64>]) -> Batch<Self> {
        Batch {
            values: vec![[]; times.len()],
            times,
            lifted: Vec::new(),
        }
    }
}
