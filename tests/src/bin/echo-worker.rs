//! A worker that computes with [`grammaton_tests::echo`], for tests that kill processes. It reports on standard error when it begins a task
//! that takes longer than any test.

use std::sync::Arc;

use grammaton_tests::{SOON, duration_of, echo};
use worker::{RunError, WorkerConfig, restart};

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let coordinator = arguments.next().unwrap_or_default();
    let name = arguments.next().unwrap_or_default();
    let config = WorkerConfig {
        coordinator,
        name,
        threads: 1,
        compute: Arc::new(|task| {
            if duration_of(task) > SOON {
                eprintln!("a long task begins");
            }
            echo(task)
        }),
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
