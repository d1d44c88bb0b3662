//! The program `grammaton-worker`: `grammaton worker` without the rest, for machines that do nothing else.

use std::process::ExitCode;

use clap::Parser;
use proto::log::{self, Form};
use worker::command::{self, Args, LOG_LEVEL};

/// Memory of static programs.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Compute for a coordinator until its job is finished
#[derive(Parser)]
#[command(name = "grammaton-worker", version, long_version = proto::BUILD, after_help = command::after_help("grammaton-worker"))]
struct Program {
    #[command(flatten)]
    args: Args,
    /// Format of the logs on standard error
    #[arg(help_heading = "Output", long, default_value_t, value_name = "text|json")]
    log: Form,
}

fn main() -> ExitCode {
    proto::tls::install_provider();
    let program = Program::parse();
    match log::start(program.log, LOG_LEVEL) {
        Ok(log) => command::run(&program.args, log),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
