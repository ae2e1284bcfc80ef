//! Python objects of a window: the core holds tokens, a [`ObjectStore`] holds the objects.
//!
//! A token is cloned and dropped without Python, so the core may do that with the window
//! locked and without the GIL. An object is released after its last token was dropped, when
//! [`ObjectStore::sweep`] is called with no lock held, as its finalizer may call back.
//! The garbage collector sees each object once per window, in the store.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use pyo3::prelude::*;
use pyo3::pyclass::{PyTraverseError, PyVisit};
use pyo3::types::{PyDict, PyFloat};
use slidewise_core::aggregate::collect::Numbered;
use slidewise_core::snapshot::{Codec, Reader, Result, Writer, damaged};

/// Slots whose last token is gone.
type Freed = Arc<Mutex<Vec<u32>>>;

#[derive(Debug)]
struct Token {
    slot: u32,
    freed: Freed,
}

impl Drop for Token {
    fn drop(&mut self) {
        lock(&self.freed).push(self.slot);
    }
}

/// An object of a window, by its place in the window's store.
#[derive(Clone, Debug)]
pub(crate) struct Object(Arc<Token>);

impl PartialEq for Object {
    /// Identity, so that no user's `__eq__` runs inside a window.
    fn eq(&self, other: &Self) -> bool {
        self.0.slot == other.0.slot
    }
}

thread_local! {
    /// The tokens that [`Object::read`] finds slots in.
    static RESTORED: RefCell<Vec<Option<Object>>> = const { RefCell::new(Vec::new()) };
}

impl Numbered for Object {
    fn number(&self) -> u64 {
        u64::from(self.0.slot)
    }
}

impl Codec for Object {
    const MIN_BYTES: usize = 4;
    fn write(&self, out: &mut Writer) {
        self.0.slot.write(out);
    }
    fn read(input: &mut Reader<'_>) -> Result<Self> {
        let slot = u32::read(input)?;
        let found = RESTORED.with_borrow(|tokens| tokens.get(slot as usize).cloned());
        match found {
            Some(Some(object)) => Ok(object),
            _ => damaged(format!("object {slot} is not in the snapshot")),
        }
    }
}

/// Runs `read`, in which [`Object::read`] finds the objects of `store`.
pub(crate) fn restoring<R>(store: &ObjectStore, read: impl FnOnce() -> R) -> R {
    let tokens = store.tokens();
    RESTORED.with_borrow_mut(|restored| *restored = tokens);
    let result = read();
    // Taken out first: dropping them must not happen under the borrow.
    drop(RESTORED.take());
    result
}

/// The contents of a slot, and the aggregation that owns it if it is a partial.
#[derive(Debug)]
pub(crate) struct StoredObject {
    pub(crate) object: Option<Py<PyAny>>,
    pub(crate) owner: Option<u16>,
}

/// The owner of slots that hold a key: an object that equal ones share.
pub(crate) const KEY: u16 = u16::MAX;

#[derive(Debug, Default)]
struct ObjectSlots {
    objects: Vec<Option<Py<PyAny>>>,
    free: Vec<u32>,
    /// The tokens of keys.
    keys: HashMap<u32, Weak<Token>>,
    /// The user-defined aggregation that the partial in a slot belongs to. Empty, or shorter
    /// than `objects`, where objects are collected only.
    owners: Vec<Option<u16>>,
}

/// The objects of one window.
///
/// `slots` is locked only with the GIL held and never across releasing it, so that a
/// garbage collection finds it either free or held by its own thread all along.
#[derive(Debug, Default)]
pub(crate) struct ObjectStore {
    slots: Mutex<ObjectSlots>,
    freed: Freed,
    /// The slot of every key. Looking in it may run a user's `__hash__` and `__eq__`, so
    /// it lies outside the lock. An entry may outlive its token, but not its slot.
    index: OnceLock<Py<PyDict>>,
}

impl ObjectStore {
    /// A store with slots for objects that [`ObjectStore::fill`] brings, and gaps.
    pub(crate) fn reserved(present: impl Iterator<Item = bool>) -> Self {
        let mut slots = ObjectSlots::default();
        for (present, slot) in present.zip(0..) {
            slots.objects.push(None);
            if !present {
                slots.free.push(slot);
            }
        }
        Self {
            slots: Mutex::new(slots),
            ..Self::default()
        }
    }

    pub(crate) fn fill(&self, stored: Vec<StoredObject>) {
        let mut slots = lock(&self.slots);
        if stored.iter().any(|stored| stored.owner.is_some()) {
            slots.owners = stored.iter().map(|stored| stored.owner).collect();
        }
        slots.objects = stored.into_iter().map(|stored| stored.object).collect();
    }

