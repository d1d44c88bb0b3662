//! Requirements of tests that not every machine meets: a browser, an S3 server.
//!
//! Without its requirement a test passes, and reports that it was skipped. Two environment variables show skipped tests:
//! - `GRAMMATON_REQUIRE=browser,s3` makes tests fail without one of these.
//! - `GRAMMATON_SKIPPED=FILE` appends a line to `FILE` for each test that is skipped. `.ci/run` prints them at its end.
//!
//! Crates that `tests` depends on include this file by path. `.ci/requirement` does the same for scripts. Tests that need corpora are ignored instead, and fail without them.

use std::env;
use std::fs::OpenOptions;
use std::io::Write as _;

/// Names allowed in `GRAMMATON_REQUIRE`; scripts use some of them.
const NAMES: [&str; 17] = [
    "browser",
    "cargo-deny",
    "corpora",
    "docker",
    "helm",
    "lint",
    "mdbook",
    "musl",
    "namespaces",
    "nightly",
    "openssl",
    "promtool",
    "python",
    "qemu",
    "s3",
    "slurm",
    "snakemake",
];

/// Reports that the running test lacks the requirement `name`. The caller returns and tests nothing.
///
/// # Panics
///
/// If `GRAMMATON_REQUIRE` has this name or an unknown one.
#[track_caller]
pub fn missing(name: &str, why: &str) {
    assert!(NAMES.contains(&name), "`{name}` is not in the list of requirements");
    let required = env::var("GRAMMATON_REQUIRE").unwrap_or_default();
    for required in required.split(',').map(str::trim).filter(|required| !required.is_empty()) {
        assert!(
            NAMES.contains(&required),
            "GRAMMATON_REQUIRE: found `{required}`, expected one of {NAMES:?}"
        );
        assert!(required != name, "GRAMMATON_REQUIRE has `{name}`: {why}");
    }
    let thread = std::thread::current();
    let line = format!("{name}: {}: {why}\n", thread.name().unwrap_or("a test"));
    eprint!("skipped: {line}");
    if let Some(path) = env::var_os("GRAMMATON_SKIPPED") {
        let file = OpenOptions::new().create(true).append(true).open(&path);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .unwrap_or_else(|error| panic!("GRAMMATON_SKIPPED: {}: {error}", path.display()));
    }
}
