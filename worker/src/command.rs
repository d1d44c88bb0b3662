//! The command line of a worker, for `grammaton worker` and `grammaton-worker`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use grammaton::work::engine::engine_with;
use proto::log::Guard;
use proto::tls::{ClientTls, IdentityFiles};
use proto::token::{TOKEN_VARIABLE, Token};
use tokio::signal::unix::{SignalKind, signal};

use crate::restart::replace_process;
use crate::{RunError, WorkerConfig};

/// Level of the logs, if nothing else is set.
pub const LOG_LEVEL: &str = "info";

/// What is printed below the options of the command `name`.
pub fn after_help(name: &str) -> String {
    format!(
        "Exit codes: 0 job finished, or stopped by SIGTERM or Ctrl-C (open tasks are finished first; a second signal \
        ends at once); 2 refused, given up, or bad usage.\n\
        A thread that does not stop computing a withdrawn task makes the worker start again as a new process, with the same arguments.\n\
        The token is read from --token-file, else from {TOKEN_VARIABLE}. Logs go to standard error; GRAMMATON_LOG sets their level.\n\n\
        Examples:\n\
        \x20 {name} --coordinator http://127.0.0.1:7600\n\
        \x20 {name} --coordinator https://HOST:7600 --ca ca.pem --cert worker.pem --key worker.key"
    )
}

/// Arguments of a worker.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Coordinator to work for, as http://host:port, or https://host:port with --ca
    #[arg(long, value_name = "URL")]
    coordinator: String,
    /// Tasks to compute at the same time [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(proto::MAX_SLOTS)))]
    threads: Option<u32>,
    /// File that holds the coordinator's token
    #[arg(help_heading = "Security", long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Certificate (PEM) of the authority that signed the coordinator's certificate
    #[arg(help_heading = "Security", long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Certificate (PEM) of this worker, for a coordinator that demands one
    #[arg(help_heading = "Security", long, value_name = "FILE", requires_all = ["ca", "key"])]
    cert: Option<PathBuf>,
    /// Private key (PEM) of --cert
    #[arg(help_heading = "Security", long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Name in the coordinator's logs and summary [default: host and process]
    #[arg(help_heading = "Output", long)]
    name: Option<String>,
    /// Work for a coordinator beyond loopback without token or TLS
    #[arg(help_heading = "Security", long)]
    insecure: bool,
    /// Seconds to keep trying while the coordinator cannot be reached, or its fleet is full
    #[arg(help_heading = "Limits", long, value_name = "SECONDS", default_value_t = 300)]
    give_up_after: u64,
    /// Mebibytes of memory for shards (a quarter) and their forests
    #[arg(help_heading = "Limits", long, value_name = "MIB", default_value_t = 4096)]
    memory: u32,
    /// Folder for forests that do not fit in memory; without it, they are rebuilt in every round
    #[arg(help_heading = "Limits", long, value_name = "DIR")]
    spill: Option<PathBuf>,
}

/// Computes for a coordinator until its job is finished.
pub fn run(args: &Args, log: Guard) -> ExitCode {
    let token = match Token::find(args.token_file.as_deref()) {
        Ok(token) => token,
        Err(error) => return fail(&error.into()),
    };
    let error = match work(args, token.clone()) {
        Ok(()) => return ExitCode::SUCCESS,
        Err(error) => error,
    };
    if !matches!(error.downcast_ref(), Some(RunError::Stuck { .. })) {
        return fail(&error);
    }
    tracing::warn!("{error:#}; starting again with all threads");
    // The log is complete before this process is replaced.
    drop(log);
    let error = replace_process(args.token_file.as_deref(), token.as_ref());
    eprintln!("error: cannot start again: {error}");
    ExitCode::from(2)
}

fn fail(error: &anyhow::Error) -> ExitCode {
    tracing::error!("{error:#}");
    ExitCode::from(2)
}

fn work(args: &Args, token: Option<Token>) -> anyhow::Result<()> {
    let defaults = WorkerConfig::default();
    let identity = match (&args.cert, &args.key) {
        (Some(certificate), Some(key)) => Some(IdentityFiles { certificate, key }),
        _ => None,
    };
    let tls = args.ca.as_deref().map(|ca| ClientTls::read(ca, identity)).transpose()?;
    let spill = match &args.spill {
        Some(folder) => Some(tempfile::tempdir_in(folder).with_context(|| {
            format!(
                "{}: cannot write forests there; make it writable, or choose another --spill",
                folder.display()
            )
        })?),
        None => None,
    };
    let config = WorkerConfig {
        coordinator: args.coordinator.clone(),
        threads: args.threads.unwrap_or(defaults.threads),
        tls,
        token,
        name: args.name.clone().unwrap_or_else(host_and_process),
        insecure: args.insecure,
        give_up_after: Duration::from_secs(args.give_up_after),
        cache_bytes: u64::from(args.memory) << 18,
        compute: engine_with((args.memory as usize) * (3 << 18), spill.as_ref().map(|spill| spill.path())),
    };
    // One thread for the network: with more, each message would wake several threads on its way. Large values are decoded elsewhere.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the network's thread")?;
    let result = runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for Ctrl-C")?;
        let shutdown = async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            tokio::spawn(async move {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
                std::process::exit(2);
            });
        };
        Ok(crate::run(config, shutdown).await?)
    });
    // Exits at once: threads may still compute tasks that are no longer needed.
    runtime.shutdown_background();
    result
}

/// Name of this machine, or `worker` if the system does not say it.
pub fn host() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if host.trim().is_empty() { "worker".to_owned() } else { host.trim().to_owned() }
}

fn host_and_process() -> String {
    format!("{}-{}", host(), std::process::id())
}
