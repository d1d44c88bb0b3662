//! The command `grammaton`.

use std::process::ExitCode;

/// Memory of static programs.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    proto::tls::install_provider();
    cli::run(std::env::args_os())
}
