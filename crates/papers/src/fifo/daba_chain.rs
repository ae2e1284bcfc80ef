//! daba_chain: a DABA Lite per range, which passes the values that leave it to the next.
//!
//! | card     |                                                                        |
//! |----------|------------------------------------------------------------------------|
//! | paper    | Tangwongsan, Hirzel, Schneider 2015 (DABA), §9, on sharing: young and  |
//! |          | old over one queue                                                     |
//! | order    | in order                                                               |
//! | laws     | associative                                                            |
//! | costs    | worst case, in combines, for q ranges: insert 3; slide 5 per range;    |
//! |          | all answers 2q − 1                                                     |
//! | space    | 48 to 96 bytes per entry of a sum of int64: a time, a value and two    |
//! |          | partials; up to 144 until a window that grew has slid by twice its     |
//! |          | length; up to 192 in one that has shrunk                               |
//! | choose   | a few ranges of any aggregation, where no call may be long             |
//!
//! Idea: of two ranges, *young* holds the values of the shorter one and *old* those that only
//! the longer one reaches, each in a DABA of its own. A value enters young; when it leaves the
//! shorter range, it moves to old. The answer of the shorter range is that of young, the
//! answer of the longer one old ⊗ young. More than two ranges work alike.
//!
//! ```text
//!             range 0 ————————————————————————————————————
//!                            range 1 —————————————————————
//!   values    a b c d e f g | h i j k l m n o p q r s t u
//!             links[0]: old | links[1]: young
//! ```
//!
//! Invariants (checked by `check`):
//! 1. `values` holds the values in order of arrival: a DABA Lite does not return them.
//! 2. The links hold them in order, without gaps: each begins where the one before ends.
//!
//! Deviation: any number of ranges.

use slidewise_core::monoid::Monoid;
use slidewise_core::snapshot::{Reader, Result, Writer, damaged};
use slidewise_core::window::fifo::checks::check_values;
use slidewise_core::window::fifo::daba_lite::DabaLite;
use slidewise_core::window::fifo::queue::Queue;
use slidewise_core::window::fifo::shared::Shared;
use slidewise_core::window::fifo::{Fifo, join};

#[derive(Clone, Debug)]
pub struct DabaChain<M: Monoid> {
    values: Queue<M::Partial>,
    /// The oldest first; there is one at least.
    links: Vec<DabaLite<M>>,
}

impl<M: Monoid> DabaChain<M> {
    /// An empty queue for a number of ranges, at least one.
    pub fn new(monoid: M, ranges: usize) -> Self {
        assert!(ranges > 0, "no ranges");
        Self {
            values: Queue::default(),
            links: vec![DabaLite::new(monoid); ranges],
        }
    }

    fn youngest(&mut self) -> &mut DabaLite<M> {
        self.links.last_mut().expect("one link at least")
    }
}

impl<M: Monoid> Fifo<M> for DabaChain<M> {
    fn monoid(&self) -> &M {
        self.links[0].monoid()
    }

    fn len(&self) -> usize {
        self.values.len()
    }

    fn insert(&mut self, value: M::Partial) {
        self.values.push(value.clone());
        self.youngest().insert_aside(value);
    }

    fn evict(&mut self) {
        let mut links = self.links.iter_mut();
        let oldest = links.find(|link| !link.is_empty());
        oldest.expect("a value to evict").evict_aside();
        self.values.evict(|| self.links[0].monoid().identity());
    }

    fn query(&mut self) -> M::Partial {
        let mut whole = None;
        let count = self.len();
        self.answers(&[count], |_, answer| whole = Some(answer));
        whole.expect("one answer per range")
    }

    fn fresh(&self) -> Self {
        Self::new(self.monoid().clone(), self.links.len())
    }

    fn check(&self, values: &[M::Partial]) -> std::result::Result<(), String> {
        check_values(self.monoid(), values, self.values.iter())?;
        let lengths = self.links.iter().map(Fifo::len);
        if lengths.clone().sum::<usize>() != values.len() {
            let lengths: Vec<usize> = lengths.collect();
            return Err(format!("{} values in links of {lengths:?}", values.len()));
        }
        let mut rest = values;
        self.links.iter().try_for_each(|link| {
            let (own, younger) = rest.split_at(link.len());
            rest = younger;
            link.check(own)
        })
    }

    fn bytes(&self) -> usize {
        let links: usize = self.links.iter().map(Fifo::bytes).sum();
        self.values.bytes() + self.links.capacity() * size_of::<DabaLite<M>>() + links
    }

    fn write(&self, out: &mut Writer) {
        self.values.write(out);
        self.links.iter().for_each(|link| link.write(out));
    }

    fn read(&mut self, input: &mut Reader<'_>) -> Result<()> {
        let monoid = self.monoid().clone();
        self.values = Queue::read(input, |input| monoid.read_partial(input))?;
        self.links
            .iter_mut()
            .try_for_each(|link| link.read(input))?;
        let linked: usize = self.links.iter().map(Fifo::len).sum();
        if linked == self.values.len() {
            return Ok(());
        }
        damaged(format!("{linked} values linked of {}", self.values.len()))
    }
}

impl<M: Monoid> Shared<M> for DabaChain<M> {
    const MONOTONIC: bool = true;

    fn for_ranges(&self, ranges: usize) -> Self {
        Self::new(self.monoid().clone(), ranges)
    }

    fn slide(&mut self, counts: &[usize]) {
        let mut younger = 0;
        for range in (1..self.links.len()).rev() {
            let [older, link] = &mut self.links[range - 1..=range] else {
                unreachable!("two links");
            };
            let from = self.values.tail() - younger - link.len();
            for at in from..self.values.tail() - counts[range] {
                link.evict_aside();
                older.insert_aside(self.values.get(at).clone());
            }
            younger += link.len();
        }
    }

    fn holds(&self, counts: &[usize]) -> bool {
        let mut links = self.links.iter().map(Fifo::len);
        let next = counts.iter().skip(1).chain([&0]);
        let own = counts.iter().zip(next).map(|(count, next)| count - next);
        own.eq(&mut links)
    }

    fn answers(&mut self, counts: &[usize], mut each: impl FnMut(usize, M::Partial)) {
        let mut acc: Option<M::Partial> = None;
        for (range, link) in self.links.iter_mut().enumerate().rev() {
            if !link.is_empty() {
                let own = link.query();
                acc = Some(join(link.monoid(), Some(&own), acc.as_ref()));
            }
            let none = || link.monoid().identity();
            if range < counts.len() {
                each(range, acc.clone().unwrap_or_else(none));
            }
        }
    }
}
