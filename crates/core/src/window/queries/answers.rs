//! The answers that fall due: folds of closed slices, the open slice, and the entries before the
//! first slice.

use super::final_aggregator::Wanted;
use super::plan::Unit;
use super::{Due, QueryWindow};
use crate::monoid::Monoid;
use crate::window::Window;
use crate::window::fifo::{fold, join};

impl<M: Monoid> QueryWindow<M> {
    /// Answers the queries with these numbers, which are ascending.
    pub(super) fn answer(&mut self, end: i64, numbers: &[usize]) {
        let mut wanted = Vec::with_capacity(numbers.len());
        for number in numbers {
            let query = self.schedule.queries()[*number].expect("only live queries fall due");
            let count = match query.unit {
                Unit::Time | Unit::TimeByEntries => self.count_behind(end.checked_sub(query.range)),
                Unit::Entries => self.count_last(query.range),
                // Without new entries the answer equals that of the end before, and is left out.
                Unit::LandmarkTime(_)
                    if !self.schedule.terms.empty
                        && self.count_behind(end.checked_sub(query.slide)) == 0 =>
                {
                    0
                }
                _ => self.count_of(*number),
            };
            // A session whose entries were all evicted has no answer.
            let may_be_empty = self.schedule.terms.empty && query.unit != Unit::Session;
            if count > 0 || may_be_empty {
                wanted.push((self.schedule.range_of(*number), count, *number));
            }
        }
        let answers = self.folds(&wanted);
        let due = wanted.iter().zip(answers);
        self.due.extend(due.map(|((_, _, query), answer)| Due {
            query: *query,
            end,
            answer,
        }));
    }

    /// The number of entries of the open window of a data-driven query.
    pub(super) fn count_of(&self, number: usize) -> usize {
        let schedule = &self.schedule;
        self.count_last(schedule.data_driven.held(number, schedule.count))
    }

    /// How many of the last `range` entries are in the window.
    pub(super) fn count_last(&self, range: i64) -> usize {
        let len = self.window.times().len();
        usize::try_from(range).map_or(len, |range| range.min(len))
    }

    /// Per `wanted` range and count, the fold of the `count` latest entries that were passed on.
    pub(super) fn folds(&mut self, wanted: &[(usize, usize, usize)]) -> Vec<M::Partial> {
        let order = by_falling_count(wanted);
        // The queries of the final aggregator: each number of slices once, or each range.
        let monotonic = self.window.structure().is_monotonic();
        let mut distinct: Vec<Wanted> = Vec::with_capacity(order.len());
        let mut place_of = vec![usize::MAX; wanted.len()];
        for at in &order {
            let (range, count, _) = wanted[*at];
            let slices = self.window.structure().parts(count).slices;
            if slices == 0 {
                continue;
            }
            let same = |last: &Wanted| last.1 == slices && (!monotonic || last.0 == range);
            if !distinct.last().is_some_and(same) {
                distinct.push((range, slices));
            }
            place_of[*at] = distinct.len() - 1;
        }
        let mut folded = vec![None; distinct.len()];
        if !distinct.is_empty() {
            let keep = &mut |place: usize, answer| folded[place] = Some(answer);
            self.window.structure_mut().answers(&distinct, keep);
        }
        let mut answers = vec![None; wanted.len()];
        let mut before: Option<usize> = None;
        for at in order {
            let count = wanted[at].1;
            answers[at] = match before.filter(|before| wanted[*before].1 == count) {
                Some(before) => answers[before].clone(),
                None => {
                    let slices = folded.get(place_of[at]).and_then(Option::as_ref);
                    Some(self.whole(count, slices))
                }
            };
            before = Some(at);
        }
        answers.into_iter().flatten().collect()
    }

    /// The fold of the `count` latest entries, given the fold of their closed slices.
    fn whole(&mut self, count: usize, slices: Option<&M::Partial>) -> M::Partial {
        let window = &self.window;
        let parts = window.structure().parts(count);
        let monoid = window.monoid();
        let open = window.structure().open().filter(|_| parts.open);
        if parts.rest == 0 {
            return join(monoid, slices, open);
        }
        let from = window.times().tail() - count;
        let span = (from, from + parts.rest);
        let rest = self.rest.fold(monoid, span, |at| window.partial(at));
        match (slices, open) {
            (None, None) => rest,
            _ => monoid.combine(&rest, &join(monoid, slices, open)),
        }
    }

    pub(super) fn fold_positions(&self, from: usize, to: usize) -> M::Partial {
        let rest: Vec<M::Partial> = (from..to).map(|at| self.window.partial(at)).collect();
        fold(self.window.monoid(), &rest)
    }

    /// [`QueryWindow::folds`] without the final aggregator: in one pass over the entries.
    pub(super) fn folds_of_entries(&self, wanted: &[(usize, usize, usize)]) -> Vec<M::Partial> {
        let monoid = self.window.monoid();
        let mut answers = vec![monoid.identity(); wanted.len()];
        let (mut whole, mut done) = (None, 0);
        for at in by_falling_count(wanted).into_iter().rev() {
            let tail = self.window.times().tail();
            for position in (tail - wanted[at].1..tail - done).rev() {
                let older = self.window.partial(position);
                whole = Some(join(monoid, Some(&older), whole.as_ref()));
            }
            done = wanted[at].1;
            if let Some(whole) = &whole {
                answers[at] = whole.clone();
            }
        }
        answers
    }
}

/// The positions in `wanted`, by falling count, then by falling range. One function for all
/// monoids, because the sort takes 5 kB.
fn by_falling_count(wanted: &[(usize, usize, usize)]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse((wanted[*at].1, wanted[*at].0)));
    order
}
