//! The keys of a shard: bytes to the number of a key, and back.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

/// A row of a batch, and the hash of its key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hashed {
    pub hash: u64,
    pub row: u32,
}

/// Keys of rows as bytes: those of row `i` are `bytes[offsets[i]..offsets[i + 1]]`. Equal
/// keys have equal bytes.
#[derive(Clone, Copy, Debug)]
pub struct KeyColumn<'a> {
    pub bytes: &'a [u8],
    pub offsets: &'a [usize],
}

/// A column without rows.
impl Default for KeyColumn<'_> {
    fn default() -> Self {
        Self {
            bytes: &[],
            offsets: &[0],
        }
    }
}

impl<'a> KeyColumn<'a> {
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    pub fn key(&self, row: usize) -> &'a [u8] {
        &self.bytes[self.offsets[row]..self.offsets[row + 1]]
    }
}

/// The first row of each key, in order, and the latest time of its rows.
pub fn distinct(keys: KeyColumn<'_>, times: &[i64]) -> (Vec<u32>, Vec<i64>) {
    let hasher = DefaultHashBuilder::default();
    // The lower half of the hash, and the index among the keys so far.
    let mut table: HashTable<(u32, u32)> = HashTable::new();
    let (mut firsts, mut latest): (Vec<u32>, Vec<i64>) = (Vec::new(), Vec::new());
    for (row, time) in (0..).zip(times) {
        let key = keys.key(row as usize);
        let tag = hasher.hash_one(key) as u32;
        let is_same = |(held, place): &(u32, u32)| {
            *held == tag && are_equal(keys.key(firsts[*place as usize] as usize), key)
        };
        if let Some((_, place)) = table.find(spread(tag), is_same) {
            let latest = &mut latest[*place as usize];
            *latest = (*latest).max(*time);
        } else {
            let entry = (tag, firsts.len() as u32);
            table.insert_unique(spread(tag), entry, |(held, _)| spread(*held));
            firsts.push(row);
            latest.push(*time);
        }
    }
    (firsts, latest)
}

/// The range of the bytes of a key.
#[derive(Clone, Copy, Debug)]
struct ByteRange {
    at: u32,
    len: u32,
}

#[derive(Debug, Default)]
pub(super) struct Keys {
    /// Per key the lower half of its hash, and its number.
    table: HashTable<(u32, u32)>,
    places: Vec<ByteRange>,
    bytes: Vec<u8>,
    /// The bytes of removed keys.
    unused: usize,
    free: Vec<u32>,
}

impl Keys {
    /// The number of a key.
    #[inline]
    pub fn find(&self, hash: u64, key: &[u8]) -> Option<u32> {
        let found = self.table.find(spread(hash as u32), |(tag, number)| {
            *tag == hash as u32 && are_equal(self.key(*number), key)
        });
        found.map(|(_, number)| *number)
    }

    /// Appends the numbers of the keys of some rows. It reads the table for all rows first, and
    /// compares keys then, so cache misses overlap.
    pub fn find_all(&self, keys: KeyColumn<'_>, rows: &[Hashed], found: &mut Vec<Option<u32>>) {
        let first = found.len();
        self.find_near(rows, found);
        self.confirm(keys, rows, &mut found[first..]);
    }

    /// The first half of `find_all`: the numbers of keys with the same tag.
    pub fn find_near(&self, rows: &[Hashed], found: &mut Vec<Option<u32>>) {
        found.extend(rows.iter().map(|row| {
            let tag = row.hash as u32;
            let near = self.table.find(spread(tag), |(held, _)| *held == tag);
            near.map(|(_, number)| *number)
        }));
    }

    /// The second half: corrects the numbers of other keys with the same tag.
    pub fn confirm(&self, keys: KeyColumn<'_>, rows: &[Hashed], found: &mut [Option<u32>]) {
        for (row, found) in rows.iter().zip(found) {
            let key = keys.key(row.row as usize);
            if found.is_some_and(|number| !are_equal(self.key(number), key)) {
                *found = self.find(row.hash, key);
            }
        }
    }

