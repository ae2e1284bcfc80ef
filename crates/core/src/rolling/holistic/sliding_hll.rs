//! Estimated distinct counts: the registers of a window that only moves forward.
//!
//! | card  |                                                                         |
//! |-------|-------------------------------------------------------------------------|
//! | paper | Chabchoub, Hébrail, *Sliding HyperLogLog*, ICDM workshops 2010, §III    |
//! | idea  | a register keeps its maximum and all rows that may become it: the       |
//! |       | earliest first, each greater than the next (list of possible maxima)    |
//! | costs | O(1) per row, amortised; an answer only where a maximum has changed     |
//!
//! Invariants:
//!
//! 1. `possible[r]` holds the rows of the window in register r that no later one equals or
//!    exceeds; `counts[k]` is the number of registers with k in front (0 if empty).
//! 2. `recent` holds the last rows of the latest different hashes, one more than are
//!    counted exactly; so it shows whether a window has few enough.
//!
//! Deviations: the histogram of maxima is updated when they change, so that an answer does
//! not read the registers. Few hashes are counted exactly, like in [`Sketcher`]: answers
//! equal those of the sketch, bit for bit.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use super::multiset::WindowMultiset;
use super::{Request, WordColumn};
use crate::aggregate::sketch::distinct::{estimate, place_of};
use crate::aggregate::sketch::{SketchRequest, Sketcher};
use crate::aggregate::{AggSpec, Answer, DType, Kind};

pub(super) struct SlidingHll<'a> {
    column: &'a WordColumn<'a>,
    agg: usize,
    p: u32,
    /// Per register: positions in the table with the rank of their hash.
    possible: Vec<VecDeque<(usize, u8)>>,
    counts: [u32; 66],
    recent: Recent,
    /// The estimate; `None` if a maximum has changed since.
    known: Option<i64>,
}

/// Whether [`SlidingHll`] answers it.
pub(in crate::rolling) fn supports(request: &Request<'_>, agg: &AggSpec) -> bool {
    let forward = request.arrival.is_none();
    forward && matches!(agg.kind, Kind::Sketch(SketchRequest::Distinct { .. }))
}

impl<'a> SlidingHll<'a> {
    pub(super) fn new(column: &'a WordColumn<'a>, (index, agg): &(usize, AggSpec)) -> Self {
        let Kind::Sketch(request @ SketchRequest::Distinct { p }) = agg.kind else {
            unreachable!("only distinct counts have registers");
        };
        Self {
            column,
            agg: *index,
            p: u32::from(p),
            possible: Vec::new(),
            counts: [0; 66],
            recent: Recent::new(Sketcher::new(request, DType::I64).exact_up_to()),
            known: None,
        }
    }

    fn hash(&self, position: usize) -> Option<u64> {
        self.column.words.get(position).map(|word| word as u64)
    }

    /// The maximum of a register changes.
    fn change(&mut self, from: u8, to: u8) {
        if from == to {
            return;
        }
        self.counts[usize::from(from)] -= 1;
        self.counts[usize::from(to)] += 1;
        self.known = None;
    }
}

fn front(possible: &VecDeque<(usize, u8)>) -> u8 {
    possible.front().map_or(0, |(_, most)| *most)
}

impl WindowMultiset for SlidingHll<'_> {
    fn end(&self) -> usize {
        self.column.words.len()
    }

    fn renew(&mut self, _from: usize, _to: usize) {
        self.possible = vec![VecDeque::new(); 1 << self.p];
        self.counts = [0; 66];
        self.counts[0] = 1 << self.p;
        self.recent.clear();
        self.known = None;
    }

    #[inline]
    fn enter(&mut self, position: usize) {
        let Some(hash) = self.hash(position) else {
            return;
        };
        self.recent.enter(hash, position);
        let (register, most) = place_of(hash, self.p);
        let possible = &mut self.possible[register];
        let before = front(possible);
        while possible.back().is_some_and(|(_, other)| *other <= most) {
            possible.pop_back();
        }
        possible.push_back((position, most));
        let after = front(possible);
        self.change(before, after);
    }

    #[inline]
    fn leave(&mut self, position: usize) {
        let Some(hash) = self.hash(position) else {
            return;
        };
        self.recent.leave(position);
        let (register, _) = place_of(hash, self.p);
        let possible = &mut self.possible[register];
        if possible.front().is_some_and(|(at, _)| *at == position) {
            let before = front(possible);
            possible.pop_front();
            let after = front(possible);
            self.change(before, after);
        }
    }

    #[inline]
    fn answers(&mut self, _own: Option<usize>, put: &mut impl FnMut(usize, Answer<i64>)) {
        if let Some(few) = self.recent.count() {
            return put(self.agg, Answer::I64(few as i64));
        }
        let (counts, p) = (&self.counts, self.p);
        let known = self
            .known
            .get_or_insert_with(|| estimate(counts, p).round() as i64);
        put(self.agg, Answer::I64(*known));
    }
}

