//! ranks: a counted B⁺-tree over the words of a multiset, which finds them by rank.
//!
//! | card   |                                                                          |
//! |--------|--------------------------------------------------------------------------|
//! | paper  | none; B⁺-tree with subtree totals (Knuth vol. 3, §6.2.3 and §6.2.4)      |
//! | order  | words come and go in any order                                           |
//! | costs  | insert, remove, find by rank O(log n) steps; from sorted words O(n)      |
//! | space  | 12 bytes per different word at the least, 24 at the most                 |
//!
//! Idea: leaves hold different words with their counts; inner nodes hold the
//! total of each child beside the word that it begins at. A rank is found by subtracting
//! totals on the way down. Equal words take one place, so that columns of few different
//! values make a tree of one leaf.
//!
//! Invariants, checked by [`Ranks::check`]:
//! 1. Words rise strictly through the leaves; a child's key is above all words of the
//!    child before and not above its own. The first key of a node is never read.
//! 2. A total is the sum of the counts below; no count is 0.
//! 3. All leaves are equally deep. No node but the root is less than a quarter full, and
//!    an inner root has two children.

/// Words of a leaf at the most.
const LEAF: usize = 128;
/// Children of an inner node at the most.
const INNER: usize = 32;

#[derive(Clone, Debug, Default)]
struct Leaf {
    words: Vec<i64>,
    counts: Vec<u32>,
}

#[derive(Clone, Debug, Default)]
struct Inner {
    keys: Vec<i64>,
    totals: Vec<u64>,
    children: Vec<u32>,
}

/// A new node behind one that was split: the word it begins at, itself, its total.
type Sibling = (i64, u32, u64);

/// A multiset of words that knows the word of each rank.
#[derive(Clone, Debug)]
pub struct Ranks {
    leaves: Vec<Leaf>,
    inners: Vec<Inner>,
    free_leaves: Vec<u32>,
    free_inners: Vec<u32>,
    root: u32,
    /// Levels of inner nodes.
    height: usize,
    len: u64,
}

impl Default for Ranks {
    fn default() -> Self {
        Self {
            leaves: vec![Leaf::default()],
            inners: Vec::new(),
            free_leaves: Vec::new(),
            free_inners: Vec::new(),
            root: 0,
            height: 0,
            len: 0,
        }
    }
}

