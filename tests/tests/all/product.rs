//! All commands in combination, and every setting of a job.

use std::fs;
use std::path::{Path, PathBuf};

use grammaton_tests::folder::{Folder, Trained, examples};
use serde_json::Value;
use training::job::{GrammarSource, Job};
use training::train::group::Inputs;

const JOB: &str = "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"corpus.txt\"\n\
    [inference]\ntruncation = 500\nmax_rounds = 8\n";

/// A job on the first sentences of the example.
fn folder() -> Folder {
    let corpus = fs::read_to_string(examples().join("segmentation/corpus.txt")).unwrap();
    let corpus: String = corpus.split_inclusive('\n').take(600).collect();
    Folder::new(&[("job.toml", JOB), ("corpus.txt", &corpus)])
}

fn set(folder: &Folder, settings: &[&str]) -> Trained {
    let settings = settings.iter().flat_map(|setting| ["--set", setting]);
    let args: Vec<&str> = std::iter::once("--overwrite").chain(settings).collect();
    folder.train("out", &args)
}

/// A value of every round's `Word`.
fn of_words(trained: &Trained, what: impl Fn(&Value) -> Value) -> Vec<Value> {
    trained.rounds.iter().map(what).collect()
}

fn n_words(trained: &Trained) -> Vec<Value> {
    of_words(trained, |round| round["strings"]["Word"].clone())
}

#[test]
fn parse_reads_the_training_corpus_as_training_did() {
    let folder = folder();
    let trained = set(&folder, &[]);
    trained.check_bounds();
    for (model, args, file) in [
        ("out", &[][..], "out/segmentation.viterbi.txt"),
        ("out/model", &["--decoder", "mbr", "--threads", "1"], "out/segmentation.mbr.txt"),
        ("out/model/model.bin", &["--format", "brackets"], "out/parses.txt"),
    ] {
        let printed = folder.grammaton(&[&["parse", "--closed", model, "corpus.txt"], args].concat());
        assert!(printed == folder.read(file), "{file}");
    }
}

#[test]
fn eval_scores_the_written_files_as_the_summary_does() {
    let folder = folder();
    let trained = set(&folder, &["output.decoders=[\"mbr\", \"viterbi\", \"mbr-tree\"]"]);
    for decoder in ["viterbi", "mbr", "mbr-tree"] {
        let file = format!("out/segmentation.{decoder}.txt");
        let printed = folder.grammaton(&["eval", "segmentation", "corpus.txt", &file, "--json"]);
        let mut scores: Value = serde_json::from_str(&printed).unwrap();
        // Morphemes are scored in a comparison alone.
        scores.as_object_mut().unwrap().retain(|name, _| !name.starts_with("emma2_"));
        assert_eq!(scores, trained.summary["scores"][decoder], "{decoder}");
    }
}

#[test]
fn inspect_shows_what_was_learned() {
    let folder = folder();
    let trained = set(&folder, &[]);
    let text = folder.grammaton(&["inspect", "out", "--top", "10"]);
    assert!(text.contains(trained.digest()), "{text}");
    let most_used = text.lines().filter(|line| line.ends_with("  ta") || line.ends_with("  mi"));
    assert_eq!(most_used.count(), 2, "{text}");
    let json: Value = serde_json::from_str(&folder.grammaton(&["inspect", "out", "--json"])).unwrap();
    let last = trained.rounds.last().unwrap();
    assert_eq!(json["sticks"][0]["nonterminal"], "Word");
    assert_eq!(json["sticks"][0]["strings"], last["strings"]["Word"]);
    assert_eq!(json["sticks"][0]["discount"], last["hyper"]["Word"]["discount"]);
}

/// Eight words without common letters.
const EASY: &str = "1 1 S --> Words\n1 1 Words --> Word\n3 1 Words --> Word Words\n\
    8 1 Word --> k a t\n7 1 Word --> d o g u\n6 1 Word --> p e\n5 1 Word --> m i l y\n4 1 Word --> s\n\
    3 1 Word --> f r x\n2 1 Word --> b n c v z\n1 1 Word --> w h\n";

