//! Errors as Python exceptions.
//!
//! Bad input is a `ValueError`, of a grammar a `GrammarError`, of the file system an `OSError`; a run that was stopped has `Stopped`; failures of
//! computing are `RuntimeError`. An exception of a callback stays what it was.

use fleet::FleetError;
use grammaton::data::corpus::ReadError;
use grammaton::grammar::syntax;
use grammaton::train::trainer::Failure;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use training::model::ModelError;
use training::train::stopped;

create_exception!(
    grammaton,
    GrammarError,
    PyValueError,
    "A grammar that cannot be read; `line` and `column` count from 1."
);
create_exception!(
    grammaton,
    Stopped,
    PyException,
    "A run that was stopped before its end; the message says what is kept of it."
);

/// Options of the command line in messages, and the arguments that do the same.
const OPTIONS: [(&str, &str); 8] = [
    ("--overwrite", "overwrite=True"),
    ("--resume", "resume=True"),
    ("--out DIR", "dir=..."),
    ("--grammar", "grammar"),
    ("--original", "original"),
    ("--tier", "tier"),
    ("--level", "level"),
    ("--format", "format"),
];

/// The exception for an error.
pub fn exception(py: Python<'_>, error: anyhow::Error) -> PyErr {
    let error = match error.downcast::<PyErr>() {
        Ok(raised) => return raised,
        Err(error) => error,
    };
    let mut message = format!("{error:#}");
    for (option, argument) in OPTIONS {
        message = message.replace(option, argument);
    }
    for cause in error.chain() {
        if let Some(found) = cause.downcast_ref::<syntax::GrammarError>() {
            return of_grammar(py, message, found);
        }
        if let Some(found) = cause.downcast_ref::<std::io::Error>() {
            return of_files(py, message, found);
        }
        if let Some(ReadError::Open { error, .. } | ReadError::Read { error, .. }) = cause.downcast_ref() {
            return of_files(py, message, error);
        }
        if let Some(ModelError::Missing { .. }) = cause.downcast_ref() {
            return of_files(py, message, &std::io::ErrorKind::NotFound.into());
        }
        if cause.is::<stopped::Stopped>() {
            return Stopped::new_err(message);
        }
        if cause.is::<FleetError>() || cause.is::<Failure>() {
            return PyRuntimeError::new_err(message);
        }
    }
    if message.starts_with("internal error") {
        PyRuntimeError::new_err(message)
    } else {
        PyValueError::new_err(message)
    }
}

fn of_grammar(py: Python<'_>, message: String, found: &syntax::GrammarError) -> PyErr {
    let raised = GrammarError::new_err(message);
    let value = raised.value(py);
    for (name, number) in [("line", found.at.line), ("column", found.at.column)] {
        if let Err(failed) = value.setattr(name, number) {
            return failed;
        }
    }
    raised
}

/// Python chooses the subclass of `OSError` by the number of the error.
fn of_files(py: Python<'_>, message: String, found: &std::io::Error) -> PyErr {
    let plain: PyErr = std::io::Error::from(found.kind()).into();
    match plain.get_type(py).call1((message.clone(),)) {
        Ok(value) => PyErr::from_value(value),
        Err(_) => PyOSError::new_err(message),
    }
}
