//! The shared plan: the edges at which entries are cut into slices for many queries.
//!
//! A query of a range and a slide has a window for every *end*, the multiples of its
//! slide. Entries between two *edges* make a slice, which is folded once for all queries.
//! Three techniques choose the edges (SlickDeque 2018, §2.1):
//!
//! | technique | edges of a query                                                      |
//! |-----------|-----------------------------------------------------------------------|
//! | Panes     | the multiples of gcd(range, slide)                                    |
//! | Pairs     | where windows begin, and where they end                               |
//! | Cutty     | where windows begin: an answer includes the open slice                |
//!
//! The plan has the edges of all queries (§2.3) by Cutty: a subset of those by the others; or by
//! Pairs, where only slices are kept, so that late entries join a slice of whole windows. They
//! repeat with the *composite slide*, the least common multiple of the slides. A cycle of few
//! edges is listed. For a longer cycle, or a multiple beyond int64, the next edge is computed
//! when it is needed. Others are counted for comparison only ([`count_edges`]).
//!
//! Edges and ends are positions on an axis: ticks of time, or numbers of entries. An edge
//! at b separates positions up to b from those after it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// The unit of the range and slide of a query, or the kind of a data-driven query. Flags are
/// numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    Time,
    Entries,
    /// A range of time, which slides by entries.
    TimeByEntries,
    /// Windows between gaps longer than the range; the slide is 1.
    Session,
    /// Windows that an entry with the flag closes; range and slide are 1.
    Until(u32),
    /// From the last entry with the flag on, every slide of time; the range is the slide.
    LandmarkTime(u32),
    /// As `LandmarkTime`, with a slide of entries.
    LandmarkEntries(u32),
}

impl Unit {
    /// Whether it slides by time (true) or entries (false). None if it has no slide.
    pub fn slides_by_time(self) -> Option<bool> {
        match self {
            Self::Time | Self::LandmarkTime(_) => Some(true),
            Self::Entries | Self::TimeByEntries | Self::LandmarkEntries(_) => Some(false),
            Self::Session | Self::Until(_) => None,
        }
    }

    /// The number of its flag.
    pub fn flag(self) -> Option<u32> {
        match self {
            Self::Until(flag) | Self::LandmarkTime(flag) | Self::LandmarkEntries(flag) => {
                Some(flag)
            }
            _ => None,
        }
    }
}

/// A query: for every multiple e of `slide`, the window (e − range, e]. Both are positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Query {
    pub unit: Unit,
    pub range: i64,
    pub slide: i64,
}

/// A technique to cut slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Technique {
    Panes,
    Pairs,
    Cutty,
}

impl Technique {
    pub const ALL: [Self; 3] = [Self::Panes, Self::Pairs, Self::Cutty];

    pub fn name(self) -> &'static str {
        match self {
            Self::Panes => "Panes",
            Self::Pairs => "Pairs",
            Self::Cutty => "Cutty",
        }
    }

    /// The edges of all queries, whose ends begin at `offset`.
    pub fn edges(self, queries: &[Query], offset: i64) -> Edges {
        Edges::new(
            queries
                .iter()
                .flat_map(|query| self.of_query(*query, offset)),
        )
    }

    fn of_query(self, query: Query, offset: i64) -> Vec<Multiples> {
        let Query { range, slide, .. } = query;
        let ends = Multiples::new(slide, offset.into());
        let begins = Multiples::new(slide, i128::from(offset) - i128::from(range));
        match self {
            Self::Panes => vec![Multiples::new(gcd(range, slide), offset.into())],
            Self::Pairs => vec![begins, ends],
            Self::Cutty => vec![begins],
        }
    }
}

/// The positions that leave a remainder when divided by `step`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Multiples {
    step: i64,
    remainder: i64,
}

impl Multiples {
    /// The positions `from` + i · `step` for all integers i.
    pub fn new(step: i64, from: i128) -> Self {
        assert!(step > 0, "a step of {step}");
        Self {
            step,
            remainder: from.rem_euclid(step.into()) as i64,
        }
    }

