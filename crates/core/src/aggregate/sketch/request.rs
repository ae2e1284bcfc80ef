//! Sketches by name, with their parameters.

use super::{distinct, quantiles};

/// The most bits of a Bloom filter, and of the counters of a Count-Min sketch: 16 MiB.
const MAX_BITS: u32 = 1 << 27;
const MAX_SHARES: usize = 8;

/// Shares of the values, from 0 to 1, in steps of 2⁻³².
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shares {
    count: u8,
    /// Whether one share was given as a number, and not as a list.
    single: bool,
    shares: [u32; MAX_SHARES],
}

impl Shares {
    pub fn values(&self) -> Vec<f64> {
        let given = &self.shares[..usize::from(self.count)];
        let share = |share: &u32| f64::from(*share) / f64::from(u32::MAX);
        given.iter().map(share).collect()
    }

    pub fn is_single(&self) -> bool {
        self.single
    }

    /// From "0.5" or "0.5,0.9,"; a comma makes it a list.
    fn parse(text: &str) -> Option<Self> {
        let given: Vec<f64> = text
            .split_terminator(',')
            .map(|share| share.parse().ok())
            .collect::<Option<_>>()?;
        let mut shares = [0; MAX_SHARES];
        if given.is_empty() || given.len() > MAX_SHARES {
            return None;
        }
        for (share, given) in shares.iter_mut().zip(&given) {
            if !(0.0..=1.0).contains(given) {
                return None;
            }
            // Rounded down, so that q n does not exceed a whole number.
            *share = (given * f64::from(u32::MAX)) as u32;
        }
        Some(Self {
            count: u8::try_from(given.len()).ok()?,
            single: !text.contains(','),
            shares,
        })
    }
}

/// A sketch and its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SketchRequest {
    Bloom {
        bits: u32,
        hashes: u16,
    },
    Distinct {
        p: u8,
    },
    Counts {
        hashes: u8,
        buckets: u32,
    },
    Quantiles {
        k: u16,
        shares: Shares,
    },
    /// The k most frequent values, of `most` counters.
    Hitters {
        k: u32,
        most: u32,
    },
}

impl SketchRequest {
    /// From the name and the parameters, separated by colons: "count_min:5:272".
    pub fn parse(text: &str) -> Option<Self> {
        let (name, rest) = text.split_once(':')?;
        let parameters: Vec<&str> = rest.split(':').collect();
        let request = match (name, &parameters[..]) {
            ("bloom", [bits, hashes]) => Self::Bloom {
                bits: bits.parse().ok()?,
                hashes: hashes.parse().ok()?,
            },
            ("approx_count_distinct", [p]) => Self::Distinct { p: p.parse().ok()? },
            ("count_min", [hashes, buckets]) => Self::Counts {
                hashes: hashes.parse().ok()?,
                buckets: buckets.parse().ok()?,
            },
            ("approx_quantile", [k, shares]) => Self::Quantiles {
                k: k.parse().ok()?,
                shares: Shares::parse(shares)?,
            },
            ("heavy_hitters", [k, most]) => Self::Hitters {
                k: k.parse().ok()?,
                most: most.parse().ok()?,
            },
            _ => return None,
        };
        request.is_sound().then_some(request)
    }

    fn is_sound(self) -> bool {
        match self {
            Self::Bloom { bits, hashes } => {
                (64..=MAX_BITS).contains(&bits) && bits % 64 == 0 && (1..=64).contains(&hashes)
            }
            Self::Distinct { p } => (distinct::MIN_P..=distinct::MAX_P).contains(&p),
            Self::Counts { hashes, buckets } => {
                let counters = u32::from(hashes).checked_mul(buckets);
                (1..=64).contains(&hashes)
                    && buckets >= 3
                    && counters.is_some_and(|counters| counters <= MAX_BITS / 64)
            }
            Self::Quantiles { k, .. } => (quantiles::MIN_K..=quantiles::MAX_K).contains(&k),
            Self::Hitters { k, most } => 1 <= k && k <= most && most <= 1 << 16,
        }
    }

    /// Whether it reads hashes, not numbers.
    pub fn takes_hashes(self) -> bool {
        !matches!(self, Self::Quantiles { .. })
    }

    /// Whether one sketch serves both requests.
    pub fn shares_with(self, other: Self) -> bool {
        match (self, other) {
            (Self::Quantiles { k, .. }, Self::Quantiles { k: other, .. }) => k == other,
            (Self::Hitters { most, .. }, Self::Hitters { most: other, .. }) => most == other,
            _ => self == other,
        }
    }
}
