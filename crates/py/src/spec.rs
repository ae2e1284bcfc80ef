//! The spec of a window, read from the plan that `slidewise.window.planner` makes.

use std::sync::{Arc, OnceLock};

use pyo3::PyTraverseError;
use pyo3::prelude::*;
use pyo3::pyclass::PyVisit;
use pyo3::types::PyString;
use slidewise_core::aggregate::native::NativeLower;
use slidewise_core::aggregate::sketch::SketchRequest;
use slidewise_core::aggregate::{AggSpec, DType, Kind, obeys};
use slidewise_core::window::Ties;

use crate::algorithms::Algorithm;
use crate::clock::Clock;
use crate::errors::internal_error;
use crate::inputs::{InputColumn, InputRequest, NANS, Nan, Role, Type, named};
use crate::native;
use crate::requests::Call;
use crate::udaf::Udaf;

/// The fixed part of windows with equal arguments, which share it.
#[pyclass(frozen, module = "slidewise._core")]
#[derive(Debug)]
pub(crate) struct Spec {
    /// The Python object that it was read from, which makes clocks and snapshot headers.
    pub(crate) plan: Py<PyAny>,
    /// The initial algorithm: if all numbers are ints, and if some are floats.
    begins: [Algorithm; 2],
    /// Whether the window migrates to fiba when that algorithm refuses a call.
    pub(crate) auto: bool,
    pub(crate) ties: Ties,
    pub(crate) nan: Nan,
    pub(crate) aggs: Vec<AggSpec>,
    /// The answers that are times.
    pub(crate) timed: Vec<bool>,
    /// The answers that are lists, which the plan postprocesses.
    pub(crate) finished: Vec<bool>,
    /// The answers in ticks, or per tick, which the plan converts.
    pub(crate) clocked: Vec<bool>,
    /// The answers that depend on the end of the window, which the plan makes.
    pub(crate) ended: Vec<bool>,
    /// Keys of the answers; `None` for a single bare answer.
    pub(crate) names: Option<Vec<Py<PyString>>>,
    /// Keys of the values; `None` if an entry is a single bare value.
    pub(crate) columns: Option<Vec<Py<PyString>>>,
    pub(crate) inputs: Vec<InputColumn>,
    /// The number of different ranges of a shared window; 0 for other windows.
    pub(crate) ranges: usize,
    /// For each range of the caller, its index among the different ones.
    pub(crate) places: Vec<usize>,
    /// The number of queries that a window is made with; `None` for windows without queries.
    pub(crate) queries: Option<usize>,
    /// The inputs that are not null in entries with each flag.
    pub(crate) flags: Vec<usize>,
    /// `last=rows(n)`.
    pub(crate) rows: Option<usize>,
    /// The user-defined aggregations.
    pub(crate) udafs: Vec<Udaf>,
    /// The clock of windows whose times are ints.
    pub(crate) int_clock: OnceLock<Arc<Clock>>,
}

#[pymethods]
impl Spec {
    #[new]
    fn new(plan: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::read(plan)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.plan)?;
        self.udafs.iter().try_for_each(|udaf| udaf.traverse(&visit))
    }

    fn __clear__(&self) {
        for udaf in &self.udafs {
            udaf.clear();
        }
    }
}

