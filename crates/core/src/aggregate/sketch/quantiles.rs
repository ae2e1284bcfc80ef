//! Quantiles of many values from a few of them: KLL.
//!
//! | card   |                                                                        |
//! |--------|------------------------------------------------------------------------|
//! | paper  | Karnin, Lang, Liberty 2016, §2 and §3.1 (sampler left out)             |
//! | laws   | merges in any grouping and order to the same guarantee, not to the     |
//! |        | same bits; number, least and largest are exact                         |
//! | error  | rank off by ≤ ε n in 99 of 100 answers, ε = 2.296 / k^0.9723           |
//! | costs  | absorb O(1) amortised, merge O(k), quantile O(k log k)                 |
//! | space  | ≤ 3k + 8 log₂(n/k) values                                              |
//!
//! A value on level h stands for 2^h values. When there are too many values, the lowest
//! full level is sorted, every other value moves one level up, and the rest are dropped. A
//! coin decides which half is kept, so that errors cancel.
//!
//! Invariants:
//!
//! 1. Σ over levels of length · 2^h is the number of values.
//! 2. No more values are kept than all capacities together, k (2/3)^depth per level, at
//!    least 8.
//!
//! Deviations: the coin is a hash of the sketch's history, so that equal calls give equal
//! answers; an adversary who knows it can choose values with larger errors. Values are
//! words that order like them. Own code: the sketches of the `datasketches` crate draw
//! random numbers from the operating system (REQ), or guarantee no bound (t-digest).

use crate::snapshot::{Codec, Reader, Result, Writer, damaged};

pub const MIN_K: u16 = 8;
pub const MAX_K: u16 = 1 << 14;
const MAX_LEVELS: u64 = 48;
const MIN_LEVEL_CAPACITY: usize = 8;

#[derive(Clone, Debug)]
pub struct Quantiles {
    k: u16,
    count: u64,
    least: u64,
    most: u64,
    /// The number of coin flips.
    flips: u64,
    kept: usize,
    levels: Vec<Vec<u64>>,
}

