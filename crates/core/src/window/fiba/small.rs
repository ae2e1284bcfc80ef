//! A window of a few entries, folded for every query, which is faster than keeping partials.
//! Windows per key are mostly this small; this form takes a few dozen bytes.

use crate::monoid::{Entry, HandleSlot, Monoid, Slab};
use crate::window::{Batch, Ties};

/// Promoted entries, `None` without any. Bit `i` is entry `i`.
#[derive(Clone, Debug)]
struct Promoted<P> {
    bits: u32,
    slab: Slab<P>,
}

#[derive(Clone, Debug)]
pub(super) struct Small<M: Monoid> {
    entries: Vec<(i64, M::In)>,
    promoted: Option<Box<Promoted<M::Partial>>>,
}

impl<M: Monoid> Default for Small<M> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            promoted: None,
        }
    }
}

impl<M: Monoid> Small<M> {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn oldest(&self) -> Option<i64> {
        self.entries.first().map(|(time, _)| *time)
    }

    pub(super) fn youngest(&self) -> Option<i64> {
        self.entries.last().map(|(time, _)| *time)
    }

    fn is_promoted(&self, at: usize) -> bool {
        self.promoted
            .as_ref()
            .is_some_and(|promoted| promoted.bits >> at & 1 == 1)
    }

    pub(super) fn entry(&self, at: usize) -> Entry<M> {
        let slot = &self.entries[at].1;
        match &self.promoted {
            Some(promoted) if self.is_promoted(at) => {
                Entry::Lifted(promoted.slab.get(slot.handle()).clone())
            }
            _ => Entry::Raw(slot.clone()),
        }
    }

    pub(super) fn time(&self, at: usize) -> i64 {
        self.entries[at].0
    }

    pub(super) fn insert(&mut self, monoid: &M, ties: Ties, time: i64, entry: Entry<M>) {
        let at = self
            .entries
            .partition_point(|(present, _)| *present <= time);
        if ties == Ties::Combine && at > 0 && self.entries[at - 1].0 == time {
            let older = self.entry(at - 1).partial(monoid);
            let whole = monoid.combine(&older, &entry.partial(monoid));
            self.remove(at - 1);
            self.place(at - 1, time, Entry::from_partial(monoid, whole));
        } else {
            self.place(at, time, entry);
        }
    }

    fn place(&mut self, at: usize, time: i64, entry: Entry<M>) {
        if let Some(promoted) = &mut self.promoted {
            let below = (1 << at) - 1;
            promoted.bits = (promoted.bits & below) | (promoted.bits & !below) << 1;
        }
        let slot = match entry {
            Entry::Raw(value) => value,
            Entry::Lifted(partial) => {
                let promoted = self.promoted.get_or_insert_with(|| {
                    Box::new(Promoted {
                        bits: 0,
                        slab: Slab::default(),
                    })
                });
                promoted.bits |= 1 << at;
                M::In::from_handle(promoted.slab.store(partial))
            }
        };
        self.entries.insert(at, (time, slot));
    }

    fn remove(&mut self, at: usize) {
        let (_, slot) = self.entries.remove(at);
        let was_promoted = self.is_promoted(at);
        if let Some(promoted) = &mut self.promoted {
            if was_promoted {
                promoted.slab.release(slot.handle());
            }
            let below = (1 << at) - 1;
            promoted.bits = (promoted.bits & below) | (promoted.bits >> 1 & !below);
            if promoted.bits == 0 {
                self.promoted = None;
            }
        }
    }

    #[inline(never)]
    pub(super) fn evict(&mut self) -> Option<i64> {
        let oldest = self.oldest()?;
        self.remove(0);
        Some(oldest)
    }

    pub(super) fn evict_at(&mut self, time: i64) -> bool {
        let at = self.entries.partition_point(|(present, _)| *present < time);
        let present = self
            .entries
            .get(at)
            .is_some_and(|(found, _)| *found == time);
        if present {
            self.remove(at);
        }
        present
    }

    pub(super) fn evict_until(&mut self, time: i64) -> usize {
        let count = self
            .entries
            .partition_point(|(present, _)| *present <= time);
        for _ in 0..count {
            self.remove(0);
        }
        count
    }

    #[inline(never)]
    pub(super) fn fold_all(&self, monoid: &M) -> M::Partial {
        self.fold(monoid, i64::MIN, i64::MAX)
    }

    pub(super) fn fold(&self, monoid: &M, lo: i64, hi: i64) -> M::Partial {
        let from = self.entries.partition_point(|(time, _)| *time < lo);
        let to = self.entries.partition_point(|(time, _)| *time <= hi);
        let mut acc: Option<M::Partial> = None;
        for at in from..to {
            match &mut acc {
                Some(acc) if !self.is_promoted(at) => monoid.absorb(acc, &self.entries[at].1),
                Some(acc) => *acc = monoid.combine(acc, &self.entry(at).partial(monoid)),
                None => acc = Some(self.entry(at).partial(monoid)),
            }
        }
        acc.unwrap_or_else(|| monoid.identity())
    }

    pub(super) fn to_batch(&self) -> Batch<M> {
        let mut batch = Batch::with_capacity(self.len());
        for at in 0..self.len() {
            batch.push(self.time(at), self.entry(at));
        }
        batch
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let promoted = self.promoted.as_ref().map_or(0, |promoted| {
            size_of::<Promoted<M::Partial>>() + promoted.slab.bytes()
        });
        self.entries.capacity() * size_of::<(i64, M::In)>() + promoted
    }

    pub(super) fn check(&self, ties: Ties) -> Result<(), String> {
        let pairs = self.entries.windows(2);
        let ordered = pairs.into_iter().all(|pair| match ties {
            Ties::Combine => pair[0].0 < pair[1].0,
            Ties::Keep => pair[0].0 <= pair[1].0,
        });
        let promoted = self.promoted.as_ref();
        let counts = promoted.is_none_or(|p| p.bits.count_ones() as usize == p.slab.live());
        if ordered && counts {
            Ok(())
        } else {
            Err("small window out of order".into())
        }
    }
}
