//! The dependency model over the fleet. Law: every method gives the same bits on every fleet and after every kill, and heads for unseen
//! sentences.

use std::fs;

use grammaton_tests::cluster::check_two_workers;
use grammaton_tests::folder::{Folder, Trained, examples};
use grammaton_tests::{Process, eventually};

/// All methods in one grid, over several shards.
const JOB: &str = "[model]\nkind = \"dmv\"\n\
    [corpus]\npath = \"train.conllu\"\nheld_out = \"test.conllu\"\nmax_length = 10\nshard_symbols = 800\n\
    [inference]\nmax_rounds = 6\ntolerance = 0\nalpha = 0.5\n\
    [output]\ncheckpoint_seconds = 0\nscore_every = 2\n\
    [[sweep]]\nmethod = [\"em\", \"vb\", \"vb-em\", \"cvb\", \"gibbs\", \"hastings\"]\n\
    [[sweep]]\nmethod = \"map-em\"\nalpha = 1.1\n\
    [[sweep]]\nprior = \"logistic-normal\"\nfamilies = [\"none\", \"ud\"]\n";
const ROUNDS: usize = 9 * 6;
/// EM alone.
const EM: [&str; 4] = ["--set", "inference.method=em", "--set", "inference.prior=dirichlet"];

/// A mixture with components, over several shards; the limit of the base rises in every round.
const MIXTURE: &str = "[model]\nkind = \"dmv\"\n\
    [corpus]\npath = \"train.conllu\"\nmax_length = 8\nshard_symbols = 800\n\
    [inference]\nprior = \"logistic-normal\"\nmax_rounds = 5\ncomponents = [\"short-dep\", { name = \"verbs\", roots = [\"VERB\"] }]\n\
    mixture = [\"short-dep = verbs\"]\n[output]\ncheckpoint_seconds = 0\n";

fn folder() -> Folder {
    folder_of(JOB)
}

fn folder_of(job: &str) -> Folder {
    let file = |name: &str| fs::read_to_string(examples().join("dependency").join(name)).unwrap();
    Folder::new(&[
        ("job.toml", job),
        ("train.conllu", &file("train.conllu")),
        ("test.conllu", &file("test.conllu")),
    ])
}

fn undisturbed(folder: &Folder) -> Trained {
    let trained = folder.train("one", &["--workers", "1"]);
    assert_eq!(trained.rounds.len(), ROUNDS);
    trained
}

#[test]
#[ignore = "slow"]
fn threads_and_processes_give_the_same_bits() {
    let folder = folder();
    let one = undisturbed(&folder);
    for run in [1, 2, 3, 7, 8, 9] {
        let bounds = one.bounds(run);
        assert!(bounds.windows(2).all(|pair| pair[1] >= pair[0] - 1e-9 * pair[0].abs()), "{bounds:?}");
    }
    for point in one.summary["points"].as_array().unwrap() {
        for decoder in ["viterbi", "mbr-arcs"] {
            let scores = &point["attachment"][decoder]["all"];
            let directed = scores["directed"].as_f64().unwrap();
            assert!((0.15..=1.0).contains(&directed), "{point}");
            assert!(scores["undirected"].as_f64().unwrap() >= directed);
        }
    }
    let second = one.rounds.iter().find(|round| round["round"] == 2).unwrap();
    assert!(second["attachment"]["viterbi"]["all"]["directed"].is_f64(), "{second}");
    folder.train("two", &["--workers", "2"]).check_equals(&one);
    check_two_workers(&folder, &one);
}

/// Trains into `killed`, or resumes there, and kills the process when `lines` lines of metrics are written.
fn kill(folder: &Folder, lines: usize) {
    let args = ["train", "job.toml", "--quiet", "--workers", "1", "--resume", "--out", "killed"];
    let mut process = Process::spawn(&mut folder.command(&args));
    let written = || fs::read_to_string(folder.path("killed/metrics.jsonl")).unwrap_or_default();
    eventually(&|| process.log(), || written().lines().count() >= lines);
    process.kill();
}

#[test]
#[ignore = "slow"]
fn a_killed_and_resumed_run_ends_with_the_same_bits() {
    let folder = folder();
    let one = undisturbed(&folder);
    for lines in [1, 17] {
        kill(&folder, lines);
    }
    folder.train("killed", &["--resume"]).check_equals(&one);
}

