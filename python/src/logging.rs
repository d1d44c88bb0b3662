//! Logs of the coordinator, and notices of runs, in Python's `logging`.
//!
//! A record of `coordinator::fleet::driver` goes to the logger `grammaton.fleet.driver`. Records below the level that the logger `grammaton` had
//! when a run began cost nothing.

use std::sync::Once;

use log::{LevelFilter, Log, Metadata, Record};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// Passes records to Python.
struct Bridge;

impl Log for Bridge {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Spans are logged under this target; their fields are part of the events.
        !metadata.target().starts_with("tracing::span")
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let target = record.target();
        let module = target.split_once("::").map_or("", |(_, module)| module);
        let name = format!("grammaton.{}", module.replace("::", "."));
        let level = match record.level() {
            log::Level::Error => 40,
            log::Level::Warn => 30,
            log::Level::Info => 20,
            log::Level::Debug => 10,
            log::Level::Trace => 5,
        };
        let message = record.args().to_string();
        // When the interpreter ends there is no logger any more.
        Python::try_attach(|py| {
            if let Err(error) = tell(py, name.trim_end_matches('.'), level, &message) {
                error.write_unraisable(py, None);
            }
        });
    }

    fn flush(&self) {}
}

/// Logs a message at that level of Python's.
pub fn tell(py: Python<'_>, logger: &str, level: u8, message: &str) -> PyResult<()> {
    get_logger(py)?.call1((logger,))?.call_method1("log", (level, "%s", message))?;
    Ok(())
}

fn get_logger<'py>(py: Python<'py>) -> PyResult<&'py Bound<'py, PyAny>> {
    static GET_LOGGER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    GET_LOGGER.import(py, "logging", "getLogger")
}

/// Starts to pass records on, from the level of the logger `grammaton`.
pub fn start(py: Python<'_>) -> PyResult<()> {
    static STARTED: Once = Once::new();
    // Another logger in the process keeps its place.
    STARTED.call_once(|| drop(log::set_logger(&Bridge)));
    let level: u32 = get_logger(py)?.call1(("grammaton",))?.call_method0("getEffectiveLevel")?.extract()?;
    log::set_max_level(match level {
        0..=9 => LevelFilter::Trace,
        10..=19 => LevelFilter::Debug,
        20..=29 => LevelFilter::Info,
        30..=39 => LevelFilter::Warn,
        _ => LevelFilter::Error,
    });
    Ok(())
}
