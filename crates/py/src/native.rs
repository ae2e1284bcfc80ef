//! Aggregations compiled by Numba: makes functions that the core can call from addresses.

use std::mem::transmute;

use pyo3::prelude::*;
use slidewise_core::aggregate::native::{
    Binary, Functions, Lift, LiftF64, LiftI64, LowerF64, LowerI64, MAX_WORDS, NativeLower,
};
use slidewise_core::aggregate::{DType, Kind};

use crate::errors::internal_error;

/// Reads a `slidewise.aggregations.compiled.Compiled`, which has checked every signature. The
/// caller keeps it alive as long as the functions may be called.
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
    // The addresses are those of Numba's compiled functions. `slidewise.aggregations.compiled`
    // has compared their signatures with these types and the size of the record, and none is
    // null where it is used.
    let pointer = |address: usize| std::ptr::with_exposed_provenance::<()>(address);
    // SAFETY: the address is that of a function of this type, see above.
    let binary = |address| unsafe { transmute::<*const (), Binary>(pointer(address)) };
    // SAFETY: the same.
    let lift_i64 = |address| unsafe { transmute::<*const (), LiftI64>(pointer(address)) };
    // SAFETY: the same.
    let lift_f64 = |address| unsafe { transmute::<*const (), LiftF64>(pointer(address)) };
    // SAFETY: the same.
    let lower_i64 = |address| unsafe { transmute::<*const (), LowerI64>(pointer(address)) };
    // SAFETY: the same.
    let lower_f64 = |address| unsafe { transmute::<*const (), LowerF64>(pointer(address)) };
    let lift = match (lift.0.as_deref(), lift.1) {
        (None, _) => Lift::Store,
        (Some("int64"), address) => Lift::I64(lift_i64(address)),
        (Some(_), address) => Lift::F64(lift_f64(address)),
    };
    let lower = match (lower.0.as_deref(), lower.1) {
        (None, _) => NativeLower::Record,
        (Some("int64"), 0) => NativeLower::Word(DType::I64),
        (Some(_), 0) => NativeLower::Word(DType::F64),
        (Some("int64"), address) => NativeLower::I64(lower_i64(address)),
        (Some(_), address) => NativeLower::F64(lower_f64(address)),
    };
    let (combine, inverse) = (binary(combine), inverse.map(binary));
    // SAFETY: the user guarantees that the functions stay within their records.
    let functions = unsafe { Functions::new(words, commutative, lift, combine, lower, inverse) };
    Ok(functions)
}

pub(crate) fn read_all(compiled: &Bound<'_, PyAny>) -> PyResult<Vec<Functions>> {
    compiled.try_iter()?.map(|one| read(&one?)).collect()
}

/// The kind with the name "native:2" of these functions.
pub(crate) fn kind(name: &str, natives: &[Functions]) -> Option<Kind> {
    let number: usize = name.strip_prefix("native:")?.parse().ok()?;
    natives.get(number).copied().map(Kind::Native)
}