#[test]
fn the_words_of_an_easy_language_are_recovered() {
    let folder = Folder::new(&[("job.toml", JOB), ("easy.gr", EASY)]);
    let drawn = folder.grammaton(&["sample", "easy.gr", "-n", "500", "--seed", "3"]);
    fs::write(folder.path("corpus.txt"), &drawn).unwrap();
    let trained = set(&folder, &["inference.max_rounds=40", "inference.truncation=2000"]);
    trained.check_bounds();
    for decoder in ["viterbi", "mbr"] {
        assert!(trained.f1(decoder) > 0.95, "{decoder}: {}", trained.f1(decoder));
    }
}

#[test]
fn the_best_of_several_starts_is_kept() {
    let folder = folder();
    let trained = set(&folder, &["inference.restarts=3"]);
    trained.check_bounds();
    let bounds: Vec<f64> =
        trained.summary["bounds"].as_array().unwrap().iter().map(|bound| bound.as_f64().unwrap()).collect();
    let best = bounds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    assert_eq!(bounds.len(), 3);
    assert!(bounds[0] != bounds[1] && bounds[1] != bounds[2], "starts differ: {bounds:?}");
    assert_eq!(trained.summary["bound"], best);
    let run = trained.summary["run"].as_u64().unwrap();
    assert_eq!(bounds[run as usize - 1], best);
    assert_eq!(trained.bounds(run).last(), Some(&best));
    // The first start equals the start of a job without restarts.
    assert_eq!(set(&folder, &[]).summary["bound"], bounds[0]);
}

#[test]
fn the_seed_affects_only_starts() {
    let folder = folder();
    let digest = |settings: &[&str]| set(&folder, settings).digest().to_owned();
    assert_eq!(digest(&["inference.seed=1"]), digest(&["inference.seed=2"]));
    let restarts = |seed: &str| {
        let trained = set(&folder, &["inference.restarts=2", seed]);
        trained.summary["bounds"].as_array().unwrap().clone()
    };
    let (first, again, other) =
        (restarts("inference.seed=1"), restarts("inference.seed=1"), restarts("inference.seed=2"));
    assert_eq!(first, again);
    assert_eq!(first[0], other[0]);
    assert_ne!(first[1], other[1]);
}

#[test]
fn every_selection_runs() {
    let folder = folder();
    let [fixed, sorted, bound] = ["fixed", "sorted", "bound"].map(|selection| {
        let trained = set(&folder, &[&format!("inference.selection={selection}")]);
        trained.check_bounds();
        trained
    });
    let never = |trained: &Trained| trained.rounds.iter().all(|round| round["resorted"] == false);
    assert!(never(&fixed) && !never(&sorted));
    for trained in [&fixed, &sorted] {
        assert!(n_words(trained).iter().all(|n| *n == n_words(trained)[0]), "they keep their strings");
    }
    assert!(n_words(&bound).last().unwrap().as_u64() < n_words(&bound)[0].as_u64());
    let last = |trained: &Trained| trained.summary["bound"].as_f64().unwrap();
    assert!(last(&fixed) < last(&sorted) && last(&sorted) < last(&bound));
}

#[test]
fn sticks_grow() {
    let folder = folder();
    let growing = [
        "inference.selection=fixed",
        "inference.grow_from=100",
        "inference.grow_by=150",
        "inference.max_rounds=5",
    ];
    let n = n_words(&set(&folder, &growing));
    let numbers: Vec<u64> = n.iter().map(|n| n.as_u64().unwrap()).collect();
    assert!(numbers[0] < 500 && numbers.is_sorted() && *numbers.last().unwrap() >= 500, "{numbers:?}");
    set(&folder, &growing[1..]).summary["bound"]
        .as_f64()
        .expect("it grows while strings are dropped as well");
}

#[test]
fn dirichlet_sticks_have_no_discount() {
    let folder = folder();
    let discounts = |settings: &[&str]| {
        of_words(&set(&folder, settings), |round| round["hyper"]["Word"]["discount"].clone())
    };
    assert!(discounts(&["inference.adaptor=dirichlet"]).iter().all(|discount| *discount == 0.0));
    let fixed = ["inference.fit=[]", "inference.discount=0.25"];
    assert!(discounts(&fixed).iter().all(|discount| *discount == 0.25));
}

