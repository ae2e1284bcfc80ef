//! Checks the invariants of a tree.

use super::{ARITY, Below, Forest, Root, fold_children};
use crate::monoid::Monoid;

impl<M: Monoid> Forest<M> {
    /// Checks the invariants of a key's sequence.
    ///
    /// # Errors
    /// The invariant that does not hold.
    pub fn check(&self, monoid: &M, root: Root) -> Result<(), String> {
        let mut last = i64::MIN;
        let mut ordered = true;
        self.entries(root, &mut |time, _| {
            ordered &= last <= time;
            last = time;
        });
        if !ordered {
            return Err("entries are out of order".into());
        }
        match root {
            Root::Leaf(block) if block.len() == 0 => Err("an empty block".into()),
            Root::Tree { node, .. } if self.nodes[node as usize].len() == 1 => {
                Err("a root with one child".into())
            }
            Root::Tree { node, level } => self.check_node(monoid, node, level, true).map(|_| ()),
            _ => Ok(()),
        }
    }

    fn check_node(&self, monoid: &M, node: u32, level: u8, edge: bool) -> Result<u32, String> {
        let children = &self.nodes[node as usize];
        if children.is_empty() || children.len() > ARITY {
            return Err(format!("a node of {} children", children.len()));
        }
        let mut total = 0;
        for (at, child) in children.iter().enumerate() {
            let open = edge && at + 1 == children.len();
            let (count, whole) = match child.below {
                Below::Leaf(block) if level == 1 => {
                    let first = self.blocks.times(block).first();
                    if first.is_none_or(|first| *first < child.first) {
                        return Err("a leaf has an earlier time than its parent states".into());
                    }
                    let mut acc = None;
                    self.blocks.fold(monoid, block, (0, block.len()), &mut acc);
                    (block.len() as u32, acc)
                }
                Below::Node(node) if level > 1 => {
                    let count = self.check_node(monoid, node, level - 1, open)?;
                    let whole = match open {
                        true => None,
                        false => fold_children(monoid, &self.nodes[node as usize]),
                    };
                    (count, whole)
                }
                _ => return Err("a leaf at another level".into()),
            };
            total += count;
            if block_len(child.below).is_some_and(|len| len == 0 || len != child.count) {
                return Err("a leaf is empty, or has another count than its parent states".into());
            }
            if open && child.agg.is_some() {
                return Err("a fold at the right edge".into());
            }
            if open {
                continue;
            }
            let same = match (&child.agg, &whole) {
                (Some(kept), Some(whole)) => monoid.same(kept, whole),
                _ => false,
            };
            if !same || child.count != count {
                return Err(format!("child {at} of a node of level {level} is stale"));
            }
        }
        Ok(total)
    }
}

fn block_len(below: Below) -> Option<u32> {
    match below {
        Below::Leaf(block) => Some(block.len() as u32),
        Below::Node(_) => None,
    }
}
