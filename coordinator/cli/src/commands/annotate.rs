//! `grammaton annotate`: annotates the lines of a result on a local page, and shows what is learned from them.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use basics::streams::Stdout;
use service::annotate::Page;

use super::Answer;
use crate::signals::Signals;

/// Arguments of `annotate`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n\
    \x20 grammaton annotate results\n\
    \x20 grammaton annotate results --annotations annotated.txt --port 8000")]
pub struct Args {
    /// Results of segment, morphemes or train, with boundaries.tsv
    results: PathBuf,
    /// File of the annotations; created at the first one, and read if it exists [default: annotated.txt in RESULTS]
    #[arg(long, value_name = "FILE")]
    annotations: Option<PathBuf>,
    /// Port of the page on 127.0.0.1; 0 chooses a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
}

/// Prints the address of the page, and serves it until a signal comes.
pub fn run(args: &Args) -> Result<Answer> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.context("cannot start a runtime for the page")?;
    let file = args.annotations.clone().unwrap_or_else(|| args.results.join("annotated.txt"));
    let served = runtime.block_on(async {
        let mut signals = Signals::listen()?;
        let page = Page::open(&args.results, &file, args.port).await?;
        let mut out = Stdout::lock();
        out.line(&page.url())?;
        out.flush()?;
        drop(out);
        tokio::select! {
            served = page.serve() => served,
            _ = signals.next() => Ok(()),
        }
    });
    runtime.shutdown_background();
    served.map(|()| Answer::Yes)
}
