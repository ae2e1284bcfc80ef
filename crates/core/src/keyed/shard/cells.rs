//! Cells of a grid: windows that begin on it hold all entries of a cell or none, so that those
//! entries may be folded into one.

use super::super::run::{Run, RunItem};
use super::scan::KeyList;
use crate::batch::Batch;
use crate::monoid::{Entry, Monoid};
use crate::snapshot::{Reader, Result, Writer};

/// The entries after the first time, if it is given, up to the second.
pub type Reach = (Option<i64>, i64);

/// Cells of equal length.
#[derive(Clone, Copy, Debug)]
pub struct Cells {
    pub every: i64,
    /// The first tick of some cell.
    pub start: i64,
}

impl Cells {
    fn number(&self, time: i64) -> i128 {
        (i128::from(time) - i128::from(self.start)).div_euclid(i128::from(self.every))
    }
}

/// Entries as bytes.
#[derive(Clone, Debug, Default)]
pub struct FoldedEntries {
    /// Per entry, its key and its time.
    pub entries: KeyList,
    pub bytes: Vec<u8>,
    /// Where the bytes of each entry end.
    pub ends: Vec<usize>,
}

impl FoldedEntries {
    pub(super) fn push(&mut self, key: &[u8], time: i64, bytes: &[u8]) {
        self.entries.push(key, time);
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len());
    }
}

/// A batch of entries from their bytes.
pub(in crate::keyed) fn read_entries<M: Monoid>(
    monoid: &M,
    times: &[i64],
    entries: &[&[u8]],
) -> Result<Batch<M>> {
    let mut batch = Batch::with_capacity(times.len());
    for (time, bytes) in times.iter().zip(entries) {
        let mut input = Reader::new(bytes);
        let entry = Entry::read(monoid, &mut input)?;
        input.end()?;
        batch.push(*time, entry);
    }
    Ok(batch)
}

impl<M: Monoid> Run<M> {
    /// Moves its entries to another run; folds those of a cell within the range, where that takes
    /// less memory. Gives `visit` each entry within the range, as bytes.
    pub fn fold_cells(
        &mut self,
        monoid: &M,
        (cells, (since, until)): (&Cells, Reach),
        into: &mut Self,
        mut visit: impl FnMut(i64, &[u8]),
    ) {
        let from = since.map_or(0, |since| self.times.partition_point(|time| *time <= since));
        let to = self.times.partition_point(|time| *time <= until).max(from);
        let times = std::mem::take(&mut self.times);
        let mut entries = self.entries.drain(..);
        self.numbers.clear();
        for (time, entry) in times[..from].iter().zip(entries.by_ref()) {
            into.push(unnumbered(*time, entry));
        }
        let same = |a: &i64, b: &i64| cells.number(*a) == cells.number(*b);
        for of_cell in times[from..to].chunk_by(same) {
            let rows: Vec<Entry<M>> = entries.by_ref().take(of_cell.len()).collect();
            let rows = folded(monoid, rows);
            let first = of_cell.len() - rows.len();
            for (time, entry) in of_cell[first..].iter().zip(rows) {
                visit(*time, &bytes_of(&entry));
                into.push(unnumbered(*time, entry));
            }
        }
        for (time, entry) in times[to..].iter().zip(entries) {
            into.push(unnumbered(*time, entry));
        }
    }
}

fn unnumbered<M: Monoid>(time: i64, entry: Entry<M>) -> RunItem<M> {
    let number = 0;
    RunItem {
        time,
        number,
        entry,
    }
}

/// The entries of a cell, or the one that they fold into if that takes less memory.
fn folded<M: Monoid>(monoid: &M, entries: Vec<Entry<M>>) -> Vec<Entry<M>> {
    let [first, rest @ ..] = &entries[..] else {
        return entries;
    };
    let mut whole = first.partial(monoid);
    for entry in rest {
        match entry {
            Entry::Raw(value) => monoid.absorb(&mut whole, value),
            Entry::Lifted(partial) => whole = monoid.combine(&whole, partial),
        }
    }
    let whole = Entry::from_partial(monoid, whole);
    match size_of_entry(&whole) < entries.iter().map(size_of_entry).sum() {
        true => vec![whole],
        false => entries,
    }
}

fn size_of_entry<M: Monoid>(entry: &Entry<M>) -> usize {
    let own = size_of::<i64>() + size_of::<M::In>();
    match entry {
        Entry::Raw(_) if !std::mem::needs_drop::<M::In>() => own,
        Entry::Raw(_) => own.max(bytes_of(entry).len()),
        // What is on the heap takes about as much as its bytes.
        Entry::Lifted(_) => own + size_of::<Option<M::Partial>>().max(bytes_of(entry).len()),
    }
}

fn bytes_of<M: Monoid>(entry: &Entry<M>) -> Vec<u8> {
    let mut out = Writer::default();
    entry.write(&mut out);
    out.finish().expect("numbers have a binary form")
}