#[test]
#[ignore = "slow"]
fn mixtures_give_the_same_bits_everywhere() {
    let folder = folder_of(MIXTURE);
    let one = folder.train("one", &["--workers", "1"]);
    assert_eq!(one.rounds.len(), 5);
    for (round, limit) in one.rounds.iter().zip([0.85, 0.86, 0.87, 0.88, 0.89]) {
        let of = |name: &str, what: &str| round["components"][name][what].as_f64().unwrap();
        assert!((of("base", "weight") - limit).abs() < 1e-9, "{round}");
        for name in ["short-dep", "verbs"] {
            assert!((of(name, "weight") - (1.0 - limit) / 2.0).abs() < 1e-9, "{round}");
            assert!(of(name, "bound") <= of("base", "bound"), "{round}");
        }
        let sum: f64 =
            ["base", "short-dep", "verbs"].map(|name| of(name, "weight") * of(name, "bound")).iter().sum();
        let bound = round["bound"].as_f64().unwrap();
        assert!((sum - bound).abs() < 1e-9 * bound.abs(), "{round}");
        assert_eq!((of("base", "empty"), of("short-dep", "empty")), (0.0, 0.0));
    }
    assert_eq!(one.summary["components"], one.rounds[4]["components"]);
    assert!(folder.read("one/report.html").contains("Weights of the components"));

    check_two_workers(&folder, &one);
    kill(&folder, 2);
    folder.train("killed", &["--resume"]).check_equals(&one);

    let unknown = "inference.components=[{ name = \"verbs\", roots = [\"VREB\"] }]";
    let no_inequality = "inference.mixture=[]";
    let refused =
        folder.run(&["train", "job.toml", "--out", "other", "--set", unknown, "--set", no_inequality]);
    assert!(refused.log.contains("`roots` of component `verbs`"), "{}", refused.log);
    assert!(refused.log.contains("did you mean `VERB`?"), "{}", refused.log);
}

/// Rules, and the heads of every third word, by all methods that have them.
const RULES: &str = "[model]\nkind = \"dmv\"\n\
    [corpus]\npath = \"partly.conllu\"\nmax_length = 10\nshard_symbols = 800\nheads = \"constrain\"\non_unparsable = \"skip\"\n\
    [inference]\nrules = \"ud\"\nmax_rounds = 4\ntolerance = 0\n[output]\ncheckpoint_seconds = 0\n\
    [[sweep]]\nmethod = [\"em\", \"vb\", \"vb-em\", \"cvb\", \"gibbs\", \"svb\", \"oem\"]\n\
    [[sweep]]\nprior = \"logistic-normal\"\n";

#[test]
#[ignore = "slow"]
fn rules_and_known_heads_give_the_same_bits_everywhere() {
    let folder = folder_of(RULES);
    let mut n_words = 0;
    let partly = |line: &str| {
        let mut columns: Vec<&str> = line.split('\t').collect();
        if columns.len() == 10 {
            n_words += 1;
            if n_words % 3 != 0 {
                columns[6] = "_";
            }
        }
        columns.join("\t") + "\n"
    };
    let text: String = folder.read("train.conllu").lines().map(partly).collect();
    fs::write(folder.path("partly.conllu"), &text).unwrap();
    let one = folder.train("one", &["--workers", "1"]);
    for run in [1, 2] {
        let bounds = one.bounds(run);
        assert!(bounds.windows(2).all(|pair| pair[1] >= pair[0] - 1e-9 * pair[0].abs()), "{bounds:?}");
    }
    let heads = |text: &str| -> Vec<String> {
        let columns = text.lines().filter_map(|line| line.split('\t').nth(6).map(str::to_owned));
        columns.collect()
    };
    let found = heads(&folder.read("one/parses.mbr-arcs.conllu"));
    let given = heads(&text);
    let differ =
        given.iter().zip(&found).filter(|(given, found)| *given != "_" && *found != "_" && given != found);
    let n_punctuation = text.lines().filter(|line| line.contains("\tPUNCT\t")).count();
    assert!(differ.count() <= n_punctuation, "only heads of punctuation, and through it, may differ");
    check_two_workers(&folder, &one);
    kill(&folder, 2);
    folder.train("killed", &["--resume"]).check_equals(&one);
}

#[test]
fn parse_finds_the_heads_that_training_wrote() {
    let folder = folder();
    folder.train("out", &EM);
    for decoder in ["viterbi", "mbr-arcs"] {
        let parsed = folder.grammaton(&["parse", "out", "test.conllu", "--decoder", decoder]);
        let written = fs::read_to_string(folder.path(&format!("out/parses.{decoder}.conllu"))).unwrap();
        assert_eq!(parsed, written);
    }
    let compared = folder.grammaton(&[
        "eval",
        "dependencies",
        "out/parses.viterbi.conllu",
        "out/parses.mbr-arcs.conllu",
        "--against",
        "test.conllu",
    ]);
    assert!(compared.contains("sign test"), "{compared}");
}