impl Ranks {
    /// Words with multiplicity.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn insert(&mut self, word: i64) {
        self.len += 1;
        if let Some((key, sibling, total)) = self.insert_below(self.height, self.root, word) {
            let root = Inner {
                keys: vec![i64::MIN, key],
                totals: vec![self.len - total, total],
                children: vec![self.root, sibling],
            };
            self.root = self.new_inner(root);
            self.height += 1;
        }
    }

    fn insert_below(&mut self, level: usize, id: u32, word: i64) -> Option<Sibling> {
        if level == 0 {
            return self.insert_into_leaf(id, word);
        }
        let at = self.inners[id as usize].child_of(word);
        let child = self.inners[id as usize].children[at];
        let split = self.insert_below(level - 1, child, word);
        let node = &mut self.inners[id as usize];
        node.totals[at] += 1;
        let (key, sibling, total) = split?;
        node.totals[at] -= total;
        node.keys.insert(at + 1, key);
        node.totals.insert(at + 1, total);
        node.children.insert(at + 1, sibling);
        if node.children.len() <= INNER {
            return None;
        }
        let upper = node.split_off(INNER / 2);
        let (key, total) = (upper.keys[0], upper.totals.iter().sum());
        Some((key, self.new_inner(upper), total))
    }

    fn insert_into_leaf(&mut self, id: u32, word: i64) -> Option<Sibling> {
        let leaf = &mut self.leaves[id as usize];
        let at = leaf.lower(word);
        if leaf.words.get(at) == Some(&word) {
            leaf.counts[at] += 1;
            return None;
        }
        leaf.words.insert(at, word);
        leaf.counts.insert(at, 1);
        if leaf.words.len() <= LEAF {
            return None;
        }
        let upper = leaf.split_off(LEAF / 2);
        let (key, total) = (upper.words[0], upper.total());
        Some((key, self.new_leaf(upper), total))
    }

    /// Takes a word out once.
    ///
    /// # Panics
    /// If the tree does not have it: a broken invariant of the caller.
    pub fn remove(&mut self, word: i64) {
        self.remove_below(self.height, self.root, word);
        self.len -= 1;
        while self.height > 0 && self.inners[self.root as usize].children.len() == 1 {
            let child = self.inners[self.root as usize].children[0];
            self.free_inner(self.root);
            self.root = child;
            self.height -= 1;
        }
    }

    fn remove_below(&mut self, level: usize, id: u32, word: i64) {
        if level == 0 {
            let leaf = &mut self.leaves[id as usize];
            let at = leaf.lower(word);
            assert_eq!(leaf.words.get(at), Some(&word), "the word is not there");
            leaf.counts[at] -= 1;
            if leaf.counts[at] == 0 {
                leaf.words.remove(at);
                leaf.counts.remove(at);
            }
            return;
        }
        let node = &mut self.inners[id as usize];
        let at = node.child_of(word);
        node.totals[at] -= 1;
        let child = node.children[at];
        self.remove_below(level - 1, child, word);
        if self.size(level - 1, child) < Self::least(level - 1) {
            self.fix_underflow(level, id, at);
        }
    }

    fn size(&self, level: usize, id: u32) -> usize {
        match level {
            0 => self.leaves[id as usize].words.len(),
            _ => self.inners[id as usize].children.len(),
        }
    }

    const fn least(level: usize) -> usize {
        if level == 0 { LEAF / 4 } else { INNER / 4 }
    }

    /// Joins a child that is too small with a neighbour, or evens the two out.
    fn fix_underflow(&mut self, level: usize, id: u32, at: usize) {
        let left = at.saturating_sub(1);
        let node = &self.inners[id as usize];
        let (a, b) = (node.children[left], node.children[left + 1]);
        let key = node.keys[left + 1];
        let split = if level == 1 {
            self.even_leaves(a, b)
        } else {
            self.even_inners(a, b, key)
        };
        let node = &mut self.inners[id as usize];
        let both = node.totals[left] + node.totals[left + 1];
        match split {
            Some((key, total)) => {
                node.keys[left + 1] = key;
                node.totals[left] = both - total;
                node.totals[left + 1] = total;
            }
            None => {
                node.keys.remove(left + 1);
                node.totals.remove(left + 1);
                node.children.remove(left + 1);
                node.totals[left] = both;
            }
        }
    }

    /// The second of the two: where it begins now and its total; `None` if it is gone.
    fn even_leaves(&mut self, a: u32, b: u32) -> Option<(i64, u64)> {
        let right = std::mem::take(&mut self.leaves[b as usize]);
        let left = &mut self.leaves[a as usize];
        left.words.extend(right.words);
        left.counts.extend(right.counts);
        if left.words.len() <= LEAF / 4 * 3 {
            self.free_leaves.push(b);
            return None;
        }
        let upper = left.split_off(left.words.len() / 2);
        let right = (upper.words[0], upper.total());
        self.leaves[b as usize] = upper;
        Some(right)
    }

    fn even_inners(&mut self, a: u32, b: u32, key: i64) -> Option<(i64, u64)> {
        let mut right = std::mem::take(&mut self.inners[b as usize]);
        right.keys[0] = key;
        let left = &mut self.inners[a as usize];
        left.keys.extend(right.keys);
        left.totals.extend(right.totals);
        left.children.extend(right.children);
        if left.children.len() <= INNER / 4 * 3 {
            self.free_inners.push(b);
            return None;
        }
        let upper = left.split_off(left.children.len() / 2);
        let right = (upper.keys[0], upper.totals.iter().sum());
        self.inners[b as usize] = upper;
        Some(right)
    }

    fn new_leaf(&mut self, leaf: Leaf) -> u32 {
        place(&mut self.leaves, &mut self.free_leaves, leaf)
    }

    fn new_inner(&mut self, inner: Inner) -> u32 {
        place(&mut self.inners, &mut self.free_inners, inner)
    }

    fn free_inner(&mut self, id: u32) {
        self.inners[id as usize] = Inner::default();
        self.free_inners.push(id);
    }

    /// The word of a rank, counted from 0.
    ///
    /// # Panics
    /// If there are fewer words.
    pub fn word(&self, rank: usize) -> i64 {
        let mut rest = rank as u64;
        let mut id = self.root;
        for _ in 0..self.height {
            let node = &self.inners[id as usize];
            let mut at = 0;
            while rest >= node.totals[at] {
                rest -= node.totals[at];
                at += 1;
            }
            id = node.children[at];
        }
        let leaf = &self.leaves[id as usize];
        for (word, &count) in leaf.words.iter().zip(&leaf.counts) {
            if rest < u64::from(count) {
                return *word;
            }
            rest -= u64::from(count);
        }
        panic!("rank {rank} of {}", self.len)
    }

    /// The count of a word.
    pub fn count(&self, word: i64) -> usize {
        let mut id = self.root;
        for _ in 0..self.height {
            let node = &self.inners[id as usize];
            id = node.children[node.child_of(word)];
        }
        let leaf = &self.leaves[id as usize];
        let at = leaf.lower(word);
        match leaf.words.get(at) {
            Some(found) if *found == word => leaf.counts[at] as usize,
            _ => 0,
        }
    }

    /// A tree of words that are sorted.
    pub fn of_sorted(words: &[i64]) -> Self {
        let mut leaves: Vec<Leaf> = Vec::new();
        for run in words.chunk_by(|a, b| a == b) {
            if leaves
                .last()
                .is_none_or(|leaf| leaf.words.len() == LEAF / 4 * 3)
            {
                leaves.push(Leaf::default());
            }
            if let Some(leaf) = leaves.last_mut() {
                leaf.words.push(run[0]);
                leaf.counts
                    .push(u32::try_from(run.len()).expect("fewer than 2^32 entries"));
            }
        }
        if let [.., left, right] = &mut leaves[..]
            && right.words.len() < LEAF / 4
        {
            *right = left.join_and_split(std::mem::take(right));
        }
        if leaves.is_empty() {
            return Self::default();
        }
        let level = leaves.iter().zip(0..);
        let level: Vec<Sibling> = level
            .map(|(leaf, id)| (leaf.words[0], id, leaf.total()))
            .collect();
        let mut built = Self {
            leaves,
            len: words.len() as u64,
            ..Self::default()
        };
        built.build_above(level);
        built
    }

    fn build_above(&mut self, mut level: Vec<Sibling>) {
        while level.len() > 1 {
            let most = INNER / 4 * 3;
            let parents = level.len().div_ceil(most);
            let start = |parent: usize| parent * level.len() / parents;
            let above = (0..parents).map(|parent| {
                let children = &level[start(parent)..start(parent + 1)];
                let inner = Inner {
                    keys: children.iter().map(|child| child.0).collect(),
                    children: children.iter().map(|child| child.1).collect(),
                    totals: children.iter().map(|child| child.2).collect(),
                };
                let total = inner.totals.iter().sum();
                self.inners.push(inner);
                (children[0].0, self.inners.len() as u32 - 1, total)
            });
            level = above.collect();
            self.height += 1;
        }
        self.root = level[0].1;
    }

    /// All words in order, with their counts.
    pub fn for_each(&self, mut visit: impl FnMut(i64, u32)) {
        let mut pending = vec![(self.height, self.root)];
        while let Some((level, id)) = pending.pop() {
            if level > 0 {
                let children = self.inners[id as usize].children.iter().rev();
                pending.extend(children.map(|child| (level - 1, *child)));
                continue;
            }
            let leaf = &self.leaves[id as usize];
            for (word, count) in leaf.words.iter().zip(&leaf.counts) {
                visit(*word, *count);
            }
        }
    }

    /// Checks every invariant; O(n).
    pub fn check(&self) -> Result<(), String> {
        let total = self.check_below(self.height, self.root, true)?;
        if total != self.len {
            return Err(format!("{total} words, {} counted", self.len));
        }
        let mut last = None;
        let mut rising = true;
        self.for_each(|word, count| {
            rising &= last < Some(word) && count > 0;
            last = Some(word);
        });
        if rising {
            return Ok(());
        }
        Err("words out of order, or without a count".to_owned())
    }

    fn check_below(&self, level: usize, id: u32, root: bool) -> Result<u64, String> {
        let size = self.size(level, id);
        let least = match (root, level) {
            (true, 0) => 0,
            (true, _) => 2,
            (false, level) => Self::least(level),
        };
        let most = if level == 0 { LEAF } else { INNER };
        if size < least || size > most {
            return Err(format!("a node of {size} at level {level}"));
        }
        if level == 0 {
            return Ok(self.leaves[id as usize].total());
        }
        let node = &self.inners[id as usize];
        for (at, child) in node.children.iter().enumerate() {
            let total = self.check_below(level - 1, *child, false)?;
            if total != node.totals[at] {
                return Err(format!("{total} words below, {} counted", node.totals[at]));
            }
            let first = self.first_word(level - 1, *child);
            let last_before = at
                .checked_sub(1)
                .map(|before| self.last_word(level - 1, node.children[before]));
            if let Some(last) = last_before
                && !(last < node.keys[at] && node.keys[at] <= first)
            {
                return Err(format!("key {} between {last} and {first}", node.keys[at]));
            }
        }
        Ok(node.totals.iter().sum())
    }

    fn first_word(&self, level: usize, mut id: u32) -> i64 {
        for _ in 0..level {
            id = self.inners[id as usize].children[0];
        }
        self.leaves[id as usize].words[0]
    }

    fn last_word(&self, level: usize, mut id: u32) -> i64 {
        for _ in 0..level {
            let children = &self.inners[id as usize].children;
            id = children[children.len() - 1];
        }
        let words = &self.leaves[id as usize].words;
        words[words.len() - 1]
    }

    /// Bytes held, the struct itself included.
    pub fn bytes(&self) -> usize {
        let leaves = self.leaves.iter();
        let leaves: usize = leaves
            .map(|leaf| 8 * leaf.words.capacity() + 4 * leaf.counts.capacity())
            .sum();
        let inners = self.inners.iter();
        let inners: usize = inners
            .map(|node| 16 * node.keys.capacity() + 4 * node.children.capacity())
            .sum();
        size_of::<Self>()
            + self.leaves.capacity() * size_of::<Leaf>()
            + self.inners.capacity() * size_of::<Inner>()
            + 4 * (self.free_leaves.capacity() + self.free_inners.capacity())
            + leaves
            + inners
    }
}

