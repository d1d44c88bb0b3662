//! Law: the library alone ([`grammaton::Fit`]) learns what a job learns, to the last bit, for every model and method.

use std::fs;
use std::path::Path;

use fleet::Inline;
use grammaton::data::corpus::Corpus;
use grammaton::data::dependency::{Punctuation, Tags, read, select};
use grammaton::data::treebank::Treebank;
use grammaton::data::treebank::brackets;
use grammaton::data::treebank::clean::clean;
use grammaton::settings::Model;
use grammaton::settings::inference::Start;
use grammaton::{Fit, Inference, Tree};

use super::group::Inputs;
use super::laws::{all, folder, job, parse};
use super::train;
use crate::events::All;
use crate::job::Job;
use crate::model::parameters_sha256;
use crate::train::checkpoint::Checkpoints;

/// Settings with which the start, the strings or the number of runs differ, for those that read them.
const VARIANTS: [&[&str]; 8] = [
    &[],
    &["inference.restarts=3", "inference.seed=7"],
    &["inference.truncation=3", "inference.rho=0.3", "inference.max_rounds=9"],
    &["inference.prior=logistic-normal", "inference.families=ud", "inference.components=[\"short-dep\"]"],
    &["inference.rules=ud", "inference.rules_weight=1.5"],
    &["inference.rules=ud", "inference.backoff=20"],
    &["inference.start=trees", "inference.start_from=whole.trees"],
    &[
        "inference.start=incremental",
        "inference.sweeps=3",
        "inference.anneal_from=4",
        "inference.anneal_rounds=2",
    ],
];

#[test]
fn the_library_learns_the_bits_of_a_job() {
    let dir = folder();
    let mut n_same = [0; VARIANTS.len()];
    for (model, estimator) in all() {
        for (variant, n_same) in VARIANTS.iter().zip(&mut n_same) {
            let whole = dir.path().join("whole.trees").display().to_string();
            let settings: Vec<String> =
                variant.iter().map(|setting| setting.replace("whole.trees", &whole)).collect();
            // A method refuses keys that it does not read.
            let Ok(job) = parse(&self::job(model, estimator), dir.path(), &settings) else { continue };
            // Trees of words are of one of the grammars.
            let Ok(inputs) = Inputs::load(&job) else { continue };
            let outcome =
                train(&job, &inputs, &Inline::default(), &mut Checkpoints::none(), &mut All(Vec::new()))
                    .unwrap();
            let learned = fit(&job, &inputs, model, dir.path());
            let message = format!("{} {settings:?}", estimator.in_words(model));
            assert_eq!(parameters_sha256(&learned), parameters_sha256(&outcome.model), "{message}");
            *n_same += 1;
        }
    }
    assert!(n_same.iter().all(|&n| n > 0) && n_same.iter().sum::<usize>() > 60, "{n_same:?} jobs");
}

/// The model that the library learns with the settings of a job.
fn fit(job: &Job, inputs: &Inputs, model: Model, dir: &Path) -> grammaton::models::Trained {
    let inference: Inference = job.points[0].inference.clone();
    let shard_symbols = job.corpus.shard_symbols;
    let text = |name: &str| fs::read(dir.join(name)).unwrap();
    let learned = match model {
        Model::Adaptor | Model::Pcfg => {
            let (corpus, _) = Corpus::open_with(&job.corpus.path, &job.corpus.options()).unwrap();
            let grammar = inputs.first().grammar().unwrap();
            let mut fit = Fit::new(grammar, inference.clone()).shard_symbols(shard_symbols);
            if inference.start == Start::Trees {
                let trees = String::from_utf8(text("whole.trees")).unwrap();
                fit = fit.start_from_trees(trees.lines().map(|line| Tree::parse(line).unwrap()).collect());
            }
            fit.run(&corpus)
        }
        Model::PcfgLa => {
            let trees =
                brackets::read(std::str::from_utf8(&text("trees.mrg")).unwrap(), "trees.mrg").unwrap();
            let trees: Vec<_> = trees.into_iter().filter_map(|entry| clean(&entry.tree?)).collect();
            let treebank = Treebank::new(&trees, job.corpus.unknown_threshold, job.corpus.unknown);
            Fit::treebank(inference).shard_symbols(shard_symbols).run(&treebank)
        }
        Model::Dmv | Model::AdaptedDmv => {
            let sentences = read(&text("tags.tsv"), "tags.tsv", Tags::Upos).unwrap();
            let sentences =
                select(&sentences, Punctuation::Removed, job.corpus.max_length as usize).sentences;
            let start = inference.start;
            let fit = match model {
                Model::Dmv => Fit::dependencies(inference),
                _ => Fit::adapted_dependencies(&job.model.adapted, inference),
            };
            fit.start(start).shard_symbols(shard_symbols).run(&sentences[..])
        }
    };
    learned.unwrap().model
}
