//! Laws over every key of the job file, for every model and method:
//!
//! 1. A point of a grid is the job that has its values and no grid, to the last bit.
//! 2. A key that a model and method read changes something; one that they do not read is refused.

use std::fs;
use std::path::Path;

use fleet::Inline;
use serde_json::json;

use super::group::Inputs;
use super::train;
use crate::events::All;
use crate::job::Job;
use crate::metrics::{MBR_VOTE, PointSummary};
use crate::model::parameters_sha256;
use crate::outcome::Outcome;
use crate::train::checkpoint::Checkpoints;
use grammaton::settings::key::Key;
use grammaton::settings::{Estimator, Model};

const WORDS: &str = "ab abc ab\nabc ba ab\nba ba\ncab ab\nabc cab\nab ab ba\nba abc\ncab ba ab\n";
const RULES: &str = "1 1 Sentence --> Word\n1 1 Sentence --> Word Sentence\n1 1 Word --> Stem\n1 1 Word --> Stem Suffix\n\
    1 1 Stem --> <substrings>\n1 1 Suffix --> a\n1 1 Suffix --> b\n1 1 Suffix --> c\n";
/// A grammar without substrings.
const LETTERS: &str = "1 1 Sentence --> Word\n1 1 Sentence --> Word Sentence\n1 1 Word --> X\n1 1 Word --> X Y\n\
    1 1 X --> a\n1 1 X --> b\n1 1 X --> c\n1 1 Y --> a\n1 1 Y --> b\n1 1 Y --> c\n";
const TAGS: &str = "a\tDET\t2\nb\tNOUN\t3\nc\tVERB\t0\n\na\tPROPN\t2\nb\tVERB\t0\nc\tDET\t4\nd\tNOUN\t2\n\n\
    a\tVERB\t0\nb\tNOUN\t1\nc\tADV\t1\n\na\tDET\t2\nb\tNOUN\t3\nc\tVERB\t0\nd\tDET\t5\ne\tPROPN\t3\nf\tADV\t3\n\n\
    a\tNOUN\t2\nb\tAUX\t0\nc\tVERB\t2\n\na\tDET\t3\nb\tADJ\t3\nc\tNOUN\t4\nd\tVERB\t0\n\n\
    a\tPROPN\t3\nb\tAUX\t3\nc\tVERB\t0\nd\tDET\t5\ne\tNOUN\t3\n\na\tADJ\t2\nb\tNOUN\t3\nc\tAUX\t0\nd\tADV\t3\n\n";
const TREES: &str = "(S (NP (D the) (N dog)) (VP (V saw) (NP (D a) (N cat))))\n(S (NP (N Kim)) (VP (V ran)))\n\
    (S (NP (D the) (N cat)) (VP (V ran)))\n(S (NP (N Kim)) (VP (V saw) (NP (N Sandy))))\n";

/// Trees of the sentences by [`RULES`]; words of several letters end in a suffix if so.
fn words_as_trees(with_suffixes: bool) -> String {
    let spaced = |letters: &str| letters.chars().map(|c| c.to_string()).collect::<Vec<_>>().join(" ");
    let word = |word: &str| match word.split_at(word.len() - 1) {
        (stem, suffix) if with_suffixes => format!("(Word (Stem {}) (Suffix {suffix}))", spaced(stem)),
        _ => format!("(Word (Stem {}))", spaced(word)),
    };
    let line = |line: &str| {
        let words: Vec<String> = line.split(' ').map(word).collect();
        let [before @ .., last] = &words[..] else { return String::new() };
        let tree = before
            .iter()
            .rfold(format!("(Sentence {last})"), |rest, word| format!("(Sentence {word} {rest})"));
        tree + "\n"
    };
    WORDS.lines().map(line).collect()
}

/// One of 64 lines, none of which begins with `b`.
fn begun_without_b(at: usize) -> String {
    let end: String = (1..6).map(|bit| ["b", "ac"][at >> bit & 1]).collect();
    format!("{}{end}\n", ["a", "c"][at & 1])
}