fn place<N>(arena: &mut Vec<N>, free: &mut Vec<u32>, node: N) -> u32 {
    if let Some(id) = free.pop() {
        arena[id as usize] = node;
        return id;
    }
    arena.push(node);
    u32::try_from(arena.len() - 1).expect("fewer than 2^32 nodes")
}

impl Leaf {
    fn lower(&self, word: i64) -> usize {
        self.words.partition_point(|present| *present < word)
    }

    fn total(&self) -> u64 {
        self.counts.iter().map(|count| u64::from(*count)).sum()
    }

    fn split_off(&mut self, at: usize) -> Self {
        Self {
            words: split_off(&mut self.words, at, LEAF + 1),
            counts: split_off(&mut self.counts, at, LEAF + 1),
        }
    }

    fn join_and_split(&mut self, right: Self) -> Self {
        self.words.extend(right.words);
        self.counts.extend(right.counts);
        self.split_off(self.words.len() / 2)
    }
}

impl Inner {
    /// The child that a word belongs to.
    fn child_of(&self, word: i64) -> usize {
        self.keys[1..].partition_point(|key| *key <= word)
    }

    fn split_off(&mut self, at: usize) -> Self {
        Self {
            keys: split_off(&mut self.keys, at, INNER + 1),
            totals: split_off(&mut self.totals, at, INNER + 1),
            children: split_off(&mut self.children, at, INNER + 1),
        }
    }
}

