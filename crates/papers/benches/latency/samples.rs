//! Durations of single calls, and their quantiles.

use std::fmt;
use std::time::Duration;

/// Above this a call may have been interrupted, which is then looked up.
const SUSPICIOUS: Duration = Duration::from_micros(3);

/// The quantiles of the table, in parts per million.
const QUANTILES: [usize; 5] = [500_000, 990_000, 999_000, 999_900, 999_990];

pub struct Samples {
    nanos: Vec<u32>,
    /// The time that the thread had waited for a core at the last look-up.
    waited: Option<Duration>,
    interrupted: usize,
}

impl Samples {
    pub fn with_capacity(count: usize) -> Self {
        Self {
            nanos: Vec::with_capacity(count),
            waited: (count > 1).then(waited).flatten(),
            interrupted: 0,
        }
    }

    /// Its duration in nanoseconds; none if it is unknown.
    #[inline]
    pub fn take(&mut self, spent: Duration) -> Option<u32> {
        let spent = match spent > SUSPICIOUS {
            true => self.running(spent),
            false => Some(spent),
        }?;
        let nanos = u32::try_from(spent.as_nanos()).unwrap_or(u32::MAX);
        self.nanos.push(nanos);
        Some(nanos)
    }

    /// The duration of a call without the time that the thread waited for a core; none
    /// if it waited longer, which was partly before the call.
    #[cold]
    fn running(&mut self, spent: Duration) -> Option<Duration> {
        let before = std::mem::replace(&mut self.waited, waited());
        let (Some(before), Some(after)) = (before, self.waited) else {
            return Some(spent);
        };
        let off = after.saturating_sub(before);
        self.interrupted += usize::from(!off.is_zero());
        spent.checked_sub(off)
    }

    pub fn summary(mut self) -> Summary {
        self.nanos.sort_unstable();
        let count = self.nanos.len();
        let at = |millionths: usize| {
            let rank = (count as u128 * millionths as u128).div_ceil(1_000_000);
            self.nanos[(rank as usize).clamp(1, count) - 1]
        };
        Summary {
            count,
            interrupted: self.interrupted,
            quantiles: QUANTILES.map(at),
            longest: self.nanos[count - 1],
            shape: Shape::of(&self.nanos),
            curve: tails(count)
                .map(|above| (above, self.nanos[count - 1 - above]))
                .collect(),
        }
    }
}

/// The number of samples above the points of a curve: twenty points per power of ten.
fn tails(count: usize) -> impl Iterator<Item = usize> {
    let step = 10_f64.powf(0.05);
    let mut next = 0.5_f64;
    let mut last = usize::MAX;
    std::iter::from_fn(move || {
        loop {
            let above = next as usize;
            if above >= count {
                return None;
            }
            next *= step;
            if above != last {
                last = above;
                return Some(above);
            }
        }
    })
}

/// The time that this thread has waited for a core so far; `None` if the system does not
/// report it.
fn waited() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanos = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(Duration::from_nanos(nanos))
}

/// Buckets of a histogram for each doubling.
const PER_DOUBLING: f64 = 8.0;

/// The distribution of samples about their mean.
#[derive(Clone, Debug)]
struct Shape {
    mean: f64,
    deviation: f64,
    /// The least, and the quartiles about the median.
    least: u32,
    quarters: [u32; 2],
    /// The buckets that hold samples, by their numbers: `2^(number / 8)` nanoseconds.
    buckets: Vec<(i32, usize)>,
    /// The mean of all but the highest 0.005 %, and the highest of those.
    trimmed: (f64, u32),
}

impl Shape {
    /// The distribution of samples in rising order.
    fn of(nanos: &[u32]) -> Self {
        let mean = |part: &[u32]| {
            let sum: u64 = part.iter().map(|nanos| u64::from(*nanos)).sum();
            sum as f64 / part.len() as f64
        };
        let count = nanos.len();
        let about = mean(nanos);
        let squares: f64 = nanos
            .iter()
            .map(|one| (f64::from(*one) - about).powi(2))
            .sum();
        let mut buckets: Vec<(i32, usize)> = Vec::new();
        for one in nanos {
            let number = (f64::from((*one).max(1)).log2() * PER_DOUBLING) as i32;
            match buckets.last_mut() {
                Some((last, held)) if *last == number => *held += 1,
                _ => buckets.push((number, 1)),
            }
        }
        let kept = &nanos[..(count - count / 20_000).max(1)];
        Self {
            mean: about,
            deviation: (squares / count as f64).sqrt(),
            least: nanos[0],
            quarters: [nanos[count / 4], nanos[count * 3 / 4]],
            buckets,
            trimmed: (mean(kept), kept[kept.len() - 1]),
        }
    }

    fn to_json(&self) -> String {
        let [p25, p75] = self.quarters;
        let (trimmed_mean, trimmed_longest) = self.trimmed;
        let buckets: Vec<String> = self
            .buckets
            .iter()
            .map(|(number, held)| format!("[{number}, {held}]"))
            .collect();
        format!(
            r#""mean": {:.1}, "deviation": {:.1}, "least": {}, "p25": {p25}, "p75": {p75}, "trimmed_mean": {trimmed_mean:.1}, "trimmed_longest": {trimmed_longest}, "buckets": [{}]"#,
            self.mean,
            self.deviation,
            self.least,
            buckets.join(", ")
        )
    }
}

#[derive(Clone, Debug)]
pub struct Summary {
    count: usize,
    interrupted: usize,
    quantiles: [u32; 5],
    longest: u32,
    shape: Shape,
    /// The number of samples that took longer, and the longest of the others.
    curve: Vec<(usize, u32)>,
}

impl Summary {
    #[allow(dead_code, reason = "the experiments show each run")]
    /// The lowest of each figure, and the curve of the run that has the lowest tail.
    pub fn lowest<'a>(runs: impl Iterator<Item = &'a Self> + Clone) -> Self {
        let tail = |run: &&Self| run.quantiles[4];
        let best = runs.clone().min_by_key(tail).expect("at least one run");
        let mut lowest = best.clone();
        for run in runs {
            for (mine, other) in lowest.quantiles.iter_mut().zip(run.quantiles) {
                *mine = (*mine).min(other);
            }
            lowest.longest = lowest.longest.min(run.longest);
        }
        lowest
    }

    pub fn to_json(&self) -> String {
        let [p50, p99, p999, p9999, p99999] = self.quantiles;
        let curve: Vec<String> = self
            .curve
            .iter()
            .map(|(above, nanos)| format!("[{above}, {nanos}]"))
            .collect();
        format!(
            r#""samples": {}, "interrupted": {}, "p50": {p50}, "p99": {p99}, "p99.9": {p999}, "p99.99": {p9999}, "p99.999": {p99999}, "longest": {}, {}, "curve": [{}]"#,
            self.count,
            self.interrupted,
            self.longest,
            self.shape.to_json(),
            curve.join(", ")
        )
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [p50, p99, p999, p9999, p99999] = self.quantiles;
        let (count, longest) = (self.count, self.longest);
        write!(
            f,
            "{count:>9} {p50:>6} {p99:>7} {p999:>7} {p9999:>8} {p99999:>9} {longest:>9}"
        )
    }
}