/// A folder with a corpus for every model.
pub fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    write("words.txt", WORDS);
    write("upper.txt", &WORDS.to_uppercase());
    write("marked.txt", &WORDS.replace('\n', "e\u{301}\n"));
    write("counted.txt", &WORDS.replace('\n', "\t3\n").replacen('3', "40", 2));
    write("stopped.txt", &WORDS.replace('\n', ".\n"));
    write("inner.txt", &(0..64).map(begun_without_b).collect::<String>());
    write("rules.gr", RULES);
    write("tags.tsv", TAGS);
    write("trees.mrg", TREES);
    write("letters.gr", LETTERS);
    write("affixes.txt", "a\nb\nab\n");
    write("brackets.txt", "(abc) (ba) ab\n(ba) (b a)\n");
    write("whole.trees", &words_as_trees(false));
    write("other.trees", &words_as_trees(true));
    dir
}

/// Whether a PCFG is [`RULES`], and else [`LETTERS`]: chains over so few sentences do not leave long substrings.
fn with_substrings(estimator: Estimator) -> bool {
    !matches!(estimator, Estimator::Hastings | Estimator::LogisticNormal)
}

/// The tables of a job of that model and estimator, with short runs.
pub fn job(model: Model, estimator: Estimator) -> String {
    // A chain over an adaptor grammar has all sentences in one shard.
    let shards = match (model, estimator) {
        (Model::Adaptor, Estimator::Vb | Estimator::Hastings) => "",
        _ => "shard_symbols = 16\n",
    };
    let of_model = match model {
        Model::Adaptor => "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"words.txt\"\n",
        Model::Pcfg if !with_substrings(estimator) => {
            "[model]\nkind = \"pcfg\"\ngrammar = \"letters.gr\"\n[corpus]\npath = \"words.txt\"\n"
        }
        Model::Pcfg => "[model]\nkind = \"pcfg\"\ngrammar = \"rules.gr\"\n[corpus]\npath = \"words.txt\"\n",
        Model::PcfgLa => "[model]\nkind = \"pcfg-la\"\n[corpus]\npath = \"trees.mrg\"\n",
        Model::Dmv => "[model]\nkind = \"dmv\"\n[corpus]\npath = \"tags.tsv\"\n",
        Model::AdaptedDmv => "[model]\nkind = \"dmv\"\nadapted = [\"noun\"]\n[corpus]\npath = \"tags.tsv\"\n",
    };
    let method = match estimator {
        Estimator::LogisticNormal => "method = \"vb\"\nprior = \"logistic-normal\"".to_owned(),
        _ => format!("method = {}", estimator.name().replace('`', "\"")),
    };
    // So that strings are used again, and chains move.
    let alpha = match (model, estimator) {
        (Model::Pcfg, Estimator::Gibbs | Estimator::Hastings) => "alpha = 0.05\n",
        _ => "",
    };
    format!(
        "{of_model}{shards}[output]\nkeep_checkpoints = 0\nscore_every = 2\n[inference]\n{method}\nmax_rounds = 5\n{alpha}"
    )
}

