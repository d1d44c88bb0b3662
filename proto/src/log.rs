//! Logs of both programs on standard error, as text or JSON, filtered by [`VARIABLE`].
//!
//! A separate thread writes the lines, so that logging never blocks. Lines are dropped when the reader is too slow.

use std::fmt;
use std::io::IsTerminal as _;
use std::str::FromStr;

pub use tracing_appender::non_blocking::WorkerGuard as Guard;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Environment variable that holds the log filter: a level, or levels by module.
pub const VARIABLE: &str = "GRAMMATON_LOG";

/// Format of log lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Form {
    /// Lines of text.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

impl FromStr for Form {
    type Err = String;

    fn from_str(text: &str) -> Result<Form, String> {
        match text {
            "text" => Ok(Form::Text),
            "json" => Ok(Form::Json),
            _ => Err("write text or json".to_owned()),
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Form::Text => "text",
            Form::Json => "json",
        })
    }
}

/// Starts logging; `usual` is the filter if [`VARIABLE`] is not set. Dropping the guard writes the remaining lines.
pub fn start(form: Form, usual: &str) -> Result<Guard, String> {
    let filter = std::env::var(VARIABLE).unwrap_or_else(|_| usual.to_owned());
    let filter: Targets =
        filter.parse().map_err(|error| format!("{VARIABLE}: {error}; set it to a level, as in info"))?;
    let (writer, guard) = tracing_appender::non_blocking(std::io::stderr());
    let log = tracing_subscriber::registry().with(filter);
    let lines = tracing_subscriber::fmt::layer().with_writer(writer);
    match form {
        Form::Json => log.with(lines.json().flatten_event(true).with_current_span(false)).init(),
        Form::Text => {
            let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            log.with(lines.with_ansi(colours)).init();
        }
    }
    Ok(guard)
}
