//! Command line of the worker.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Parser;
use grammaton::work::engine::engine_with;
use proto::log::{self, Form};
use proto::tls::{ClientTls, IdentityFiles};
use proto::token::{TOKEN_VARIABLE, Token};
use tokio::signal::unix::{SignalKind, signal};
use worker::{RunError, WorkerConfig, restart};

/// Memory of static programs.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Compute for a Grammaton coordinator until its job is finished.
#[derive(Parser)]
#[command(name = "grammaton-worker", version, long_version = proto::BUILD, after_help = format!(
    "Exit codes: 0 job finished, or stopped by SIGTERM or Ctrl-C (open tasks are finished first; a second signal \
    ends at once); 2 refused, given up, or bad usage.\n\
     A thread that does not stop computing a withdrawn task makes the worker start again as a new process, with the same arguments.\n\
     The token is read from --token-file, else from {TOKEN_VARIABLE}. Logs go to standard error; GRAMMATON_LOG sets their level.\n\n\
     Examples:\n\
     \x20 grammaton-worker --coordinator http://127.0.0.1:7600\n\
     \x20 grammaton-worker --coordinator https://HOST:7600 --ca ca.pem --cert worker.pem --key worker.key"
))]
struct Arguments {
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
    /// Format of the logs on standard error
    #[arg(help_heading = "Output", long, default_value_t, value_name = "text|json")]
    log: Form,
    /// Mebibytes of memory for shards (a quarter) and their forests
    #[arg(help_heading = "Limits", long, value_name = "MIB", default_value_t = 4096)]
    memory: u32,
    /// Folder for forests that do not fit in memory; without it, they are rebuilt in every round
    #[arg(help_heading = "Limits", long, value_name = "DIR")]
    spill: Option<PathBuf>,
}

fn main() -> ExitCode {
    proto::tls::install_provider();
    let arguments = Arguments::parse();
    let log = match log::start(arguments.log, "info") {
        Ok(log) => log,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    let token = match Token::find(arguments.token_file.as_deref()) {
        Ok(token) => token,
        Err(error) => return fail(&error.into()),
    };
    let error = match start(&arguments, token.clone()) {
        Ok(()) => return ExitCode::SUCCESS,
        Err(error) => error,
    };
    if !matches!(error.downcast_ref(), Some(RunError::Stuck { .. })) {
        return fail(&error);
    }
    tracing::warn!("{error:#}; starting again with all threads");
    // The log is complete before this process is replaced.
    drop(log);
    let error = restart::replace_process(arguments.token_file.as_deref(), token.as_ref());
    eprintln!("error: cannot start again: {error}");
    ExitCode::from(2)
}

fn fail(error: &anyhow::Error) -> ExitCode {
    tracing::error!("{error:#}");
    ExitCode::from(2)
}

fn start(arguments: &Arguments, token: Option<Token>) -> anyhow::Result<()> {
    let defaults = WorkerConfig::default();
    let identity = match (&arguments.cert, &arguments.key) {
        (Some(certificate), Some(key)) => Some(IdentityFiles { certificate, key }),
        _ => None,
    };
    let tls = arguments.ca.as_deref().map(|ca| ClientTls::read(ca, identity)).transpose()?;
    let spill = match &arguments.spill {
        Some(folder) => Some(tempfile::tempdir_in(folder).with_context(|| {
            format!(
                "{}: cannot write forests there; make it writable, or choose another --spill",
                folder.display()
            )
        })?),
        None => None,
    };
    let config = WorkerConfig {
        coordinator: arguments.coordinator.clone(),
        threads: arguments.threads.unwrap_or(defaults.threads),
        tls,
        token,
        name: arguments.name.clone().unwrap_or_else(host_and_process),
        insecure: arguments.insecure,
        give_up_after: Duration::from_secs(arguments.give_up_after),
        cache_bytes: u64::from(arguments.memory) << 18,
        compute: engine_with(
            (arguments.memory as usize) * (3 << 18),
            spill.as_ref().map(|spill| spill.path()),
        ),
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
        Ok(worker::run(config, shutdown).await?)
    });
    // Exits at once: threads may still compute tasks that are no longer needed.
    runtime.shutdown_background();
    result
}

fn host_and_process() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = if host.trim().is_empty() { "worker" } else { host.trim() };
    format!("{host}-{}", std::process::id())
}