/// Settings under which a key acts, and other values of it, each of which may change the result; none for keys that no value of can.
fn probe(
    key: &Key,
    model: Model,
    estimator: Estimator,
) -> (&'static [&'static str], &'static [&'static str]) {
    let of_substrings = model == Model::Pcfg && with_substrings(estimator);
    // Samplers forget what they start from.
    let at_once: &[&str] = &["inference.max_rounds=1", "inference.burn_in=0.0", "inference.restarts=2"];
    let none: (&[&str], &[&str]) = (&[], &[]);
    match key.path().as_str() {
        "model.voters" => (&[], &["[\"auto:colloc\"]"]),
        "model.voter_chains" => {
            (&["model.voters=[\"auto:colloc\"]", "inference.max_rounds=2"], &["2", "3", "4", "6"])
        }
        // Chains that disagree.
        "model.baselines" => (
            &[
                "inference.restarts=2",
                "inference.max_rounds=1",
                "inference.burn_in=0.0",
                "inference.keep_every=1",
            ],
            &["[\"puddle\"]", "[\"dibs\"]", "[\"tp\"]", "[\"mi\"]"],
        ),
        "model.vowels" => (&["model.grammar=auto:colloc-syllable"], &["\"a b\"", "\"c\""]),
        "model.inner_vowels" => {
            (&["model.grammar=auto:colloc-syllable", "model.vowels=a b", "corpus.path=inner.txt"], &["true"])
        }
        "model.stress" => (&["model.grammar=auto:colloc-syllable-stress"], &["\"a\"", "\"b c\""]),
        "model.words" => (&["model.grammar=auto:unigram"], &["\"affixes.txt\""]),
        "model.prefixes" | "model.suffixes" | "model.stems" => {
            (&["model.grammar=auto:morph1"], &["\"affixes.txt\""])
        }
        "corpus.format" => (&[], &["\"tokens\""]),
        "corpus.unit" => (&[], &["\"token\""]),
        "corpus.layout" => (&[], &["\"hex\""]),
        "corpus.column" => (&[], &["2"]),
        "corpus.counts" => (&["corpus.path=counted.txt", "corpus.counts=ones"], &["\"full\"", "\"log\""]),
        "corpus.phone_separator" => (&["corpus.unit=token"], &["\"b\""]),
        "corpus.syllable_separator" | "corpus.word_separator" => (&[], &["\"b\""]),
        "corpus.normalise" => (&["corpus.path=marked.txt"], &["\"nfc\""]),
        "corpus.lowercase" => (&["corpus.path=upper.txt"], &["true"]),
        "corpus.punctuation" => (&["corpus.path=stopped.txt"], &["\"drop\""]),
        "corpus.digraphs" => (&[], &["[\"ab\"]"]),
        "corpus.max_symbols" => (&[], &["3"]),
        "corpus.held_out_share" => (&[], &["0.4"]),
        "corpus.held_out_seed" => (&["corpus.held_out_share=0.4"], &["2", "3", "4"]),
        "corpus.max_length" => (&[], &["3"]),
        "corpus.unknown_threshold" => (&["corpus.held_out_share=0.4"], &["0", "4"]),
        "corpus.unknown" => (&["corpus.held_out_share=0.4"], &["\"generic\""]),
        "inference.adaptor" => (&["inference.discount=0.5"], &["\"dirichlet\""]),
        "inference.truncation" => (&[], &["2"]),
        "inference.rho" => (&["inference.truncation=4"], &["5.0", "-5.0"]),
        "inference.max_rounds" => (&[], &["2"]),
        "inference.tolerance" => (&["inference.selection=fixed", "inference.max_rounds=12"], &["0.9"]),
        "inference.seed" => (&["inference.restarts=2"], &["7", "8"]),
        "inference.selection" => (&[], &["\"fixed\"", "\"sorted\""]),
        "inference.drop_share" => (&["inference.max_rounds=12"], &["0.9", "0.01"]),
        "inference.fit" => (&[], &["[]"]),
        "inference.concentration" => (&[], &["50.0"]),
        "inference.discount" => (&[], &["0.5"]),
        "inference.max_string" if of_substrings || model != Model::Pcfg => (&[], &["2"]),
        "inference.grow_from" => (&[], &["2"]),
        "inference.grow_by" => (&["inference.grow_from=2", "inference.select_every=1"], &["1"]),
        "inference.restarts" => (&[], &["2"]),
        "inference.jitter" => (&["inference.restarts=2", "inference.max_rounds=3"], &["2.0", "9.0"]),
        "inference.alpha" => (&[], &["3.0"]),
        "inference.start" if estimator == Estimator::Hastings => (&[], &["\"incremental\""]),
        "inference.start" if matches!(model, Model::Dmv | Model::AdaptedDmv) => (at_once, &["\"uniform\""]),
        "inference.start" if model == Model::Pcfg => (at_once, &["\"jitter\""]),
        "inference.start_from" if of_substrings => (
            &["inference.start=trees", "inference.max_rounds=1", "inference.burn_in=0.0"],
            &["\"other.trees\""],
        ),
        "inference.noise" if model == Model::PcfgLa => (&[], &["0.5"]),
        "inference.noise" => {
            (&["inference.start=noise", "inference.max_rounds=1", "inference.burn_in=0.0"], &["0.5", "0.99"])
        }
        "inference.anneal_from" => (&["inference.anneal_rounds=3"], &["8.0"]),
        "inference.anneal_to" => (&[], &["0.5"]),
        "inference.anneal_rounds" => (&["inference.anneal_from=8.0"], &["3"]),
        "inference.burn_in" => (&["inference.keep_every=1"], &["0.0"]),
        "inference.keep_every" => (&["inference.burn_in=0.0"], &["1"]),
        "inference.sweeps" => (&[], &["2"]),
        // Labels with a choice: a word has one derivation only.
        "inference.relabel" => (&["model.grammar=auto:colloc", "inference.max_rounds=12"], &["false"]),
        "inference.gamma_shape" => (&[], &["100.0"]),
        "inference.gamma_scale" => (&[], &["0.01"]),
        "inference.sample_shards" => (&["inference.max_rounds=8"], &["1"]),
        "inference.first_rounds" => {
            (&["inference.sample_shards=1", "inference.start=uniform", "inference.max_rounds=9"], &["1", "7"])
        }
        "inference.forget_power" => (&["inference.sample_shards=1", "inference.max_rounds=12"], &["0.0"]),
        "inference.forget_delay" => (&["inference.sample_shards=1", "inference.max_rounds=12"], &["50.0"]),
        "inference.select_every" => (&["inference.sample_shards=1", "inference.max_rounds=24"], &["1", "2"]),
        "inference.subtypes" => (&[], &["3"]),
        "inference.harmonic_offset" => (at_once, &["5.0", "1000.0"]),
        "inference.harmonic_per_child" => (at_once, &["false"]),
        "inference.harmonic_stops" => (at_once, &["\"even\""]),
        "inference.harmonic_stop" => (
            &["inference.harmonic_stops=fixed", "inference.max_rounds=1", "inference.burn_in=0.0"],
            &["[0.99, 0.01]", "[0.01, 0.99]"],
        ),
        "inference.harmonic_smoothing" => (at_once, &["10.0", "1000.0", "0.001"]),
        "inference.prior" if estimator == Estimator::Vb => (&[], &["\"logistic-normal\""]),
        "inference.families" => (&[], &["\"ud\""]),
        "inference.estimate" if model == Model::Dmv => (&["corpus.held_out_share=0.4"], &["\"raw\""]),
        "inference.components" => (&[], &["[\"short-dep\"]"]),
        "inference.rules" => (
            &[],
            &["\"ud\"", "[{ across = \"punctuation\", weight = -2 }, { longest_arc = 1, weight = -1 }]"],
        ),
        "inference.backoff" => (&[], &["1.0", "50.0"]),
        "inference.rules_weight" => (&["inference.rules=ud"], &["0.5"]),
        "output.threshold" => (&[], &["0.5"]),
        "output.contexts" => (&["output.threshold=0.5"], &["true"]),
        "corpus.brackets" => (&[], &["\"brackets.txt\""]),
        "corpus.heads" => (&[], &["\"constrain\""]),
        "inference.mixture" => (&["inference.components=[\"all-right\"]"], &["[\"base <= 0.6\"]"]),
        "inference.base_from" => (&["inference.components=[\"all-right\"]"], &["0.5"]),
        "inference.base_by" => (&["inference.components=[\"all-right\"]"], &["0.05"]),
        "inference.base_to" => (&["inference.components=[\"all-right\"]"], &["0.86"]),
        // Other tests cover files that they name or keep; patience and the tags of other columns need larger corpora.
        _ => none,
    }
}

