//! Single rows: the values of one entry by column.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyString};

use crate::errors::{spec_error, with_note};
use crate::inputs::Role;
use crate::scalars::{described, plain};
use crate::spec::Spec;
use crate::untyped::TypeMismatch;

impl Spec {
    /// Without values, only rows can be counted.
    pub(crate) fn refuse_no_values(&self, call: &str) -> PyResult<()> {
        let mut inputs = self.inputs.iter();
        if inputs.all(|input| input.role == Role::Time && input.masks.is_empty()) {
            return Ok(());
        }
        Err(spec_error(format!(
            "{call} needs a value for every time, where a missing one is None; only \
             count() of rows does without"
        )))
    }

    /// The value of a single entry in a column.
    pub(crate) fn value_of<'py>(
        &self,
        value: &Bound<'py, PyAny>,
        source: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        plain(match &self.columns {
            None => value.clone(),
            Some(names) => lookup(value, names[source].bind(value.py()), None)?,
        })
    }
}

/// The value of a mapping's key.
pub(crate) fn lookup<'py>(
    mapping: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
    row: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = mapping.py();
    let found = match mapping.cast_exact::<PyDict>() {
        Ok(dict) => dict.get_item(name)?,
        Err(_) if mapping.cast::<PyMapping>().is_err() => {
            return Err(TypeMismatch(no_mapping(mapping, name)).into_error(None, row));
        }
        Err(_) => match mapping.get_item(name) {
            Ok(value) => Some(value),
            Err(error) if error.is_instance_of::<pyo3::exceptions::PyKeyError>(py) => None,
            Err(error) => return Err(with_note(py, error, "reading a value")),
        },
    };
    found.ok_or_else(|| {
        let keys = mapping.call_method0("keys").and_then(|keys| {
            let keys = keys.try_iter()?.take(20);
            keys.map(|key| Ok(key?.repr()?.to_string()))
                .collect::<PyResult<Vec<_>>>()
        });
        let there = keys.map_or_else(|_| String::new(), |keys| keys.join(", "));
        let there = if there.is_empty() {
            "nothing".to_owned()
        } else {
            there
        };
        let why = format!(
            "the value has no {:?}: it has {there}",
            name.to_string_lossy()
        );
        TypeMismatch(why).into_error(None, row)
    })
}

fn no_mapping(value: &Bound<'_, PyAny>, name: &Bound<'_, PyString>) -> String {
    let name = name.to_string_lossy();
    format!(
        "this window aggregates columns, such as {name:?}: give a mapping like \
         {{{name:?}: 1.5}}, not {}",
        described(value)
    )
}
