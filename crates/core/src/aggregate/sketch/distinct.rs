//! Approximate distinct counts: the registers of HyperLogLog++.
//!
//! | card   |                                                                        |
//! |--------|------------------------------------------------------------------------|
//! | papers | Flajolet et al. 2007 (registers); Heule, Nunkesser, Hall 2013, §5      |
//! |        | (64-bit hashes, few values kept as they are); Ertl 2017, §3 (estimate) |
//! | laws   | associative, commutative, idempotent: a maximum per register           |
//! | error  | m = 2^p registers: standard deviation 1.04/√m of the count, bias ≤ 1.1/m |
//! | costs  | absorb O(1), merge m byte maxima (vectorised), estimate O(m)           |
//!
//! A hash names a register by its first p bits, and the register keeps the largest
//! position of the first one-bit among the others.
//!
//! Invariants: there are m registers; none is above 65 − p.
//!
//! Deviations: instead of bias tables and a switch to linear counting, one closed formula
//! for all counts (Ertl); instead of the sparse form of Heule et al., the hashes
//! themselves, which are exact ([`super::Sketch::Few`]). Own code, because the estimates of
//! the `datasketches` crate depend on the order in which its registers were filled (its HIP
//! estimator), and its merge rebuilds cached sums of floats: windows merge often and need
//! answers that do not depend on grouping.

use crate::snapshot::{Reader, Result, Writer, damaged};

pub const MIN_P: u8 = 4;
pub const MAX_P: u8 = 18;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registers(Box<[u8]>);

impl Registers {
    pub fn new(p: u8) -> Self {
        Self(vec![0; 1 << p].into_boxed_slice())
    }

    fn p(&self) -> u32 {
        self.0.len().trailing_zeros()
    }

    #[inline]
    pub fn absorb(&mut self, hash: u64) {
        let (register, position) = place_of(hash, self.p());
        let register = &mut self.0[register];
        *register = position.max(*register);
    }

    pub fn merge(&mut self, other: &Self) {
        for (register, other) in self.0.iter_mut().zip(&other.0) {
            *register = (*other).max(*register);
        }
    }

    /// The estimated number of different hashes.
    pub fn estimate(&self) -> f64 {
        let mut counts = [0; 66];
        for register in &self.0 {
            counts[usize::from(*register)] += 1;
        }
        estimate(&counts, self.p())
    }

    pub fn write(&self, out: &mut Writer) {
        out.put(&self.0);
    }

    pub fn read(p: u8, input: &mut Reader<'_>) -> Result<Self> {
        let registers = input.take(1 << p)?;
        if registers.iter().any(|register| *register > 65 - p) {
            return damaged("a register counts more bits than there are");
        }
        Ok(Self(registers.into()))
    }
}

/// The register of a hash among 2^p, and the position that it holds there.
#[inline]
pub fn place_of(hash: u64, p: u32) -> (usize, u8) {
    // The stop bit bounds the position where all other bits are zero.
    let rest = hash << p | 1 << (p - 1);
    ((hash >> (64 - p)) as usize, rest.leading_zeros() as u8 + 1)
}

/// The estimate of 2^p registers, of which `counts[k]` hold k.
pub fn estimate(counts: &[u32; 66], p: u32) -> f64 {
    let m = f64::from(1_u32 << p);
    let most = 65 - p as usize;
    let share = |count: u32| f64::from(count) / m;
    let mut z = m * tau(1.0 - share(counts[most]));
    for count in counts[1..most].iter().rev() {
        z = 0.5 * (z + f64::from(*count));
    }
    z += m * sigma(share(counts[0]));
    m * m / (2.0 * std::f64::consts::LN_2 * z)
}

/// x + Σ of x^(2^k) 2^(k−1): the contribution of empty registers (Ertl, eq. 16).
fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut weight, mut sum) = (1.0, x);
    loop {
        x *= x;
        let before = sum;
        sum += x * weight;
        weight += weight;
        if sum == before {
            return sum;
        }
    }
}

/// The contribution of registers at the last position (Ertl, eq. 22).
fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut weight, mut sum) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = sum;
        weight *= 0.5;
        sum -= (1.0 - x).powi(2) * weight;
        if sum == before {
            return sum / 3.0;
        }
    }
}
