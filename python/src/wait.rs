//! Waiting without the interpreter lock, in which Ctrl-C is heard.

use std::sync::OnceLock;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use anyhow::{Result, anyhow};
use pyo3::prelude::*;

use crate::error::exception;

/// Time between two looks at Python's signals.
pub const LOOK: Duration = Duration::from_millis(50);

/// The thread that ends the interpreter, from then on.
static ENDING: OnceLock<ThreadId> = OnceLock::new();

/// Takes note that this thread ends the interpreter.
pub fn interpreter_ends() {
    ENDING.get_or_init(|| thread::current().id());
}

/// Calls `work` without the interpreter lock.
///
/// When the interpreter has ended, Python up to 3.13 ends a daemon thread that asks for the lock again, in the middle of its calls, which crashes the process
/// if some are in Rust. So such a thread stays here until the process is gone.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    py.detach(|| {
        let found = work();
        while ENDING.get().is_some_and(|&ending| ending != thread::current().id()) {
            thread::park();
        }
        found
    })
}

/// Calls `work` on another thread and waits for it. A signal handler that raises ends the waiting; `work` then ends by itself, unheard.
pub fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> PyResult<T> {
    let (answer, mut answered) = mpsc::channel();
    thread::Builder::new().name("grammaton-call".into()).spawn(move || answer.send(work()))?;
    loop {
        // Exclusive, as a receiver is not shared between threads.
        let answered = &mut answered;
        match detached(py, move || answered.recv_timeout(LOOK)) {
            Ok(found) => return found.map_err(|error| exception(py, error)),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(exception(py, anyhow!("internal error: the call panicked; please report it")));
            }
        }
    }
}
