//! Law: every method gives the same bits on every fleet, even if it resumes from a checkpoint.

use std::fs;

use grammaton_tests::cluster::Coordinator;
use grammaton_tests::folder::{Folder, Trained, examples};
use grammaton_tests::{Process, eventually};

const WORDS: &str =
    "1 1 Sentence --> Words\n1 1 Words --> Word\n1 1 Words --> Word Words\n1 1 Word --> <substrings>\n";

/// A folder with a job of a PCFG over substrings, or of adapted words.
fn folder(model: &str) -> Folder {
    let corpus = fs::read_to_string(examples().join("segmentation/corpus.txt")).unwrap();
    let corpus: String = corpus.split_inclusive('\n').take(150).collect();
    let job = format!(
        "[model]\n{model}\n[corpus]\npath = \"corpus.txt\"\nshard_symbols = 500\nheld_out_share = 0.1\n\
         [inference]\nmax_rounds = 8\ntolerance = 0\nrestarts = 2\nmax_string = 6\n\
         [output]\ncheckpoint_seconds = 0\nscore_every = 3\n"
    );
    Folder::new(&[("job.toml", &job), ("corpus.txt", &corpus), ("words.gr", WORDS)])
}

/// Checks that the result with these settings is the same with one thread, with two, with two remote workers of which one is killed,
/// and after a kill and a resumption; returns it.
fn same_everywhere(folder: &Folder, name: &str, settings: &[&str]) -> Trained {
    let args = |more: &[&'static str]| -> Vec<String> {
        let settings = settings.iter().flat_map(|&setting| ["--set", setting]);
        settings.chain(more.iter().copied()).map(str::to_owned).collect()
    };
    let train = |out: &str, more: &[&'static str]| {
        let args = args(more);
        folder.train(out, &args.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let one = train(&format!("{name}-one"), &["--workers", "1"]);
    train(&format!("{name}-two"), &["--workers", "2"]).check_equals(&one);

    let out = format!("{name}-remote");
    let remote = args(&["--min-workers", "2"]);
    let remote: Vec<&str> = remote.iter().map(String::as_str).collect();
    let coordinator = Coordinator::start(folder, &out, &remote);
    let mut workers = ["alice", "bob"].map(|name| coordinator.worker(name));
    coordinator.read_to(2);
    workers[0].kill();
    coordinator.finish(folder, &out).check_equals(&one);

    let out = format!("{name}-resumed");
    let begin = [vec!["train", "job.toml", "--quiet", "--workers", "1", "--out", &out], {
        settings.iter().flat_map(|&setting| ["--set", setting]).collect()
    }];
    let mut process = Process::spawn(&mut folder.command(&begin.concat()));
    let written = || fs::read_to_string(folder.path(&out).join("metrics.jsonl")).unwrap_or_default();
    eventually(&|| process.log(), || written().lines().count() >= 6);
    process.kill();
    process.wait();
    train(&out, &["--resume"]).check_equals(&one);
    one
}

#[test]
#[ignore = "slow"]
fn pcfgs_by_every_method() {
    let folder = folder("kind = \"pcfg\"\ngrammar = \"words.gr\"");
    for method in ["em", "map-em", "vb", "vb-em", "svb", "cvb", "gibbs", "hastings"] {
        let method_is = format!("inference.method={method}");
        let is_sampler = ["gibbs", "hastings"].contains(&method);
        let settings = [
            (true, &method_is[..]),
            (method != "em", "inference.alpha=0.01"),
            (method != "hastings", "inference.start=jitter"),
            (method != "svb", "inference.anneal_from=2"),
            (method != "svb", "inference.anneal_rounds=3"),
            (method == "svb", "inference.sample_shards=2"),
            (is_sampler, "inference.keep_every=2"),
        ];
        let settings: Vec<&str> =
            settings.iter().filter(|(is_read, _)| *is_read).map(|&(_, set)| set).collect();
        let trained = same_everywhere(&folder, method, &settings);
        assert!(
            trained.summary["held_out"]["perplexity"].as_f64() > Some(1.0),
            "{method}: {}",
            trained.summary
        );
        assert_eq!(trained.rounds.len(), 16, "{method}");
        assert_eq!(trained.summary["scores"]["maximum-marginal"].is_object(), is_sampler, "{method}");
        // Under point estimates, held-out sentences may have no tree.
        let parsed = folder.run(&["parse", &format!("{method}-one"), "corpus.txt", "--format", "brackets"]);
        assert!(parsed.code == 0 || parsed.code == 1 && ["em", "map-em"].contains(&method), "{}", parsed.log);
    }
}

#[test]
fn adaptor_grammars_by_samples() {
    let folder = folder("grammar = \"auto:colloc\"");
    let settings = ["inference.method=svb", "inference.sample_shards=2", "inference.grow_from=40"];
    let sampled = same_everywhere(&folder, "sampled", &settings);
    assert_eq!(sampled.rounds.len(), 16);
    assert!(sampled.f1("viterbi") > 0.0);
    assert!(sampled.summary["held_out"]["perplexity"].as_f64() > Some(1.0), "{}", sampled.summary);
    // A round over the whole corpus with learning rate 1 is a round of `vb`.
    let whole = ["corpus.shard_symbols=500", "inference.restarts=1", "inference.selection=sorted"];
    let whole: Vec<&str> = whole.iter().flat_map(|&setting| ["--set", setting]).collect();
    let everything = ["--set", "inference.method=svb", "--set", "inference.forget_power=0"];
    let everything = folder.train("everything", &[&whole[..], &everything].concat());
    let batch = folder.train("batch", &whole);
    let bound = |trained: &Trained| trained.summary["bound"].as_f64().unwrap();
    assert!(
        (bound(&everything) / bound(&batch) - 1.0).abs() < 1e-9,
        "{} {}",
        bound(&everything),
        bound(&batch)
    );
}

#[test]
fn adaptor_grammars_by_chains() {
    let folder = folder("grammar = \"auto:colloc\"");
    let hastings = "inference.method=hastings";
    let batch =
        same_everywhere(&folder, "batch", &[hastings, "inference.keep_every=2", "inference.sweeps=2"]);
    assert!(batch.rounds.iter().all(|round| round["acceptance"].as_f64() > Some(0.9)), "{:?}", batch.rounds);
    assert!(batch.f1("maximum-marginal") > 0.0 && batch.f1("sample-average") > 0.0);
    let incremental =
        folder.train("incremental", &["--set", hastings, "--set", "inference.start=incremental"]);
    assert_ne!(incremental.digest(), batch.digest());
    // Chains that start from the result of variational Bayes start with a higher objective.
    folder.train("vb", &["--set", "corpus.held_out_share=0"]);
    let from_model = [
        "inference.start=model",
        "inference.start_from=vb",
        "corpus.held_out_share=0",
        "inference.max_rounds=1",
    ];
    let from_model: Vec<&str> = from_model.iter().flat_map(|&setting| ["--set", setting]).collect();
    let variational = folder.train("variational", &[&["--set", hastings][..], &from_model].concat());
    let whole = ["--set", hastings, "--set", "corpus.held_out_share=0", "--set", "inference.max_rounds=1"];
    let whole = folder.train("whole", &whole);
    assert!(variational.summary["bound"].as_f64() > whole.summary["bound"].as_f64());
    // The model of a chain can parse.
    folder.grammaton(&["parse", "batch-one", "corpus.txt", "--decoder", "mbr"]);
}

#[test]
fn grids_are_runs_of_one_job() {
    let folder = folder("kind = \"pcfg\"\ngrammar = \"words.gr\"");
    let settings = ["inference.method=vb,map-em", "inference.alpha=1,0.01", "inference.restarts=1"];
    let grid = same_everywhere(&folder, "grid", &settings);
    let points = grid.summary["points"].as_array().unwrap();
    assert_eq!(points.len(), 4);
    let alone =
        ["--set", "inference.method=vb", "--set", "inference.alpha=0.01", "--set", "inference.restarts=1"];
    let alone = folder.train("alone", &alone);
    let of_grid = points.iter().find(|point| point["name"] == "method=vb alpha=0.01").unwrap();
    assert_eq!(of_grid["bound"], alone.summary["bound"]);
    assert_eq!(of_grid["parameters_sha256"], alone.summary["parameters_sha256"]);
    assert_eq!(of_grid["settings"], serde_json::json!({ "method": "vb", "alpha": 0.01 }));
    let best = |point: &&serde_json::Value| {
        point["held_out"]["log_likelihood"] == grid.summary["held_out"]["log_likelihood"]
    };
    assert!(points.iter().any(|point| best(&point)));
}

#[test]
fn runs_stop_when_the_held_out_likelihood_falls() {
    let folder = folder("kind = \"pcfg\"\ngrammar = \"words.gr\"");
    let args = |more: [&'static str; 2]| {
        let all = [
            "inference.method=em",
            "inference.max_rounds=60",
            "inference.start=jitter",
            "output.score_every=1",
        ];
        all.into_iter().chain(more).flat_map(|setting| ["--set", setting]).collect::<Vec<_>>()
    };
    let patient = folder.train("patient", &args(["inference.patience=0", "inference.restarts=1"]));
    let stopped = folder.train("stopped", &args(["inference.patience=3", "inference.restarts=1"]));
    assert!(stopped.rounds.len() < patient.rounds.len(), "{}", stopped.rounds.len());
    // Both keep the best round, not the last.
    assert_eq!(stopped.digest(), patient.digest());
    assert_eq!(stopped.summary["rounds"].as_u64(), Some(stopped.rounds.len() as u64 - 3));
    // A stopped run has no more rounds when its job resumes.
    let args = args(["inference.patience=3", "inference.restarts=1"]);
    fs::remove_file(folder.path("stopped/summary.json")).unwrap();
    let again = folder.train("stopped", &[&args[..], &["--resume"]].concat());
    assert_eq!(again.rounds.len(), stopped.rounds.len());
}
