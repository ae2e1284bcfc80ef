//! The index of one column of a holistic window: its rows by time, and the structures over
//! their values.

use super::ranks::Ranks;
use super::rows::{Row, Rows};
use super::tally::Tally;
use crate::aggregate::collect::Element;
use crate::aggregate::holistic::{NAN, answer_over, entropy_of, value_counts, value_of, word_of};
use crate::aggregate::widening::{self, Erased};
use crate::aggregate::{Answer, Cell, DType, Kind, extreme_value};
use crate::monoid::Entry;
use crate::snapshot::{Codec, Reader, Result, Writer, damaged};
use crate::window::fiba::Fiba;
use crate::window::{Batch, Ties, Window};

/// The structures that an index keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    pub(super) ranks: bool,
    pub(super) tally: bool,
    /// Whether the tally keeps values in the order of their counts.
    pub(super) most: bool,
}

impl Needs {
    pub(super) fn add(&mut self, kind: Kind) {
        self.ranks |= matches!(kind, Kind::Quantile(_));
        self.tally |= !matches!(kind, Kind::Quantile(_));
        self.most |= matches!(kind, Kind::Mode | Kind::ValueCounts { .. });
    }
}

#[derive(Clone, Debug)]
pub(super) struct ValueIndex<T> {
    /// The column of the inserted rows.
    pub(super) of: usize,
    dtype: DType,
    rows: Fiba<Rows, 64, 32>,
    ranks: Option<Ranks>,
    tally: Option<Tally<T>>,
    /// NaNs among floats.
    nans: usize,
}

/// A row's word, and the object that it stands for.
type Keyed<'a, T> = (i64, Option<&'a T>);

impl<T: Element> ValueIndex<T> {
    /// `needs` nothing: answers are computed by each query.
    pub(super) fn new(of: usize, dtype: DType, needs: Needs) -> Self {
        // Words of objects mean nothing without the tally that holds those.
        let tally = needs.tally || dtype == DType::Object;
        Self {
            of,
            dtype,
            rows: Fiba::new(Rows, Ties::Keep),
            ranks: needs.ranks.then(Ranks::default),
            tally: tally.then(|| Tally::new(needs.most)),
            nans: 0,
        }
    }