impl Quantiles {
    pub fn new(k: u16) -> Self {
        Self {
            k,
            count: 0,
            least: u64::MAX,
            most: 0,
            flips: 0,
            kept: 0,
            levels: vec![Vec::new()],
        }
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// The parts that do not depend on grouping: the number, the least and the largest value.
    pub fn exact(&self) -> (u64, u64, u64) {
        (self.count, self.least, self.most)
    }

    pub fn absorb(&mut self, value: u64) {
        self.count += 1;
        self.least = self.least.min(value);
        self.most = self.most.max(value);
        self.levels[0].push(value);
        self.kept += 1;
        self.compress();
    }

    pub fn merge(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
        self.flips = self.flips.wrapping_add(other.flips);
        self.kept += other.kept;
        if self.levels.len() < other.levels.len() {
            self.levels.resize_with(other.levels.len(), Vec::new);
        }
        for (level, other) in self.levels.iter_mut().zip(&other.levels) {
            level.extend_from_slice(other);
        }
        self.compress();
    }

    fn capacity(&self, level: usize) -> usize {
        let depth = self.levels.len() - 1 - level;
        let share = f64::from(self.k) * (2.0_f64 / 3.0).powi(depth as i32);
        (share.ceil() as usize).max(MIN_LEVEL_CAPACITY)
    }

    fn room(&self) -> usize {
        (0..self.levels.len())
            .map(|level| self.capacity(level))
            .sum()
    }

    fn compress(&mut self) {
        while self.kept > self.room() {
            let full = |level: &usize| self.levels[*level].len() >= self.capacity(*level);
            let level = (0..self.levels.len()).find(full);
            self.compact(level.expect("more values than room on all levels together"));
        }
    }

    /// Moves every other value of a level one level up.
    fn compact(&mut self, level: usize) {
        if level + 1 == self.levels.len() {
            self.levels.push(Vec::new());
        }
        let mut values = std::mem::take(&mut self.levels[level]);
        values.sort_unstable();
        if values.len() % 2 == 1 {
            // An odd value at the end stays, so that pairs are adjacent.
            self.levels[level].extend(values.pop());
        }
        let offset = self.coin(level);
        let moved = values.iter().skip(offset).step_by(2);
        self.levels[level + 1].extend(moved);
        self.kept -= values.len() / 2;
    }

    fn coin(&mut self, level: usize) -> usize {
        self.flips = self.flips.wrapping_add(1);
        let mut mixed = self.flips ^ self.count.rotate_left(24) ^ (level as u64) << 56;
        for factor in [0xbf58_476d_1ce4_e5b9_u64, 0x94d0_49bb_1331_11eb] {
            mixed = (mixed ^ mixed >> 30).wrapping_mul(factor);
        }
        (mixed >> 63) as usize
    }

    /// The values at ranks ⌈q n⌉, for shares q from 0 to 1.
    pub fn at(&self, shares: &[f64]) -> Vec<u64> {
        let levels = self.levels.iter().enumerate();
        let mut weighted: Vec<(u64, u64)> = levels
            .flat_map(|(level, values)| values.iter().map(move |value| (*value, 1 << level)))
            .collect();
        weighted.sort_unstable();
        let mut rank = 0;
        for (_, weight) in &mut weighted {
            rank += *weight;
            *weight = rank;
        }
        let value = |share: &f64| {
            let wanted = rank_of(*share, self.count);
            if wanted == 1 {
                return self.least;
            }
            if wanted == self.count {
                return self.most;
            }
            let at = weighted.partition_point(|(_, rank)| *rank < wanted);
            weighted.get(at).map_or(self.most, |(value, _)| *value)
        };
        shares.iter().map(value).collect()
    }

    /// The same over other words, in the same order.
    #[must_use]
    pub fn map(&self, word: impl Fn(u64) -> u64) -> Self {
        let level = |level: &Vec<u64>| level.iter().map(|one| word(*one)).collect();
        Self {
            least: word(self.least),
            most: word(self.most),
            levels: self.levels.iter().map(level).collect(),
            ..*self
        }
    }

    pub fn write(&self, out: &mut Writer) {
        out.all(&[self.count, self.least, self.most, self.flips]);
        (self.levels.len() as u64).write(out);
        for level in &self.levels {
            (level.len() as u64).write(out);
            out.all(level);
        }
    }

    pub fn read(k: u16, input: &mut Reader<'_>) -> Result<Self> {
        let [count, least, most, flips] = <[u64; 4]>::read(input)?;
        let height = u64::read(input)?;
        if !(1..=MAX_LEVELS).contains(&height) {
            return damaged(format!("a quantile sketch of {height} levels"));
        }
        let mut levels = Vec::new();
        for _ in 0..height {
            let length = input.length::<u64>()?;
            levels.push(input.many::<u64>(length)?);
        }
        let kept = levels.iter().map(Vec::len).sum();
        let sketch = Self {
            k,
            count,
            least,
            most,
            flips,
            kept,
            levels,
        };
        sketch.check().or_else(damaged)?;
        Ok(sketch)
    }

    /// Checks the invariants, and that all values lie between the least and the largest.
    pub fn check(&self) -> std::result::Result<(), String> {
        let weights = self.levels.iter().enumerate();
        let stands_for: u128 = weights
            .map(|(level, values)| (values.len() as u128) << level)
            .sum();
        let values = self.levels.iter().flatten();
        let inside = values
            .clone()
            .all(|value| (self.least..=self.most).contains(value));
        if stands_for == u128::from(self.count) && self.kept <= self.room() && inside {
            return Ok(());
        }
        Err(format!(
            "a quantile sketch of {} values keeps {} that stand for {stands_for}",
            self.count, self.kept
        ))
    }
}

/// The rank, counted from 1, of the q-quantile of n values.
pub fn rank_of(share: f64, count: u64) -> u64 {
    ((share * count as f64).ceil() as u64).clamp(1, count)
}
