//! The command `grammaton`.

use std::process::ExitCode;

fn main() -> ExitCode {
    coordinator::cli::run(std::env::args_os())
}
