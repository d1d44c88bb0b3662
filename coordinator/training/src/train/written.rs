//! Laws of the parameters that a run writes, for every model and method: they are those after the update of its last round, one step beyond the
//! objective that is printed last. The table is in `docs/MATHS.md`.

use std::sync::Arc;

use fleet::{Compute, FleetError, Inline, Map, MapReport, Stage, Tasks, engine};
use grammaton::forest::Prepared;
use grammaton::grammar::groups::Groups;
use grammaton::grammar::{ParamId, SymbolId};
use grammaton::models::decode::{Decode, decode};
use grammaton::models::latent;
use grammaton::models::latent::layout::Layout;
use grammaton::models::pcfg::{map_em, vb};
use grammaton::models::{self, Params, Trained};
use grammaton::work::counts::union;
use grammaton::work::shard::Shard;
use grammaton::work::task::{Answer, ContentHash, ShardState, Task, Work};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::group::Inputs;
use super::laws::{all, folder, job, parse};
use super::train;
use crate::events::All;
use crate::job::Job;
use crate::outcome::Outcome;
use crate::train::checkpoint::Checkpoints;
use crate::train::spill::Stored;
use grammaton::methods::ANNOTATION_ALPHA;
use grammaton::settings::{Estimator, Model};

/// Which parameters a method writes after round k.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Written {
    /// Those with which round k + 1 reads the sentences.
    Next,
    /// Those of the sums of the answers of round k.
    Sums,
    /// Those of the mean of the samples that were kept.
    Mean,
}

impl Written {
    fn by(model: Model, estimator: Estimator) -> Written {
        match estimator {
            Estimator::Em | Estimator::Vb if model == Model::PcfgLa => Written::Sums,
            Estimator::Em
            | Estimator::MapEm
            | Estimator::Vb
            | Estimator::VbEm
            | Estimator::Svb
            | Estimator::Oem
            | Estimator::LogisticNormal => Written::Next,
            Estimator::Cvb => Written::Sums,
            Estimator::Gibbs | Estimator::Hastings => Written::Mean,
        }
    }

    /// As in the table of `docs/MATHS.md`.
    fn in_words(self) -> &'static str {
        match self {
            Written::Next => "those of round k + 1",
            Written::Sums => "of the sums of round k",
            Written::Mean => "of the mean of the kept samples",
        }
    }
}

/// What was asked and answered.
type Said = Vec<(Stage, Task, Answer)>;

/// A fleet that keeps what is asked and answered.
struct Heard {
    said: Arc<Mutex<Said>>,
    fleet: Inline,
    stage: Arc<Mutex<Stage>>,
}

impl Heard {
    fn new() -> Heard {
        let (said, stage) = (Arc::<Mutex<Said>>::default(), Arc::new(Mutex::new(Stage::Index)));
        let (engine, to, at) = (engine(), said.clone(), stage.clone());
        let compute: Compute = Arc::new(move |task| {
            let (answer, stage) = (engine(task)?, *at.lock());
            let mut said = to.lock();
            said.push((stage, task.clone(), answer.clone()));
            Ok(answer)
        });
        Heard { said, fleet: Inline::new(compute), stage }
    }
}

impl Map for Heard {
    fn map(
        &self,
        stage: Stage,
        tasks: Arc<dyn Tasks>,
        each: &mut dyn FnMut(usize, Answer),
    ) -> Result<MapReport, FleetError> {
        *self.stage.lock() = stage;
        self.fleet.map(stage, tasks, each)
    }
}

fn run(job: &Job) -> (Outcome, Said) {
    let (inputs, fleet) = (Inputs::load(job).unwrap(), Heard::new());
    let outcome = train(job, &inputs, &fleet, &mut Checkpoints::none(), &mut All(Vec::new())).unwrap();
    let said = std::mem::take(&mut *fleet.said.lock());
    (outcome, said)
}

fn add(sums: &mut Vec<f64>, params: impl Iterator<Item = usize>, counts: impl Iterator<Item = f64>) {
    for (param, count) in params.zip(counts) {
        sums.resize(sums.len().max(param + 1), 0.0);
        sums[param] += count;
    }
}

/// Whether two lists are equal up to the rounding of other sums; what one of them lacks is zero.
fn assert_close(found: &[f64], expected: &[f64], case: &str) {
    let at = |of: &[f64], at: usize| of.get(at).copied().unwrap_or_default();
    for param in 0..found.len().max(expected.len()) {
        let (found, expected) = (at(found, param), at(expected, param));
        assert!(
            (found - expected).abs() <= 1e-9 * (1.0 + expected.abs()),
            "{case}, {param}: {found}, {expected}"
        );
    }
}

