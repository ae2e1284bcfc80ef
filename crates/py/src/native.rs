//! Aggregations compiled by Numba: from addresses to functions that the core can call.

use std::mem::transmute;

use pyo3::prelude::*;
use slidewise_core::aggregate::native::{
    Binary, Functions, Lift, LiftF64, LiftI64, Lower, LowerF64, LowerI64, MAX_WORDS,
};
use slidewise_core::aggregate::{DType, Kind};

use crate::errors::internal_error;

/// Reads a `slidewise.aggregations.compiled.Compiled`, which has checked every signature, and which the
/// caller keeps alive as long as the functions may be called.
pub(crate) fn read(compiled: &Bound<'_, PyAny>) -> PyResult<Functions> {
    let given = |name| -> PyResult<(Option<String>, usize)> { compiled.getattr(name)?.extract() };
    let words: usize = compiled.getattr("words")?.extract()?;
    let (lift, lower) = (given("lift_address")?, given("lower_address")?);
    let combine: usize = compiled.getattr("combine_address")?.extract()?;
    let inverse: Option<usize> = compiled.getattr("inverse_address")?.extract()?;
    let mut addresses = [Some(combine), inverse].into_iter().flatten();
    let there = addresses.all(|address| address != 0) && (lift.0.is_none() || lift.1 != 0);
    if !there || !(1..=MAX_WORDS).contains(&words) {
        return Err(internal_error("a native aggregation without functions"));
    }
    let commutative: bool = compiled.getattr("commutative")?.extract()?;
    let pointer = |address: usize| std::ptr::with_exposed_provenance::<()>(address);
    // SAFETY: the addresses are those of Numba's compiled functions, whose signatures
    // `slidewise.aggregations.compiled` has compared with these types and the size of the record; none
    // is null where it is used. That they stay within their records is what the user
    // vouches for.
    let functions = unsafe {
        let binary = |address| transmute::<*const (), Binary>(pointer(address));
        let lift = match (lift.0.as_deref(), lift.1) {
            (None, _) => Lift::Store,
            (Some("int64"), address) => {
                Lift::I64(transmute::<*const (), LiftI64>(pointer(address)))
            }
            (Some(_), address) => Lift::F64(transmute::<*const (), LiftF64>(pointer(address))),
        };
        let lower = match (lower.0.as_deref(), lower.1) {
            (None, _) => Lower::Record,
            (Some("int64"), 0) => Lower::Word(DType::I64),
            (Some(_), 0) => Lower::Word(DType::F64),
            (Some("int64"), address) => {
                Lower::I64(transmute::<*const (), LowerI64>(pointer(address)))
            }
            (Some(_), address) => Lower::F64(transmute::<*const (), LowerF64>(pointer(address))),
        };
        let (combine, inverse) = (binary(combine), inverse.map(binary));
        Functions::new(words, commutative, lift, combine, lower, inverse)
    };
    Ok(functions)
}

pub(crate) fn read_all(compiled: &Bound<'_, PyAny>) -> PyResult<Vec<Functions>> {
    compiled.try_iter()?.map(|one| read(&one?)).collect()
}

/// The kind named "native:2", of these.
pub(crate) fn kind(name: &str, natives: &[Functions]) -> Option<Kind> {
    let number: usize = name.strip_prefix("native:")?.parse().ok()?;
    natives.get(number).copied().map(Kind::Native)
}
