//! The monoid of one sketch over one column: entries are words, partials are sketches.

use super::super::widening::{self, Erased};
use super::super::{Aggregation, Answer, Cell, DType};
use super::{Sketch, SketchRequest, Sketcher, widened_word};
use crate::batch::Batch;
use crate::monoid::{Entry, Monoid};
use crate::snapshot::{Reader, Result};

#[derive(Clone, Copy, Debug)]
pub struct Digest {
    request: SketchRequest,
    sketcher: Sketcher,
}

impl Digest {
    pub fn new(request: SketchRequest, dtype: DType) -> Self {
        Self {
            request,
            sketcher: Sketcher::new(request, dtype),
        }
    }
}

impl Monoid for Digest {
    type In = [u64; 1];
    type Partial = Sketch;
    const SMALL: usize = 16;
    const WIDE: bool = true;

    fn commutative(&self) -> bool {
        true
    }
    fn identity(&self) -> Sketch {
        Sketch::Nothing
    }
    fn lift(&self, value: &[u64; 1]) -> Sketch {
        Sketch::One(value[0])
    }
    fn combine(&self, a: &Sketch, b: &Sketch) -> Sketch {
        self.sketcher.combine(a, b)
    }
    fn unlift(&self, partial: Sketch) -> std::result::Result<[u64; 1], Sketch> {
        match partial {
            Sketch::One(word) => Ok([word]),
            other => Err(other),
        }
    }
    fn same(&self, a: &Sketch, b: &Sketch) -> bool {
        a == b
    }
    fn absorb(&self, acc: &mut Sketch, value: &[u64; 1]) {
        self.sketcher.absorb(acc, value[0]);
    }
    fn fold(&self, run: &[[u64; 1]]) -> Sketch {
        self.sketcher.fold(run.as_flattened().to_vec())
    }
    fn read_partial(&self, input: &mut Reader<'_>) -> Result<Sketch> {
        self.sketcher.read(input)
    }
}

impl<T> Aggregation<T> for Digest {
    fn entry(&self, row: &[Cell<T>]) -> Entry<Self> {
        match self.sketcher.word(&row[0]) {
            Some(word) => Entry::Raw([word]),
            None => Entry::Lifted(Sketch::Nothing),
        }
    }
    fn answers(&self, partial: &Sketch, out: &mut Vec<Answer<T>>) {
        out.push(self.sketcher.answer(self.request, partial));
    }
    fn widen(&self, entries: Erased, _widened: &[bool]) -> widening::Result<Batch<Self>> {
        let mut batch: Batch<Self> = entries.downcast()?;
        for [word] in &mut batch.values {
            *word = widened_word(*word);
        }
        for (_, sketch) in &mut batch.lifted {
            *sketch = self.sketcher.widened(sketch);
        }
        Ok(batch)
    }
}
