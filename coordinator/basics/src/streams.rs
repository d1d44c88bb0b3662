//! Standard output and standard error, which their reader may close (`grammaton parse … | head`).
//!
//! Closed standard output is not an error: the run ends silently. It has an error type of its own, so that no other broken pipe is
//! mistaken for it. If standard error is closed, messages are dropped and the run continues.

use std::io::{self, BufWriter, StdoutLock, Write};

use serde::Serialize;

use crate::human::{visible, visible_json};

/// Standard output was closed by its reader.
#[derive(Debug, thiserror::Error)]
#[error("standard output is closed")]
pub struct Closed;

/// Buffered standard output.
pub struct Stdout(BufWriter<StdoutLock<'static>>);

impl Stdout {
    /// Locks standard output.
    pub fn lock() -> Stdout {
        Stdout(BufWriter::new(io::stdout().lock()))
    }

    /// Writes a line.
    pub fn line(&mut self, line: &str) -> anyhow::Result<()> {
        self.text(line)?;
        self.text("\n")
    }

    /// Writes text without a line end.
    pub fn text(&mut self, text: &str) -> anyhow::Result<()> {
        self.0.write_all(text.as_bytes()).map_err(explain)
    }

    /// Flushes the buffer.
    pub fn flush(&mut self) -> anyhow::Result<()> {
        self.0.flush().map_err(explain)
    }
}

/// Writes lines to standard error, all of them visible.
pub fn tell(lines: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", visible_lines(lines));
}

/// Writes lines that have text of others (names, errors, logs) to standard output at once, all of them visible.
pub fn show(lines: &str) -> anyhow::Result<()> {
    print(&(visible_lines(lines) + "\n"))
}

/// Writes a value as JSON, on several lines, to standard output at once.
pub fn show_json(value: &impl Serialize) -> anyhow::Result<()> {
    let json = serde_json::to_string_pretty(value)?;
    print(&format!("{}\n", visible_json(&json)))
}

fn visible_lines(lines: &str) -> String {
    lines.split('\n').map(visible).collect::<Vec<_>>().join("\n")
}

/// Writes `text` to standard output at once.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut out = Stdout::lock();
    out.text(text)?;
    out.flush()
}

fn explain(error: io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Closed.into(),
        _ => anyhow::Error::new(error).context("cannot write to standard output"),
    }
}
