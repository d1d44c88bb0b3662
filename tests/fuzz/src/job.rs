//! Job files: an accepted job is unchanged after it is written and read again.

use std::path::Path;
use std::time::Duration;

use training::job::Job;

use crate::bounds::Bounds;

/// Of a job that is read; the largest part of the constant is the table of keys.
const BOUNDS: Bounds =
    Bounds { memory: (2 << 20, 500), time: (Duration::from_millis(500), Duration::from_micros(50)) };

/// Input: a job file; lines after a NUL are overrides.
pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (text, overrides) = text.split_once('\0').unwrap_or((&text, ""));
    let overrides: Vec<String> = overrides.lines().map(str::to_owned).collect();
    let folder = Path::new("/jobs");
    let read = || Job::parse(text, "job.toml", folder, &overrides);
    let Ok(job) = BOUNDS.check(data.len(), read) else { return };
    let written = job.to_toml();
    let again = Job::parse(&written, "job.toml", Path::new("/elsewhere"), &[])
        .unwrap_or_else(|error| panic!("{written}\n{error}"));
    assert_eq!(again.to_toml(), written);
}

/// Jobs with few keys, with all keys, with overrides.
pub fn seeds() -> Vec<Vec<u8>> {
    let plain = "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"corpus.txt\"\n";
    let all = Job::parse(plain, "job.toml", Path::new("/jobs"), &[]).expect("the text is a job").to_toml();
    let overrides = format!(
        "{plain}\0inference.seed=7\noutput.segments=[\"Word\", \"X\"]\noutput.checkpoints=s3://bucket/prefix\n\
         corpus.unit=token\ninference.fit=[]\n"
    );
    let mixture =
        "[model]\nkind = \"dmv\"\n[corpus]\npath = \"c.conllu\"\n[inference]\nprior = \"logistic-normal\"\n\
         components = [\"short-dep\", { name = \"x\", roots = [\"verb\"], forbid = [{ side = \"left\" }] }]\n\
         mixture = [\"x <= 2 * short-dep\"]\nbase_to = 0.9\n"
            .to_owned();
    [plain.to_owned(), all, overrides, mixture].map(String::into_bytes).to_vec()
}