/// Every model with each of its estimators.
pub fn all() -> impl Iterator<Item = (Model, Estimator)> {
    Model::all().flat_map(|model| model.estimators().iter().map(move |&estimator| (model, estimator)))
}

pub fn parse(text: &str, dir: &Path, overrides: &[String]) -> Result<Job, String> {
    Job::parse(text, "job.toml", dir, overrides).map_err(|fault| fault.to_string())
}

fn run(job: &Job) -> Result<Outcome, String> {
    let message = |error: anyhow::Error| format!("{error:#}");
    let inputs = Inputs::load(job).map_err(message)?;
    let (fleet, mut checkpoints) = (Inline::default(), Checkpoints::none());
    train(job, &inputs, &fleet, &mut checkpoints, &mut All(Vec::new())).map_err(message)
}

fn came_to(job: &Job) -> Result<String, String> {
    run(job).map(|outcome| came_to_with(&outcome))
}

/// The outcome of a run, as far as job, data and seed determine it.
pub fn came_to_with(outcome: &Outcome) -> String {
    json!([
        parameters_sha256(&outcome.model),
        (outcome.result.rounds, outcome.result.converged, outcome.result.bound, &outcome.result.bounds),
        (
            outcome.result.held_out,
            &outcome.result.scores,
            &outcome.result.brackets,
            &outcome.result.attachment,
            &outcome.result.components
        ),
    ])
    .to_string()
}

