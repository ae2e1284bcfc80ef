//! The order in which rows are taken: by group, then by key, then as in the table.

/// A permutation of the rows, cut into groups.
#[derive(Debug)]
pub struct Order {
    rows: Vec<usize>,
    /// Where each group starts in `rows`, and the end of the last.
    starts: Vec<usize>,
}

impl Order {
    /// Sorts stably; a group that is in order already costs one look at each row.
    ///
    /// # Panics
    /// If a group code is negative or not below the number of rows.
    pub fn new(groups: Option<&[i64]>, keys: &[i64]) -> Self {
        let mut order = match groups {
            Some(groups) => Self::by_group(groups),
            None => Self {
                rows: (0..keys.len()).collect(),
                starts: vec![0, keys.len()],
            },
        };
        for ends in order.starts.windows(2) {
            let rows = &mut order.rows[ends[0]..ends[1]];
            if !rows.is_sorted_by_key(|row| keys[*row]) {
                rows.sort_by_key(|row| keys[*row]);
            }
        }
        order
    }

    /// Counting sort.
    fn by_group(groups: &[i64]) -> Self {
        let code = |group: i64| usize::try_from(group).expect("group codes start at 0");
        let count = groups.iter().max().map_or(0, |last| code(*last) + 1);
        assert!(count <= groups.len(), "group codes are dense");
        let mut starts = vec![0; count + 1];
        for &group in groups {
            starts[code(group) + 1] += 1;
        }
        for group in 0..count {
            starts[group + 1] += starts[group];
        }
        let mut next = starts.clone();
        let mut rows = vec![0; groups.len()];
        for (row, &group) in groups.iter().enumerate() {
            let slot = &mut next[code(group)];
            rows[*slot] = row;
            *slot += 1;
        }
        Self { rows, starts }
    }

    /// The rows in order, and where each group starts, with the end of the last.
    pub fn into_parts(self) -> (Vec<usize>, Vec<usize>) {
        (self.rows, self.starts)
    }

    /// The rows of each group in turn.
    pub fn groups(&self) -> impl Iterator<Item = &[usize]> {
        let ends = self.starts.windows(2);
        ends.map(|ends| &self.rows[ends[0]..ends[1]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_stably_within_their_groups() {
        let groups = [1, 0, 1, 1, 0];
        let keys = [5, 9, 3, 5, -1];
        let order = Order::new(Some(&groups), &keys);
        let rows: Vec<&[usize]> = order.groups().collect();
        assert_eq!(rows, [&[4, 1][..], &[2, 0, 3]]);
    }

    #[test]
    fn nothing_has_no_groups() {
        assert_eq!(Order::new(Some(&[]), &[]).groups().count(), 0);
        assert!(Order::new(None, &[]).groups().all(<[usize]>::is_empty));
    }
}
