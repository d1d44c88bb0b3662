//! A worker that computes with [`grammaton_tests::echo`], for tests that kill processes.

use std::sync::Arc;

use worker::{RunError, WorkerConfig, restart};

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let coordinator = arguments.next().unwrap_or_default();
    let name = arguments.next().unwrap_or_default();
    let config = WorkerConfig {
        coordinator,
        name,
        threads: 1,
        compute: Arc::new(grammaton_tests::echo),
        ..WorkerConfig::default()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let result = runtime.block_on(worker::run(config, std::future::pending()));
    runtime.shutdown_background();
    if let Err(error @ RunError::Stuck { .. }) = &result {
        eprintln!("{error}; starting again");
        return Err(restart::replace_process(None, None).into());
    }
    Ok(result?)
}