fn point_came_to(point: &PointSummary) -> String {
    json!([
        point.result.parameters_sha256,
        (point.result.rounds, point.result.converged, point.result.bound, &point.result.bounds),
        (
            point.result.held_out,
            &point.result.scores,
            &point.result.brackets,
            &point.result.attachment,
            &point.result.components
        ),
    ])
    .to_string()
}

/// The value of a key in a job, as TOML.
fn value(job: &Job, key: &Key) -> Option<String> {
    let table: toml::Table = job.to_toml_as_it_is().parse().unwrap();
    Some(table.get(key.table)?.get(key.name)?.to_string())
}

#[test]
#[ignore = "slow"]
fn a_point_of_a_grid_is_the_single_run_and_every_key_that_is_read_changes_something() {
    let dir = folder();
    let (mut checked, mut failures) = (0, Vec::new());
    for (model, estimator) in all() {
        let text = job(model, estimator);
        for key in Job::keys().iter().filter(|key| key.is_read_by(model, estimator)) {
            let (with, others) = probe(key, model, estimator);
            let name = format!("{} of {}", key.path(), estimator.in_words(model));
            let keys = Job::keys();
            let is_read = |assignment: &&&str| {
                let read = |key: &&Key| assignment.starts_with(&format!("{}=", key.path()));
                keys.iter().find(read).is_some_and(|key| key.is_read_by(model, estimator))
            };
            let placed = |set: &str| match set.strip_prefix("corpus.path=") {
                Some(file) => format!("corpus.path={}", dir.path().join(file).display()),
                None => set.to_owned(),
            };
            let mut with: Vec<String> = with.iter().filter(is_read).map(|&set| placed(set)).collect();
            if key.name == "start_from" && !others.is_empty() {
                with.push(format!("inference.start_from={}", dir.path().join("whole.trees").display()));
            }
            let base = parse(&text, dir.path(), &with).unwrap_or_else(|fault| panic!("{name}: {fault}"));
            let Some(before) = (if others.is_empty() { None } else { Some(came_to(&base)) }) else {
                continue;
            };
            let mut changed = false;
            for &other in others {
                let other = match key.name {
                    "start_from" => format!("\"{}\"", dir.path().join("other.trees").display()),
                    _ => other.to_owned(),
                };
                let mut set = with.clone();
                set.push(format!("{}={other}", key.path()));
                let single = parse(&text, dir.path(), &set).unwrap_or_else(|fault| panic!("{name}: {fault}"));
                let after = came_to(&single);
                changed |= after != before;
                let (Ok(before), Ok(after), "inference") = (&before, &after, key.table) else { continue };
                // In a grid beside the value that the key has, or beside another if it has none.
                let value = value(&base, key);
                let values = format!("{}, {other}", value.as_ref().unwrap_or(&other));
                let grid = format!("{text}[[sweep]]\n{} = [{values}]\n", key.name);
                with.retain(|set| !set.starts_with(&format!("{}=", key.path())));
                let grid = parse(&grid, dir.path(), &with).unwrap_or_else(|fault| panic!("{name}: {fault}"));
                let points = run(&grid).unwrap_or_else(|error| panic!("{name}: {error}")).points;
                let expected = [value.map_or(after, |_| before), after];
                for (point, expected) in points.iter().zip(expected) {
                    if &point_came_to(point) != expected {
                        failures.push(format!("{name}: point {} is not the single run", point.name));
                    }
                }
                checked += points.len();
            }
            if !changed {
                failures.push(format!("{name}: no other value changes anything"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(checked > 500, "{checked}");
}

#[test]
fn a_key_is_refused_where_it_is_not_read() {
    let dir = folder();
    for (model, estimator) in all() {
        let text = job(model, estimator);
        let base = parse(&text, dir.path(), &[]).unwrap();
        for key in Job::keys().iter().filter(|key| !key.is_read_by(model, estimator)) {
            let (_, others) = probe(key, model, estimator);
            let value = match (key.name, others) {
                (
                    "gold" | "annotated" | "brackets" | "boundary_mark" | "joined_mark" | "held_out"
                    | "start_from" | "prefixes" | "suffixes" | "stems" | "words",
                    _,
                ) => "\"x\"",
                ("max_string", _) => "2",
                ("estimate", _) => "\"raw\"",
                ("adapted" | "segments" | "voters", _) => "[]",
                ("decoders", _) => "[\"viterbi\"]",
                ("patience", _) => "1",
                ("cascade", _) => "0",
                ("noise", _) => "0.5",
                ("keep_punctuation", _) => "true",
                ("models", _) => "\"one\"",
                ("tags", _) => "\"xpos\"",
                ("mixture", _) => "[]",
                ("shard_symbols", _) => "16",
                ("on_unparsable", _) => "\"skip\"",
                ("prior", _) => "\"dirichlet\"",
                (_, [other, ..]) => other,
                _ => panic!("{}", key.path()),
            };
            let mut job = base.clone();
            job.points.clear();
            let refusal = parse(&text, dir.path(), &[format!("{}={value}", key.path())]).unwrap_err();
            assert!(
                refusal.contains(&format!(
                    "{} is not read in this job ({}), only by",
                    key.path(),
                    estimator.in_words(model)
                )),
                "{refusal}"
            );
            let readers = key.readers_in_words().replace('`', "");
            assert!(refusal.contains(&readers) && !readers.is_empty(), "{refusal}");
        }
    }
}

#[test]
fn methods_of_a_grid_are_the_single_runs() {
    let dir = folder();
    for model in Model::all() {
        let methods: Vec<String> = model
            .estimators()
            .iter()
            .filter(|&&estimator| estimator != Estimator::LogisticNormal)
            .map(|&estimator| {
                let job = parse(&job(model, estimator), dir.path(), &[]).unwrap();
                serde_json::to_value(job.inference.method).unwrap().to_string()
            })
            .collect();
        let text = job(model, model.estimators()[0]);
        let grid = format!("{text}[[sweep]]\nmethod = [{}]\nseed = [1, 2]\n", methods.join(", "));
        let points = run(&parse(&grid, dir.path(), &[]).unwrap()).unwrap().points;
        assert_eq!(points.len(), 2 * methods.len());
        let mut points = points.iter();
        for method in &methods {
            for seed in 1..=2 {
                let set = [format!("inference.method={method}"), format!("inference.seed={seed}")];
                let single = came_to(&parse(&text, dir.path(), &set).unwrap()).unwrap();
                assert_eq!(point_came_to(points.next().unwrap()), single, "{model:?} {method} {seed}");
            }
        }
    }
}

#[test]
fn voters_are_single_runs_and_change_nothing_but_the_vote() {
    let dir = folder();
    let text = job(Model::Adaptor, Estimator::Hastings);
    let grammars = ["auto:unigram", "auto:colloc", "auto:colloc2"];
    let voters = format!("model.voters=[\"{}\", \"{}\"]", grammars[1], grammars[2]);
    let mut with_voters =
        parse(&text, dir.path(), &[voters.clone(), "inference.seed=1,2".to_owned()]).unwrap();
    with_voters.output.segments = vec!["Word".to_owned()];
    let outcome = run(&with_voters).unwrap();
    assert!(
        outcome.result.run == 1 || outcome.result.run == 4,
        "the result is of a point of the grammar: {}",
        outcome.result.run
    );
    assert_eq!(outcome.points.len(), 6);
    let mut votes = Vec::new();
    for (point, at) in outcome.points.iter().zip(0..) {
        let (seed, grammar) = (at / 3 + 1, grammars[at % 3]);
        assert_eq!(point.name, format!("seed={seed} grammar={grammar}"));
        let set = [format!("model.grammar={grammar}"), format!("inference.seed={seed}")];
        let single = run(&parse(&text, dir.path(), &set).unwrap()).unwrap();
        let mut point = point.clone();
        let (vote, alone) =
            (point.result.scores.remove(MBR_VOTE), single.result.scores.get(MBR_VOTE).copied());
        votes.push(vote == alone);
        point.result.scores.extend(alone.map(|alone| (MBR_VOTE.to_owned(), alone)));
        assert_eq!(point_came_to(&point), came_to_with(&single), "{}", point.name);
    }
    assert_eq!(
        votes,
        [false, true, true, false, true, true],
        "only the grammar of the job has a vote of all"
    );

    let refused = |set: &str, part: &str| {
        let error = parse(&text, dir.path(), &[voters.clone(), set.to_owned()]).unwrap_err();
        assert!(error.contains(part), "{error}");
    };
    refused("model.grammar=auto:colloc", "model.voters must be different grammars, each once");
    refused("model.voters=[\"auto:colloc\", \"auto:colloc\"]", "different grammars, each once");
    refused("model.voters=[\"rules.gr\"]", "a grammar that `grammaton grammars` lists");
    refused("inference.start=trees", "with model.voters");
}

/// The probabilities of a table of boundaries, row by row.
fn probabilities(outcome: &mut Outcome) -> Vec<f64> {
    let mut table = Vec::new();
    outcome.boundaries.as_mut().unwrap().copy_to(&mut table).unwrap();
    let table = String::from_utf8(table).unwrap();
    table.lines().skip(1).map(|row| row.split('\t').nth(2).unwrap().parse().unwrap()).collect()
}

#[test]
fn probabilities_of_boundaries_are_means_over_the_chains_of_all_voters() {
    let dir = folder();
    let text = job(Model::Adaptor, Estimator::Hastings);
    let of = |set: &[&str]| {
        let set: Vec<String> = set.iter().map(|&set| set.to_owned()).collect();
        let mut job = parse(&text, dir.path(), &set).unwrap();
        job.output.segments = vec!["Word".to_owned()];
        probabilities(&mut run(&job).unwrap())
    };
    // By the models of the chains, or by their samples.
    for by in ["output.threshold=0", "output.threshold=0.4"] {
        let voters = ["model.voters=[\"auto:colloc\"]", "inference.restarts=2", "model.voter_chains=1", by];
        let all = of(&voters);
        let (two, one) = (of(&["inference.restarts=2", by]), of(&["model.grammar=auto:colloc", by]));
        assert!(all.len() > 30 && two != one, "{all:?}");
        for ((all, two), one) in all.iter().zip(two).zip(one) {
            assert!((all - (2.0 * two + one) / 3.0).abs() < 1e-4, "{all}, {two}, {one}");
        }
    }
}

/// The first eight digits of the digest of every job of [`job`], in the order of [`all`].
const DIGESTS: [&str; 28] = [
    "eb6e79c2", "bb45c53e", "7b03c638", "35fe9970", "9ad8a44f", "54e31ac4", "fafb0b03", "67f34897",
    "744d9d99", "2bf6ea08", "e15d1bbc", "8b598f9a", "3be0b03f", "d0c91e05", "af327ad0", "95cbdfff",
    "6364e2f4", "2b5b2f22", "a1621574", "713450f3", "0daad17b", "c5ab5119", "192aeeb7", "43dfa930",
    "8b5fa7ba", "049b42c5", "74f968b0", "28748295",
];

#[test]
fn parameters_of_every_model_and_method_are_pinned() {
    let dir = folder();
    let digest = |(model, estimator): (Model, Estimator)| {
        let job = parse(&job(model, estimator), dir.path(), &[]).unwrap();
        parameters_sha256(&run(&job).unwrap().model)[..8].to_owned()
    };
    let found: Vec<String> = all().map(digest).collect();
    assert_eq!(found, DIGESTS, "of {:?}", all().collect::<Vec<_>>());
}