impl Spec {
    fn read(plan: &Bound<'_, PyAny>) -> PyResult<Self> {
        let text = |name| plan.getattr(name)?.extract::<String>();
        let dtype = plan.getattr("dtype")?.extract::<Option<String>>()?;
        let inputs: Vec<InputRequest> = plan.getattr("inputs")?.extract()?;
        let requests: Vec<Call> = plan.getattr("requests")?.extract()?;
        let udafs = plan.getattr("functions")?.try_iter()?;
        let udafs: Vec<Udaf> = udafs
            .map(|functions| Udaf::read(&functions?))
            .collect::<PyResult<_>>()?;
        let natives = native::read_all(&plan.getattr("natives")?)?;
        let mut inputs: Vec<InputColumn> = inputs
            .iter()
            .map(|input| input.read(dtype.as_deref()))
            .collect::<PyResult<_>>()?;
        let aggs: Vec<AggSpec> = requests
            .iter()
            .map(|call| {
                let role = call.of.and_then(|of| Some(inputs.get(of)?.role));
                let udaf = match role {
                    Some(Role::Udaf(number)) => udafs.get(number).zip(u16::try_from(number).ok()),
                    _ => None,
                };
                let kind = udaf.map(|(udaf, number)| udaf.kind(number));
                call.read(inputs.len(), &natives, kind)
            })
            .collect::<PyResult<_>>()?;
        let differences = aggs.iter().filter(|agg| agg.kind.is_difference());
        for at in differences.filter_map(|agg| agg.of) {
            inputs[at].refuses_bools = true;
        }
        let spec = Self {
            plan: plan.clone().unbind(),
            begins: read_algorithms(plan)?,
            auto: text("algorithm")? == "auto",
            ties: named("ties", &text("ties")?, &TIES)?,
            nan: named("nan", &text("nan")?, &NANS)?,
            timed: plan.getattr("timed")?.extract()?,
            finished: plan.getattr("finished")?.extract()?,
            clocked: plan.getattr("clocked")?.extract()?,
            ended: plan.getattr("ended")?.extract()?,
            names: plan.getattr("names")?.extract()?,
            columns: plan.getattr("columns")?.extract()?,
            aggs,
            inputs,
            udafs,
            ranges: plan.getattr("range_count")?.extract()?,
            places: plan.getattr("places")?.extract()?,
            queries: plan.getattr("query_count")?.extract()?,
            flags: plan.getattr("flags")?.extract()?,
            rows: plan.getattr("rows")?.extract()?,
            int_clock: OnceLock::new(),
        };
        spec.check()
    }

    /// Refuses plans on which the code below would panic or answer wrongly.
    fn check(self) -> PyResult<Self> {
        let sources = self.columns.as_ref().map_or(1, Vec::len);
        let serves = |algorithm: &Algorithm| match self.queries {
            Some(_) => algorithm.properties.queries && self.ranges == 0,
            None => algorithm.properties.shared || self.ranges == 0,
        };
        let mut properties = self.begins.iter().map(|algorithm| algorithm.properties);
        let mut laws = properties.clone().filter_map(|properties| properties.law);
        let holistic = self.aggs.iter().any(|agg| agg.kind.is_holistic());
        let whole = laws.all(|law| obeys(law, &self.aggs, self.inputs.len()))
            && (!holistic || properties.all(|properties| properties.keeps_values))
            && !(holistic && self.is_shared())
            && self.begins.iter().all(serves)
            && self.places.iter().all(|place| *place < self.ranges)
            && self.aggs.len() == self.timed.len()
            && self.aggs.len() == self.finished.len()
            && self.aggs.len() == self.clocked.len()
            && self.aggs.len() == self.ended.len()
            && self.flags.iter().all(|flag| *flag < self.inputs.len())
            && self.names.as_ref().map_or(1, Vec::len) == self.aggs.len()
            && self
                .inputs
                .iter()
                .all(|input| input.columns().all(|column| column < sources));
        if whole {
            return Ok(self);
        }
        Err(internal_error("a window's plan does not fit together"))
    }

    /// The algorithm of a window whose columns have these types.
    pub(crate) fn begins(&self, dtypes: &[DType]) -> Algorithm {
        self.begins[usize::from(dtypes.contains(&DType::F64))]
    }

    /// The name of the algorithm, for messages.
    pub(crate) fn algorithm_name(&self, py: Python<'_>) -> String {
        let name = self.plan.bind(py).getattr("algorithm");
        name.map_or_else(|_| "this".to_owned(), |name| name.to_string())
    }

    /// Whether its windows answer for several ranges or queries at once.
    pub(crate) fn is_shared(&self) -> bool {
        self.ranges > 0 || self.queries.is_some()
    }

    /// Whether late entries are taken up to a latency bound.
    pub(crate) fn is_bounded(&self) -> bool {
        self.begins[0].is_bounded()
    }

    /// Whether a window of it may hold Python objects.
    pub(crate) fn holds_objects(&self) -> bool {
        self.inputs
            .iter()
            .any(|input| matches!(input.role, Role::Any | Role::Key | Role::Udaf(_)))
    }

    /// The aggregations of a window whose ticks are of so many nanoseconds.
    pub(crate) fn aggs_of(&self, tick: u64) -> Vec<AggSpec> {
        let ticking = |agg: &AggSpec| agg.with_tick(tick);
        self.aggs.iter().map(ticking).collect()
    }

