//! The tree of a window as data, for pictures.

/// The kind of location-sensitive partial aggregate that a node keeps (FiBA fig. 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartialKind {
    /// Π↑, the whole subtree: nodes off the spines.
    Up,
    /// Π inner: the root, without its outermost children.
    Inner,
    /// Π↙: the left spine.
    Left,
    /// Π↘: the right spine.
    Right,
}

#[derive(Clone, Debug)]
pub struct Node<P> {
    /// Distance from the leaves.
    pub level: usize,
    pub kind: PartialKind,
    /// Entries of a leaf; separators of an inner node.
    pub times: Vec<i64>,
    /// Positions of the children in [`Shape::nodes`].
    pub children: Vec<usize>,
    pub aggregate: P,
}

/// All nodes, each before its children; the root first.
#[derive(Clone, Debug)]
pub struct Shape<P> {
    pub nodes: Vec<Node<P>>,
    pub leaf_capacity: usize,
    pub arity: usize,
}

impl<P> Shape<P> {
    pub fn map<Q>(self, mut lower: impl FnMut(P) -> Q) -> Shape<Q> {
        let nodes = self.nodes.into_iter().map(|node| Node {
            level: node.level,
            kind: node.kind,
            times: node.times,
            children: node.children,
            aggregate: lower(node.aggregate),
        });
        Shape {
            nodes: nodes.collect(),
            leaf_capacity: self.leaf_capacity,
            arity: self.arity,
        }
    }
}