    fn keyed<'a>(&self, cell: &'a Cell<T>) -> Option<Keyed<'a, T>> {
        match cell {
            Cell::Null => None,
            Cell::Object(object) => Some((object.number() as i64, Some(object))),
            number => number.bits().map(|bits| (word_of(bits, self.dtype), None)),
        }
    }

    fn enter(&mut self, (word, object): Keyed<'_, T>) {
        self.nans += usize::from(self.is_nan(word));
        if let Some(ranks) = &mut self.ranks {
            ranks.insert(word);
        }
        if let Some(tally) = &mut self.tally {
            tally.add(word, object);
        }
    }

    fn leave(&mut self, word: i64) {
        self.nans -= usize::from(self.is_nan(word));
        if let Some(ranks) = &mut self.ranks {
            ranks.remove(word);
        }
        if let Some(tally) = &mut self.tally {
            tally.remove(word);
        }
    }

    fn is_nan(&self, word: i64) -> bool {
        word == NAN && self.dtype == DType::F64
    }

    pub(super) fn insert(&mut self, time: i64, cell: &Cell<T>) {
        let keyed = self.keyed(cell);
        let row = keyed.map_or(Row::Null, |(word, _)| Row::Word(word));
        self.rows.insert(time, Entry::from_partial(&Rows, row));
        if let Some(keyed) = keyed {
            self.enter(keyed);
        }
    }

    /// Inserts many, by any order of times.
    pub(super) fn insert_many(&mut self, times: &[i64], cells: impl Iterator<Item = Cell<T>>) {
        let mut batch = Batch::with_capacity(times.len());
        // Many values into a few are sorted and merged, and not taken one by one.
        let anew = self
            .ranks
            .as_ref()
            .is_some_and(|ranks| ranks.len() < times.len());
        let ranks = if anew { self.ranks.take() } else { None };
        for (&time, cell) in times.iter().zip(cells) {
            let keyed = self.keyed(&cell);
            let row = keyed.map_or(Row::Null, |(word, _)| Row::Word(word));
            batch.push(time, Entry::from_partial(&Rows, row));
            if let Some(keyed) = keyed {
                self.enter(keyed);
            }
        }
        if let Some(ranks) = ranks {
            let mut words = batch.words();
            ranks.for_each(|word, count| words.extend(std::iter::repeat_n(word, count as usize)));
            words.sort_unstable();
            self.ranks = Some(Ranks::of_sorted(&words));
        }
        batch.sort();
        self.rows.insert_batch(batch);
    }

    /// Evicts the first row of the oldest time, or of a time that the index has.
    pub(super) fn evict_first(&mut self, time: i64) {
        let row = self.rows.query_range(time, time);
        if self.rows.oldest() == Some(time) {
            self.rows.evict();
        } else {
            self.rows.evict_at(time);
        }
        if let Row::Word(word) = row {
            self.leave(word);
        }
    }

    /// Evicts all rows of a time.
    pub(super) fn evict_all(&mut self, time: i64) {
        let rows = self.between(time, time);
        for row in &rows {
            self.rows.evict_at(time);
            if let Row::Word(word) = row {
                self.leave(*word);
            }
        }
    }

    pub(super) fn evict_until(&mut self, time: i64) {
        let rows = self.between(i64::MIN, time);
        self.rows.evict_until(time);
        let left = self.rows.len();
        if left == 0 {
            return self.reset();
        }
        if rows.len() > 2 * left
            && self
                .tally
                .as_ref()
                .is_none_or(|_| self.dtype != DType::Object)
        {
            self.reset();
            return self.enter_all();
        }
        for row in rows {
            if let Row::Word(word) = row {
                self.leave(word);
            }
        }
    }

    /// Empties the structures over the values.
    fn reset(&mut self) {
        self.nans = 0;
        if let Some(ranks) = &mut self.ranks {
            *ranks = Ranks::default();
        }
        if let Some(tally) = &mut self.tally {
            tally.clear();
        }
    }

    /// Fills the structures, which are empty, from the rows. Numbers only.
    fn enter_all(&mut self) {
        let mut words = self.words(i64::MIN, i64::MAX);
        if self.ranks.take().is_some() {
            words.sort_unstable();
            self.ranks = Some(Ranks::of_sorted(&words));
        }
        if let Some(tally) = &mut self.tally {
            for word in &words {
                tally.add(*word, None);
            }
        }
        self.nans = match self.dtype {
            DType::F64 => words.iter().filter(|word| **word == NAN).count(),
            _ => 0,
        };
    }

    pub(super) fn clear(&mut self) {
        self.rows.clear();
        self.reset();
    }

    /// The rows of some times in order.
    fn between(&mut self, lo: i64, hi: i64) -> Vec<Row> {
        let mut rows = Vec::new();
        self.rows.for_each_between(lo, hi, |_, row| rows.push(row));
        rows
    }

    fn words(&mut self, lo: i64, hi: i64) -> Vec<i64> {
        let rows = self.between(lo, hi).into_iter();
        rows.filter_map(Row::word).collect()
    }

    /// The times of all rows up to one.
    pub(super) fn for_each_until(&mut self, time: i64, mut visit: impl FnMut(i64)) {
        self.rows
            .for_each_between(i64::MIN, time, |time, _| visit(time));
    }

    /// All rows with their times.
    pub(super) fn timed_rows(&mut self) -> Vec<(i64, Row)> {
        let mut rows = Vec::with_capacity(self.rows.len());
        self.rows.for_each(&mut |time, row| rows.push((time, row)));
        rows
    }

    pub(super) fn len(&mut self) -> usize {
        self.rows.len()
    }

    pub(super) fn oldest(&mut self) -> Option<i64> {
        self.rows.oldest()
    }

    pub(super) fn youngest(&mut self) -> Option<i64> {
        self.rows.youngest()
    }

    /// Whether there is a row of that time.
    pub(super) fn has(&mut self, time: i64) -> bool {
        self.rows
            .youngest()
            .is_some_and(|youngest| time <= youngest)
            && self.rows.query_range(time, time) != Row::Nothing
    }

    /// The answer over all rows.
    pub(super) fn answer(&mut self, kind: Kind) -> Answer<T> {
        match (kind, &self.ranks, &self.tally) {
            (Kind::Quantile(quantile), Some(ranks), _) => {
                let counts = (ranks.len(), self.nans);
                quantile.answer(self.dtype, counts, |rank| ranks.word(rank))
            }
            (Kind::CountDistinct, _, Some(tally)) => Answer::I64(tally.distinct() as i64),
            (Kind::Entropy, _, Some(tally)) => {
                let counts = tally.counts().into_iter();
                entropy_of(counts.map(|(_, count)| count).collect())
            }
            (Kind::ValueCounts { top }, _, Some(tally)) if tally.is_ordered() => match self.dtype {
                DType::Object => self.counted(tally.by_count()),
                dtype => value_counts(top, dtype, tally.by_count()),
            },
            (Kind::Mode, _, Some(tally)) if tally.is_ordered() => {
                let mut most = tally.most_frequent();
                if self.dtype == DType::Object {
                    return self.objects(most);
                }
                most.next()
                    .map_or(Answer::Null, |word| value_of(word, self.dtype))
            }
            _ => self.answer_between(kind, i64::MIN, i64::MAX),
        }
    }

    /// The answer over the rows of some times, computed from these alone.
    pub(super) fn answer_between(&mut self, kind: Kind, lo: i64, hi: i64) -> Answer<T> {
        let mut words = self.words(lo, hi);
        self.answer_over(kind, &mut words)
    }

    /// The answer over some words of this column.
    pub(super) fn answer_over(&self, kind: Kind, words: &mut [i64]) -> Answer<T> {
        if self.dtype != DType::Object || matches!(kind, Kind::CountDistinct | Kind::Entropy) {
            return answer_over(kind, self.dtype, words);
        }
        let mut tally = Tally::<()>::new(true);
        for word in words {
            tally.add(*word, None);
        }
        match kind {
            Kind::ValueCounts { .. } => self.counted(tally.by_count()),
            _ => self.objects(tally.most_frequent()),
        }
    }

    /// Objects with their counts, which the caller puts in order.
    fn counted(&self, words: impl Iterator<Item = (u32, i64)>) -> Answer<T> {
        let tally = self.tally.as_ref().expect("objects are tallied");
        let item = |(count, word)| {
            let object = tally.object(word)?.clone();
            Some((Cell::Object(object), u64::from(count), 0))
        };
        Answer::Hitters(words.filter_map(item).collect())
    }

    /// Objects, of which the caller picks.
    fn objects(&self, words: impl Iterator<Item = i64>) -> Answer<T> {
        let tally = self.tally.as_ref().expect("objects are tallied");
        let objects = words.filter_map(|word| tally.object(word));
        Answer::List(objects.cloned().map(Cell::Object).collect())
    }

    /// Whether the structures hold what the rows do; O(n).
    pub(super) fn check(&self) -> std::result::Result<(), String> {
        self.rows.check()?;
        let mut rows = self.rows.clone();
        let mut words = Vec::new();
        rows.for_each(&mut |_, row| words.extend(row.word()));
        words.sort_unstable();
        let runs = words.chunk_by(|a, b| a == b);
        let counts: Vec<(i64, u32)> = runs.map(|run| (run[0], run.len() as u32)).collect();
        if let Some(ranks) = &self.ranks {
            ranks.check()?;
            let mut in_ranks = Vec::new();
            ranks.for_each(|word, count| in_ranks.push((word, count)));
            same(&in_ranks, &counts, "ranks")?;
        }
        if let Some(tally) = &self.tally {
            tally.check()?;
            same(&tally.counts(), &counts, "tally")?;
        }
        let nans = words.iter().filter(|word| self.is_nan(**word)).count();
        if nans == self.nans {
            return Ok(());
        }
        Err(format!("{nans} NaNs, {} counted", self.nans))
    }

    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.rows.bytes()
            + self.ranks.as_ref().map_or(0, Ranks::bytes)
            + self.tally.as_ref().map_or(0, Tally::bytes)
    }

    /// Objects by their words, then the rows; the rest follows from these.
    /// The entries: a copy, as it is.
    pub(super) fn erased(&self) -> Erased {
        Erased::Typed(Box::new(self.clone()))
    }

    /// This index, empty, with the entries of another one.
    pub(super) fn widened(&self, mut old: Self, widened: &[bool]) -> Self {
        if !widened[self.of] {
            return old;
        }
        let mut new = self.clone();
        let mut rows = Batch::with_capacity(old.len());
        old.rows.for_each(&mut |time, row| {
            let row = match row {
                Row::Word(word) => Row::Word(widening::word(word, false)),
                other => other,
            };
            rows.push(time, Entry::from_partial(&Rows, row));
        });
        new.rows.insert_batch(rows);
        new.enter_all();
        new
    }

    pub(super) fn write(&self, out: &mut Writer) {
        if self.dtype == DType::Object {
            let objects = self.tally.as_ref().map(Tally::objects).unwrap_or_default();
            (objects.len() as u64).write(out);
            for (_, object) in &objects {
                object.write(out);
            }
        }
        self.rows.write(out);
    }

    pub(super) fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        let mut objects = Vec::new();
        if self.dtype == DType::Object {
            let count = input.length::<T>()?;
            for _ in 0..count {
                let object = T::read(input)?;
                objects.push((object.number() as i64, object));
            }
        }
        if !objects.is_sorted_by(|a, b| a.0 < b.0) {
            return damaged("objects out of order");
        }
        self.rows.read(input)?;
        if self.dtype != DType::Object {
            let words = self.words(i64::MIN, i64::MAX);
            let of_a_value = |word: &i64| {
                let bits = extreme_value(*word, self.dtype, false);
                word_of(bits, self.dtype) == *word
            };
            if !words.iter().all(of_a_value) {
                return damaged("a row without a value of its type");
            }
            self.enter_all();
            return Ok(());
        }
        for word in self.words(i64::MIN, i64::MAX) {
            match objects.binary_search_by_key(&word, |(known, _)| *known) {
                Ok(at) => self.enter((word, Some(&objects[at].1))),
                Err(_) => return damaged(format!("object {word} is not in the snapshot")),
            }
        }
        Ok(())
    }
}

impl Batch<Rows> {
    /// The words of all rows that have one.
    fn words(&self) -> Vec<i64> {
        let mut nulls = self.lifted.iter().map(|(at, _)| *at).peekable();
        let words = self.values.iter().enumerate();
        words
            .filter(|(at, _)| nulls.next_if_eq(at).is_none())
            .map(|(_, word)| *word)
            .collect()
    }
}

fn same(found: &[(i64, u32)], rows: &[(i64, u32)], what: &str) -> std::result::Result<(), String> {
    if found == rows {
        return Ok(());
    }
    Err(format!(
        "{what} hold {} different values, the rows {}",
        found.len(),
        rows.len()
    ))
}