    /// Whether the core reads spans of time, in the ticks of a window.
    pub(crate) fn reads_ticks(&self) -> bool {
        self.aggs.iter().any(|agg| agg.with_tick(u64::MAX) != *agg)
    }

    /// Whether an answer may be a record, which the plan lowers.
    pub(crate) fn lowers_records(&self) -> bool {
        let record = |agg: &AggSpec| match agg.kind {
            Kind::Native(functions) => matches!(functions.lower(), NativeLower::Record),
            _ => false,
        };
        self.aggs.iter().any(record)
    }

    /// All inputs of a column have one type, under any conditions, except for inputs of a
    /// native aggregation with a type of its own.
    ///
    /// # Errors
    /// The input of a column that would have to widen and cannot.
    pub(crate) fn share_types(&self, dtypes: &mut [Option<Type>]) -> Result<(), usize> {
        let sources = self.inputs.iter().map(|input| input.source + 1).max();
        // Of each source the first type of its open inputs, and whether one is of floats.
        let mut shared = vec![(None, false); sources.unwrap_or(0)];
        let open = self.inputs.iter().zip(dtypes.iter());
        for (input, dtype) in open.filter(|(input, _)| input.is_open()) {
            let (first, floats) = &mut shared[input.source];
            *first = first.or(*dtype);
            *floats |= dtype.is_some_and(Type::is_float);
        }
        for (at, input) in self.inputs.iter().enumerate() {
            if input.role != Role::Number {
                continue;
            }
            let (first, floats) = shared[input.source];
            let floats = floats && input.is_open();
            dtypes[at] = dtypes[at].or(first);
            match dtypes[at] {
                Some(Type::Int) if floats => return Err(at),
                Some(Type::Bool | Type::Exact) if floats => dtypes[at] = Some(Type::Widened),
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether the answer of an aggregation is a value of a column, a list of values, or made
    /// of the bits of values.
    pub(crate) fn answers_value(agg: &AggSpec) -> bool {
        match agg.kind {
            Kind::Min | Kind::Max | Kind::First | Kind::Last | Kind::Mode => true,
            Kind::ArgMin | Kind::ArgMax | Kind::Collect => true,
            Kind::BitAnd | Kind::BitOr | Kind::BitXor => true,
            Kind::TopK { .. } | Kind::BottomK { .. } => true,
            Kind::FirstK { .. } | Kind::LastK { .. } | Kind::Lag { .. } | Kind::Ohlc => true,
            Kind::LastDistinct { .. } | Kind::ValueCounts { .. } => true,
            Kind::TopKBy { .. } | Kind::BottomKBy { .. } => true,
            Kind::Quantile(quantile) => quantile.picks(),
            Kind::Sketch(request) => matches!(request, SketchRequest::Hitters { .. }),
            _ => false,
        }
    }

    /// For each input of a wider spec, its position among the inputs of this one.
    pub(crate) fn places_of(&self, wider: &Self) -> Vec<Option<usize>> {
        let place =
            |input: &InputColumn| self.inputs.iter().position(|known| known.reads_as(input));
        wider.inputs.iter().map(place).collect()
    }

    /// For messages: the name of the column that an input reads, if columns have names.
    pub(crate) fn column_name<'py>(&self, py: Python<'py>, input: &InputColumn) -> Option<String> {
        let columns = self.columns.as_ref()?;
        Some(
            columns[input.source]
                .bind(py)
                .to_string_lossy()
                .into_owned(),
        )
    }
}

const TIES: [(&str, Ties); 2] = [("combine", Ties::Combine), ("keep", Ties::Keep)];
/// The algorithms with their parameters. `slidewise.window.planner` has checked their laws, with
/// messages for users; they are checked again here, because the core relies on them.
fn read_algorithms(plan: &Bound<'_, PyAny>) -> PyResult<[Algorithm; 2]> {
    let names: [String; 2] = plan.getattr("begins")?.extract()?;
    let given: Vec<(String, i64)> = plan.getattr("options")?.extract()?;
    let read = |name: &String| {
        let algorithm = Algorithm::find(name, &given);
        algorithm.ok_or_else(|| internal_error(&format!("a window's plan has algorithm {name:?}")))
    };
    Ok([read(&names[0])?, read(&names[1])?])
}
