//! Snapshot bytes: versioned, checksummed, little endian, lengths checked before use.
//!
//! ```text
//! magic "SLWISE\0\0" | version u16 | kind u16 | header length u32 | payload length u64
//! | header | payload | crc32 of all before
//! ```
//! The *header* says in the caller's words what the payload is (which aggregation over
//! which columns); the payload is written by the window itself. A checksum finds
//! accidents, not attackers: every reader also checks what it reads, allocates no more
//! than the bytes that are there can fill, and never recurses on input.

use std::any::Any;
use std::fmt;

pub const MAGIC: [u8; 8] = *b"SLWISE\0\0";
pub const VERSION: u16 = 1;
const FIXED: usize = 8 + 2 + 2 + 4 + 8;
const CHECKSUM: usize = 4;

/// Why bytes are not a snapshot (or a value cannot go into one).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damaged(pub String);

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Damaged {}

pub type Result<T> = std::result::Result<T, Damaged>;

pub fn damaged<T>(why: impl Into<String>) -> Result<T> {
    Err(Damaged(why.into()))
}

/// A value with a binary form.
pub trait Codec: Sized {
    /// The fewest bytes one value takes: bounds allocations while reading.
    const MIN_BYTES: usize;
    fn write(&self, out: &mut Writer);
    fn read(input: &mut Reader<'_>) -> Result<Self>;
}

/// Collects bytes; a value that has no binary form refuses, and `finish` reports it.
#[derive(Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
    refusal: Option<String>,
    postponed: Vec<Box<dyn Any>>,
}

impl Writer {
    pub fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub fn all<T: Codec>(&mut self, values: &[T]) {
        for value in values {
            value.write(self);
        }
    }

    /// Marks the snapshot as impossible; the first reason stays.
    pub fn refuse(&mut self, why: impl Into<String>) {
        self.refusal.get_or_insert(why.into());
    }

    /// Leaves a value that has no bytes yet; the caller sees to it and writes again.
    pub fn postpone(&mut self, value: Box<dyn Any>) {
        self.postponed.push(value);
    }

    /// The postponed values. If there are any, the bytes written so far are void.
    pub fn take_postponed(&mut self) -> Vec<Box<dyn Any>> {
        std::mem::take(&mut self.postponed)
    }

    pub fn finish(self) -> Result<Vec<u8>> {
        match self.refusal {
            Some(why) => Err(Damaged(why)),
            None => Ok(self.bytes),
        }
    }
}

/// Reads from a slice and never past it.
#[derive(Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        if count > self.bytes.len() {
            return damaged(format!(
                "snapshot ends early: {count} bytes wanted, {} left",
                self.bytes.len()
            ));
        }
        let (head, tail) = self.bytes.split_at(count);
        self.bytes = tail;
        Ok(head)
    }

    /// `count` values; refuses before allocating if they cannot all be there.
    pub fn many<T: Codec>(&mut self, count: usize) -> Result<Vec<T>> {
        self.expect::<T>(count)?;
        (0..count).map(|_| T::read(self)).collect()
    }

    /// A length prefix for values of type `T`, checked against what is left.
    pub fn length<T: Codec>(&mut self) -> Result<usize> {
        let count = u64::read(self)?;
        let count = usize::try_from(count).or_else(|_| damaged(format!("length {count}")))?;
        self.expect::<T>(count)?;
        Ok(count)
    }

    fn expect<T: Codec>(&self, count: usize) -> Result<()> {
        match count.checked_mul(T::MIN_BYTES.max(1)) {
            Some(bytes) if bytes <= self.bytes.len() => Ok(()),
            _ => damaged(format!(
                "snapshot ends early: {count} values announced, {} bytes left",
                self.bytes.len()
            )),
        }
    }

    pub fn end(&self) -> Result<()> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        damaged(format!("{} bytes too many", self.bytes.len()))
    }
}

/// Wraps header and payload into a self-describing blob.
pub fn seal(kind: u16, header: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(FIXED + header.len() + payload.len() + CHECKSUM);
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&kind.to_le_bytes());
    let header_length = u32::try_from(header.len()).expect("header below 4 GiB");
    out.extend_from_slice(&header_length.to_le_bytes());
    out.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    out.extend_from_slice(header);
    out.extend_from_slice(payload);
    out.extend_from_slice(&crc32fast::hash(&out).to_le_bytes());
    out
}

/// Checks magic, version, lengths and checksum; gives header and payload.
pub fn open(kind: u16, blob: &[u8]) -> Result<(&[u8], &[u8])> {
    if blob.len() < FIXED + CHECKSUM || blob[..8] != MAGIC {
        return damaged("not a slidewise snapshot (no SLWISE header)");
    }
    let mut input = Reader::new(&blob[8..]);
    let version = u16::read(&mut input)?;
    if version != VERSION {
        return damaged(format!(
            "snapshot has format version {version}, this slidewise reads version {VERSION}"
        ));
    }
    let found = u16::read(&mut input)?;
    let header = u32::read(&mut input)? as usize;
    let payload = u64::read(&mut input)?;
    let body = (blob.len() - FIXED - CHECKSUM) as u64;
    if (header as u64).checked_add(payload) != Some(body) {
        return damaged(format!(
            "snapshot is truncated or padded: {body} bytes of content, {header} + {payload} announced"
        ));
    }
    let (content, sum) = blob.split_at(blob.len() - CHECKSUM);
    let stored = u32::from_le_bytes(sum.try_into().expect("four bytes"));
    let computed = crc32fast::hash(content);
    if stored != computed {
        return damaged(format!(
            "snapshot checksum is {computed:08x}, {stored:08x} expected: the bytes were changed"
        ));
    }
    if found != kind {
        return damaged(format!("snapshot is of kind {found}, kind {kind} expected"));
    }
    Ok((
        &blob[FIXED..FIXED + header],
        &blob[FIXED + header..blob.len() - CHECKSUM],
    ))
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Codec for $number {
            const MIN_BYTES: usize = size_of::<$number>();
            fn write(&self, out: &mut Writer) {
                out.put(&self.to_le_bytes());
            }
            fn read(input: &mut Reader<'_>) -> Result<Self> {
                let bytes = input.take(size_of::<$number>())?;
                Ok(<$number>::from_le_bytes(bytes.try_into().expect("length taken")))
            }
        }
    )*};
}
numbers!(u8, u16, u32, u64, i64, i128, f64);

impl<const K: usize> Codec for [u64; K] {
    const MIN_BYTES: usize = 8 * K;
    fn write(&self, out: &mut Writer) {
        out.all(self);
    }
    fn read(input: &mut Reader<'_>) -> Result<Self> {
        let mut words = [0; K];
        for word in &mut words {
            *word = u64::read(input)?;
        }
        Ok(words)
    }
}

impl Codec for Box<[u64]> {
    const MIN_BYTES: usize = 8;
    fn write(&self, out: &mut Writer) {
        (self.len() as u64).write(out);
        out.all(self);
    }
    fn read(input: &mut Reader<'_>) -> Result<Self> {
        let count = input.length::<u64>()?;
        Ok(input.many(count)?.into_boxed_slice())
    }
}
