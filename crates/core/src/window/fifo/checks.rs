//! Functions for checkers of invariants: comparisons of folds, and their messages.
//!
//! The functions over a monoid are not inline: one copy serves all structures. Functions without
//! a monoid write the messages.

use std::fmt;

use super::{fold, join};
use crate::monoid::Monoid;
use crate::window::Ties;

type Verdict = Result<(), String>;

/// Requires a condition, or returns a message.
#[inline]
pub fn require(holds: bool, what: fmt::Arguments<'_>) -> Verdict {
    match holds {
        true => Ok(()),
        false => Err(format_message(what)),
    }
}

#[cold]
#[inline(never)]
fn format_message(what: fmt::Arguments<'_>) -> String {
    what.to_string()
}

/// Requires that times rise.
pub fn check_times<'a>(times: impl Iterator<Item = &'a i64>, ties: Ties) -> Verdict {
    let mut before: Option<i64> = None;
    for time in times {
        let ordered = before.is_none_or(|before| match ties {
            Ties::Combine => before < *time,
            Ties::Keep => before <= *time,
        });
        require(ordered, format_args!("time {time} follows {before:?}"))?;
        before = Some(*time);
    }
    Ok(())
}

/// Compares a kept fold with the expected one.
#[inline(never)]
pub fn check_same<M: Monoid>(
    monoid: &M,
    kept: &M::Partial,
    fold: &M::Partial,
    what: fmt::Arguments<'_>,
) -> Verdict {
    match monoid.same(fold, kept) {
        true => Ok(()),
        false => Err(differs(what, kept, fold)),
    }
}

fn differs(what: fmt::Arguments<'_>, kept: &dyn fmt::Debug, fold: &dyn fmt::Debug) -> String {
    format!("{what}: {kept:?} instead of {fold:?}")
}

/// Compares a kept fold with that of values.
#[inline(never)]
pub fn check_whole<M: Monoid>(
    monoid: &M,
    values: &[M::Partial],
    kept: &M::Partial,
    what: fmt::Arguments<'_>,
) -> Verdict {
    check_same(monoid, kept, &fold(monoid, values), what)
}

/// Compares values with those `kept`.
pub fn check_values<'a, M: Monoid>(
    monoid: &M,
    values: &[M::Partial],
    kept: impl ExactSizeIterator<Item = &'a M::Partial>,
) -> Verdict {
    let kept: Vec<&M::Partial> = kept.collect();
    match are_same(monoid, values, &kept) {
        true => Ok(()),
        false => Err("the queue does not hold the values as they came".to_owned()),
    }
}

#[inline(never)]
fn are_same<M: Monoid>(monoid: &M, values: &[M::Partial], kept: &[&M::Partial]) -> bool {
    let mut pairs = values.iter().zip(kept);
    values.len() == kept.len() && pairs.all(|(value, kept)| monoid.same(value, kept))
}

/// Compares the folds of every suffix of `values` with those `kept`.
pub fn check_suffixes<'a, M: Monoid>(
    monoid: &M,
    values: &[M::Partial],
    kept: impl Iterator<Item = &'a M::Partial>,
    what: &str,
) -> Verdict {
    let kept: Vec<&M::Partial> = kept.collect();
    check_folds(monoid, values, &kept, Direction::Backward, what)
}

/// Compares the folds of every prefix of `values` with those `kept`.
pub fn check_prefixes<'a, M: Monoid>(
    monoid: &M,
    values: &[M::Partial],
    kept: impl Iterator<Item = &'a M::Partial>,
    what: &str,
) -> Verdict {
    let kept: Vec<&M::Partial> = kept.collect();
    check_folds(monoid, values, &kept, Direction::Forward, what)
}

/// The end from which values are folded.
enum Direction {
    Backward,
    Forward,
}

#[inline(never)]
fn check_folds<M: Monoid>(
    monoid: &M,
    values: &[M::Partial],
    kept: &[&M::Partial],
    direction: Direction,
    what: &str,
) -> Verdict {
    let mut acc: Option<M::Partial> = None;
    let count = values.len().min(kept.len());
    for step in 0..count {
        let (at, fold) = match direction {
            Direction::Backward => (
                count - 1 - step,
                join(monoid, Some(&values[count - 1 - step]), acc.as_ref()),
            ),
            Direction::Forward => (step, join(monoid, acc.as_ref(), Some(&values[step]))),
        };
        check_same(monoid, kept[at], &fold, format_args!("{what}"))?;
        acc = Some(fold);
    }
    Ok(())
}
