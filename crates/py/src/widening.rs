//! Wider specs: a column whose first value is an object.

use pyo3::prelude::*;

use crate::errors::{spec_error, with_prefix};
use crate::inputs::InputColumn;
use crate::locking::Access;
use crate::scalars::{described, is_object};
use crate::spec::Spec;
use crate::state::{State, Types};

impl Access {
    /// The columns of numbers that have had none yet.
    pub(crate) fn open_sources(&self, py: Python<'_>) -> PyResult<Vec<usize>> {
        if !self.spec().inputs.iter().any(InputColumn::is_open) {
            return Ok(Vec::new());
        }
        let state = self.lock_entered(py)?;
        let inputs = self.spec().inputs.iter().zip(&state.dtypes);
        let open = inputs.filter(|(input, dtype)| input.is_open() && dtype.is_none());
        let mut sources: Vec<usize> = open.map(|(input, _)| input.source).collect();
        sources.sort_unstable();
        sources.dedup();
        Ok(sources)
    }

    /// The wider spec that this value needs, if it is the first value of a column and an
    /// object. Of no effect until [`Access::widen`].
    pub(crate) fn wider(
        &self,
        py: Python<'_>,
        value: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<Py<Spec>>> {
        let Some(value) = value.filter(|value| !value.is_none()) else {
            return Ok(None);
        };
        let sources = self.open_sources(py)?;
        let get = |source| self.spec().value_of(value, source);
        let is_asked =
            |input: &&InputColumn| input.is_open() && sources.binary_search(&input.source).is_ok();
        let mut inputs: Vec<_> = self.spec().inputs.iter().filter(is_asked).collect();
        inputs.sort_by_key(|input| input.source);
        let (mut found, mut first) = (Vec::new(), None);
        for input in inputs {
            let source = input.source;
            let is_new = found.last() != Some(&source);
            if is_new && self.spec().counts(input, get)? && is_object(&get(source)?)? {
                found.push(source);
                first = first.or(Some(described(&get(source)?)));
            }
        }
        self.wider_by(py, found, first.as_deref().unwrap_or_default())
    }

    /// The same where the columns that hold objects are known; `what` is the prefix of the
    /// error for an object that the window cannot keep.
    pub(crate) fn wider_by(
        &self,
        py: Python<'_>,
        sources: Vec<usize>,
        what: &str,
    ) -> PyResult<Option<Py<Spec>>> {
        if sources.is_empty() {
            return Ok(None);
        }
        let plan = self.spec().plan.bind(py);
        let made = py
            .import("slidewise.window.window")?
            .getattr("_wider_spec")?;
        let wider = made.call1((plan, sources));
        let wider = wider.map_err(|error| with_prefix(py, error, what))?;
        let wider: Option<Py<Spec>> = wider.extract()?;
        if wider.is_some() {
            self.ensure_store();
        }
        Ok(wider)
    }

    /// The wider spec if there is one, else the present spec.
    pub(crate) fn spec_after<'a>(&'a self, wider: &'a Option<Py<Spec>>) -> &'a Spec {
        wider
            .as_ref()
            .map_or_else(|| self.spec(), |spec| spec.get())
    }

    /// The types of the columns before a value is inserted.
    pub(crate) fn types(&self, state: &State, wider: &Option<Py<Spec>>) -> PyResult<Types> {
        let Some(wider) = wider else {
            return Ok(state.dtypes.clone());
        };
        let types = state.widened(self.spec(), wider.get());
        types.ok_or_else(|| {
            spec_error(
                "an object came to a column without values, when numbers that would have \
                 to be kept with it were there already: create the window with \
                 dtype='object'",
            )
        })
    }

    /// Switches to another spec; `types` has checked that this is possible.
    pub(crate) fn widen(&self, state: &mut State, wider: Option<Py<Spec>>) {
        let Some(spec) = wider else { return };
        state.widen(self.spec(), spec.get());
        self.set_wider(state, spec);
    }
}