#[test]
fn every_method_writes_the_parameters_that_its_row_says() {
    let dir = folder();
    const ROUNDS: usize = 3;
    for (model, estimator) in all() {
        let (case, written) = (format!("{model:?} {estimator:?}"), Written::by(model, estimator));
        let after = |rounds: usize, more: &[&str]| {
            let mut set = vec![format!("inference.max_rounds={rounds}")];
            set.extend(more.iter().map(|more| format!("inference.{more}")));
            run(&parse(&job(model, estimator), dir.path(), &set).unwrap())
        };
        let in_round = |said: &Said, round: usize| -> Vec<(Task, Answer)> {
            let of = said.iter().filter(|(stage, ..)| stage.place() == Some((1, round)));
            of.map(|(_, task, answer)| (task.clone(), answer.clone())).collect()
        };
        let params_by_shard = |said: &Said| -> FxHashMap<ContentHash, Vec<ParamId>> {
            let index = |(_, task, answer): &(Stage, Task, Answer)| match answer {
                Answer::Index(index) => Some((task.shard.hash, index.params.clone())),
                _ => None,
            };
            said.iter().filter_map(index).collect()
        };
        let mut n_compared = 0;
        match written {
            Written::Next => {
                let ((outcome, _), (_, said)) = (after(ROUNDS, &[]), after(ROUNDS + 1, &[]));
                let Trained::Grammar(learned) = &outcome.model else { panic!("{case}: a grammar") };
                let (weights, by_shard) = (learned.decoding_weights(), params_by_shard(&said));
                for (task, _) in in_round(&said, ROUNDS + 1) {
                    match (&task.work, &learned.params) {
                        (Work::Expect { weights: asked, .. }, _) => {
                            let params = union(task.shards().map(|shard| &by_shard[&shard.hash][..]));
                            for (param, asked) in params.iter().zip(asked.of(&params)) {
                                assert_eq!(weights[param.index()], asked, "{case}, {param:?}");
                                n_compared += 1;
                            }
                        }
                        (Work::Fit(fit), Params::LogisticNormal(params)) => {
                            assert_eq!(fit.value.priors, params.priors, "{case}");
                            n_compared += params.priors.len();
                        }
                        (work, _) => panic!("{case}: {work:?}"),
                    }
                }
            }
            Written::Sums => {
                let (outcome, said) = after(ROUNDS, &[]);
                let by_shard = params_by_shard(&said);
                let mut sums = Vec::new();
                let mut pass = None;
                for (task, answer) in in_round(&said, ROUNDS) {
                    match answer {
                        Answer::Collapsed(found) => {
                            let params = by_shard[&task.shard.hash].iter().map(|param| param.index());
                            add(&mut sums, params, found.expectation.counts.iter().copied());
                        }
                        Answer::Annotated(found) => {
                            add(&mut sums, 0.., found.expectation.counts.iter().copied());
                            pass = Some(task.work);
                        }
                        other => panic!("{case}: {other:?}"),
                    }
                }
                match &outcome.model {
                    Trained::Grammar(learned) => {
                        let Params::Pcfg(params) = &learned.params else { panic!("{case}: a PCFG") };
                        assert_close(&params.estimate.counts, &sums, &case);
                    }
                    Trained::Treebank(learned) => {
                        let Some(Work::Annotate(annotate)) = pass else { panic!("{case}: trees") };
                        let layout = Layout::new(&learned.rules, annotate.n_subtypes);
                        let method = match estimator {
                            Estimator::Em => latent::Method::Em,
                            Estimator::Vb => latent::Method::Vb,
                            _ => latent::Method::Cvb,
                        };
                        let totals = sums.clone();
                        let params = latent::Params { method, alpha: ANNOTATION_ALPHA, totals };
                        assert_close(&learned.weights, &params.estimate(&layout), &case);
                    }
                }
                n_compared += sums.len();
            }
            Written::Mean => {
                let (outcome, said) = after(ROUNDS, &["burn_in=0.0", "keep_every=1"]);
                let by_shard = params_by_shard(&said);
                let Trained::Grammar(learned) = &outcome.model else { panic!("{case}: a grammar") };
                let rules = learned.grammar.space().rules();
                let mut sums = Vec::new();
                for (task, answer) in (1..=ROUNDS).flat_map(|round| in_round(&said, round)) {
                    match answer {
                        Answer::Sampled(found) => {
                            let params = by_shard[&task.shard.hash].iter().map(|param| param.index());
                            add(&mut sums, params, found.counts.iter().copied());
                        }
                        Answer::Chained(found) if matches!(found.shard_state, ShardState::Chain(_)) => {
                            add(&mut sums, 0.., found.uses.iter().map(|&uses| f64::from(uses)));
                        }
                        Answer::Chained(_) => {}
                        other => panic!("{case}: {other:?}"),
                    }
                }
                let means: Vec<f64> = sums.iter().map(|sum| sum / ROUNDS as f64).collect();
                n_compared += means.len();
                match &learned.params {
                    Params::Pcfg(params) => assert_close(&params.estimate.counts, &means, &case),
                    Params::Adaptor(params) => {
                        let uses: Vec<f64> =
                            params.tau.iter().zip(&params.alpha).map(|(tau, alpha)| tau - alpha).collect();
                        assert_close(&uses, &means[rules], &case);
                    }
                    Params::LogisticNormal(_) => panic!("{case}: no sampler"),
                }
            }
        }
        assert!(n_compared > 0, "{case}");
        let row = format!("| {} | ", estimator.name());
        let maths = include_str!("../../../../docs/MATHS.md");
        let is_row = |line: &&str| line.starts_with(&row) && line.contains(written.in_words());
        assert!(
            maths.lines().any(|line| is_row(&line)),
            "docs/MATHS.md has no row {row}… {}",
            written.in_words()
        );
    }
}

