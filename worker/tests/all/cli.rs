//! The command line: help, and errors of usage in one line with exit code 2.

use assert_cmd::Command;

fn worker() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_grammaton-worker"));
    command.env_remove("GRAMMATON_LOG").env_remove(proto::token::TOKEN_VARIABLE).env("NO_COLOR", "1");
    command
}

/// Standard error of a run that must end with exit code 2.
fn refused(arguments: &[&str]) -> String {
    let output = worker().args(arguments).assert().code(2).get_output().clone();
    String::from_utf8(output.stderr).expect("messages are text")
}

#[test]
fn help_names_every_flag() {
    let output = worker().arg("--help").assert().success().get_output().clone();
    let help = String::from_utf8(output.stdout).expect("help is text");
    for flag in [
        "--coordinator",
        "--threads",
        "--token-file",
        "--ca",
        "--cert",
        "--key",
        "--name",
        "--insecure",
        "--give-up-after",
    ] {
        assert!(help.contains(flag), "{flag} is not in\n{help}");
    }
}

#[test]
fn bad_arguments_are_refused_in_one_line() {
    let cases: [(&[&str], &str); 4] = [
        (&["--coordinator", "ftp://host:1"], "ftp://host:1: not the address of a coordinator"),
        (&["--coordinator", "a b"], "a b: not the address of a coordinator"),
        (&["--coordinator", "http://192.0.2.1:1"], "refusing a coordinator beyond loopback without a token"),
        (
            &["--coordinator", "http://127.0.0.1:1", "--token-file", "/nowhere/token"],
            "/nowhere/token: cannot read the token",
        ),
    ];
    for (arguments, message) in cases {
        let error = refused(arguments);
        assert!(error.contains(message) && error.lines().count() == 1, "{arguments:?}: {error}");
    }
    assert!(refused(&[]).contains("--coordinator"));
    assert!(refused(&["--coordinator", "http://127.0.0.1:1", "--threads", "0"]).contains("--threads"));
}

#[test]
fn a_worker_gives_up_if_no_coordinator_appears() {
    let error = refused(&["--coordinator", "http://127.0.0.1:1", "--give-up-after", "0"]);
    assert!(error.contains("could not join the coordinator at http://127.0.0.1:1 for"), "{error}");
}