#[test]
fn adapted_nonterminals_may_be_recursive() {
    let folder = folder();
    let letters = "aeioudhklmnprstw".chars().map(|letter| format!("1 1 Char --> {letter}\n"));
    let grammar = "1 1 S --> Word\n1 1 S --> Word S\nWord --> Char\nWord --> Char Word\n".to_owned();
    fs::write(folder.path("recursive.gr"), grammar + &letters.collect::<String>()).unwrap();
    let trained = set(&folder, &["model.grammar=recursive.gr"]);
    trained.check_bounds();
    assert_eq!(
        folder.grammaton(&["parse", "--closed", "out", "corpus.txt"]),
        folder.read("out/segmentation.viterbi.txt")
    );
}

#[test]
fn collocation_grammars_are_generated_for_a_corpus() {
    let folder = folder();
    let trained = set(&folder, &["model.grammar=auto:colloc"]);
    trained.check_bounds();
    let last = trained.rounds.last().unwrap();
    assert!(last["strings"]["Colloc"].as_u64() > Some(0) && last["strings"]["Word"].as_u64() > Some(0));
    assert!(folder.read("out/parses.txt").starts_with("(Sentence "));
}

#[test]
fn morphemes_of_three_kinds_are_segments() {
    let words: String = ["walk", "talk", "jump", "play", "look"]
        .iter()
        .flat_map(|stem| ["", "s", "ed", "ing"].map(|suffix| format!("{stem}{suffix}\nre{stem}{suffix}\n")))
        .collect();
    let folder = Folder::new(&[("job.toml", JOB), ("corpus.txt", &words)]);
    let grammar = format!("model.grammar={}", examples().join("grammars/morphology.gr").display());
    let trained = set(
        &folder,
        &[&grammar, "output.segments=[\"Prefix\", \"Stem\", \"Suffix\"]", "inference.selection=bound"],
    );
    trained.check_bounds();
    assert_eq!(trained.summary["scores"], serde_json::json!({}), "there is no gold");
    let found = folder.read("out/segmentation.viterbi.txt");
    let letters: String = found.replace(' ', "");
    assert_eq!(letters, words);
    assert!(found.contains(' '), "{found}");
}

fn job_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            job_files(&entry, found);
        } else if entry.extension().is_some_and(|extension| extension == "toml")
            // A job file that a run wrote has absolute paths.
            && !folder.join("metrics.jsonl").exists()
        {
            found.push(entry);
        }
    }
}

#[test]
fn every_example_can_be_trained() {
    let mut found = Vec::new();
    job_files(&examples(), &mut found);
    assert!(found.len() >= 4, "{found:?}");
    for path in found {
        let job = Job::load(&path, &[]).unwrap_or_else(|error| panic!("{error}"));
        // Another command writes the folder `out-…`, as the first lines of the job say.
        let is_made = |path: &Path| path.iter().any(|part| part.to_string_lossy().starts_with("out-"));
        if let GrammarSource::File(grammar) = &job.model.grammar
            && !is_made(grammar)
        {
            let text = fs::read_to_string(grammar).unwrap();
            grammaton::grammar::syntax::parse(&text, &grammar.display().to_string()).unwrap();
        }
        if job.corpus.path.exists() && !is_made(&job.corpus.path) {
            Inputs::load(&job).unwrap();
        }
    }
}

#[test]
#[ignore = "needs corpora that the repository does not have"]
fn with_corpora_jobs_of_the_papers_run_on_their_corpus() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../shared/data/wordseg/brent-bernstein-ratner/br-phono.txt");
    let text = fs::read_to_string(&corpus).unwrap();
    let folder = folder();
    let some: String = text.split_inclusive('\n').step_by(20).collect();
    fs::write(folder.path("corpus.txt"), some).unwrap();
    for name in ["unigram", "colloc", "syllable"] {
        let job = examples().join(format!("brent/{name}.toml")).display().to_string();
        let settings = ["--set", "corpus.path=corpus.txt", "--set", "inference.max_rounds=6"];
        folder.grammaton(&[&["train", &job, "--quiet", "--out", name], &settings[..]].concat());
        let trained = Trained::read(&folder.path(name));
        trained.check_bounds();
        assert_eq!(trained.summary["sentences"], 490, "{name}");
    }
}
