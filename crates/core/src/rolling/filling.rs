//! Result columns that the caller fills instead of [`super::rolling`].

use super::parallel::ThreadScope;
use super::scatter::{AnswerPositions, ResultColumns, into_marks};
use super::{Output, Overflow, Picked, Sink};
use crate::aggregate::{AggSpec, Answer, DType, NumberRun};

/// Result columns that are being filled.
pub struct Filling<'a, 'p>(Picked<'a, 'p>);

impl Filling<'_, '_> {
    /// Puts the answers of one row over one span.
    pub fn put(&mut self, span: usize, row: usize, answers: &[Answer<i64>]) {
        let put = self.0.put(span, row, answers);
        put.expect("what does not fit is missing");
    }

    /// Puts the answers of some rows over one span, a column per aggregation.
    pub fn put_columns(&mut self, span: usize, first: usize, columns: &[NumberRun]) {
        for (chunk, column) in self.0.chunks[span].iter_mut().zip(columns) {
            chunk.set_run(first, column);
        }
    }
}

/// Result columns that `fill` fills, for a number of spans and rows. Answers that it does
/// not put are missing, as are integers that int64 cannot hold.
///
/// `ranks` maps each row of the columns to the row that `fill` puts, so that consecutive
/// answers are written consecutively.
pub fn fill_columns(
    aggs: &[AggSpec],
    dtypes: &[DType],
    spans: usize,
    ranks: &[u32],
    fill: impl FnOnce(&mut Filling<'_, '_>),
) -> Vec<Vec<Output>> {
    let sizes = [ranks.len()];
    let mut columns = ResultColumns::blank(aggs, dtypes, (spans, ranks.len()));
    let mut chunks = columns.chunks(&sizes).remove(0);
    fill(&mut Filling(Picked {
        chunks: &mut chunks,
        places: (0..aggs.len()).collect(),
        history: 0,
        overflow: Overflow::Null,
        again: false,
    }));
    let marks = vec![into_marks(chunks)];
    let scope = &mut ThreadScope {
        threads: 1,
        proceed: &mut || true,
    };
    let positions = AnswerPositions::new(Some(ranks), &sizes);
    let columns = columns.finish(&positions, marks, scope);
    columns.expect("nothing interrupts it")
}
