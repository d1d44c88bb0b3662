//! Pinned digests of parameters. A changed digest is a change of results, and the commit must say why.

use std::path::{Path, PathBuf};

use assert_cmd::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// First eight digits of the digest of a job, trained with these settings by two threads.
fn digest(job: &str, settings: &[String]) -> String {
    let out = tempfile::tempdir().unwrap();
    let mut command = Command::cargo_bin("grammaton").unwrap();
    command
        .arg("train")
        .arg(root().join(job))
        .arg("--quiet")
        .args(["--workers", "2", "--out"])
        .arg(out.path());
    for setting in settings {
        command.args(["--set", setting]);
    }
    command.assert().success();
    let summary = std::fs::read_to_string(out.path().join("summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    summary["parameters_sha256"].as_str().unwrap()[..8].to_owned()
}

#[test]
fn the_parameters_of_the_example_are_unchanged() {
    assert_eq!(digest("examples/segmentation/job.toml", &[]), "cc810eda");
}

#[test]
#[ignore = "needs corpora that the repository does not have"]
fn with_corpora_the_parameters_of_the_brent_corpus_are_unchanged() {
    let corpus = root().join("../shared/data/wordseg/brent-bernstein-ratner/br-phono.txt");
    let path = format!("corpus.path={}", corpus.canonicalize().unwrap().display());
    for (job, expected) in [("unigram", "3ba25d5e"), ("colloc", "7aff11bc"), ("syllable", "fc3d72e1")] {
        assert_eq!(
            digest(&format!("examples/brent/{job}.toml"), std::slice::from_ref(&path)),
            expected,
            "{job}"
        );
    }
}
