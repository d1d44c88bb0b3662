//! Waiting without the interpreter lock, in which Ctrl-C is heard.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use anyhow::{Result, anyhow};
use pyo3::prelude::*;

use crate::error::exception;

/// Time between two looks at Python's signals.
pub const LOOK: Duration = Duration::from_millis(50);

/// Calls `work` on another thread and waits for it. A signal handler that raises ends the waiting; `work` then ends by itself, unheard.
pub fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> PyResult<T> {
    let (answer, mut answered) = mpsc::channel();
    std::thread::Builder::new().name("grammaton-call".into()).spawn(move || answer.send(work()))?;
    loop {
        // Exclusive, as a receiver is not shared between threads.
        let answered = &mut answered;
        match py.detach(move || answered.recv_timeout(LOOK)) {
            Ok(found) => return found.map_err(|error| exception(py, error)),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(exception(py, anyhow!("internal error: the call panicked; please report it")));
            }
        }
    }
}
