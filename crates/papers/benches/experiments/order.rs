//! Orders for measurements: one line of words `name=value`.

use std::fs;

/// One measurement. Sizes are the papers' letters.
#[derive(Clone, Debug)]
pub struct Order {
    /// Given back with the figures.
    pub id: String,
    pub metric: Metric,
    pub mode: Mode,
    /// A structure, its parameters behind colons: `fiba_published:4:loop`.
    pub structure: String,
    pub operator: String,
    /// Entries of the window.
    pub n: usize,
    /// Entries of a bulk, or small windows that are shared.
    pub m: usize,
    /// Entries younger than the one that is inserted.
    pub d: usize,
    /// Ranges over one stream, or entries of the small one of two windows.
    pub q: usize,
    /// About how long to measure.
    pub millis: u64,
    /// A file of values, little-endian int64; random ones without.
    pub values: Option<String>,
    /// A file of times in order of arrival, and how much time the window spans.
    pub times: Option<String>,
    pub span: i64,
    /// Whether a memory fence comes before each insert and each bulk insert.
    pub fence: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Items per second of thread CPU time.
    Throughput,
    /// Nanoseconds of single rounds, or of what [`Timed`] names.
    Latency(Timed),
    /// Combines per item, and the most in a round.
    Counts,
    /// Bytes of the window after slides, and the most resident memory of the process.
    Memory,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timed {
    Round,
    Evict,
    Insert,
}

/// A round, which ends in a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One evict, one insert.
    Slide,
    /// One bulk evict of m, m single inserts.
    BulkEvict,
    /// One bulk evict, one bulk insert of m.
    Bulk,
    /// The length swings between n/2 and n, one insert or evict a round.
    Oscillate,
    /// A window of n, and small ones: m of them, of up to q entries.
    Twin,
    /// A window of n, and as many range queries over the youngest entries as small windows.
    Range,
    /// One evict, one insert, answers for q ranges over a window of n.
    Ranges,
    /// Times as they arrived.
    Replay,
    /// One insert that finds a full buffer of n.
    Grow,
}

impl Order {
    pub fn read(line: &str) -> Result<Self, String> {
        let mut order = Self {
            id: String::new(),
            metric: Metric::Throughput,
            mode: Mode::Slide,
            structure: String::new(),
            operator: "sum".into(),
            n: 1024,
            m: 1,
            d: 0,
            q: 1,
            millis: 20,
            values: None,
            times: None,
            span: 0,
            fence: false,
        };
        for word in line.split_whitespace() {
            let (name, value) = word.split_once('=').ok_or(format!("no '=' in {word}"))?;
            let number = || value.parse().map_err(|_| format!("no number: {word}"));
            match name {
                "id" => order.id = value.into(),
                "metric" => order.metric = metric(value)?,
                "mode" => order.mode = mode(value)?,
                "structure" => order.structure = value.into(),
                "operator" => order.operator = value.into(),
                "n" => order.n = number()?,
                "m" => order.m = number()?,
                "d" => order.d = number()?,
                "q" => order.q = number()?,
                "millis" => order.millis = number()? as u64,
                "values" => order.values = Some(value.into()),
                "times" => order.times = Some(value.into()),
                "span" => order.span = number()? as i64,
                "fence" => order.fence = number()? > 0,
                _ => return Err(format!("unknown: {name}")),
            }
        }
        if order.n == 0 || order.m == 0 || order.m > order.n || order.d > order.n {
            return Err(format!("1 <= m <= n and d <= n do not hold: {line}"));
        }
        Ok(order)
    }

    /// The values that entries have, over and over.
    pub fn stream(&self) -> Result<Stream, String> {
        let values = match &self.values {
            Some(path) => numbers(path)?,
            None => random(1 << 16),
        };
        Ok(Stream { values, next: 0 })
    }
}

fn metric(name: &str) -> Result<Metric, String> {
    Ok(match name {
        "throughput" => Metric::Throughput,
        "latency" => Metric::Latency(Timed::Round),
        "latency-evict" => Metric::Latency(Timed::Evict),
        "latency-insert" => Metric::Latency(Timed::Insert),
        "counts" => Metric::Counts,
        "memory" => Metric::Memory,
        _ => return Err(format!("unknown metric {name}")),
    })
}

fn mode(name: &str) -> Result<Mode, String> {
    Ok(match name {
        "slide" => Mode::Slide,
        "bulk-evict" => Mode::BulkEvict,
        "bulk" => Mode::Bulk,
        "oscillate" => Mode::Oscillate,
        "twin" => Mode::Twin,
        "range" => Mode::Range,
        "ranges" => Mode::Ranges,
        "replay" => Mode::Replay,
        "grow" => Mode::Grow,
        _ => return Err(format!("unknown mode {name}")),
    })
}

/// A file of little-endian int64.
pub fn numbers(path: &str) -> Result<Vec<i64>, String> {
    let bytes = fs::read(path).map_err(|error| format!("{path}: {error}"))?;
    let words = bytes.chunks_exact(8);
    let numbers: Vec<i64> = words
        .map(|word| i64::from_le_bytes(word.try_into().expect("eight bytes")))
        .collect();
    if numbers.is_empty() {
        return Err(format!("{path} holds no number"));
    }
    Ok(numbers)
}

fn random(count: usize) -> Vec<i64> {
    let mut state = 42_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as i64
    };
    (0..count).map(|_| next()).collect()
}

pub struct Stream {
    values: Vec<i64>,
    next: usize,
}

impl Stream {
    /// The next values: at least one, and at most the given number.
    #[inline]
    pub fn run(&mut self, most: usize) -> &[i64] {
        let from = self.next;
        let to = self.values.len().min(from + most);
        self.next = if to == self.values.len() { 0 } else { to };
        &self.values[from..to]
    }

    #[inline]
    pub fn take(&mut self) -> i64 {
        let value = self.values[self.next];
        self.next += 1;
        if self.next == self.values.len() {
            self.next = 0;
        }
        value
    }
}