/// Σ log Z of the sentences of a job under the weights of a model.
fn log_likelihood(inputs: &Inputs, model: &models::Model) -> f64 {
    let prepared = Prepared::new(model.grammar.clone(), model.lexicon.clone());
    let with = Decode {
        weights: model.decoding_weights(),
        segments: Vec::new(),
        decoders: Vec::new(),
        trees: false,
        spans: false,
        open: false,
    };
    let of_shard = |shard: &Stored<Shard>| {
        let Shard::Sentences(sentences) = &*shard.value().unwrap() else { panic!("a shard of sentences") };
        let tokens: Vec<&[SymbolId]> = sentences.iter().map(|sentence| &sentence.tokens[..]).collect();
        let decoded = decode(&prepared, &with, &tokens).unwrap();
        let log_z = sentences.iter().zip(decoded).map(|(of, found)| f64::from(of.multiplicity) * found.log_z);
        log_z.sum::<f64>()
    };
    inputs.first().text.shards.iter().map(of_shard).sum()
}

/// Law: the model that is written has the parameters after the update of its last round, one step beyond the bound that is printed last: its
/// own bound is that of the next round.
#[test]
fn the_objective_of_written_parameters_is_that_of_the_next_round() {
    let dir = folder();
    let mut n_checked = 0;
    for (model, estimator) in all().filter(|(model, _)| matches!(model, Model::Pcfg | Model::Dmv)) {
        if !matches!(estimator, Estimator::Em | Estimator::MapEm | Estimator::Vb | Estimator::VbEm) {
            continue;
        }
        for rounds in [1, 2, 4] {
            let after = |rounds: usize| {
                let set = [format!("inference.max_rounds={rounds}"), "inference.tolerance=0".to_owned()];
                let job = parse(&job(model, estimator), dir.path(), &set).unwrap();
                (Inputs::load(&job).unwrap(), run(&job).0)
            };
            let ((inputs, written), (_, next)) = (after(rounds), after(rounds + 1));
            let Trained::Grammar(learned) = &written.model else { panic!("a model of a grammar") };
            let Params::Pcfg(params) = &learned.params else { panic!("a PCFG") };
            let groups = Groups::new(&learned.grammar, &learned.lexicon);
            let log_z = log_likelihood(&inputs, learned);
            let (estimate, weights) = (&params.estimate, &params.weights);
            let bound = match estimator {
                Estimator::Em => log_z,
                Estimator::MapEm => map_em::bound(&groups, estimate, weights, log_z),
                _ => vb::bound(&groups, estimate, log_z),
            };
            let expected = next.result.bound.unwrap();
            assert!(
                (bound - expected).abs() < 1e-9 * expected.abs(),
                "{model:?} {estimator:?}: {bound}, {expected}"
            );
            assert_ne!(written.result.bound, next.result.bound, "{model:?} {estimator:?}, {rounds} rounds");

            // Probabilities are printed as they are used.
            if params.is_point {
                let text = crate::model::grammar_text(&written.model);
                let printed =
                    text.lines().filter_map(|line| line.strip_prefix("# ")?.split_once(' ')?.0.parse().ok());
                let printed: Vec<f64> = printed.collect();
                let used = &weights[learned.grammar.space().rules()];
                assert_eq!(printed.len(), used.len());
                for (printed, used) in printed.iter().zip(used) {
                    assert!(
                        (printed - used.to_f64()).abs() <= 1e-6 * used.to_f64(),
                        "{model:?} {estimator:?}"
                    );
                }
            }
            n_checked += 1;
        }
    }
    assert!(n_checked >= 21, "{n_checked}");
}
