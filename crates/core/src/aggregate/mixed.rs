//! `collect`, sketches and user-defined aggregations beside others: a record, one
//! sequence per collected column, one sketch per make and column, one record per native
//! aggregation, and one term per user-defined aggregation.

use std::sync::Arc;

use super::collect::{Element, Seq, one};
use super::component::Component;
use super::deferred::{Deferred, Ledger, Term};
use super::native::{CountedRecord, MAX_WORDS, Native};
use super::record::{Record, RecordPlan};
use super::sketch::hitters::Hitters;
use super::sketch::{Sketch, SketchRequest, Sketcher};
use super::widening::{self, Erased};
use super::{AggSpec, Aggregation, Answer, Cell, DType, Kind};
use crate::batch::Batch;
use crate::monoid::{Entry, HandleSlot, Invertible, Monoid};
use crate::snapshot::{Codec, Reader, Result, Writer, damaged};

type BoxedWords = Box<[u64]>;
type WordRecord = Record<BoxedWords, BoxedWords>;

#[derive(Clone, Debug)]
pub struct Mixed<T> {
    rest: WordRecord,
    /// The part that answers each aggregation.
    sources: Vec<Source>,
    /// The columns collected, in order of request.
    collected: Vec<usize>,
    sketched: Vec<Sketched>,
    counted: Vec<HitterColumns>,
    /// Native aggregations and their columns, in order of request.
    natives: Vec<(Native<MAX_WORDS>, usize)>,
    /// The user-defined aggregations and their columns, in order of request.
    udafs: Vec<(Deferred<T>, usize)>,
    ledger: Arc<Ledger<T>>,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    Record,
    Sequence,
    /// The index of the sketch, and the request.
    Sketch(usize, SketchRequest),
    /// The index of the hitters, and the number to return.
    Hitters(usize, u32),
    /// The index of the native aggregation.
    Native(usize),
    Term,
}

/// A sketch of a column, which several requests may share.
#[derive(Clone, Copy, Debug)]
struct Sketched {
    request: SketchRequest,
    sketcher: Sketcher,
    column: usize,
}

/// Hitters of a column, by the hashes in another; with the number of counters.
#[derive(Clone, Copy, Debug, PartialEq)]
struct HitterColumns {
    column: usize,
    hashes: usize,
    most: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct MixedPartial<T> {
    words: BoxedWords,
    sequences: Vec<Seq<Cell<T>>>,
    sketches: Vec<Sketch>,
    hitters: Vec<Arc<Hitters<T>>>,
    natives: Vec<CountedRecord<MAX_WORDS>>,
    terms: Vec<Term<T>>,
}

impl<T> Default for MixedPartial<T> {
    fn default() -> Self {
        Self {
            words: BoxedWords::default(),
            sequences: Vec::new(),
            sketches: Vec::new(),
            hitters: Vec::new(),
            natives: Vec::new(),
            terms: Vec::new(),
        }
    }
}

impl<T: Element> Mixed<T> {
    /// # Panics
    /// If `of` is missing where one is needed, see [`super::plan`].
    pub fn new(aggs: &[AggSpec], dtypes: &[DType]) -> Self {
        Self::around(RecordPlan::new(&plain(aggs), dtypes), aggs, dtypes)
    }

    /// A plan that is [`Invertible`], if all its aggregations are.
    pub fn invertible(aggs: &[AggSpec], dtypes: &[DType]) -> Option<Self> {
        let inverts = |agg: &AggSpec| match agg.kind {
            Kind::Collect | Kind::Sketch(_) => false,
            Kind::Native(_) | Kind::Udaf { .. } => agg.kind.brings_inverse(),
            _ => true,
        };
        if !aggs.iter().all(inverts) {
            return None;
        }
        let rest = RecordPlan::invertible(&plain(aggs), dtypes)?;
        Some(Self::around(rest, aggs, dtypes))
    }

