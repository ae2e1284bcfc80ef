//! tally: the count of each value, and the most frequent values.
//!
//! | card   |                                                                          |
//! |--------|--------------------------------------------------------------------------|
//! | paper  | none; a hash table of counts, and a search tree of (count, value)        |
//! | order  | values come and go in any order                                          |
//! | costs  | add, remove: O(1) expected, O(log u) for `mode`; answers O(1), O(log u)  |
//! | space  | 24 bytes per different value and as much again for `mode`                |
//!
//! Idea: a value that comes or goes moves its count by one, and its place in the tree
//! with it; the tree's first place is the most frequent value, the smallest of those.
//!
//! Invariant: the tree, where there is one, holds every counted value with its count.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

/// Counts of `u` different words. Where words stand for objects, `T` keeps those alive.
#[derive(Clone, Debug)]
pub struct Tally<T> {
    counts: HashMap<i64, (u32, Option<T>)>,
    order: Option<BTreeSet<(Reverse<u32>, i64)>>,
}

impl<T: Clone> Tally<T> {
    /// `ordered`: whether modes will be queried.
    pub fn new(ordered: bool) -> Self {
        Self {
            counts: HashMap::new(),
            order: ordered.then(BTreeSet::new),
        }
    }

    pub fn add(&mut self, word: i64, object: Option<&T>) {
        let (count, _) = self
            .counts
            .entry(word)
            .or_insert_with(|| (0, object.cloned()));
        *count += 1;
        if let Some(order) = &mut self.order {
            if *count > 1 {
                order.remove(&(Reverse(*count - 1), word));
            }
            order.insert((Reverse(*count), word));
        }
    }

    /// # Panics
    /// If the tally does not have the word: a broken invariant of the caller.
    pub fn remove(&mut self, word: i64) {
        let (count, _) = self.counts.get_mut(&word).expect("the word is there");
        *count -= 1;
        let left = *count;
        if left == 0 {
            self.counts.remove(&word);
        }
        if let Some(order) = &mut self.order {
            order.remove(&(Reverse(left + 1), word));
            if left > 0 {
                order.insert((Reverse(left), word));
            }
        }
    }

    /// Whether modes can be queried.
    pub fn is_ordered(&self) -> bool {
        self.order.is_some()
    }

    /// The number of different words.
    pub fn distinct(&self) -> usize {
        self.counts.len()
    }

    /// The most frequent words, the smallest first.
    pub fn most_frequent(&self) -> impl Iterator<Item = i64> {
        let order = self.order.iter().flatten();
        let most = self.order.iter().flatten().next().map(|(count, _)| *count);
        order
            .take_while(move |(count, _)| Some(*count) == most)
            .map(|(_, word)| *word)
    }

    /// The words with their counts, the most frequent first, of these the smallest.
    ///
    /// # Panics
    /// If the tally has no order.
    pub fn by_count(&self) -> impl Iterator<Item = (u32, i64)> {
        let order = self.order.as_ref().expect("kept in order");
        order.iter().map(|(count, word)| (count.0, *word))
    }

    /// The value of a word.
    pub fn object(&self, word: i64) -> Option<&T> {
        self.counts.get(&word)?.1.as_ref()
    }

    /// The values of all words, in the order of the words.
    pub fn objects(&self) -> Vec<(i64, T)> {
        let objects = self.counts.iter();
        let mut objects: Vec<(i64, T)> = objects
            .filter_map(|(word, (_, object))| Some((*word, object.clone()?)))
            .collect();
        objects.sort_unstable_by_key(|(word, _)| *word);
        objects
    }

    /// The count of each word, in the order of words.
    pub fn counts(&self) -> Vec<(i64, u32)> {
        let counts = self.counts.iter();
        let mut counts: Vec<(i64, u32)> =
            counts.map(|(word, (count, _))| (*word, *count)).collect();
        counts.sort_unstable();
        counts
    }

    pub fn check(&self) -> Result<(), String> {
        let Some(order) = &self.order else {
            return Ok(());
        };
        let same = order.len() == self.counts.len()
            && order.iter().all(|(count, word)| {
                self.counts
                    .get(word)
                    .is_some_and(|found| found.0 == count.0)
            });
        if same {
            return Ok(());
        }
        Err("counts and their order differ".to_owned())
    }

    pub fn clear(&mut self) {
        *self = Self::new(self.order.is_some());
    }

    /// Bytes held, about: the standard library does not report the memory of its trees.
    pub fn bytes(&self) -> usize {
        let slot = size_of::<(i64, (u32, Option<T>))>() + 1;
        let place = size_of::<(Reverse<u32>, i64)>();
        size_of::<Self>()
            + self.counts.capacity() * slot
            + self
                .order
                .as_ref()
                .map_or(0, |order| order.len() * place * 3 / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_follow_what_comes_and_goes() {
        let mut tally = Tally::<()>::new(true);
        let most = |tally: &Tally<()>| tally.most_frequent().collect::<Vec<_>>();
        assert_eq!(most(&tally), []);
        for word in [3, 1, 3, 2, 1] {
            tally.add(word, None);
            tally.check().expect("whole");
        }
        assert_eq!((most(&tally), tally.distinct()), (vec![1, 3], 3));
        tally.remove(1);
        assert_eq!(most(&tally), [3]);
        tally.remove(3);
        assert_eq!(most(&tally), [1, 2, 3]);
        tally.remove(2);
        tally.check().expect("whole");
        assert_eq!((most(&tally), tally.distinct()), (vec![1, 3], 2));
    }
}
