//! What an algorithm refuses, in the user's words.

use pyo3::prelude::*;
use slidewise_core::window::Refused;
use slidewise_core::window::algorithm::ALGORITHMS;

use crate::access::Access;
use crate::errors::OutOfOrderError;

impl Access {
    /// What the algorithm refused, in the user's words. To be made with nothing locked.
    #[cold]
    pub(crate) fn refusal(&self, py: Python<'_>, refused: Refused) -> PyErr {
        let told = |ticks| -> PyResult<String> {
            Ok(self
                .restore(py, ticks)?
                .str()?
                .to_string_lossy()
                .into_owned())
        };
        let name = self.spec().algorithm_name(py);
        let shared = self.spec().is_shared();
        let message = || -> PyResult<PyErr> {
            Ok(match refused {
                Refused::Late { time, youngest } if shared => OutOfOrderError::new_err(format!(
                    "an entry at {} is late: the youngest in the window is at {}, and a \
                     SharedWindow takes entries in order only; for late ones there is a \
                     Window per range",
                    told(time)?,
                    told(youngest)?,
                )),
                Refused::Inner { time, oldest } if shared => OutOfOrderError::new_err(format!(
                    "the entry at {} is not the oldest, which is at {}, and a SharedWindow \
                     evicts in order only",
                    told(time)?,
                    told(oldest)?,
                )),
                Refused::Late { time, youngest } if self.spec().is_bounded() => {
                    OutOfOrderError::new_err(format!(
                        "an entry at {} is too late: {name} has closed what is before {}, \
                         by its latency=; algorithm='fiba' takes any order",
                        told(time)?,
                        told(youngest)?,
                        name = Quoted(&name),
                    ))
                }
                Refused::Late { time, youngest } => OutOfOrderError::new_err(format!(
                    "an entry at {} is late: the youngest in the window is at {}, and \
                     {name} takes entries in order only; algorithm='fiba' takes any order",
                    told(time)?,
                    told(youngest)?,
                    name = Quoted(&name),
                )),
                Refused::Inner { time, oldest } => OutOfOrderError::new_err(format!(
                    "the entry at {} is not the oldest, which is at {}, and {} evicts in \
                     order only; algorithm='fiba' evicts anywhere",
                    told(time)?,
                    told(oldest)?,
                    Quoted(&name),
                )),
                Refused::Range { lo, hi } => crate::errors::spec(format!(
                    "{} answers for {}, not for {} to {}; algorithms that answer for any \
                     part of it are {}",
                    Quoted(&name),
                    if self.spec().is_bounded() {
                        "the whole window, or for what its latency= keeps open"
                    } else {
                        "the whole window only"
                    },
                    told(lo)?,
                    told(hi)?,
                    answering_ranges(&name),
                )),
            })
        };
        message().unwrap_or_else(|error| error)
    }

    /// Why an "auto" window went over to fiba, if it has: which refusal, and its times.
    pub(crate) fn migrated<'py>(&self, py: Python<'py>) -> PyResult<Option<Migrated<'py>>> {
        let cause = self.lock(py)?.window.cause();
        let told = |ticks| self.restore(py, ticks);
        let bound = |ticks| match ticks {
            i64::MIN | i64::MAX => Ok(py.None().into_bound(py)),
            ticks => told(ticks),
        };
        Ok(match cause {
            None => None,
            Some(Refused::Late { time, youngest }) => Some(("late", told(time)?, told(youngest)?)),
            Some(Refused::Inner { time, oldest }) => Some(("inner", told(time)?, told(oldest)?)),
            Some(Refused::Range { lo, hi }) => Some(("range", bound(lo)?, bound(hi)?)),
        })
    }
}

pub(crate) type Migrated<'py> = (&'static str, Bound<'py, PyAny>, Bound<'py, PyAny>);

struct Quoted<'a>(&'a str);

impl std::fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "'{}'", self.0)
    }
}

fn answering_ranges(but: &str) -> String {
    let names = ALGORITHMS.iter().filter(|facts| facts.ranges);
    let names = names.map(|facts| facts.name).filter(|name| *name != but);
    names.collect::<Vec<_>>().join(", ")
}
