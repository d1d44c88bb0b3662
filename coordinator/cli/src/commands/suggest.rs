//! `grammaton suggest`: the lines of a result whose annotation would teach most.

use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail, ensure};
use basics::atomic_write;
use basics::streams::{self, Stdout};
use training::segmented::Segmented;
use training::suggest::suggest;

use super::Answer;

/// Arguments of `suggest`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n\
    \x20 grammaton suggest results -n 50 --out annotated.txt\n\
    \x20 grammaton suggest results -n 10")]
pub struct Args {
    /// Results of segment, morphemes or train, with boundaries.tsv
    results: PathBuf,
    /// Number of lines
    #[arg(short, long, value_name = "N", default_value = "50")]
    n: NonZeroUsize,
    /// File for the lines, which must not exist [default: standard output]
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Prints the lines as they are segmented now, the most instructive first.
pub fn run(args: &Args) -> Result<Answer> {
    if let Some(path) = args.out.as_ref().filter(|path| path.exists()) {
        bail!("{}: the file exists, and may have annotations; choose another with --out", path.display());
    }
    let text = Segmented::read(&args.results)?;
    let chosen = suggest(&text, args.n.get());
    ensure!(
        !chosen.is_empty(),
        "{}: every boundary is sure, so that no line would teach more than another",
        args.results.display()
    );
    if chosen.len() < args.n.get() {
        let n = chosen.len();
        streams::tell(&format!("notice: {n} lines are suggested; no other has a boundary that is unsure"));
    }
    let lines = chosen.iter().map(|&at| text.line(&text.sentences[at]));
    let Some(path) = &args.out else {
        let mut out = Stdout::lock();
        lines.into_iter().try_for_each(|line| out.line(&line))?;
        out.flush()?;
        return Ok(Answer::Yes);
    };
    let written = || -> std::io::Result<()> {
        let mut file = atomic_write::create(path)?;
        lines.into_iter().try_for_each(|line| writeln!(file, "{line}"))?;
        atomic_write::commit(file, path)
    };
    written().with_context(|| format!("{}: cannot write the lines", path.display()))?;
    Ok(Answer::Yes)
}
