//! The command line: exit codes and output of the real binary.

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use tempfile::TempDir;

pub fn grammaton(args: &[&str]) -> Assert {
    Command::cargo_bin("grammaton")
        .expect("the binary is built before its tests")
        .env_remove("GRAMMATON_TOKEN")
        .args(args)
        .assert()
}

/// A folder with these files.
pub fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, content) in files {
        fs::write(dir.path().join(name), content).unwrap();
    }
    dir
}

pub fn at(dir: &TempDir, name: &str) -> String {
    dir.path().join(name).display().to_string()
}

pub fn stdout(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

/// Checks for exit code 2, and one line on standard error with all of `parts`.
pub fn refused(args: &[&str], parts: &[&str]) {
    let assert = grammaton(args).code(2);
    let printed = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
    assert!(printed.starts_with("error: ") && printed.trim_end().lines().count() == 1, "{printed}");
    for part in parts {
        assert!(printed.contains(part), "{part:?} is not in: {printed}");
    }
}

const JOB: &str = "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"corpus.txt\"\n";

const GRAMMAR: &[u8] =
    b"1 1 S --> Ws\n2 1 Ws --> Word\n1 1 Ws --> Word Ws\n1 1 Word --> L\n1 1 Word --> L Word\n\
    1 1 L --> a\n1 1 L --> b\n";

#[test]
fn help_names_every_command() {
    let help = stdout(&grammaton(&["--help"]).success());
    for command in [
        "segment",
        "train",
        "parse",
        "eval",
        "sample",
        "inspect",
        "plan",
        "bench",
        "Exit codes",
        "GRAMMATON_LOG",
    ] {
        assert!(help.contains(command), "{command}");
    }
    let help = stdout(&grammaton(&["plan", "--help"]).success());
    let flags = ["--workers", "--threads", "--bandwidth", "--latency", "--cores", "--cpu-seconds", "--seed"];
    for flag in flags.into_iter().chain(["--set", "--rounds", "--json"]) {
        assert!(help.contains(flag), "{flag}");
    }
    let help = stdout(&grammaton(&["bench", "--help"]).success());
    for flag in ["--sentences", "--threads", "--grammar", "--rounds", "--seed", "--json"] {
        assert!(help.contains(flag), "{flag}");
    }
    let help = stdout(&grammaton(&["train", "--help"]).success());
    let flags = ["--out", "--set", "--workers", "--listen", "--min-workers", "--max-workers", "--token-file"];
    let more = ["--insecure", "--quiet", "--no-workers-grace", "--dead-after", "--lease-deadline", "--audit"];
    for flag in flags.into_iter().chain(more) {
        assert!(help.contains(flag), "{flag}");
    }
    let version = stdout(&grammaton(&["--version"]).success());
    assert_eq!(version, format!("grammaton {}\n", proto::BUILD));
    let start = format!("{} (", env!("CARGO_PKG_VERSION"));
    assert!(proto::BUILD.starts_with(&start) && proto::BUILD.contains("linux"), "{version}");
    let short = stdout(&grammaton(&["-V"]).success());
    assert_eq!(short, format!("grammaton {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn help_has_groups() {
    let help = stdout(&grammaton(&["train", "--help"]).success());
    let of = |heading: &str| help.find(&format!("\n{heading}:\n")).unwrap_or_else(|| panic!("{heading}"));
    assert!(of("Options") < of("Output") && of("Output") < of("Workers") && of("Workers") < of("Security"));
    assert!(help.trim_end().ends_with("--token-file token --min-workers 2"), "{help}");
}

#[test]
fn completions_and_man_pages_name_every_command() {
    let commands = ["segment", "train", "parse", "submit"];
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout(&grammaton(&["completions", shell]).success());
        assert!(commands.iter().all(|command| script.contains(command)), "{shell}");
        assert!(script.contains("min-workers"), "{shell}");
    }
    let dir = folder(&[("file", b"")]);
    grammaton(&["man", &at(&dir, "pages")]).success();
    let pages = fs::read_to_string(dir.path().join("pages/grammaton-train.1")).unwrap();
    assert!(pages.contains("min\\-workers") && pages.contains("Examples"), "{pages}");
    for command in commands {
        assert!(dir.path().join(format!("pages/grammaton-{command}.1")).exists(), "{command}");
    }
    refused(&["man", &at(&dir, "file/pages")], &["file/pages", "cannot create the folder"]);
    refused(&["completions", "dos"], &["dos", "zsh"]);
}

#[test]
fn errors_of_usage_are_one_line() {
    refused(&["trian"], &["some similar subcommands exist: 'treebank', 'train'"]);
    refused(&["train"], &["<JOB>"]);
    refused(&["train", "job.toml", "--workers", "0"], &["--workers"]);
    refused(&["train", "job.toml", "--insecure"], &["--listen"]);
    refused(&["train", "job.toml", "--audit", "0.1"], &["--listen"]);
    let listen = ["train", "job.toml", "--listen", "127.0.0.1:0"];
    refused(&[&listen[..], &["--audit", "2"]].concat(), &["--audit", "from 0 to 1"]);
    refused(&[&listen[..], &["--dead-after", "1"]].concat(), &["--dead-after", "heartbeat", "3s"]);
}

#[test]
fn plan_estimates_a_job_on_clusters() {
    let dir = folder(&[("job.toml", JOB.as_bytes()), ("corpus.txt", b"ab a\nb ab\na\n")]);
    let job = at(&dir, "job.toml");
    let args = ["plan", &job, "--workers", "1,3", "--rounds", "1", "--json"];
    let report: serde_json::Value = serde_json::from_str(&stdout(&grammaton(&args).success())).unwrap();
    let forecasts = report["forecasts"].as_array().unwrap();
    assert_eq!(forecasts.iter().map(|one| one["workers"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 3]);
    for forecast in forecasts {
        let efficiency = forecast["efficiency"].as_f64().unwrap();
        assert!(efficiency > 0.0 && efficiency <= 1.0, "{forecast}");
    }
    assert_eq!(report["measured"]["sentences"], 3);
    let text = stdout(&grammaton(&args[..args.len() - 1]).success());
    assert!(text.contains("3 sentences in") && text.contains("bottleneck"), "{text}");
    assert!(!dir.path().join("out").exists(), "nothing is written");
}

/// Law: every job that `train` takes has a plan and an estimate.
#[test]
fn chains_and_open_choices_have_a_plan_and_an_estimate() {
    let chains = "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"corpus.txt\"\n[inference]\nmethod = \"hastings\"\n";
    let open = chains.replace("auto:unigram", "auto");
    for job in [chains, &open] {
        let dir = folder(&[("job.toml", job.as_bytes()), ("corpus.txt", b"baba ba\nba baba\nba\n")]);
        let args = ["plan", &at(&dir, "job.toml"), "--workers", "2", "--rounds", "1", "--json"];
        let report: serde_json::Value = serde_json::from_str(&stdout(&grammaton(&args).success())).unwrap();
        assert_eq!(report["measured"]["sentences"], 3, "{report}");
        let checked = grammaton(&["check", &at(&dir, "job.toml"), "--json"]).success();
        let checked: serde_json::Value = serde_json::from_str(&stdout(&checked)).unwrap();
        assert_eq!(checked["estimate"]["rounds"], 40, "{checked}");
    }
}

#[test]
fn plan_refuses_invalid_options() {
    let dir = folder(&[("job.toml", JOB.as_bytes()), ("corpus.txt", b"ab a\n")]);
    let job = at(&dir, "job.toml");
    let cases = [
        (["--workers", "0"], "--workers"),
        (["--workers", "2,x"], "--workers"),
        (["--threads", "0"], "--threads"),
        (["--bandwidth", "0"], "above 0"),
        (["--latency", "far"], "milliseconds"),
        (["--cores", "0"], "--cores"),
        (["--rounds", "0"], "--rounds"),
        (["--cpu-seconds", "1e9"], "larger shards"),
        (["--set", "corpus.shrad_symbols=3"], "did you mean \"shard_symbols\""),
    ];
    for (args, part) in cases {
        refused(&[&["plan", &job][..], &args].concat(), &[part]);
    }
    refused(&["plan", &at(&dir, "absent.toml")], &["absent.toml", "No such file"]);
}

#[test]
fn bench_trains_on_generated_sentences() {
    let args = ["bench", "--sentences", "40", "--threads", "1", "--rounds", "1", "--json"];
    let report: serde_json::Value = serde_json::from_str(&stdout(&grammaton(&args).success())).unwrap();
    let trial = &report["trials"][0];
    assert_eq!((&trial["sentences"], &trial["by"], &trial["n"]), (&40.into(), &"threads".into(), &1.into()));
    assert!(trial["symbols"].as_u64().unwrap() > 100 && trial["efficiency"] == 1.0, "{trial}");
    let dir = folder(&[("grammar.lt", GRAMMAR)]);
    let grammar = at(&dir, "grammar.lt");
    let text = stdout(&grammaton(&[&args[..args.len() - 1], &["--grammar", &grammar]].concat()).success());
    assert!(
        text.contains("1 threads") && (text.contains("two workers") || text.contains("not tried")),
        "{text}"
    );
}

#[test]
fn bench_starts_workers_on_hosts_and_compares_what_was_learned() {
    let dir = folder(&[
        ("job.toml", JOB.as_bytes()),
        ("corpus.txt", b"abab\nab\nabba\n"),
        ("token", b"0123456789abcdef0123456789abcdef\n"),
    ]);
    let (job, token) = (at(&dir, "job.toml"), at(&dir, "token"));
    let hosts = [
        "--hosts",
        "one,two",
        "--launch",
        "env HOST={host}",
        "--address",
        "127.0.0.1",
        "--token-file",
        &token,
    ];
    let bench = ["bench", "--job", &job, "--threads", "1", "--workers", "1,2"];
    let text = stdout(&grammaton(&[&bench[..], &hosts].concat()).success());
    assert!(text.contains("1 workers") && text.contains("2 workers"), "{text}");
    assert!(text.contains("learned the same parameters, bit for bit"), "{text}");
    refused(&[&bench[..], &hosts[..6]].concat(), &["--token-file"]);
    refused(&[&bench[..], &["--launch", "ssh {host}"]].concat(), &["--hosts"]);
    let absent = ["--hosts", "one", "--launch", "absent-program {host}", "--insecure"];
    let failed = grammaton(&[&bench[..], &absent].concat()).failure();
    let said = String::from_utf8_lossy(&failed.get_output().stderr).into_owned();
    assert!(said.contains("absent-program: cannot be started"), "{said}");
    let useless = ["--hosts", "one", "--launch", "false {host}", "--insecure"];
    let failed = grammaton(&[&bench[..], &useless].concat()).failure();
    let said = String::from_utf8_lossy(&failed.get_output().stderr).into_owned();
    assert!(said.contains("a worker gave up (exit status: 1)"), "{said}");
}

#[test]
fn bench_refuses_invalid_options() {
    refused(&["bench", "--sentences", "0"], &["--sentences"]);
    refused(&["bench", "--sentences", "10,,20"], &["--sentences"]);
    refused(&["bench", "--threads", "0"], &["--threads"]);
    refused(&["bench", "--rounds", "0"], &["--rounds"]);
    refused(&["bench", "--grammar", "trigram"], &["trigram: cannot read the grammar"]);
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest_known_key() {
    let job = format!("{JOB}[inference]\ntruncatoin = 3\n");
    let dir = folder(&[("job.toml", job.as_bytes())]);
    refused(
        &["train", &at(&dir, "job.toml")],
        &["job.toml:6:1: unknown key \"truncatoin\" in [inference]; did you mean \"truncation\"?"],
    );
}

#[test]
fn an_unreadable_job_file_is_named() {
    let dir = folder(&[("latin1.toml", b"[model]\ngrammar = \"\xe9\"\n")]);
    refused(&["train", &at(&dir, "latin1.toml")], &["latin1.toml:2", "not UTF-8"]);
    refused(&["train", &at(&dir, "absent.toml")], &["absent.toml", "No such file"]);
    refused(&["train", dir.path().to_str().unwrap()], &["cannot read the job file"]);
}

#[test]
fn an_unwritable_output_folder_is_refused_before_training() {
    let dir = folder(&[("job.toml", JOB.as_bytes()), ("file", b"")]);
    refused(
        &["train", &at(&dir, "job.toml"), "--out", &at(&dir, "file/out")],
        &["file/out", "cannot write to the output folder", "--out DIR"],
    );
}

#[test]
fn listening_beyond_loopback_without_a_token_is_refused() {
    let dir = folder(&[("job.toml", JOB.as_bytes()), ("corpus.txt", b"ab a\n")]);
    refused(&["train", &at(&dir, "job.toml"), "--listen", "0.0.0.0:0"], &["without a token", "insecure"]);
    let args =
        ["train", &at(&dir, "job.toml"), "--listen", "127.0.0.1:0", "--token-file", &at(&dir, "absent")];
    refused(&args, &["absent", "cannot read the token"]);
}

#[test]
fn a_file_that_is_not_a_model_is_refused() {
    let dir = folder(&[("text.bin", b"hello"), ("short.bin", b"GRMTNMDL\x01\0\0\0")]);
    refused(&["inspect", &at(&dir, "text.bin")], &["not a model file"]);
    refused(&["inspect", &at(&dir, "short.bin")], &["cut short"]);
    refused(&["inspect", &at(&dir, "absent")], &["no model here"]);
    refused(&["parse", &at(&dir, "text.bin"), "-"], &["not a model file"]);
}

#[test]
fn brackets_need_a_decoder_that_gives_trees() {
    refused(&["parse", "model", "-", "--decoder", "mbr", "--format", "brackets"], &["--decoder mbr-tree"]);
}

#[test]
fn eval_scores_a_segmentation() {
    let dir = folder(&[("gold", b"ab c\nd e\n"), ("found", b"ab c\nde\n")]);
    let args = ["eval", "segmentation", &at(&dir, "gold"), &at(&dir, "found")];
    let text = stdout(&grammaton(&args).success());
    assert!(text.contains("tokens                    0.6667    0.5000    0.5714"), "{text}");
    assert!(text.contains("1 of 2 sentences are exact"), "{text}");
    let json = stdout(&grammaton(&[&args[..], &["--json"]].concat()).success());
    let scores: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(scores["boundary_recall"], 0.5);
    assert_eq!(scores["boundary_precision"], 1.0);
    assert_eq!(scores["exact"], 1);
}

#[test]
fn eval_scores_baselines_and_prints_their_segmentations() {
    let dir = folder(&[("gold", b"the\nkitty\nthe kitty\nthe dog\n")]);
    let found = |more: &[&str]| {
        stdout(&grammaton(&[&["eval", "baselines", &at(&dir, "gold")], more].concat()).success())
    };
    let table = found(&[]);
    assert!(table.contains("PUDDLE") && table.lines().count() == 7, "{table}");
    assert_eq!(found(&["--print", "puddle"]), "the\nkitty\nthe kitty\nthedog\n");
    let rows: serde_json::Value = serde_json::from_str(&found(&["--json"])).unwrap();
    // Four of five tokens are right, of six in the gold.
    assert_eq!((&rows[3]["name"], &rows[3]["token_f1"]), (&"puddle".into(), &(8.0 / 11.0).into()));
    refused(&["eval", "baselines", &at(&dir, "absent")], &["absent"]);
}

#[test]
fn eval_reads_tokens_and_standard_input() {
    let dir = folder(&[("gold", b"a b | c\n")]);
    let mut command = Command::cargo_bin("grammaton").unwrap();
    let args = ["eval", "segmentation", &at(&dir, "gold"), "-", "--unit", "token", "--json"];
    let json = stdout(&command.args(args).write_stdin("a b | c\n").assert().success());
    assert!(json.contains("\"token_f1\":1.0"), "{json}");
    refused(&["eval", "segmentation", "-", "-"], &["only one"]);
}

#[test]
fn eval_refuses_different_texts() {
    let dir = folder(&[("gold", b"ab c\n"), ("other", b"ab d\n"), ("longer", b"ab c\nd\n")]);
    refused(
        &["eval", "segmentation", &at(&dir, "gold"), &at(&dir, "other")],
        &["other:1", "only the boundaries"],
    );
    refused(&["eval", "segmentation", &at(&dir, "gold"), &at(&dir, "longer")], &["2 sentences"]);
}

#[test]
fn eval_scores_brackets() {
    let gold = b"( (S (NP-SBJ (NN dog))\n   (VP (VB bark))) )\n( (NP (DT a) (NN b) (NN c)))\n";
    let dir = folder(&[("gold", gold), ("found", b"(ROOT (S (NN dog) (VP (VB bark))))\n(())\n")]);
    let args = ["eval", "brackets", &at(&dir, "gold"), &at(&dir, "found"), "--max-length", "2"];
    let text = stdout(&grammaton(&args).success());
    let expected = [
        "             precision    recall        F1  unlabelled F1     exact   tagging  sentences   unparsed",
        "all             1.0000    0.5000    0.6667         0.6667    0.0000    0.4000          2          1",
        "up to 2         1.0000    0.6667    0.8000         0.8000    0.0000    1.0000          1          0",
        // Of four constituents these trees have two, among three.
        "unlabelled F1 of right-branching trees: 0.5714",
    ];
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    let json = stdout(&grammaton(&[&args[..], &["--json"]].concat()).success());
    let scores: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(scores["all"]["labelled"]["recall"], 0.5);
    assert_eq!(scores["short"]["sentences"], 1);
    assert_eq!(scores["max_length"], 2);
}

#[test]
fn eval_refuses_trees_of_different_sentences() {
    let files: [(&str, &[u8]); 4] =
        [("gold", b"(A a)\n"), ("open", b"(A\n(B b"), ("other", b"\n(A b)"), ("bytes", b"(A a)\n(A \xff)")];
    let dir = folder(&files);
    let printed = |name: &str, parts: &[&str]| {
        refused(&["eval", "brackets", &at(&dir, "gold"), &at(&dir, name)], parts);
    };
    printed("open", &["open:1:1: found a tree without an end"]);
    printed("other", &["other:2: found `b` as word 1", "gold:1 has `a`"]);
    printed("bytes", &["bytes:2: byte 9 is not UTF-8"]);
    printed("absent", &["absent: cannot read the trees"]);
    refused(&["eval", "brackets", "-", "-"], &["only one"]);
}

#[test]
fn samples_depend_on_the_seed_alone() {
    let dir = folder(&[("g.gr", GRAMMAR)]);
    let grammar = at(&dir, "g.gr");
    let draw = |more: &[&str]| {
        let args = [&["sample", &grammar, "-n", "20"], more].concat();
        stdout(&grammaton(&args).success())
    };
    let drawn = draw(&["--seed", "3"]);
    assert_eq!(drawn.lines().count(), 20);
    assert_eq!(drawn, draw(&["--seed", "3"]));
    assert_ne!(drawn, draw(&["--seed", "4"]));
    let letters = |text: &str| text.replace(' ', "");
    assert_eq!(letters(&draw(&["--seed", "3", "--format", "tokens"])), letters(&drawn));
    assert!(draw(&["--format", "brackets"]).starts_with("(S (Ws (Word (L "));
}

#[test]
fn sample_names_the_nearest_nonterminal() {
    let dir = folder(&[("g.gr", GRAMMAR)]);
    refused(
        &["sample", &at(&dir, "g.gr"), "-n", "1", "--segments", "Wrod"],
        &["did you mean --segments Word?"],
    );
    refused(&["sample", &at(&dir, "g.gr"), "-n", "1", "--segments", "Syllable"], &["S, Ws, Word, L"]);
}

#[test]
fn the_example_corpus_is_generated_as_its_readme_says() {
    let examples: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/segmentation");
    let grammar = examples.join("lexicon.gr").display().to_string();
    let drawn = stdout(&grammaton(&["sample", &grammar, "-n", "2500", "--seed", "1"]).success());
    assert_eq!(drawn, fs::read_to_string(examples.join("corpus.txt")).unwrap());
}

#[test]
fn closed_standard_output_is_silent() {
    let dir = folder(&[("g.gr", GRAMMAR)]);
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("grammaton"))
        .args(["sample", &at(&dir, "g.gr"), "-n", "100000"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
