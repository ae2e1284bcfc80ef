//! Bins of a histogram: the values below the first edge, those from each edge to the next,
//! and those from the last edge on.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use super::DType;

/// The most edges of a histogram.
const MAX_EDGES: usize = 1_000;

/// Ascending edges, as the bits of floats.
///
/// A kind is a small value that is copied, so edges live as long as the process: each list
/// once, however many windows have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Edges(&'static [u64]);

impl Edges {
    /// From numbers with spaces between them; `None` unless they are finite and ascend.
    pub fn parse(text: &str) -> Option<Self> {
        let edges: Result<Vec<f64>, _> = text.split(' ').map(str::parse).collect();
        let edges = edges.ok()?;
        let ascend = edges.is_sorted_by(|a, b| a < b) && edges.iter().all(|edge| edge.is_finite());
        if !ascend || edges.len() > MAX_EDGES {
            return None;
        }
        let bits: Vec<u64> = edges.iter().map(|edge| (edge + 0.0).to_bits()).collect();
        Some(Self(kept(bits)))
    }

    /// The number of bins.
    pub fn bins(self) -> usize {
        self.0.len() + 1
    }

    /// The bin of a value: the number of edges that it reaches. NaN reaches all.
    #[inline]
    pub fn bin(self, bits: u64, dtype: DType) -> usize {
        let edges = self.0;
        match dtype {
            DType::F64 => {
                let value = f64::from_bits(bits);
                edges.partition_point(|edge| value.is_nan() || f64::from_bits(*edge) <= value)
            }
            _ => edges.partition_point(|edge| reaches(bits as i64, f64::from_bits(*edge))),
        }
    }
}

/// Whether an integer is at least as large as an edge, without rounding.
fn reaches(value: i64, edge: f64) -> bool {
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    edge < BEYOND && (edge < -BEYOND || value >= edge.ceil() as i64)
}

/// A list that is equal to this one, and lives as long as the process.
fn kept(bits: Vec<u64>) -> &'static [u64] {
    static KNOWN: Mutex<BTreeSet<&'static [u64]>> = Mutex::new(BTreeSet::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(same) = known.get(&bits[..]) {
        return same;
    }
    let list: &'static [u64] = Vec::leak(bits);
    known.insert(list);
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_at_an_edge_is_in_the_bin_above() {
        let edges = Edges::parse("-1.5 0 2").expect("they ascend");
        let bins = [-2.0, -1.5, -0.0, 1.9, 2.0, f64::NAN, f64::INFINITY];
        let bins = bins.map(|value: f64| edges.bin(value.to_bits(), DType::F64));
        assert_eq!(bins, [0, 1, 2, 2, 3, 3, 3]);
        let bins = [-2, -1, 0, 1, 2].map(|value: i64| edges.bin(value as u64, DType::I64));
        assert_eq!(bins, [0, 1, 2, 2, 3]);
    }

    #[test]
    fn integers_are_compared_without_rounding() {
        let edges = Edges::parse("-9223372036854775808 9007199254740993 9223372036854775807");
        let edges = edges.expect("they ascend");
        // The second edge is 2^53 as a float, the third 2^63.
        let near = [(1 << 53) - 1, 1 << 53, i64::MAX, i64::MIN];
        let bins = near.map(|value: i64| edges.bin(value as u64, DType::I64));
        assert_eq!(bins, [1, 2, 2, 1]);
    }

    #[test]
    fn other_edges_are_refused_and_equal_ones_are_kept_once() {
        for text in ["", "1 1", "2 1", "nan", "1 inf", "1  2", "x"] {
            assert_eq!(Edges::parse(text), None, "{text}");
        }
        let [one, other] = ["1 2.50", "1.0 2.5"].map(|text| Edges::parse(text).expect("ascend"));
        assert!(std::ptr::eq(one.0, other.0));
    }
}
