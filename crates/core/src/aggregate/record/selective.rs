//! Records that select: each component on its own, and a candidate keeps the words of one.

use super::super::component::Component;
use super::super::op::Op;
use super::{Record, Words};
use crate::monoid::{HandleSlot, Selective};

/// The most words of a component that selects.
const SELECTED: usize = 3;

impl<R: Words + HandleSlot, P: Words> Selective for Record<R, P> {
    type Part = [u64; SELECTED];

    fn parts(&self) -> usize {
        self.plan.components.len()
    }
    fn part(&self, part: usize, partial: &P) -> Self::Part {
        match partial.as_ref()[self.plan.components[part].words()] {
            [one] => [one, 0, 0],
            [one, two] => [one, two, 0],
            [one, two, three] => [one, two, three],
            _ => unreachable!("{SELECTED} words at most"),
        }
    }
    fn dominates(&self, part: usize, younger: &Self::Part, older: &Self::Part) -> bool {
        let component = &self.plan.components[part];
        if matches!(component.op, Op::Extreme { .. }) {
            return younger[0] as i64 >= older[0] as i64;
        }
        let alone = Component {
            at: 0,
            ..*component
        };
        let mut both = [0; SELECTED];
        alone.combine(older, younger, &mut both);
        both == *younger
    }
    fn replace(&self, part: usize, partial: &mut P, by: &Self::Part) {
        match &mut partial.as_mut()[self.plan.components[part].words()] {
            [one] => *one = by[0],
            [one, two] => [*one, *two] = [by[0], by[1]],
            words => words.copy_from_slice(by),
        }
    }
}
