//! Replacement of the process of a worker by a new one with the same arguments, since threads cannot be killed.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use proto::token::{TOKEN_VARIABLE, Token};

/// Replaces this process by a new one of the same program. Returns only if that fails.
///
/// A token that was read from a pipe or a terminal cannot be read again: it is in `token`, and passed on in the environment.
pub fn replace_process(token_file: Option<&Path>, token: Option<&Token>) -> io::Error {
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return error,
    };
    let mut command = Command::new(program);
    let mut arguments = std::env::args_os();
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    match (token_file, token) {
        (Some(file), Some(token)) if !file.is_file() => {
            command.env(TOKEN_VARIABLE, token.secret()).args(without_token_file(arguments))
        }
        _ => command.args(arguments),
    };
    command.exec()
}

/// Arguments without `--token-file FILE` and `--token-file=FILE`.
fn without_token_file(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let option = OsStr::new("--token-file");
    let (mut kept, mut is_file) = (Vec::new(), false);
    for argument in arguments {
        let is_option = argument == option || argument.as_encoded_bytes().starts_with(b"--token-file=");
        if !is_option && !is_file {
            kept.push(argument.clone());
        }
        is_file = argument == option && !is_file;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_is_removed_in_both_forms() {
        let arguments = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        for (given, kept) in [
            ("--name a --threads 2", "--name a --threads 2"),
            ("--name a --token-file /dev/stdin --threads 2", "--name a --threads 2"),
            ("--token-file=/dev/fd/63 --name a", "--name a"),
            ("--name a --token-file --token-file", "--name a"),
        ] {
            assert_eq!(without_token_file(arguments(given).into_iter()), arguments(kept));
        }
    }
}
