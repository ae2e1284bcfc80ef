//! `collect` and aggregations of the user's own beside others: a record, one sequence per
//! collected column, and one term per aggregation of the user's own.

use std::sync::Arc;

use super::collect::{Element, Seq, one};
use super::deferred::{Deferred, Ledger, Term};
use super::record::{Record, RecordPlan};
use super::{AggSpec, Aggregation, Answer, Cell, DType, Kind};
use crate::monoid::{Entry, Invertible, Monoid, Slot};
use crate::snapshot::{Codec, Reader, Result, Writer, damaged};

type Words = Box<[u64]>;
type Rest = Record<Words, Words>;

#[derive(Clone, Debug)]
pub struct Mixed<T> {
    rest: Rest,
    /// Who answers, per request.
    sources: Vec<Source>,
    /// The columns collected, in order of request.
    collected: Vec<usize>,
    /// The user's own aggregations and their columns, in order of request.
    own: Vec<(Deferred<T>, usize)>,
    ledger: Arc<Ledger<T>>,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    Record,
    Sequence,
    Term,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Part<T> {
    words: Words,
    sequences: Vec<Seq<Cell<T>>>,
    terms: Vec<Term<T>>,
}

impl<T> Default for Part<T> {
    fn default() -> Self {
        Self {
            words: Words::default(),
            sequences: Vec::new(),
            terms: Vec::new(),
        }
    }
}

impl<T: Element> Mixed<T> {
    /// # Panics
    /// If `of` is missing where one is needed, see [`super::plan`].
    pub fn new(aggs: &[AggSpec], dtypes: &[DType]) -> Self {
        Self::around(RecordPlan::new(&plain(aggs), dtypes), aggs)
    }

    /// One that is [`Invertible`], if all its aggregations are.
    pub fn invertible(aggs: &[AggSpec], dtypes: &[DType]) -> Option<Self> {
        let inverts = |agg: &AggSpec| match agg.kind {
            Kind::Collect => false,
            Kind::Own { invertible, .. } => invertible,
            _ => true,
        };
        if !aggs.iter().all(inverts) {
            return None;
        }
        let rest = RecordPlan::invertible(&plain(aggs), dtypes)?;
        Some(Self::around(rest, aggs))
    }

    fn around(rest: RecordPlan, aggs: &[AggSpec]) -> Self {
        let ledger = Arc::new(Ledger::default());
        let mut mixed = Self {
            rest: Record::new(rest),
            sources: Vec::new(),
            collected: Vec::new(),
            own: Vec::new(),
            ledger,
        };
        for agg in aggs {
            let source = mixed.source_of(agg);
            mixed.sources.push(source);
        }
        mixed
    }

    fn source_of(&mut self, agg: &AggSpec) -> Source {
        let column = || agg.of.expect("collect and own aggregations have a column");
        match agg.kind {
            Kind::Collect => {
                self.collected.push(column());
                Source::Sequence
            }
            Kind::Own {
                number,
                commutative,
                ..
            } => {
                let own = Deferred::new(number, commutative, Arc::clone(&self.ledger));
                self.own.push((own, column()));
                Source::Term
            }
            _ => Source::Record,
        }
    }
}

fn plain(aggs: &[AggSpec]) -> Vec<AggSpec> {
    let plain = aggs.iter().filter(|agg| agg.kind.is_plain());
    plain.copied().collect()
}

/// Of those that [`Mixed::invertible`] made, where nothing is collected.
impl<T: Element> Invertible for Mixed<T>
where
    Cell<T>: Element,
{
    fn inverse(&self, whole: &Part<T>, oldest: &Part<T>) -> Part<T> {
        let terms = self.own.iter().zip(whole.terms.iter().zip(&oldest.terms));
        Part {
            words: self.rest.inverse(&whole.words, &oldest.words),
            sequences: whole.sequences.clone(),
            terms: terms
                .map(|((own, _), (whole, oldest))| own.inverse(whole, oldest))
                .collect(),
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
            sequences: vec![Seq::Empty; self.collected.len()],
            terms: vec![Term::default(); self.own.len()],
        }
    }
    fn lift(&self, value: &Part<T>) -> Part<T> {
        value.clone()
    }
    fn combine(&self, a: &Part<T>, b: &Part<T>) -> Part<T> {
        let pairs = a.sequences.iter().zip(&b.sequences);
        let terms = self.own.iter().zip(a.terms.iter().zip(&b.terms));
        Part {
            words: self.rest.combine(&a.words, &b.words),
            sequences: pairs.map(|(older, younger)| older.then(younger)).collect(),
            terms: terms
                .map(|((own, _), (older, younger))| own.combine(older, younger))
                .collect(),
        }
    }
    fn unlift(&self, partial: Part<T>) -> std::result::Result<Part<T>, Part<T>> {
        Ok(partial)
    }
    fn same(&self, a: &Part<T>, b: &Part<T>) -> bool {
        self.rest.same(&a.words, &b.words) && a.sequences == b.sequences && a.terms == b.terms
    }
    fn read_in(&self, input: &mut Reader<'_>) -> Result<Part<T>> {
        self.read_partial(input)
    }
    fn read_partial(&self, input: &mut Reader<'_>) -> Result<Part<T>> {
        let part = Part {
            words: self.rest.read_partial(input)?,
            sequences: (0..self.collected.len())
                .map(|_| Seq::read(input))
                .collect::<Result<_>>()?,
            terms: (0..self.own.len())
                .map(|_| Term::read(input))
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
            sequences: self.collected.iter().map(|col| one(&row[*col])).collect(),
            terms: self
                .own
                .iter()
                .map(|(own, col)| own.leaf_of(&row[*col]))
                .collect(),
        })
    }
    fn answers(&self, partial: &Part<T>, out: &mut Vec<Answer<T>>) {
        let mut rest = Vec::new();
        self.rest.answers(&partial.words, &mut rest);
        let (mut rest, mut sequences) = (rest.into_iter(), partial.sequences.iter());
        let mut terms = partial.terms.iter();
        out.extend(self.sources.iter().map(|source| match source {
            Source::Record => rest.next().expect("one per request"),
            Source::Sequence => Answer::List(sequences.next().expect("one per request").to_vec()),
            Source::Term => Answer::Term(terms.next().expect("one per request").clone()),
        }));
    }
    fn ledger(&self) -> Option<&Arc<Ledger<T>>> {
        (!self.own.is_empty()).then_some(&self.ledger)
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
        out.all(&self.terms);
    }
    fn read(_: &mut Reader<'_>) -> Result<Self> {
        damaged("a part is read by its monoid, which knows its size")
    }
}