    pub(crate) fn add(&self, object: Py<PyAny>) -> PyResult<Object> {
        self.put(object, None)
    }

    /// Adds a partial of a user-defined aggregation.
    pub(crate) fn add_partial(&self, partial: Py<PyAny>, number: usize) -> PyResult<Object> {
        self.put(partial, u16::try_from(number).ok())
    }

    /// The token of an object that equal ones share, as keys of a dict would.
    pub(crate) fn intern(&self, value: &Bound<'_, PyAny>) -> PyResult<Object> {
        let index = self.index(value.py());
        if let Some(slot) = index.get_item(value)?
            && let Some(object) = self.key(slot.extract()?)
        {
            return Ok(object);
        }
        let object = self.put(value.clone().unbind(), Some(KEY))?;
        let slot = object.0.slot;
        let token = Arc::downgrade(&object.0);
        lock(&self.slots).keys.insert(slot, token);
        // Another thread may have added it meanwhile.
        let first: u32 = index.call_method1("setdefault", (value, slot))?.extract()?;
        if first != slot {
            if let Some(object) = self.key(first) {
                return Ok(object);
            }
            index.set_item(value, slot)?;
        }
        Ok(object)
    }

    fn index<'py>(&self, py: Python<'py>) -> &Bound<'py, PyDict> {
        get_or_set(&self.index, || PyDict::new(py).unbind()).bind(py)
    }

    /// The key in a slot, unless its last token is gone.
    fn key(&self, slot: u32) -> Option<Object> {
        let slots = lock(&self.slots);
        slots.keys.get(&slot)?.upgrade().map(Object)
    }

    /// Makes the index of the keys that were filled in, once their tokens are made.
    pub(crate) fn index_keys(&self, py: Python<'_>) -> PyResult<()> {
        let mut keys = Vec::new();
        {
            let mut guard = lock(&self.slots);
            let slots = &mut *guard;
            let owner = |slot: &u32| slots.owners.get(*slot as usize).copied().flatten();
            slots.keys.retain(|slot, _| owner(slot) == Some(KEY));
            for slot in slots.keys.keys() {
                let object = slots.objects[*slot as usize].as_ref();
                keys.extend(object.map(|object| (object.clone_ref(py), *slot)));
            }
        }
        for (object, slot) in keys {
            let value = canonical(object.bind(py));
            let first: u32 = self
                .index(py)
                .call_method1("setdefault", (&value, slot))?
                .extract()?;
            if first != slot {
                let why = format!("keys {first} and {slot} are equal");
                return Err(pyo3::exceptions::PyValueError::new_err(why));
            }
        }
        Ok(())
    }

    /// Takes keys out of the index whose last token is gone.
    fn drop_keys(&self, py: Python<'_>, freed: &[u32]) {
        let Some(index) = self.index.get() else {
            return;
        };
        for slot in freed {
            let object = {
                let slots = lock(&self.slots);
                let key = slots.owners.get(*slot as usize).copied().flatten() == Some(KEY);
                let object = slots.objects.get(*slot as usize).filter(|_| key);
                object.and_then(|object| Some(object.as_ref()?.clone_ref(py)))
            };
            let Some(object) = object else { continue };
            let (object, index) = (object.bind(py), index.bind(py));
            let remove = || -> PyResult<()> {
                let found = index.get_item(object)?;
                if found.map(|slot| slot.extract::<u32>()).transpose()? == Some(*slot) {
                    index.del_item(object)?;
                }
                Ok(())
            };
            if let Err(error) = remove() {
                error.write_unraisable(py, Some(object));
            }
        }
    }

    fn put(&self, object: Py<PyAny>, owner: Option<u16>) -> PyResult<Object> {
        let mut slots = lock(&self.slots);
        let slot = match slots.free.pop() {
            Some(slot) => {
                slots.objects[slot as usize] = Some(object);
                slot
            }
            None => {
                let slot = u32::try_from(slots.objects.len()).map_err(|_| {
                    pyo3::exceptions::PyMemoryError::new_err("a window holds 2^32 objects")
                })?;
                slots.objects.push(Some(object));
                slot
            }
        };
        let at = slot as usize;
        if owner.is_some() && slots.owners.len() <= at {
            slots.owners.resize(at + 1, None);
        }
        if let Some(owned) = slots.owners.get_mut(at) {
            *owned = owner;
        }
        Ok(self.token(slot))
    }

    fn token(&self, slot: u32) -> Object {
        Object(Arc::new(Token {
            slot,
            freed: Arc::clone(&self.freed),
        }))
    }

    /// A token for every slot that is not free.
    fn tokens(&self) -> Vec<Option<Object>> {
        let mut slots = lock(&self.slots);
        let mut taken = vec![true; slots.objects.len()];
        for slot in &slots.free {
            taken[*slot as usize] = false;
        }
        let numbered = taken.into_iter().zip(0..);
        let tokens: Vec<Option<Object>> = numbered
            .map(|(taken, slot)| taken.then(|| self.token(slot)))
            .collect();
        let made = tokens.iter().flatten();
        slots.keys = made
            .map(|object| (object.0.slot, Arc::downgrade(&object.0)))
            .collect();
        tokens
    }

    /// `None` once the garbage collector has cleared the store.
    pub(crate) fn get<'py>(&self, py: Python<'py>, object: &Object) -> Option<Bound<'py, PyAny>> {
        let slots = lock(&self.slots);
        let found = slots.objects.get(object.0.slot as usize)?.as_ref()?;
        Some(found.bind(py).clone())
    }

    /// All objects by slot.
    pub(crate) fn objects(&self, py: Python<'_>) -> Vec<StoredObject> {
        let slots = lock(&self.slots);
        let cloned = slots.objects.iter().enumerate();
        cloned
            .map(|(at, object)| StoredObject {
                object: object.as_ref().map(|object| object.clone_ref(py)),
                owner: slots.owners.get(at).copied().flatten(),
            })
            .collect()
    }

    /// Releases the objects that no token holds any more. Call it with the GIL held, no
    /// lock held, and the window free: finalizers run here.
    pub(crate) fn sweep(&self, py: Python<'_>) {
        let freed = std::mem::take(&mut *lock(&self.freed));
        if freed.is_empty() {
            return;
        }
        self.drop_keys(py, &freed);
        let mut slots = lock(&self.slots);
        let mut garbage = Vec::with_capacity(freed.len());
        for slot in freed {
            garbage.extend(slots.objects[slot as usize].take());
            slots.keys.remove(&slot);
            slots.free.push(slot);
        }
        if slots.free.len() == slots.objects.len() {
            *slots = ObjectSlots::default();
        }
        drop(slots);
        drop(garbage);
    }

    pub(crate) fn traverse(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        if let Some(index) = self.index.get() {
            visit.call(index)?;
        }
        // If it is held, then by this thread: its contents then count as reachable.
        if let Ok(slots) = self.slots.try_lock() {
            for object in slots.objects.iter().flatten() {
                visit.call(object)?;
            }
        }
        Ok(())
    }

    /// Breaks reference cycles, for the garbage collector.
    pub(crate) fn clear(&self) {
        let garbage: Vec<_> = {
            let mut slots = lock(&self.slots);
            slots.objects.iter_mut().map(Option::take).collect()
        };
        drop(garbage);
        if let Some(index) = self.index.get() {
            Python::attach(|py| index.bind(py).clear());
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        let slots = lock(&self.slots);
        let token = size_of::<Token>() + 2 * size_of::<usize>();
        let live = slots.objects.len() - slots.free.len();
        size_of::<Self>()
            + slots.objects.capacity() * size_of::<Option<Py<PyAny>>>()
            + slots.free.capacity() * size_of::<u32>()
            + slots.owners.capacity() * size_of::<Option<u16>>()
            + slots.keys.capacity() * size_of::<(u32, Weak<Token>)>()
            + live * token
    }
}

/// The key that stands for a value: all floats that are NaN share one.
pub(crate) fn canonical<'py>(value: &Bound<'py, PyAny>) -> Bound<'py, PyAny> {
    static NAN: OnceLock<Py<PyFloat>> = OnceLock::new();
    let nan = value
        .cast::<PyFloat>()
        .is_ok_and(|float| float.value().is_nan());
    if !nan {
        return value.clone();
    }
    let py = value.py();
    let shared = get_or_set(&NAN, || PyFloat::new(py, f64::NAN).unbind());
    shared.bind(py).clone().into_any()
}

/// As `get_or_init`, but `make` runs outside of the cell's lock: Python may collect garbage when
/// it makes an object, and so run any code.
fn get_or_set<T>(cell: &OnceLock<T>, make: impl FnOnce() -> T) -> &T {
    if let Some(value) = cell.get() {
        return value;
    }
    let made = make();
    cell.get_or_init(|| made)
}

/// Nothing that could panic runs under these locks, so a poisoned one is still whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