    /// The first at or after a position; `None` beyond int64.
    pub fn next(self, from: i64) -> Option<i64> {
        let ahead = self.remainder - from.rem_euclid(self.step);
        from.checked_add(if ahead < 0 { ahead + self.step } else { ahead })
    }

    /// The last at or before a position; `None` beyond int64.
    pub fn last(self, until: i64) -> Option<i64> {
        let behind = until.rem_euclid(self.step) - self.remainder;
        until.checked_sub(if behind < 0 {
            behind + self.step
        } else {
            behind
        })
    }

    /// Whether all positions of another are among these.
    fn contains(self, other: Self) -> bool {
        other.step % self.step == 0 && other.remainder % self.step == self.remainder
    }
}

/// The next edge of each query, the earliest on top.
type Nexts = BinaryHeap<Reverse<(i64, usize)>>;

/// The state of a walk over edges that are not listed.
#[derive(Clone, Debug, Default)]
pub struct Walk(Nexts);

/// The most edges of a cycle that are listed.
const LISTED_EDGES: i64 = 1 << 12;

/// The edges of all queries on one axis.
#[derive(Clone, Debug, Default)]
pub struct Edges {
    each: Vec<Multiples>,
    /// The edges of one composite slide, if they are few, and the length of this slide.
    cycle: Option<(i64, Vec<i64>)>,
}

impl Edges {
    pub fn new(each: impl IntoIterator<Item = Multiples>) -> Self {
        let mut each: Vec<Multiples> = each.into_iter().collect();
        each.sort_unstable();
        each.dedup();
        let cycle = lcm(each.iter().map(|one| one.step)).and_then(|length| list(&each, length));
        Self { each, cycle }
    }

    /// The first edge at or after a position; `None` if there is none in int64.
    pub fn next(&self, from: i64) -> Option<i64> {
        let Some((length, edges)) = &self.cycle else {
            return self.each.iter().filter_map(|one| one.next(from)).min();
        };
        let within = from.rem_euclid(*length);
        let at = edges.partition_point(|edge| *edge < within);
        let (edge, turn) = match edges.get(at) {
            Some(edge) => (*edge, 0),
            None => (*edges.first()?, *length),
        };
        i64::try_from(i128::from(from) + i128::from(edge - within) + i128::from(turn)).ok()
    }

    /// The last edge at or before a position; `None` if there is none in int64.
    pub fn last(&self, until: i64) -> Option<i64> {
        let Some((length, edges)) = &self.cycle else {
            return self.each.iter().filter_map(|one| one.last(until)).max();
        };
        let within = until.rem_euclid(*length);
        let at = edges.partition_point(|edge| *edge <= within);
        let (edge, turn) = match at.checked_sub(1) {
            Some(at) => (edges[at], 0),
            None => (*edges.last()?, *length),
        };
        i64::try_from(i128::from(until) - i128::from(within - edge) - i128::from(turn)).ok()
    }

    /// Whether windows of a query begin and end at edges of the other queries.
    pub fn has(&self, query: Query, offset: i64) -> bool {
        let wanted = Technique::Pairs.of_query(query, offset);
        let known = |one: &Multiples| self.each.iter().any(|each| each.contains(*one));
        wanted.iter().all(known)
    }

    /// A walk over the edges at or after a position.
    pub fn walk(&self, from: i64) -> Walk {
        let mut next = Nexts::new();
        if self.cycle.is_none() {
            let each = self.each.iter().enumerate();
            next.extend(each.filter_map(|(at, one)| Some(Reverse((one.next(from)?, at)))));
        }
        Walk(next)
    }

    /// The first edge at or after a position, which is not before that of the last step; if there
    /// is none, the last position of int64. O(log q) per edge, for q queries or listed edges.
    pub fn step(&self, walk: &mut Walk, from: i64) -> i64 {
        if self.cycle.is_some() {
            return self.next(from).unwrap_or(i64::MAX);
        }
        while let Some(mut first) = walk.0.peek_mut() {
            let Reverse((edge, at)) = *first;
            if edge >= from {
                return edge;
            }
            match self.each[at].next(from) {
                Some(next) => *first = Reverse((next, at)),
                None => drop(PeekMut::pop(first)),
            }
        }
        i64::MAX
    }