/// Raw weights need not sum to 1 and are printed unchanged; probabilities of held-out sentences always use softmax(μ).
#[test]
fn logistic_normal_priors_give_weights_for_decoding() {
    let folder = folder();
    let train = |out: &str, more: &[&str]| {
        let set = ["--set", "inference.method=vb", "--set", "inference.prior=logistic-normal"];
        folder.train(out, &[&set[..], &["--set", "inference.families=none"], more].concat())
    };
    let softmax = train("softmax", &[]);
    let raw = train("raw", &["--set", "inference.estimate=raw"]);
    assert_eq!(softmax.bounds(1), raw.bounds(1));
    let held_out = |trained: &Trained| trained.summary["held_out"].clone();
    assert!(held_out(&softmax).is_object(), "{}", softmax.summary);
    assert_eq!(held_out(&softmax), held_out(&raw));
    assert!(folder.read("softmax/model/grammar.txt").contains("# Probability of each rule, softmax(μ):\n"));
    assert!(folder.read("raw/model/grammar.txt").contains("# Weight of each rule, e^μ:\n"));
    for out in ["softmax", "raw"] {
        let parsed = folder.grammaton(&["parse", out, "test.conllu", "--decoder", "mbr-arcs"]);
        assert_eq!(parsed, folder.read(&format!("{out}/parses.mbr-arcs.conllu")));
    }
}

#[test]
fn logistic_normal_priors_work_for_any_pcfg() {
    let job = "[model]\nkind = \"pcfg\"\ngrammar = \"g.gr\"\n[corpus]\npath = \"c.txt\"\nformat = \"tokens\"\n\
        [inference]\nprior = \"logistic-normal\"\nmax_rounds = 5\nstart = \"jitter\"\n";
    let grammar = "1 1 S --> A S\n1 1 S --> A\n1 1 A --> a\n1 1 A --> b\n";
    let folder = Folder::new(&[("job.toml", job), ("g.gr", grammar), ("c.txt", "a b a\na a\na\nb a a\n")]);
    let trained = folder.train("out", &[]);
    assert_eq!(trained.rounds.len(), 5);
    let text = folder.read("out/model/grammar.txt");
    let weight = |rule: &str| -> f64 {
        let line = text.lines().find(|line| line.starts_with("# ") && line.ends_with(rule)).unwrap();
        line.split(' ').nth(1).unwrap().parse().unwrap()
    };
    assert!(weight(" A --> a") > weight(" A --> b"), "{text}");
    fs::write(folder.path("g.gr"), "1 1 S --> W S\n1 1 S --> W\n1 1 W --> <substrings>\n").unwrap();
    let refused = folder.run(&["train", "job.toml", "--out", "other"]);
    assert!(refused.log.contains("nonterminal `W` is adapted or rewrites to substrings"), "{}", refused.log);
}

#[test]
fn training_starts_from_a_trained_model() {
    let folder = folder();
    folder.train("first", &EM);
    let model = ["--set", "inference.start=model", "--set", "inference.start_from=first"];
    let again = folder.train("again", &[&EM[..], &model].concat());
    let first = folder.train("longer", &[&EM[..], &["--set", "inference.max_rounds=12"]].concat());
    assert_eq!(again.bounds(1), first.bounds(1)[6..]);
}

#[test]
fn adapted_noun_constituents_give_the_same_bits_on_every_fleet() {
    let adapted = "[model]\nkind = \"dmv\"\nadapted = [\"noun\", \"proper\"]\n\
        [corpus]\npath = \"train.conllu\"\nheld_out = \"test.conllu\"\nmax_length = 10\nshard_symbols = 800\n\
        [inference]\nmax_rounds = 12\ntruncation = 300\n";
    let folder = folder();
    fs::write(folder.path("job.toml"), adapted).unwrap();
    let one = folder.train("one", &["--workers", "1"]);
    one.check_bounds();
    let directed = &one.summary["attachment"]["mbr-arcs"]["all"]["directed"];
    assert!((0.15..=1.0).contains(&directed.as_f64().unwrap()), "{directed}");
    check_two_workers(&folder, &one);
    let parsed = folder.grammaton(&["parse", "one", "test.conllu", "--decoder", "mbr-arcs"]);
    assert_eq!(parsed, folder.read("one/parses.mbr-arcs.conllu"));
    let typo = folder.run(&["train", "job.toml", "--out", "typo", "--set", "model.adapted=[\"nuon\"]"]);
    assert!(typo.code == 2 && typo.log.contains("model.adapted: nothing in"), "{}", typo.log);
}
