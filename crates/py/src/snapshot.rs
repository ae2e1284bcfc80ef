//! A window as bytes, and back.
//!
//! ```text
//! header: JSON of `WindowPlan.header`     payload: objects | log | window
//! ```
//! Each object is written once, by slot; the log and the window name the slots. The whole
//! payload is checked before objects are made.

use std::any::Any;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use slidewise_core::aggregate::deferred::Term;
use slidewise_core::snapshot::{Damaged, Reader, Writer, open, seal};

use crate::clock::Clock;
use crate::errors::{internal_error, snapshot_error, spec_error};
use crate::inputs::{DTYPES, Role, Type, named};
use crate::locking::Access;
use crate::object_store::{Object, ObjectStore, StoredObject, restoring};
use crate::objects;
use crate::spec::Spec;
use crate::state::{State, Types, WindowParts};

/// The kind of window in the envelope of a snapshot.
fn kind(shared: bool) -> u16 {
    if shared { 2 } else { 1 }
}

pub(crate) fn to_bytes<'py>(py: Python<'py>, access: &Access) -> PyResult<Bound<'py, PyBytes>> {
    let written = written(py, access)?;
    let spec = written.spec.get();
    let mut payload = Writer::default();
    if let Some(objects) = written.objects {
        // A codec of the user's own runs in here.
        let _entered = access.enter()?;
        let udaf_calls = access.udaf_calls_of(spec, py);
        objects::write(py, &objects, udaf_calls.as_ref(), &mut payload)?;
    }
    payload.put(&written.body);
    let payload = payload.finish().map_err(snapshot_error)?;
    let names = written.dtypes.iter().map(|dtype| name_of(*dtype));
    let names: Vec<Option<&str>> = names.collect();
    let clock = written.clock.map(|clock| clock.object(py).clone());
    let plan = match written.queries {
        Some(queries) => spec
            .plan
            .bind(py)
            .call_method1("with_queries", (queries,))?,
        None => spec.plan.bind(py).clone(),
    };
    let header = plan.call_method1("header", (names, clock, written.migrated))?;
    let header: Vec<u8> = header.extract()?;
    Ok(PyBytes::new(
        py,
        &seal(kind(spec.is_shared()), &header, &payload),
    ))
}

/// The contents of a header: spec, dtypes of the inputs, clock, whether it migrated.
type Read<'py> = (
    Bound<'py, PyAny>,
    Vec<Option<String>>,
    Option<Bound<'py, PyAny>>,
    bool,
);

type Objects = Vec<StoredObject>;

/// The state of a window at one instant; other threads may change it afterwards.
struct Written {
    /// Log and window.
    body: Vec<u8>,
    dtypes: Types,
    /// The objects that the body names; none if its spec holds none.
    objects: Option<Objects>,
    migrated: bool,
    spec: Py<Spec>,
    clock: Option<Arc<Clock>>,
    queries: Option<Py<PyTuple>>,
}

fn written(py: Python<'_>, access: &Access) -> PyResult<Written> {
    access.sweep(py);
    let mut body = Writer::default();
    let mut state = access.lock(py)?;
    if state.due_left {
        return Err(spec_error(
            "answers wait, since a call raised before it could give them: take them by \
             insert_many([], []) before a snapshot",
        ));
    }
    loop {
        state.write(&mut body);
        let pending = body.take_postponed();
        if pending.is_empty() {
            break;
        }
        drop(state);
        work_out(py, access, &pending)?;
        body = Writer::default();
        state = access.lock(py)?;
    }
    // Still under the lock, so that no slot is filled anew in between. A store without a
    // spec that needs one was made for an object that was refused.
    let stored = access.spec().holds_objects().then(|| access.store());
    let objects = stored.flatten().map(|store| store.objects(py));
    let (dtypes, migrated) = (state.dtypes.clone(), state.window.cause().is_some());
    let (spec, clock) = access.spec_and_clock(py);
    let queries = state.queries.as_ref().map(|now| now.clone_ref(py));
    drop(state);
    Ok(Written {
        queries,
        body: body.finish().map_err(snapshot_error)?,
        dtypes,
        objects,
        migrated,
        spec,
        clock,
    })
}

/// Computes the pending partials, which have no bytes.
fn work_out(py: Python<'_>, access: &Access, pending: &[Box<dyn Any>]) -> PyResult<()> {
    let _entered = access.enter()?;
    let udaf_calls = access.udaf_calls(py);
    for term in pending {
        let term = term.downcast_ref::<Term<Object>>();
        let (Some(term), Some(udaf_calls)) = (term, &udaf_calls) else {
            return Err(internal_error("a value without bytes"));
        };
        udaf_calls.force(term)?;
    }
    Ok(())
}

/// The spec and the contents of a window again, every object through `each`.
pub(crate) fn copied(
    py: Python<'_>,
    access: &Access,
    each: impl Fn(Py<PyAny>) -> PyResult<Py<PyAny>>,
) -> PyResult<(Py<Spec>, WindowParts)> {
    let state = access.lock(py)?;
    if !access.spec().holds_objects() {
        let (spec, clock) = access.spec_and_clock(py);
        let state = state.copied(py);
        let store = None;
        return Ok((
            spec,
            WindowParts {
                state,
                store,
                clock,
            },
        ));
    }
    drop(state);
    let written = written(py, access)?;
    let objects = written.objects.unwrap_or_default().into_iter();
    let objects = objects.map(|stored| {
        let object = stored.object.map(&each).transpose()?;
        Ok(StoredObject { object, ..stored })
    });
    let objects: Objects = objects.collect::<PyResult<_>>()?;
    let store = ObjectStore::reserved(objects.iter().map(|stored| stored.object.is_some()));
    store.fill(objects);
    let mut input = Reader::new(&written.body);
    let state = restoring(&store, || {
        let clock = written.clock.as_deref();
        State::read(written.spec.get(), written.dtypes, clock, &mut input)
    });
    let mut state = state.map_err(snapshot_error)?;
    state.queries = written.queries;
    store.index_keys(py)?;
    store.sweep(py);
    let (store, clock) = (Some(store), written.clock);
    Ok((
        written.spec,
        WindowParts {
            state,
            store,
            clock,
        },
    ))
}

