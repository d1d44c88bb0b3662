//! The job that `grammaton segment` writes, over the fleet. Law: `grammaton train` gives the bits of `segment` on every fleet, and after the death
//! of a worker while the voters train.

use std::fs;

use grammaton_tests::Process;
use grammaton_tests::cluster::{Coordinator, check_two_workers, worker_command};
use grammaton_tests::folder::{Folder, Trained, examples};
use grammaton_tests::serving::Serving;

/// More sweeps than fit in a pipe, so that a worker is killed before the end.
const SWEEPS: &str = "250";
/// Two chains of the first grammar, and one of the voter.
const RUNS: u64 = 3;

/// The results of `segment`, and a folder with the job that it wrote.
fn segmented() -> (Trained, Folder) {
    let text = fs::read_to_string(examples().join("segmentation/corpus.txt")).unwrap();
    let text: String = text.split_inclusive('\n').take(25).collect();
    let folder = Folder::new(&[("text.txt", &text)]);
    folder.grammaton(&["segment", "text.txt", "--sweeps", SWEEPS, "--out", "out", "--quiet"]);
    let job = Folder::new(&[
        ("job.toml", &folder.read("out/job.toml")),
        ("corpus.txt", &folder.read("out/corpus.txt")),
        ("vote.txt", &folder.read("out/segmentation.mbr-vote.txt")),
    ]);
    (Trained::read(&folder.path("out")), job)
}

#[test]
#[ignore = "slow"]
fn written_job_gives_the_same_bits_on_every_fleet() {
    let (segmented, job) = segmented();
    assert!(segmented.summary["points"].as_array().unwrap().len() > 1, "{}", segmented.summary);
    let check_vote = |out: &str| {
        assert_eq!(job.read(&format!("{out}/segmentation.mbr-vote.txt")), job.read("vote.txt"), "{out}");
    };

    job.train("one", &["--workers", "1"]).check_equals(&segmented);
    check_vote("one");

    check_two_workers(&job, &segmented);
    check_vote("remote");

    let coordinator = Coordinator::start(&job, "killed", &["--min-workers", "2"]);
    let mut workers = ["alice", "bob"].map(|name| coordinator.worker(name));
    while coordinator.read_event("round")["run"].as_u64() < Some(RUNS) {}
    workers[0].kill();
    let killed = coordinator.finish(&job, "killed");
    assert!(killed.summary["losses"]["disconnected"].as_u64() >= Some(1), "{}", killed.summary);
    killed.check_equals(&segmented);
    check_vote("killed");
    assert_eq!(workers[1].wait().code(), Some(0), "{}", workers[1].log());
}

#[test]
fn example_jobs_train_on_a_part_of_their_corpus() {
    for (folder, job, corpus) in [
        ("segmentation", "words.toml", "corpus.txt"),
        ("segmentation", "function-words.toml", "corpus.txt"),
        ("morphemes", "standard.toml", "words.txt"),
        ("morphemes", "seeded.toml", "words.txt"),
        ("morphemes", "cascade.toml", "words.txt"),
    ] {
        let read = |name: &str| fs::read_to_string(examples().join(folder).join(name));
        let part: String = read(corpus).unwrap().split_inclusive('\n').step_by(40).collect();
        let [prefixes, suffixes] =
            ["prefixes.txt", "suffixes.txt"].map(|name| read(name).unwrap_or_default());
        let made = Folder::new(&[
            ("job.toml", &read(job).unwrap()),
            (corpus, &part),
            ("prefixes.txt", &prefixes),
            ("suffixes.txt", &suffixes),
        ]);
        let trained = made.train("out", &["--set", "inference.max_rounds=4"]);
        assert!(trained.f1("mbr-vote") > 0.0, "{job}: {}", trained.summary);
    }
}

/// Law: `grammar = "auto"` is all that `segment` chooses, wherever the job is trained: grammar, voter, baselines, contexts.
#[test]
#[ignore = "slow"]
fn a_job_without_a_grammar_is_the_job_with_the_chosen_ones() {
    let (segmented, written) = segmented();
    let chosen = ["voter", "baselines", "contexts", "inner_vowels"];
    let is_open = |line: &&str| !chosen.iter().any(|key| line.starts_with(key));
    let open = |line: &str| {
        if line.starts_with("grammar = ") { "grammar = \"auto\"\n".to_owned() } else { format!("{line}\n") }
    };
    let text: String = written.read("job.toml").lines().filter(is_open).map(open).collect();
    let job = Folder::new(&[("job.toml", &text), ("corpus.txt", &written.read("corpus.txt"))]);
    let check_vote = |out: &str| {
        let vote = job.read(&format!("{out}/segmentation.mbr-vote.txt"));
        assert_eq!(vote, written.read("vote.txt"), "{out}");
    };

    job.train("one", &["--workers", "1"]).check_equals(&segmented);
    check_vote("one");
    let chosen = job.read("one/job.toml");
    assert!(chosen.contains("grammar = \"auto:") && chosen.contains("voters = [\"auto:"), "{chosen}");
    let again = job.run(&["train", "job.toml", "--out", "one", "--resume"]);
    assert!(again.code == 0 && again.log.contains("already finished"), "{}", again.log);

    check_two_workers(&job, &segmented);
    check_vote("remote");

    let mut service = Serving::start(&job, &[]);
    let _worker = Process::spawn(&mut worker_command(&service.url, "alice"));
    service.grammaton(&job, &["submit", "job.toml", "--wait"]);
    service.grammaton(&job, &["fetch", "1", "--out", "fetched"]);
    Trained::read(&job.path("fetched")).check_equals(&segmented);
    check_vote("fetched");
    let (code, log) = service.stop();
    assert_eq!(code, Some(0), "{log}");
}
