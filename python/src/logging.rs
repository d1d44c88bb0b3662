//! Logs of the coordinator, and notices of runs, in Python's `logging`.
//!
//! An event of `fleet::driver` goes to the logger `grammaton.fleet.driver`. Events below the level that the logger `grammaton` had
//! when a run began cost next to nothing.

use std::fmt::{Debug, Write as _};
use std::sync::Once;
use std::sync::atomic::{AtomicU8, Ordering};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber, callsite};

/// Lowest of Python's levels that is passed on.
static LOWEST: AtomicU8 = AtomicU8::new(WARNING);

/// Python's numbers of levels; tracing's `TRACE` has none there.
const TRACE: u8 = 5;
const DEBUG: u8 = 10;
const INFO: u8 = 20;
const WARNING: u8 = 30;
const ERROR: u8 = 40;

/// Passes events to Python. Spans are left out: what they say is also in the events.
struct Bridge;

impl Subscriber for Bridge {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if metadata.is_span() { Interest::never() } else { Interest::sometimes() }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && python_level(*metadata.level()) >= LOWEST.load(Ordering::Relaxed)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(match LOWEST.load(Ordering::Relaxed) {
            0..DEBUG => LevelFilter::TRACE,
            DEBUG..INFO => LevelFilter::DEBUG,
            INFO..WARNING => LevelFilter::INFO,
            WARNING..ERROR => LevelFilter::WARN,
            _ => LevelFilter::ERROR,
        })
    }

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let name = format!("grammaton.{}", metadata.target().replace("::", "."));
        let mut text = Text::default();
        event.record(&mut text);
        let message = text.message + &text.fields;
        // When the interpreter ends there is no logger any more.
        Python::try_attach(|py| {
            let level = python_level(*metadata.level());
            if let Err(error) = tell(py, name.trim_end_matches('.'), level, &message) {
                error.write_unraisable(py, None);
            }
        });
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

fn python_level(level: Level) -> u8 {
    match level {
        Level::ERROR => ERROR,
        Level::WARN => WARNING,
        Level::INFO => INFO,
        Level::DEBUG => DEBUG,
        Level::TRACE => TRACE,
    }
}

/// The message of an event, and its other fields as ` name=value`.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let written = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
        debug_assert!(written.is_ok(), "text grows");
    }
}

/// Logs a message at that level of Python's.
fn tell(py: Python<'_>, logger: &str, level: u8, message: &str) -> PyResult<()> {
    get_logger(py)?.call1((logger,))?.call_method1("log", (level, "%s", message))?;
    Ok(())
}

fn get_logger<'py>(py: Python<'py>) -> PyResult<&'py Bound<'py, PyAny>> {
    static GET_LOGGER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    GET_LOGGER.import(py, "logging", "getLogger")
}

/// Starts to pass events on, from the level of the logger `grammaton`.
pub fn start(py: Python<'_>) -> PyResult<()> {
    static STARTED: Once = Once::new();
    let level: u32 = get_logger(py)?.call1(("grammaton",))?.call_method0("getEffectiveLevel")?.extract()?;
    LOWEST.store(u8::try_from(level).unwrap_or(u8::MAX), Ordering::Relaxed);
    // No other subscriber is set: the library is the extension's own.
    STARTED.call_once(|| drop(tracing::subscriber::set_global_default(Bridge)));
    callsite::rebuild_interest_cache();
    Ok(())
}