    /// The number of a key, and whether it is new and was added.
    #[inline]
    pub fn find_or_add(&mut self, hash: u64, key: &[u8]) -> (u32, bool) {
        if let Some(number) = self.find(hash, key) {
            return (number, false);
        }
        let place = ByteRange {
            at: u32::try_from(self.bytes.len()).expect("less than 4 GiB of keys in a shard"),
            len: u32::try_from(key.len()).expect("a key of less than 4 GiB"),
        };
        grow(&mut self.bytes, key.len());
        self.bytes.extend_from_slice(key);
        let number = match self.free.pop() {
            Some(number) => {
                self.places[number as usize] = place;
                number
            }
            None => {
                grow(&mut self.places, 1);
                self.places.push(place);
                (self.places.len() - 1) as u32
            }
        };
        let entry = (hash as u32, number);
        self.table
            .insert_unique(spread(hash as u32), entry, |(tag, _)| spread(*tag));
        (number, true)
    }

    #[inline]
    pub fn key(&self, number: u32) -> &[u8] {
        let place = self.places[number as usize];
        &self.bytes[place.at as usize..(place.at + place.len) as usize]
    }

    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Removes a key; a later key may get its number.
    pub fn remove(&mut self, hash: u64, number: u32) {
        let entry = self
            .table
            .find_entry(spread(hash as u32), |(_, held)| *held == number);
        if let Ok(entry) = entry {
            entry.remove();
            self.unused += self.places[number as usize].len as usize;
            self.places[number as usize] = ByteRange { at: 0, len: 0 };
            self.free.push(number);
        }
        if self.unused > self.bytes.len() / 2 + 4096 {
            self.compact();
        }
    }

    /// Drops the bytes of removed keys.
    fn compact(&mut self) {
        let mut bytes = Vec::with_capacity(self.bytes.len() - self.unused);
        for place in &mut self.places {
            let from = place.at as usize;
            place.at = bytes.len() as u32;
            bytes.extend_from_slice(&self.bytes[from..from + place.len as usize]);
        }
        self.bytes = bytes;
        self.unused = 0;
    }

    pub fn heap_bytes(&self) -> usize {
        self.table.allocation_size()
            + self.places.capacity() * size_of::<ByteRange>()
            + self.bytes.capacity()
            + self.free.capacity() * size_of::<u32>()
    }
}

/// Makes room for more items. A full vector grows by an eighth: if it doubled, half of the memory
/// of many keys would be empty.
pub(super) fn grow<T>(items: &mut Vec<T>, more: usize) {
    if items.capacity() - items.len() < more {
        items.reserve_exact(more.max(items.len() / 8).max(16));
    }
}

/// Whether keys are equal. Most take 8 to 16 bytes, which are two words that may overlap.
#[inline]
fn are_equal(a: &[u8], b: &[u8]) -> bool {
    if let (8..=16, Some(first), Some(last)) = (a.len(), a.first_chunk::<8>(), a.last_chunk::<8>())
    {
        return a.len() == b.len()
            && b.first_chunk() == Some(first)
            && b.last_chunk() == Some(last);
    }
    a == b
}

/// Both halves of a hash for the table, which takes the slot from the low bits and its own tag
/// from the high ones.
#[inline]
fn spread(tag: u32) -> u64 {
    u64::from(tag) | u64::from(tag) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinct_keys_come_in_order_with_their_latest_times() {
        let bytes = b"abbaccabab";
        let offsets = [0, 1, 2, 3, 4, 6, 8, 10];
        let keys = KeyColumn {
            bytes,
            offsets: &offsets,
        };
        // a b b a cc ab ab
        let (firsts, latest) = distinct(keys, &[5, 1, 7, 2, i64::MIN, 3, 3]);
        assert_eq!(firsts, [0, 1, 4, 5]);
        assert_eq!(latest, [5, 7, i64::MIN, 3]);
        assert_eq!(distinct(KeyColumn::default(), &[]), (vec![], vec![]));
    }
}