    /// The number of edges in a length that is a multiple of every step, if they are listed.
    pub fn count(&self, length: i64) -> Option<i64> {
        let (cycle, edges) = self.cycle.as_ref()?;
        (length / cycle).checked_mul(edges.len() as i64)
    }
}

/// The edges from 0 up to a length, which is a multiple of every step.
fn list(each: &[Multiples], length: i64) -> Option<(i64, Vec<i64>)> {
    let counts = each.iter().map(|one| length / one.step);
    let most = counts.fold(0_i64, i64::saturating_add);
    if most > LISTED_EDGES {
        return None;
    }
    let of = |one: &Multiples| {
        let (step, remainder) = (one.step, one.remainder);
        (0..length / step).map(move |turn| turn * step + remainder)
    };
    let mut edges: Vec<i64> = each.iter().flat_map(of).collect();
    edges.sort_unstable();
    edges.dedup();
    Some((length, edges))
}

/// The shared plan of the queries of one unit.
#[derive(Clone, Debug)]
pub struct Axis {
    pub edges: Edges,
    /// The longest range; 0 without queries.
    pub longest: i64,
    /// In a gap of up to this length few windows end, so that they are not counted.
    pub unchecked_gap: i64,
}

/// The most answers that fall due with one entry.
pub const MAX_ANSWERS: i64 = 1 << 22;

impl Axis {
    /// The plan of these queries, whose ends begin at `offset`.
    pub fn new(queries: &[Query], offset: i64, technique: Technique) -> Self {
        Self {
            edges: technique.edges(queries, offset),
            longest: queries.iter().map(|query| query.range).max().unwrap_or(0),
            unchecked_gap: queries
                .iter()
                .map(|query| query.slide)
                .min()
                .map_or(i64::MAX, |slide| {
                    slide.saturating_mul(MAX_ANSWERS / queries.len().min(1 << 22) as i64)
                }),
        }
    }
}

/// The composite slide, and the number of edges within it by each of [`Technique::ALL`]; `None`
/// beyond int64, and for edges that are not listed.
pub fn count_edges(queries: &[Query], offset: i64) -> (Option<i64>, [Option<i64>; 3]) {
    let composite = lcm(queries.iter().map(|query| query.slide));
    let count = |technique: Technique| technique.edges(queries, offset).count(composite?);
    (composite, Technique::ALL.map(count))
}

fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The least common multiple of positive numbers; `None` beyond int64.
pub fn lcm(numbers: impl IntoIterator<Item = i64>) -> Option<i64> {
    let mut numbers = numbers.into_iter();
    numbers.try_fold(1_i64, |all, one| all.checked_mul(one / gcd(all, one)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timed(range: i64, slide: i64) -> Query {
        Query {
            unit: Unit::Time,
            range,
            slide,
        }
    }

    /// The edges in (from, to] by definition.
    fn by_definition(queries: &[Query], technique: Technique, offset: i64) -> Vec<i64> {
        let is_edge = |at: &i64| {
            queries.iter().any(|query| {
                let (at, slide) = (at - offset, query.slide);
                let begins = (at + query.range) % slide == 0;
                match technique {
                    Technique::Panes => at % gcd(query.range, slide) == 0,
                    Technique::Pairs => begins || at % slide == 0,
                    Technique::Cutty => begins,
                }
            })
        };
        (-60..60).filter(is_edge).collect()
    }

    fn walked(edges: &Edges) -> Vec<i64> {
        let mut walk = edges.walk(-60);
        for from in -60..60 {
            let stepped = edges.step(&mut walk, from);
            assert_eq!(stepped, edges.next(from).unwrap_or(i64::MAX));
            let last = edges.last(from);
            assert!(last.is_none_or(|last| last <= from && edges.next(last) == Some(last)));
            assert!(last.is_none_or(|last| edges.next(last + 1) > Some(from)));
            assert_eq!(last == Some(from), stepped == from);
        }
        let next = |at: &i64| edges.next(at + 1).filter(|at| *at < 60);
        let first = edges.next(-60).filter(|at| *at < 60);
        std::iter::successors(first, next).collect()
    }

    #[test]
    fn edges_are_those_of_the_definition() {
        let sets: [&[Query]; 6] = [
            &[timed(5, 3)],
            &[timed(6, 2), timed(8, 4)],
            &[timed(7, 7), timed(11, 5), timed(3, 2)],
            &[timed(2, 5)],
            &[timed(12, 12), timed(12, 8), timed(1, 1)],
            &[timed(10, 4), timed(9, 6), timed(25, 10)],
        ];
        for queries in sets {
            for offset in [0, 1, -7, 100] {
                for technique in Technique::ALL {
                    let edges = technique.edges(queries, offset);
                    let wanted = by_definition(queries, technique, offset);
                    assert_eq!(walked(&edges), wanted, "{queries:?} by {technique:?}");
                    let composite = lcm(queries.iter().map(|query| query.slide)).unwrap();
                    let within = wanted.iter().filter(|at| (0..composite).contains(*at));
                    if composite <= 60 {
                        assert_eq!(edges.count(composite), Some(within.count() as i64));
                    }
                    let lazy = Edges {
                        cycle: None,
                        ..edges
                    };
                    assert_eq!(walked(&lazy), wanted, "without a list");
                }
            }
        }
    }

    /// SlickDeque, example 1: slides of 2 and 4, ranges of 6 and 8.
    #[test]
    fn the_composite_slide_of_example_1_is_four() {
        let counted = count_edges(&[timed(6, 2), timed(8, 4)], 0);
        assert_eq!(counted, (Some(4), [Some(2), Some(2), Some(2)]));
    }

    /// Figures 1 to 3: of a range that the slide does not divide.
    #[test]
    fn cutty_has_the_fewest_edges() {
        let counts = |queries: &[Query], offset| count_edges(queries, offset).1;
        assert_eq!(counts(&[timed(5, 3)], 0), [Some(3), Some(2), Some(1)]);
        // The windows of one query begin where those of the other end.
        let apart = [timed(5, 4), timed(7, 4)];
        assert_eq!(counts(&apart, 1), [Some(4), Some(3), Some(2)]);
        let mixed = [timed(5, 3), timed(6, 2)];
        assert_eq!(counts(&mixed, 0), [Some(6), Some(5), Some(4)]);
        let equal = [timed(5, 3), timed(6, 3)];
        assert_eq!(counts(&equal, 0), [Some(3), Some(2), Some(2)]);
    }

    #[test]
    fn a_cycle_may_be_as_long_as_it_is() {
        let primes = [
            1_000_003, 999_983, 999_979, 999_961, 999_959, 999_953, 999_931,
        ];
        let queries: Vec<Query> = primes
            .iter()
            .map(|slide| timed(3 * slide, *slide))
            .collect();
        let axis = Axis::new(&queries, 0, Technique::Cutty);
        assert_eq!(count_edges(&queries, 0), (None, [None; 3]));
        assert_eq!(axis.edges.next(1), Some(999_931));
        assert_eq!(axis.edges.next(999_932), Some(999_953));
        assert_eq!(axis.edges.next(i64::MAX), None);
        let edges = |queries: &[Query]| Technique::Cutty.edges(queries, 0);
        assert_eq!(edges(&[timed(2, 2)]).next(i64::MAX), None);
        assert_eq!(edges(&[]).next(0), None);
        assert_eq!(edges(&[]).last(0), None);
    }

    #[test]
    fn the_ends_of_int64_are_positions() {
        let edges = Edges::new([Multiples::new(10, 3)]);
        assert_eq!(edges.next(i64::MIN), Some(i64::MIN + 1));
        assert_eq!(edges.next(i64::MAX), None);
        assert_eq!(edges.next(i64::MAX - 5), Some(i64::MAX - 4));
        assert_eq!(edges.last(i64::MIN), None);
        assert_eq!(edges.last(i64::MIN + 1), Some(i64::MIN + 1));
        assert_eq!(edges.last(i64::MAX), Some(i64::MAX - 4));
    }
}