/// The latest different hashes of a window, up to one more than a limit.
struct Recent {
    limit: usize,
    /// The last position of each hash.
    last: HashMap<u64, usize, BuildHasherDefault<IdentityHasher>>,
    /// The earliest first; rows whose hash came again are skipped.
    rows: VecDeque<(u64, usize)>,
}

impl Recent {
    fn new(limit: usize) -> Self {
        Self {
            limit,
            last: HashMap::default(),
            rows: VecDeque::new(),
        }
    }

    fn clear(&mut self) {
        self.last.clear();
        self.rows.clear();
    }

    fn enter(&mut self, hash: u64, position: usize) {
        self.last.insert(hash, position);
        self.rows.push_back((hash, position));
        if self.last.len() > self.limit + 1 {
            while self.last.len() > self.limit + 1 {
                self.drop_oldest();
            }
            // Otherwise repeated hashes behind it would pile up.
            while self.rows.front().is_some_and(|row| !self.is_last(*row)) {
                self.rows.pop_front();
            }
        }
    }

    fn leave(&mut self, position: usize) {
        while self.rows.front().is_some_and(|(_, at)| *at <= position) {
            self.drop_oldest();
        }
    }

    fn is_last(&self, (hash, position): (u64, usize)) -> bool {
        self.last.get(&hash) == Some(&position)
    }

    fn drop_oldest(&mut self) {
        if let Some(row) = self.rows.pop_front()
            && self.is_last(row)
        {
            self.last.remove(&row.0);
        }
    }

    /// The number of different hashes, if at most the limit.
    fn count(&self) -> Option<usize> {
        (self.last.len() <= self.limit).then_some(self.last.len())
    }
}

/// The hash of a hash.
#[derive(Default)]
struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {
        unreachable!("hashes are words");
    }
    fn write_u64(&mut self, word: u64) {
        self.0 = word;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::column::{Column as Raw, Values};
    use crate::aggregate::sketch::Sketch;
    use crate::rolling::{Closed, Length, Output, Span, rolling};

    /// Every answer equals that of the sketch over the window, for any registers.
    #[test]
    fn answers_are_those_of_the_sketch() {
        let mut state = 7_u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let mixed = (state ^ (state >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed ^ (mixed >> 32)
        };
        for (p, different, rows, lengths) in [
            (4, 9, 300, [1, 20, 400]),
            (4, 1000, 700, [1, 33, 5000]),
            (6, 40, 900, [17, 64, 300]),
            (10, 500, 4000, [100, 900, 3000]),
        ] {
            let hashes: Vec<u64> = (0..different).map(|_| next()).collect();
            let hashes: Vec<i64> = (0..rows)
                .map(|_| hashes[next() as usize % different] as i64)
                .collect();
            let groups: Vec<u32> = (0..rows as u32).map(|row| row * 3 / rows as u32).collect();
            let times: Vec<i64> = (0..rows as i64).collect();
            let request = SketchRequest::Distinct { p };
            let spans = lengths.map(|length| Span {
                length: Length::Time(length),
                offset: 0,
                closed: Closed::Right,
            });
            let columns = [Raw {
                values: Values::I64(&hashes),
                validity: None,
            }];
            let aggs = [AggSpec {
                kind: Kind::Sketch(request),
                of: Some(0),
                by: None,
                ddof: 0,
            }];
            let whole = Request {
                groups: Some(&groups),
                ..Request::new(&times, &columns, &aggs, &spans)
            };
            let outputs = rolling(whole, &mut || true).expect("no integer overflows");
            let sketcher = Sketcher::new(request, DType::I64);
            for (length, output) in lengths.iter().zip(&outputs) {
                let Output::I64 { values, .. } = &output[0] else {
                    panic!("counts are integers");
                };
                for row in (0..rows).step_by(7) {
                    let row: usize = row;
                    let first = (row + 1).saturating_sub(*length as usize);
                    let inside = (first..=row).filter(|at| groups[*at] == groups[row]);
                    let mut sketch = Sketch::Nothing;
                    inside.for_each(|at| sketcher.absorb(&mut sketch, hashes[at] as u64));
                    let expected: Answer<i64> = sketcher.answer(request, &sketch);
                    assert_eq!(Answer::I64(values[row]), expected, "{p} {length} {row}");
                }
            }
        }
    }
}
