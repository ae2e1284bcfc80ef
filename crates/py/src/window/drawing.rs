//! The structure of a window, for drawing in Python.

use pyo3::prelude::*;
use slidewise_core::aggregate::Answer;
use slidewise_core::window::shape::{PartialKind, Shape};

use super::Window;
use crate::errors::ResultOverflowError;
use crate::object_store::Object;

type DrawnNode<'py> = (
    usize,
    &'static str,
    Vec<Bound<'py, PyAny>>,
    Vec<usize>,
    Bound<'py, PyAny>,
);
pub(super) type Drawn<'py> = (usize, usize, Vec<DrawnNode<'py>>);

impl Window {
    pub(super) fn draw<'py>(
        &self,
        py: Python<'py>,
        shape: Shape<Vec<Answer<Object>>>,
    ) -> PyResult<Drawn<'py>> {
        let nodes = shape.nodes.into_iter().map(|node| {
            let kind = match node.kind {
                PartialKind::Up => "up",
                PartialKind::Inner => "inner",
                PartialKind::Left => "left",
                PartialKind::Right => "right",
            };
            let last = node.times.iter().max().copied();
            let times = node
                .times
                .into_iter()
                .map(|ticks| self.0.restore(py, ticks));
            let times = times.collect::<PyResult<_>>()?;
            // A partial sum may overflow although the whole does not, which a picture ignores.
            let aggregate = match self.0.lower(py, node.aggregate, last) {
                Err(error) if error.is_instance_of::<ResultOverflowError>(py) => {
                    "overflow".into_pyobject(py)?.into_any()
                }
                aggregate => aggregate?,
            };
            Ok((node.level, kind, times, node.children, aggregate))
        });
        let nodes = nodes.collect::<PyResult<_>>()?;
        Ok((shape.leaf_capacity, shape.arity, nodes))
    }
}
