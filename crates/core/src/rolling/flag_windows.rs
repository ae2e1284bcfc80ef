//! Windows that begin or end where rows have a flag, as positions of rows by group and time.

use super::sort_layout::SortLayout;

/// The row with which a window begins if a row of its group has a flag; otherwise the
/// window begins with the first row of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// The last row with a flag.
    Flag,
    /// The row after the last earlier row with a flag.
    BehindEarlier,
    /// The row after the last row with a flag, which may be the row itself.
    Behind,
}

impl SortLayout {
    /// The first position of the group of each position.
    pub fn begins(&self) -> Vec<i64> {
        let groups = self.permutation.starts.windows(2);
        groups
            .flat_map(|ends| std::iter::repeat_n(ends[0] as i64, ends[1] - ends[0]))
            .collect()
    }

    /// The begin of the window of each position.
    ///
    /// # Panics
    /// If a row with a flag is not of this table.
    pub fn flag_starts(&self, flagged: impl Iterator<Item = usize>, since: Since) -> Vec<i64> {
        let flags = self.flags(flagged);
        let mut starts = Vec::with_capacity(flags.len());
        for ends in self.permutation.starts.windows(2) {
            let mut start = ends[0];
            for (at, flag) in (ends[0]..).zip(&flags[ends[0]..ends[1]]) {
                let before = start;
                if *flag {
                    start = at + usize::from(since != Since::Flag);
                }
                let shown = match since {
                    Since::BehindEarlier => before,
                    _ => start,
                };
                starts.push(shown as i64);
            }
        }
        starts
    }

    /// The positions of the rows with a flag, in order.
    ///
    /// # Panics
    /// Likewise.
    pub fn flagged(&self, flagged: impl Iterator<Item = usize>) -> Vec<i64> {
        let flags = self.flags(flagged);
        let positions = (0..).zip(flags);
        positions
            .filter_map(|(at, flag)| flag.then_some(at))
            .collect()
    }

    /// Whether each position has a flag.
    fn flags(&self, flagged: impl Iterator<Item = usize>) -> Vec<bool> {
        let mut flags = vec![false; *self.permutation.starts.last().unwrap_or(&0)];
        match &self.permutation.ranks {
            None => flagged.for_each(|row| flags[row] = true),
            Some(ranks) => flagged.for_each(|row| flags[ranks[row] as usize] = true),
        }
        flags
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_begin_at_flags_of_their_group() {
        let groups = [1, 0, 1, 1, 0, 1];
        let times = [3, 1, 1, 4, 2, 2];
        let layout = SortLayout::new(Some(&groups), &times, 2, 1, &mut || true);
        let layout = layout.expect("proceed returns true");
        // By position the rows are 1, 4 and 2, 5, 0, 3.
        assert_eq!(layout.begins(), [0, 0, 2, 2, 2, 2]);
        let flagged = [4, 5];
        let starts = |since| layout.flag_starts(flagged.into_iter(), since);
        assert_eq!(starts(Since::Flag), [0, 1, 2, 3, 3, 3]);
        assert_eq!(starts(Since::BehindEarlier), [0, 0, 2, 2, 4, 4]);
        assert_eq!(starts(Since::Behind), [0, 2, 2, 4, 4, 4]);
        assert_eq!(layout.flagged(flagged.into_iter()), [1, 3]);
    }

    #[test]
    fn rows_in_order_are_their_positions() {
        let layout = SortLayout::new(None, &[1, 1, 5], 0, 1, &mut || true);
        let layout = layout.expect("proceed returns true");
        assert_eq!(layout.begins(), [0; 3]);
        assert_eq!(layout.flagged([2, 0].into_iter()), [0, 2]);
        assert_eq!(layout.flag_starts([1].into_iter(), Since::Flag), [0, 1, 1]);
        let none = SortLayout::new(None, &[], 0, 1, &mut || true).unwrap();
        assert!(none.flag_starts([].into_iter(), Since::Flag).is_empty());
    }
}
