//! Standard output and standard error, either of which may be closed by whoever reads it (`grammaton parse … | head`).
//!
//! Closed output is no error: the run ends silently. The type says so, so that no other broken pipe is mistaken for
//! it. With standard error closed there is nobody to tell, and the run goes on.

use std::io::{self, BufWriter, StdoutLock, Write};

/// The reader of standard output has gone.
#[derive(Debug, thiserror::Error)]
#[error("standard output is closed")]
pub struct Closed;

/// Buffered standard output.
pub struct Stdout(BufWriter<StdoutLock<'static>>);

impl Stdout {
    /// Takes standard output.
    pub fn lock() -> Stdout {
        Stdout(BufWriter::new(io::stdout().lock()))
    }

    /// Writes a line.
    pub fn line(&mut self, line: &str) -> anyhow::Result<()> {
        self.text(line)?;
        self.text("\n")
    }

    /// Writes text as it is.
    pub fn text(&mut self, text: &str) -> anyhow::Result<()> {
        self.0.write_all(text.as_bytes()).map_err(explain)
    }

    /// Hands on what is buffered.
    pub fn flush(&mut self) -> anyhow::Result<()> {
        self.0.flush().map_err(explain)
    }
}

/// Writes a line to standard error.
pub fn tell(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
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
