//! Compiles `v1/*.proto` in pure Rust, without a system protoc, keeps their description, and describes the build for `--version`.

/// Messages of the coordinator's status that are also printed as JSON, under the names of the .proto file.
const PRINTED: [&str; 8] = [
    "Snapshot",
    "JobSnapshot",
    "CheckpointSnapshot",
    "FleetSnapshot",
    "LeaseSnapshot",
    "MemberSnapshot",
    "JobInfo",
    "LogLine",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=v1");
    let files = protox::compile(["work.proto", "status.proto", "jobs.proto"], ["v1"])?;
    let descriptors = std::path::Path::new(&std::env::var("OUT_DIR")?).join("descriptors.bin");
    std::fs::write(descriptors, prost::Message::encode_to_vec(&files))?;
    let mut code = tonic_prost_build::configure().bytes(".").btree_map(".");
    for message in PRINTED {
        code = code.type_attribute(format!("grammaton.v1.{message}"), "#[derive(serde::Serialize)]");
    }
    code.compile_fds(files)?;
    describe()?;
    Ok(())
}

/// Passes on the version, the commit of a release build if it is known, and the target.
///
/// The commit is the variable `GRAMMATON_COMMIT`, or else asked of git. A debug build has none, so that a commit recompiles nothing.
fn describe() -> Result<(), std::env::VarError> {
    println!("cargo::rerun-if-env-changed=GRAMMATON_COMMIT");
    let (version, target) = (std::env::var("CARGO_PKG_VERSION")?, std::env::var("TARGET")?);
    let commit = std::env::var("GRAMMATON_COMMIT").ok().or_else(commit).unwrap_or_default();
    let named = if commit.is_empty() { String::new() } else { format!("commit {commit}, ") };
    println!("cargo::rustc-env=GRAMMATON_BUILD={version} ({named}{target})");
    println!("cargo::rustc-env=GRAMMATON_BUILT_COMMIT={commit}");
    Ok(())
}

fn commit() -> Option<String> {
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "debug") {
        return None;
    }
    let git = |args: &[&str]| {
        let output = std::process::Command::new("git").args(args).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    if std::path::Path::new(&log).exists() {
        println!("cargo::rerun-if-changed={log}");
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}