/// The error for a snapshot of another class, which its first bytes name.
fn reader_of(shared: bool, blob: &[u8]) -> Option<Damaged> {
    let class = match open(kind(!shared), blob) {
        Ok(_) if shared => "Window",
        Ok(_) => "SharedWindow",
        Err(_) if blob.starts_with(b"SWKW") => "KeyedWindows",
        Err(_) => return None,
    };
    let why = format!("this is a snapshot of {class}: {class}.from_bytes reads it");
    Some(Damaged(why))
}

/// The spec and the contents behind a blob.
pub(crate) fn from_bytes<'py>(
    blob: &Bound<'py, PyBytes>,
    read_header: &Bound<'py, PyAny>,
    shared: bool,
) -> PyResult<(Bound<'py, Spec>, WindowParts)> {
    let py = blob.py();
    let bytes = blob.as_bytes();
    let (header, payload) = open(kind(shared), bytes)
        .map_err(|why| snapshot_error(reader_of(shared, bytes).unwrap_or(why)))?;
    let read = read_header.call1((PyBytes::new(py, header),))?;
    let (spec, dtypes, clock, migrated) = read.extract::<Read<'_>>()?;
    let owner = spec.cast_into::<Spec>()?;
    let spec = owner.get();
    if spec.is_shared() != shared {
        let why = "the header is of another kind of window".to_owned();
        return Err(snapshot_error(Damaged(why)));
    }
    let dtypes = read_types(spec, dtypes)?;
    let clock = clock.map(Clock::read).transpose()?.map(Arc::new);
    let mut input = Reader::new(payload);
    let objects = match spec.holds_objects() {
        true => Some(objects::skim(&mut input, spec.udafs.len()).map_err(snapshot_error)?),
        false => None,
    };
    let store = objects
        .as_ref()
        .map(|table| ObjectStore::reserved(table.present().iter().copied()));
    let read = || State::read(spec, dtypes, clock.as_deref(), &mut input);
    let state = match &store {
        Some(store) => restoring(store, read),
        None => read(),
    };
    let mut state = state.map_err(snapshot_error)?;
    if migrated != state.window.cause().is_some() {
        let why = "the header and the window differ on what runs".to_owned();
        return Err(snapshot_error(Damaged(why)));
    }
    if let Some(planning) = state.window.planning() {
        let started = clock.as_ref().and_then(|clock| clock.schedule.as_ref());
        let same = match started {
            Some(named) => named.queries() == planning.schedule().queries(),
            None => spec.queries == Some(planning.schedule().queries().len()),
        };
        let terms = started.is_none_or(|named| named.terms == planning.schedule().terms);
        if !same || !terms || started.is_some() != planning.is_started() {
            let why = "the header and the window differ on the queries".to_owned();
            return Err(snapshot_error(Damaged(why)));
        }
    }
    if clock.is_none() && !state.window.is_empty() {
        let why = "entries without a kind of time".to_owned();
        return Err(snapshot_error(Damaged(why)));
    }
    if let Some(clock) = &clock {
        for ticks in [state.window.oldest(), state.window.youngest()]
            .into_iter()
            .flatten()
        {
            let restored = clock.restore(py, ticks);
            restored.map_err(|error| snapshot_error(Damaged(error.value(py).to_string())))?;
        }
    }
    if let (Some(store), Some(table)) = (&store, objects) {
        store.fill(table.build(py, &spec.udafs, store)?);
        store
            .index_keys(py)
            .map_err(|error| snapshot_error(Damaged(error.value(py).to_string())))?;
        store.sweep(py);
    }
    Ok((
        owner,
        WindowParts {
            state,
            store,
            clock,
        },
    ))
}

fn name_of(dtype: Option<Type>) -> Option<&'static str> {
    let known = DTYPES.iter().find(|(_, known)| Some(*known) == dtype);
    known.map(|(name, _)| *name)
}

/// The dtypes of the input columns; only those of numbers may differ from the plan.
fn read_types(spec: &Spec, names: Vec<Option<String>>) -> PyResult<Types> {
    let wrong = || snapshot_error(Damaged("wrong column types".to_owned()));
    if names.len() != spec.inputs.len() {
        return Err(wrong());
    }
    let mut dtypes = Types::new();
    for (input, name) in spec.inputs.iter().zip(names) {
        let dtype = match name {
            Some(name) => Some(named("dtype", &name, &DTYPES).map_err(|_| wrong())?),
            None => None,
        };
        let open = input.role == Role::Number && dtype != Some(Type::Object);
        let whole = input.role == Role::Typed && input.dtype == Some(Type::Bool);
        let known = input.dtype == dtype || whole && dtype == Some(Type::Int);
        if !(known || input.dtype.is_none() && open) {
            return Err(wrong());
        }
        dtypes.push(dtype);
    }
    Ok(dtypes)
}
