//! Sentences whose forests are larger than the memory of a worker.

use grammaton_tests::Process;
use grammaton_tests::cluster::Coordinator;
use grammaton_tests::folder::Folder;

/// A job with a sentence of 170 symbols, whose forest takes more than the 64 MiB that every process has for one, and short ones.
fn folder() -> Folder {
    let long = vec!["a"; 170].join(" ");
    // Rules of few nonterminals would make the grammar dense, so that it needs no forests.
    let grammar = "1 1 S --> S S\n1 1 S --> a\n1 1 S --> T a\n1 1 T --> U a\n1 1 U --> V a\n1 1 V --> a a\n";
    Folder::new(&[
        ("g.gr", grammar),
        ("corpus.txt", &format!("a a a\n{long}\na a\n")),
        (
            "job.toml",
            "[model]\nkind = \"pcfg\"\ngrammar = \"g.gr\"\n[corpus]\npath = \"corpus.txt\"\nformat = \"tokens\"\nshard_symbols = 2\n\
             [inference]\nmethod = \"em\"\nmax_rounds = 3\ntolerance = 0\n",
        ),
    ])
}

#[test]
fn a_worker_with_too_little_memory_leaves_a_sentence_to_another_and_stays() {
    let folder = folder();
    let expected = folder.train("expected", &[]);
    let coordinator = Coordinator::start(&folder, "out", &["--min-workers", "2"]);
    let workers = [("small", "1"), ("large", "3072")]
        .map(|(name, memory)| coordinator.worker_with(name, &["--memory", memory]));
    let (trained, log) = coordinator.finish_with_log(&folder, "out");
    assert_eq!(trained.digest(), expected.digest());
    assert!(!log.contains("expelled"), "{log}");
    for mut worker in workers {
        assert_eq!(worker.wait().code(), Some(0), "{}", worker.log());
    }
}

/// Law: in one process and with workers, the line is named.
#[test]
fn a_sentence_beyond_the_memory_of_every_worker_ends_the_job_in_one_line() {
    let folder = folder();
    let mut coordinator = Coordinator::start(&folder, "out", &[]);
    let _worker = coordinator.worker_with("small", &["--memory", "1"]);
    assert_eq!(coordinator.process.wait().code(), Some(2));
    let log = coordinator.process.log();
    let last = log.trim_end().lines().last().unwrap_or_default();
    assert!(last.contains("the longest sentence of the task has 170 symbols: corpus.txt:2: a a a"), "{log}");
    assert!(last.contains("lacks memory: a sentence of 170 symbols") && last.contains("--memory"), "{log}");

    let mut alone =
        Process::spawn(&mut folder.command(&["train", "job.toml", "--out", "alone", "--memory", "1"]));
    assert_eq!(alone.wait().code(), Some(2));
    assert!(alone.log().contains("has 170 symbols: corpus.txt:2: a a a"), "{}", alone.log());
}