    fn around(rest: RecordPlan, aggs: &[AggSpec], dtypes: &[DType]) -> Self {
        let ledger = Arc::new(Ledger::default());
        let mut mixed = Self {
            rest: Record::new(rest),
            sources: Vec::new(),
            collected: Vec::new(),
            sketched: Vec::new(),
            counted: Vec::new(),
            natives: Vec::new(),
            udafs: Vec::new(),
            ledger,
        };
        for agg in aggs {
            let source = mixed.source_of(agg, dtypes);
            mixed.sources.push(source);
        }
        mixed
    }

    fn source_of(&mut self, agg: &AggSpec, dtypes: &[DType]) -> Source {
        let column = || {
            agg.of
                .expect("collect, sketches and own aggregations have a column")
        };
        match agg.kind {
            Kind::Collect => {
                self.collected.push(column());
                Source::Sequence
            }
            Kind::Sketch(SketchRequest::Hitters { k, most }) => {
                let hashes = agg.by.expect("hitters have hashes");
                let column = column();
                let counted = HitterColumns {
                    column,
                    hashes,
                    most,
                };
                Source::Hitters(placed(&mut self.counted, counted, |a, b| a == b), k)
            }
            Kind::Native(functions) => {
                self.natives.push((Native::new(functions), column()));
                Source::Native(self.natives.len() - 1)
            }
            Kind::Sketch(request) => {
                let column = column();
                let sketched = Sketched {
                    request,
                    sketcher: Sketcher::new(request, dtypes[column]),
                    column,
                };
                let same = |a: &Sketched, b: &Sketched| {
                    a.column == b.column && a.request.shares_with(b.request)
                };
                Source::Sketch(placed(&mut self.sketched, sketched, same), request)
            }
            Kind::Udaf {
                number,
                commutative,
                ..
            } => {
                let udaf = Deferred::new(number, commutative, Arc::clone(&self.ledger));
                self.udafs.push((udaf, column()));
                Source::Term
            }
            _ => Source::Record,
        }
    }
}

/// The index of an item in a list; appends it unless an equal one is there.
fn placed<I>(items: &mut Vec<I>, item: I, same: impl Fn(&I, &I) -> bool) -> usize {
    let known = items.iter().position(|other| same(other, &item));
    known.unwrap_or_else(|| {
        items.push(item);
        items.len() - 1
    })
}

fn plain(aggs: &[AggSpec]) -> Vec<AggSpec> {
    let plain = aggs.iter().filter(|agg| agg.kind.is_plain());
    plain.copied().collect()
}

/// For plans that [`Mixed::invertible`] made, which collect and sketch nothing.
impl<T: Element> Invertible for Mixed<T>
where
    Cell<T>: Element,
{
    fn inverse(&self, whole: &MixedPartial<T>, oldest: &MixedPartial<T>) -> MixedPartial<T> {
        let terms = self.udafs.iter().zip(whole.terms.iter().zip(&oldest.terms));
        let natives = self
            .natives
            .iter()
            .zip(whole.natives.iter().zip(&oldest.natives));
        MixedPartial {
            words: self.rest.inverse(&whole.words, &oldest.words),
            sequences: whole.sequences.clone(),
            sketches: whole.sketches.clone(),
            hitters: whole.hitters.clone(),
            natives: natives
                .map(|((native, _), (whole, oldest))| native.inverse(whole, oldest))
                .collect(),
            terms: terms
                .map(|((udaf, _), (whole, oldest))| udaf.inverse(whole, oldest))
                .collect(),
        }
    }
    fn undoes(&self, partial: &MixedPartial<T>) -> bool {
        self.rest.undoes(&partial.words)
    }
}

impl<T: Element> Monoid for Mixed<T>
where
    Cell<T>: Element,
{
    type In = MixedPartial<T>;
    type Partial = MixedPartial<T>;
    const SMALL: usize = 0;
    const WIDE: bool = true;

    fn commutative(&self) -> bool {
        false
    }
    fn wide(&self) -> bool {
        !(self.sketched.is_empty() && self.counted.is_empty())
    }
    fn identity(&self) -> MixedPartial<T> {
        MixedPartial {
            words: self.rest.identity(),
            sequences: vec![Seq::Empty; self.collected.len()],
            sketches: vec![Sketch::Nothing; self.sketched.len()],
            hitters: vec![Arc::default(); self.counted.len()],
            natives: vec![CountedRecord::NOTHING; self.natives.len()],
            terms: vec![Term::default(); self.udafs.len()],
        }
    }
    fn lift(&self, value: &MixedPartial<T>) -> MixedPartial<T> {
        value.clone()
    }
    fn combine(&self, a: &MixedPartial<T>, b: &MixedPartial<T>) -> MixedPartial<T> {
        let pairs = a.sequences.iter().zip(&b.sequences);
        let sketches = self.sketched.iter().zip(a.sketches.iter().zip(&b.sketches));
        let hitters = self.counted.iter().zip(a.hitters.iter().zip(&b.hitters));
        let natives = self.natives.iter().zip(a.natives.iter().zip(&b.natives));
        let terms = self.udafs.iter().zip(a.terms.iter().zip(&b.terms));
        MixedPartial {
            words: self.rest.combine(&a.words, &b.words),
            sequences: pairs.map(|(older, younger)| older.then(younger)).collect(),
            sketches: sketches
                .map(|(sketched, (a, b))| sketched.sketcher.combine(a, b))
                .collect(),
            hitters: hitters
                .map(|(counted, (a, b))| counted.merged(a, b))
                .collect(),
            natives: natives
                .map(|((native, _), (older, younger))| native.combine(older, younger))
                .collect(),
            terms: terms
                .map(|((udaf, _), (older, younger))| udaf.combine(older, younger))
                .collect(),
        }
    }
    fn unlift(
        &self,
        partial: MixedPartial<T>,
    ) -> std::result::Result<MixedPartial<T>, MixedPartial<T>> {
        Ok(partial)
    }
    fn same(&self, a: &MixedPartial<T>, b: &MixedPartial<T>) -> bool {
        self.rest.same(&a.words, &b.words)
            && a.sequences == b.sequences
            && a.sketches == b.sketches
            && a.hitters == b.hitters
            && a.natives == b.natives
            && a.terms == b.terms
    }
    fn read_in(&self, input: &mut Reader<'_>) -> Result<MixedPartial<T>> {
        self.read_partial(input)
    }
    fn read_partial(&self, input: &mut Reader<'_>) -> Result<MixedPartial<T>> {
        let part = MixedPartial {
            words: self.rest.read_partial(input)?,
            sequences: (0..self.collected.len())
                .map(|_| Seq::read(input))
                .collect::<Result<_>>()?,
            sketches: (self.sketched.iter())
                .map(|sketched| sketched.sketcher.read(input))
                .collect::<Result<_>>()?,
            hitters: (self.counted.iter())
                .map(|counted| Hitters::read(counted.most as usize, input).map(Arc::new))
                .collect::<Result<_>>()?,
            natives: (0..self.natives.len())
                .map(|_| CountedRecord::read(input))
                .collect::<Result<_>>()?,
            terms: (0..self.udafs.len())
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
        let entry: Entry<WordRecord> = self.rest.entry(row);
        Entry::Raw(MixedPartial {
            words: entry.partial(&self.rest),
            sequences: self.collected.iter().map(|col| one(&row[*col])).collect(),
            sketches: (self.sketched.iter())
                .map(|sketched| sketched.one(row))
                .collect(),
            hitters: (self.counted.iter())
                .map(|counted| counted.one(row))
                .collect(),
            natives: (self.natives.iter())
                .map(|(native, column)| native.one(&row[*column]))
                .collect(),
            terms: self
                .udafs
                .iter()
                .map(|(udaf, col)| udaf.leaf_of(&row[*col]))
                .collect(),
        })
    }
    fn answers(&self, partial: &MixedPartial<T>, out: &mut Vec<Answer<T>>) {
        let mut rest = Vec::new();
        self.rest.answers(&partial.words, &mut rest);
        let (mut rest, mut sequences) = (rest.into_iter(), partial.sequences.iter());
        let mut terms = partial.terms.iter();
        out.extend(self.sources.iter().map(|source| match source {
            Source::Record => rest.next().expect("one per request"),
            Source::Sequence => Answer::List(sequences.next().expect("one per request").to_vec()),
            Source::Sketch(at, request) => {
                let sketcher = self.sketched[*at].sketcher;
                sketcher.answer(*request, &partial.sketches[*at])
            }
            Source::Hitters(at, k) => hitters(&partial.hitters[*at], *k),
            Source::Native(at) => self.natives[*at].0.answer(&partial.natives[*at]),
            Source::Term => Answer::Term(terms.next().expect("one per request").clone()),
        }));
    }
    fn ledger(&self) -> Option<&Arc<Ledger<T>>> {
        (!self.udafs.is_empty()).then_some(&self.ledger)
    }
    fn erase(&self, batch: Batch<Self>) -> Erased {
        let made = (self.clone(), batch);
        Erased::Typed(Box::new(made))
    }
    fn widen(&self, entries: Erased, widened: &[bool]) -> widening::Result<Batch<Self>> {
        let (old, mut batch): (Self, Batch<Self>) = entries.downcast()?;
        for part in &mut batch.values {
            self.widen_part(old.rest.components(), part, widened)?;
        }
        Ok(batch)
    }
}

impl<T: Element> Mixed<T>
where
    Cell<T>: Element,
{
    /// Values of user-defined and native aggregations are not converted.
    fn widen_part(
        &self,
        old: &[Component],
        part: &mut MixedPartial<T>,
        widened: &[bool],
    ) -> widening::Result<()> {
        part.words = self.rest.widened_partial(&part.words, old, widened)?;
        for (sequence, column) in part.sequences.iter_mut().zip(&self.collected) {
            if widened[*column] {
                let cells = sequence.to_vec();
                let cells = cells.iter().map(|cell| one(&widening::cell(cell)));
                *sequence = cells.fold(Seq::Empty, |older, cell| older.then(&cell));
            }
        }
        for (sketch, sketched) in part.sketches.iter_mut().zip(&self.sketched) {
            if widened[sketched.column] {
                *sketch = sketched.sketcher.widened(sketch);
            }
        }
        for (hitters, counted) in part.hitters.iter_mut().zip(&self.counted) {
            if widened[counted.column] {
                *hitters = Arc::new(hitters.map(widening::cell));
            }
        }
        Ok(())
    }
}

impl Sketched {
    fn one<T>(&self, row: &[Cell<T>]) -> Sketch {
        let word = self.sketcher.word(&row[self.column]);
        word.map_or(Sketch::Nothing, Sketch::One)
    }
}

impl HitterColumns {
    fn one<T: Clone>(&self, row: &[Cell<T>]) -> Arc<Hitters<T>> {
        let one = |hash| Arc::new(Hitters::one(hash, row[self.column].clone()));
        row[self.hashes].bits().map(one).unwrap_or_default()
    }

    fn merged<T: Clone>(&self, a: &Arc<Hitters<T>>, b: &Arc<Hitters<T>>) -> Arc<Hitters<T>> {
        match (a.total(), b.total()) {
            (0, _) => Arc::clone(b),
            (_, 0) => Arc::clone(a),
            _ => Arc::new(a.merged(b, self.most as usize)),
        }
    }
}

fn hitters<T: Clone>(found: &Hitters<T>, k: u32) -> Answer<T> {
    let top = found.top(k as usize).into_iter();
    Answer::Hitters(
        top.map(|counter| (counter.item, counter.count, counter.error))
            .collect(),
    )
}

impl<T: Element> HandleSlot for MixedPartial<T>
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

impl<T: Element> Codec for MixedPartial<T>
where
    Cell<T>: Element,
{
    const MIN_BYTES: usize = 8;
    fn write(&self, out: &mut Writer) {
        self.words.write(out);
        out.all(&self.sequences);
        out.all(&self.sketches);
        self.hitters.iter().for_each(|hitters| hitters.write(out));
        out.all(&self.natives);
        out.all(&self.terms);
    }
    fn read(_: &mut Reader<'_>) -> Result<Self> {
        damaged("a part is read by its monoid, which knows its size")
    }
}
