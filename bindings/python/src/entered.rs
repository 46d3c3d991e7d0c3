//! `Entered`: the permits of `with` blocks that are not left yet.
//!
//! A breaker is one object for all who enter it, and `__exit__` is told no more than `__enter__` was. What both share is
//! the frame of the block: a generator's goes with it from thread to thread, a coroutine's from context to context. Where
//! the frame is another (an `ExitStack` enters from one method and leaves from another), the latest permit that was entered is
//! the one.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::permit::Permit;

#[derive(Default)]
pub(crate) struct Entered(Mutex<Vec<(usize, Py<Permit>)>>);

impl Entered {
    pub(crate) fn push(&self, py: Python<'_>, permit: Py<Permit>) -> PyResult<()> {
        let frame = caller(py)?;
        let mut entered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entered.push((frame, permit));
        Ok(())
    }

    pub(crate) fn pop(&self, py: Python<'_>) -> PyResult<Option<Py<Permit>>> {
        let frame = caller(py)?;
        let mut entered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = entered.iter().rposition(|(of, _)| *of == frame);
        let place = place.or_else(|| entered.len().checked_sub(1));
        Ok(place.map(|place| entered.remove(place).1))
    }
}

/// Which Python frame calls.
fn caller(py: Python<'_>) -> PyResult<usize> {
    static GET_FRAME: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let frame = GET_FRAME.import(py, "sys", "_getframe")?.call0()?;
    Ok(frame.as_ptr() as usize)
}