/// The end of a list as one that has room to grow.
fn split_off<V: Copy>(list: &mut Vec<V>, at: usize, room: usize) -> Vec<V> {
    let mut upper = Vec::with_capacity(room);
    upper.extend_from_slice(&list[at..]);
    list.truncate(at);
    upper
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % bound
        }
    }

    /// Words in order, repeated by their counts.
    fn words(ranks: &Ranks) -> Vec<i64> {
        let mut words = Vec::new();
        ranks.for_each(|word, count| words.extend(std::iter::repeat_n(word, count as usize)));
        words
    }

    #[test]
    fn words_come_and_go_in_any_order() {
        for seed in 0..12 {
            let mut random = Random(seed);
            let spread = [5, 300, 1 << 30][seed as usize % 3];
            let (mut ranks, mut model) = (Ranks::default(), Vec::new());
            for step in 0..6_000_u64 {
                let growing = step % 3_000 < 1_800;
                if random.below(10) < if growing { 7 } else { 2 } || model.is_empty() {
                    let word = random.below(spread) as i64 - spread as i64 / 2;
                    ranks.insert(word);
                    model.insert(model.partition_point(|other| *other < word), word);
                } else {
                    let word = model.remove(random.below(model.len() as u64) as usize);
                    ranks.remove(word);
                }
                if !model.is_empty() {
                    let rank = random.below(model.len() as u64) as usize;
                    assert_eq!(ranks.word(rank), model[rank]);
                }
                if step % 97 == 0 {
                    ranks
                        .check()
                        .unwrap_or_else(|why| panic!("seed {seed}: {why}"));
                    assert_eq!(words(&ranks), model);
                }
            }
            for word in model {
                ranks.remove(word);
            }
            ranks.check().expect("whole");
            assert!(ranks.is_empty());
        }
    }

    #[test]
    fn a_tree_of_sorted_words_goes_on_as_any_other() {
        for count in [0, 1, 95, 96, 97, 98, 130, 2_000, 2_500, 60_000] {
            let mut sorted: Vec<i64> = (0..count).map(|at| at / 2).collect();
            let mut ranks = Ranks::of_sorted(&sorted);
            ranks.check().unwrap_or_else(|why| panic!("{count}: {why}"));
            assert_eq!(words(&ranks), sorted);
            for at in (0..sorted.len()).rev().step_by(3) {
                ranks.remove(sorted.remove(at));
            }
            ranks.insert(i64::MAX);
            ranks.insert(i64::MIN);
            sorted.insert(0, i64::MIN);
            sorted.push(i64::MAX);
            ranks.check().unwrap_or_else(|why| panic!("{count}: {why}"));
            assert_eq!(words(&ranks), sorted);
            assert_eq!(ranks.count(i64::MAX), 1);
        }
    }
}
