//! The command `grammaton`.

use std::process::ExitCode;

fn main() -> ExitCode {
    proto::tls::install_provider();
    coordinator::cli::run(std::env::args_os())
}
