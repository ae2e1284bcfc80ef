//! fiba_published: the finger B-tree aggregator as published, single and bulk.
//!
//! | card   |                                                                       |
//! |--------|-----------------------------------------------------------------------|
//! | paper  | Tangwongsan, Hirzel, Schneider: FiBA (2019, PVLDB 12(10)), §3-4; bulk |
//! |        | evict and insert (2023, PVLDB 16(11)), §4-6                           |
//! | order  | any                                                                   |
//! | laws   | associative                                                           |
//! | costs  | insert, evict(t): amortised O(log d); evict of the oldest: amortised  |
//! |        | O(1); query: 2 combines; range: O(log d_lo + log d_hi + log n_sub);   |
//! |        | evict_until: amortised O(log m), worst O(log n); insert_many:         |
//! |        | O(log d + m (1 + log(d/m))); without `bulk`, m single operations.     |
//! |        | Beside the combines, a search visits O(log d) nodes, and single       |
//! |        | operations split, merge and move twice at most, amortised. Values     |
//! |        | that own memory are dropped at once, which makes evict_until of m     |
//! |        | such O(m)                                                             |
//! | space  | 62 to 122 bytes per entry of a sum of int64: μ = 4; with 2 up to 152, |
//! |        | with 8 up to 109, with 16 up to 103                                   |
//! | choose | for experiments with the arity and the bulk algorithms; else `fiba`   |
//!
//! # Idea
//! The tree of [`btree`](super), with a *finger* at each end. A search climbs from
//! the nearer finger as far as it must. Nodes off the spines keep Π↑, the root Π inner,
//! the left spine Π↙, which hands what lies right of each node down to the left finger, the
//! right spine Π↘. A change near an end then need not reach the root, and
//! `query = left finger ⊗ root ⊗ right finger`.
//!
//! *Bulk evict* cuts along the boundary between evicted and remaining entries, bottom up, and
//! fixes each underflow with the right neighbour, under any parent. *Bulk insert* finds all
//! sites in one sweep, then works level by level: interleave, split, promote. Both end with
//! one pass down the spines.
//!
//! # Parameters
//! `arity` is μ; `bulk` off makes the bulk operations loops of single ones (the paper's
//! nb_fiba); `free_list` off frees cut subtrees at once, O(m), instead of one node per
//! later allocation (its nofl).
//!
//! # Deviations
//! 1. hit_left and hit_right are sets of levels, not flags, so that one pass down serves all
//!    operations. (As printed, fig. 7's eviction also omits hit_left of the sibling.)
//! 2. Fig. 10's range query goes by position, which corrects its line 20 (a middle child is
//!    skipped there); theorems 4.1 and 4.2 mean the smallest and the largest index.
//! 3. Each child comes with the number of entries below it, so that a bulk evict says how many
//!    it took. It counts those of the spines level by level, where they changed since the last.
//! 4. The root's separators decide which finger is nearer, within a factor of the log.
//! 5. Treelets of a bulk insert name the sibling they follow, so that times that are kept
//!    though equal stay in order. A time that is present combines in its node at once; its
//!    node's recomputation rides along, in order of time, until its level comes.
//! 6. Bulk inserts interleave into buffers, and each treelet names its target (2023, §6, has
//!    an iterator and consolidated treelets).
//! 7. The aggregates of the spines, and the separators that climbs read, lie in two arrays by
//!    level. A node's own part is kept beside its Π↙ or Π↘: the pass down refolds what has
//!    changed, and hands down to what is below with one combine each.
//! 8. Nodes with Π↑ store their Π inner, as in [`btree`](super).
//!
//! # Invariants
//! The invariants of [`btree`](super), with aggregates by place.

mod bulk_evict;
mod bulk_insert;
mod search;
