//! Refuses entries with which too many answers would fall due.

use super::plan::{MAX_ANSWERS, Query, Unit};
use super::schedule::Schedule;
use crate::window::Refused;

impl Schedule {
    /// Checks that few enough answers fall due from the latest entry up to a time. Those between
    /// waiting entries were checked when these arrived.
    ///
    /// # Errors
    /// [`Refused::Many`].
    pub fn admits(&self, time: i64) -> Result<(), Refused> {
        let latest = self.youngest.max(self.last);
        match self.passed().max(latest) {
            Some(from) => self.admits_gap((from, latest.unwrap_or(from), time), time),
            None => Ok(()),
        }
    }

    /// As `admits`, from a time to the earliest entry.
    ///
    /// # Errors
    /// [`Refused::Many`].
    pub fn admits_before(&self, time: i64, oldest: i64) -> Result<(), Refused> {
        self.admits_gap((time, time, oldest), time)
    }

    /// As `admits`, for each gap between two entries of a batch.
    ///
    /// # Errors
    /// [`Refused::Many`], with the first time before which too many fall due.
    pub fn admits_batch(&self, times: &[i64]) -> Result<(), Refused> {
        let (Some(first), Some(last)) = (times.iter().min(), times.iter().max()) else {
            return Ok(());
        };
        if last.saturating_sub(*first) <= self.time.unchecked_gap {
            return Ok(());
        }
        let mut sorted = times.to_vec();
        sorted.sort_unstable();
        let mut gaps = sorted.windows(2).map(|ends| (ends[0], ends[1]));
        gaps.try_for_each(|(from, to)| self.admits_gap((from, from, to), to))
    }

    /// Checks the number of answers that fall due from one time to another, with entries up to
    /// `latest`. There is an end per slide; with `empty` all are answered, otherwise those with
    /// entries in their windows.
    fn admits_gap(&self, (from, latest, to): (i64, i64, i64), time: i64) -> Result<(), Refused> {
        if to.saturating_sub(from) <= self.time.unchecked_gap {
            return Ok(());
        }
        let (from, latest, to) = (i128::from(from), i128::from(latest), i128::from(to));
        let of_query = |(_, query): (usize, Query)| {
            let (range, slide) = (i128::from(query.range), i128::from(query.slide));
            let last = match query.unit {
                Unit::Time | Unit::LandmarkTime(_) if self.terms.empty => to,
                Unit::Time => to.min(latest + range - 1),
                // Without new entries, a landmark has one answer.
                Unit::LandmarkTime(_) => to.min(latest + slide),
                _ => return 0,
            };
            ((last - from) / slide + 1).max(0)
        };
        let ends: i128 = self.live().map(of_query).sum();
        match ends > MAX_ANSWERS.into() {
            true => Err(Refused::Many {
                time,
                ends: i64::try_from(ends).unwrap_or(i64::MAX),
            }),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::schedule::ScheduleOptions;
    use super::*;

    /// The answers of a batch are not limited, only those between two of its entries.
    #[test]
    fn gaps_are_few_answers_and_batches_many() {
        let query = |range, slide| Query {
            unit: Unit::Time,
            range,
            slide,
        };
        let every = MAX_ANSWERS;
        for empty in [false, true] {
            let terms = ScheduleOptions {
                empty,
                ..ScheduleOptions::default()
            };
            let queries = vec![Some(query(2 * every, 1)), None, Some(query(6, 3))];
            let schedule = Schedule::new(terms, queries);
            let dense: Vec<i64> = (0..2 * every).rev().collect();
            assert!(schedule.admits_batch(&dense).is_ok());
            assert!(schedule.admits_batch(&[every / 2, 0, 7]).is_ok());
            let refused = schedule.admits_batch(&[5 * every, 0, 7]);
            let Err(Refused::Many { time, ends }) = refused else {
                panic!("{refused:?}");
            };
            let most = if empty { 5 + 2 } else { 2 };
            assert_eq!(time, 5 * every);
            assert!(
                ((most - 1) * every..most * every + 9).contains(&ends),
                "{ends}"
            );
        }
        let schedule = Schedule::new(ScheduleOptions::default(), vec![Some(query(6, 3))]);
        assert!(schedule.admits_batch(&[i64::MIN, i64::MAX, 0]).is_ok());
        assert!(schedule.admits_batch(&[]).is_ok());
    }
}
