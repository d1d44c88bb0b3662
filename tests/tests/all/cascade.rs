//! A cascade in one job (`model.cascade`). Laws: the result is that of a job whose grammar is a file with the affixes of the first run as rules; it
//! has the same bits on every fleet, and after a kill in either run.

use std::collections::BTreeSet;
use std::fs;

use grammaton_tests::cluster::{Coordinator, check_two_workers, worker_command};
use grammaton_tests::folder::{Folder, Trained, examples};
use grammaton_tests::serving::Serving;
use grammaton_tests::{Process, eventually};

const ROUNDS: usize = 60;

fn job(grammar: &str, keys: &str) -> String {
    format!(
        "[model]\ngrammar = \"{grammar}\"\n{keys}[corpus]\npath = \"words.txt\"\n\
         [inference]\nmethod = \"hastings\"\nmax_rounds = {ROUNDS}\nkeep_every = 2\nrestarts = 2\n\
         [output]\ncheckpoint_seconds = 0\nscore_every = 0\n"
    )
}

fn folder(files: &[(&str, &str)]) -> Folder {
    let words = fs::read_to_string(examples().join("morphemes/words.txt")).unwrap();
    let words: String = words.split_inclusive('\n').step_by(20).collect();
    Folder::new(&[&[("words.txt", &words[..])], files].concat())
}

fn cascade() -> Folder {
    folder(&[("job.toml", &job("auto:morph1", "cascade = 5\n"))])
}

/// The strings of a nonterminal that the first run uses most, one per line.
fn most_used(folder: &Folder, nonterminal: &str) -> String {
    let sticks = folder.read("first/model/sticks.tsv");
    let mut rows = sticks.lines().map(|row| row.split('\t').collect::<Vec<_>>());
    let header = rows.next().unwrap();
    let column = |name: &str| header.iter().position(|title| *title == name).unwrap();
    let [of, string, uses] = ["nonterminal", "string", "uses"].map(column);
    let mut found: Vec<(f64, &str)> = rows
        .filter(|row| row[of] == nonterminal)
        .map(|row| (row[uses].parse().unwrap(), row[string]))
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.iter().take(5).map(|(_, string)| format!("{string}\n")).collect()
}

/// The rules of a grammar, without the discounts and concentrations of its adapted nonterminals.
fn with_adaptors_of_the_job(grammar: &str) -> String {
    let rule = |line: &str| {
        let (head, children) = line.split_once(" --> ")?;
        Some(match head.split(' ').collect::<Vec<_>>()[..] {
            [alpha, _discount, _concentration, parent] => format!("{alpha} {parent} --> {children}\n"),
            _ => format!("{line}\n"),
        })
    };
    grammar.lines().filter(|line| !line.starts_with('#')).filter_map(rule).collect()
}

#[test]
fn second_run_is_the_job_with_the_affixes_of_the_first_one() {
    let cascaded = cascade();
    let first = folder(&[("job.toml", &job("auto:morph15", ""))]);
    let shorter = format!("inference.max_rounds={}", ROUNDS / 2);
    first.train("first", &["--set", "inference.restarts=1", "--set", &shorter]);
    let [prefixes, suffixes] = ["PrefixMorph", "SuffixMorph"].map(|name| most_used(&first, name));
    let trained = cascaded.train("out", &[]);
    let grammar = with_adaptors_of_the_job(&cascaded.read("out/model/grammar.txt"));
    for (morph, found) in [("PrefixMorph", prefixes), ("SuffixMorph", suffixes)] {
        // One number: adapted.
        let start = format!("1 {morph} --> ");
        let rules = grammar.lines().filter_map(|line| line.strip_prefix(&start[..]));
        let affixes = rules.filter(|symbols| *symbols != "SubMorphs").map(|symbols| symbols.replace(' ', ""));
        let lines: BTreeSet<String> = found.lines().map(str::to_owned).collect();
        assert_eq!(affixes.collect::<BTreeSet<_>>(), lines);
    }
    let segments = "segments = [\"PrefixMorph\", \"Stem\", \"SuffixMorph\"]\n";
    let second = folder(&[
        ("job.toml", &(job("found.gr", "kind = \"adaptor\"\n") + segments)),
        ("found.gr", &grammar),
    ]);
    assert_eq!(second.train("out", &[]).digest(), trained.digest());
    let vote = "out/segmentation.mbr-vote.txt";
    assert_eq!(second.read(vote), cascaded.read(vote));
}

#[test]
#[ignore = "slow"]
fn same_bits_on_every_fleet_and_after_a_kill_in_either_run() {
    let folder = cascade();
    let one = folder.train("one", &["--workers", "1"]);
    assert_eq!(one.rounds.len(), 2 * ROUNDS);
    assert!(folder.read("one/job.toml").contains("cascade = 5"));
    let again = folder.run(&["train", "job.toml", "--out", "one", "--resume"]);
    assert!(again.code == 0 && again.log.contains("already finished"), "{}", again.log);
    check_two_workers(&folder, &one);

    let args = ["train", "job.toml", "--out", "killed", "--quiet", "--workers", "1", "--resume"];
    let n_files = |path: &str| fs::read_dir(folder.path(path)).map_or(0, Iterator::count);
    for checkpoints in ["killed/checkpoints/first", "killed/checkpoints"] {
        let mut process = Process::spawn(&mut folder.command(&args));
        eventually(&|| process.log(), || n_files(checkpoints) >= 2);
        process.kill();
        let refused = folder.run(&["train", "job.toml", "--out", "killed"]);
        assert!(refused.code == 2 && refused.log.contains("go on from it with --resume"), "{}", refused.log);
    }
    folder.train("killed", &["--resume"]).check_equals(&one);

    let coordinator = Coordinator::start(&folder, "lost", &["--min-workers", "2"]);
    let mut workers = ["alice", "bob"].map(|name| coordinator.worker(name));
    coordinator.read_event("round");
    workers[0].kill();
    coordinator.finish(&folder, "lost").check_equals(&one);

    let mut service = Serving::start(&folder, &[]);
    let _worker = Process::spawn(&mut worker_command(&service.url, "alice"));
    service.grammaton(&folder, &["submit", "job.toml", "--wait"]);
    service.grammaton(&folder, &["fetch", "1", "--out", "fetched"]);
    Trained::read(&folder.path("fetched")).check_equals(&one);
    let (code, log) = service.stop();
    assert_eq!(code, Some(0), "{log}");
}
