//! Shared code of the tests of costs: counting, and the orders of arrival of FiBA Lemma
//! A.1.

use super::Random;
use super::monoids::take_combines;

/// Combines that `work` takes.
pub fn combines<T>(work: impl FnOnce() -> T) -> f64 {
    take_combines();
    work();
    take_combines() as f64
}

/// log₂(2 + x), the form of the bounds.
pub fn log2(x: usize) -> f64 {
    (2.0 + x as f64).log2()
}

/// FiBA Lemma A.1: permutations whose entries have at most `d` later ones before them.
pub fn arrivals(random: &mut Random, count: usize, d: usize) -> Vec<i64> {
    let mut keyed: Vec<(u64, i64)> = (0..count as u64)
        .map(|item| (item + random.below(d as u64 + 1), item as i64))
        .collect();
    keyed.sort_unstable();
    keyed.into_iter().map(|(_, item)| item).collect()
}

/// Exponents of the sizes that costs are counted at; the last three only if `SLIDEWISE_COSTS`
/// is `all`.
pub fn sizes() -> impl Iterator<Item = u32> {
    let all = all_sizes();
    [0, 1, 3, 6, 11, 13, 15, 20]
        .into_iter()
        .filter(move |log| all || *log < 12)
}

/// Whether costs are counted at the largest sizes, too.
pub fn all_sizes() -> bool {
    std::env::var("SLIDEWISE_COSTS").is_ok_and(|costs| costs == "all")
}
