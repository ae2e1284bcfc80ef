//! `collect` beside other aggregations: a record and one sequence per collected column.

use super::collect::{Element, Seq, one};
use super::record::{Record, RecordPlan};
use super::{AggSpec, Aggregation, Answer, Cell, DType, Kind};
use crate::monoid::{Entry, Monoid, Slot};
use crate::snapshot::{Codec, Reader, Result, Writer, damaged};

type Words = Box<[u64]>;
type Rest = Record<Words, Words>;

#[derive(Clone, Debug)]
pub struct Mixed<T> {
    rest: Rest,
    /// Collected column per request, `None` where the record answers.
    collected: Vec<Option<usize>>,
    sequences: usize,
    seed: std::marker::PhantomData<fn() -> T>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Part<T> {
    words: Words,
    sequences: Vec<Seq<Cell<T>>>,
}

impl<T> Default for Part<T> {
    fn default() -> Self {
        Self {
            words: Words::default(),
            sequences: Vec::new(),
        }
    }
}

impl<T> Mixed<T> {
    pub fn new(aggs: &[AggSpec], dtypes: &[DType]) -> Self {
        let collects = |agg: &&AggSpec| agg.kind == Kind::Collect;
        let rest: Vec<_> = aggs.iter().filter(|agg| !collects(agg)).copied().collect();
        Self {
            rest: Record::new(RecordPlan::new(&rest, dtypes)),
            collected: aggs
                .iter()
                .map(|agg| agg.of.filter(|_| collects(&agg)))
                .collect(),
            sequences: aggs.iter().filter(collects).count(),
            seed: std::marker::PhantomData,
        }
    }
}

impl<T: Element> Monoid for Mixed<T>
where
    Cell<T>: Element,
{
    type In = Part<T>;
    type Partial = Part<T>;
    const SMALL: usize = 0;

    fn commutative(&self) -> bool {
        false
    }
    fn identity(&self) -> Part<T> {
        Part {
            words: self.rest.identity(),
            sequences: vec![Seq::Empty; self.sequences],
        }
    }
    fn lift(&self, value: &Part<T>) -> Part<T> {
        value.clone()
    }
    fn combine(&self, a: &Part<T>, b: &Part<T>) -> Part<T> {
        let pairs = a.sequences.iter().zip(&b.sequences);
        Part {
            words: self.rest.combine(&a.words, &b.words),
            sequences: pairs.map(|(older, younger)| older.then(younger)).collect(),
        }
    }
    fn unlift(&self, partial: Part<T>) -> std::result::Result<Part<T>, Part<T>> {
        Ok(partial)
    }
    fn same(&self, a: &Part<T>, b: &Part<T>) -> bool {
        self.rest.same(&a.words, &b.words) && a.sequences == b.sequences
    }
    fn read_in(&self, input: &mut Reader<'_>) -> Result<Part<T>> {
        self.read_partial(input)
    }
    fn read_partial(&self, input: &mut Reader<'_>) -> Result<Part<T>> {
        let part = Part {
            words: self.rest.read_partial(input)?,
            sequences: (0..self.sequences)
                .map(|_| Seq::read(input))
                .collect::<Result<_>>()?,
        };
        Ok(part)
    }
}

impl<T: Element> Aggregation<T> for Mixed<T>
where
    Cell<T>: Element,
{
    fn entry(&self, row: &[Cell<T>]) -> Entry<Self> {
        let entry: Entry<Rest> = self.rest.entry(row);
        Entry::Raw(Part {
            words: entry.partial(&self.rest),
            sequences: self
                .collected
                .iter()
                .flatten()
                .map(|col| one(&row[*col]))
                .collect(),
        })
    }
    fn answers(&self, partial: &Part<T>, out: &mut Vec<Answer<T>>) {
        let mut rest = Vec::new();
        self.rest.answers(&partial.words, &mut rest);
        let (mut rest, mut sequences) = (rest.into_iter(), partial.sequences.iter());
        out.extend(self.collected.iter().map(|collected| match collected {
            Some(_) => Answer::List(sequences.next().expect("one per request").to_vec()),
            None => rest.next().expect("one per request"),
        }));
    }
}

impl<T: Element> Slot for Part<T>
where
    Cell<T>: Element,
{
    /// Every partial is an input, so a part is never promoted.
    fn from_handle(_: u32) -> Self {
        Self::default()
    }
    fn handle(&self) -> u32 {
        unreachable!("a part is never promoted")
    }
}

impl<T: Element> Codec for Part<T>
where
    Cell<T>: Element,
{
    const MIN_BYTES: usize = 8;
    fn write(&self, out: &mut Writer) {
        self.words.write(out);
        out.all(&self.sequences);
    }
    fn read(_: &mut Reader<'_>) -> Result<Self> {
        damaged("a part is read by its monoid, which knows its size")
    }
}
