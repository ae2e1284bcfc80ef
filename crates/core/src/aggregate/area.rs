//! Areas under values that hold until the next entry, or go to it in a straight line.

use super::double::Double;
use super::moments::double;
use super::packing::presence::VALUE;
use super::twofold::Twofold;

/// A component of areas; `values` and `times` are the offsets of the components of the first
/// and the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Area {
    /// Whether values go to the next one in a straight line; else they hold until it.
    pub linear: bool,
    pub by: usize,
    pub values: [usize; 2],
    pub times: [usize; 2],
}

/// The area between two entries: their values, as bits, and their times.
#[inline]
pub fn between(linear: bool, [from, to]: [u64; 2], times: [u64; 2], float: bool) -> Twofold {
    let ticks = i128::from(times[1] as i64) - i128::from(times[0] as i64);
    if ticks <= 0 {
        return Twofold::new(0.0);
    }
    let height = match linear {
        true => {
            let [from, to] = [from, to].map(|bits| double((bits, float)).by(0.5));
            from.plus(to)
        }
        false => double((from, float)),
    };
    let area = height.times(Double::of_integer(ticks));
    match area.is_finite() {
        true => Twofold {
            sum: area.high + 0.0,
            error: area.low,
        },
        false => Twofold::new(height.high * ticks as f64),
    }
}

impl Area {
    fn between(self, values: [u64; 2], times: [u64; 2], float: bool) -> Twofold {
        between(self.linear, values, times, float)
    }

    /// The area under the values and times of rows.
    pub fn fold(self, rows: impl Iterator<Item = (u64, u64)> + Clone, float: bool) -> Twofold {
        let pairs = rows.clone().zip(rows.skip(1));
        let areas = pairs
            .map(|((from, since), (to, until))| self.between([from, to], [since, until], float));
        areas.fold(Twofold::new(0.0), Twofold::combine)
    }

    /// The area of two parts together.
    pub fn joined(self, a: &[u64], b: &[u64], at: usize, float: bool) -> Twofold {
        let [older, later] = [a, b].map(|side| Twofold::from_words(&side[at..]));
        let ([first, last], [since, until]) = (self.values, self.times);
        if a[last + 1] != VALUE {
            return later;
        }
        if b[first + 1] != VALUE {
            return older;
        }
        let between = self.between([a[last], b[first]], [a[until], b[since]], float);
        older.combine(between).combine(later)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn areas_span_all_times_and_none() {
        let bits = [6.0_f64, 2.0].map(f64::to_bits);
        let between = |linear, times: [i64; 2]| {
            let times = times.map(|time| time as u64);
            super::between(linear, bits, times, true).value()
        };
        assert_eq!(between(false, [-5, 5]), 60.0);
        assert_eq!(between(true, [-5, 5]), 40.0);
        assert_eq!(between(true, [5, 5]), 0.0);
        assert_eq!(between(false, [i64::MIN, i64::MAX]), 6.0 * 2_f64.powi(64));
        let endless = [f64::INFINITY, 1.0].map(f64::to_bits);
        assert_eq!(super::between(false, endless, [3, 3], true).value(), 0.0);
    }
}
