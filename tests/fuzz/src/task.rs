//! Tasks as a worker receives them, and answers as a coordinator does: an accepted task is computed without a panic, its answer
//! fits it, and a hostile answer that fits can be used.

use std::collections::BTreeSet;
use std::sync::Arc;

use grammaton::data::Sentence;
use grammaton::data::eval::segmentation::score;
use grammaton::encoding::{DecodeError, decode, encode};
use grammaton::grammar::groups::Groups;
use grammaton::grammar::lexicon::{Lexicon, StickStrings};
use grammaton::grammar::{Grammar, StickId, SymbolId, syntax};
use grammaton::models::adaptor::candidates::Ranking;
use grammaton::models::adaptor::hyper;
use grammaton::models::adaptor::start::Start;
use grammaton::models::decode::{Decode, Decoder};
use grammaton::models::dmv;
use grammaton::models::dmv::constraint::{ArcClass, Component};
use grammaton::models::logistic_normal::{Multinomials, PointEstimate, Prior, StopRule};
use grammaton::models::sampler::{Hyper, HyperPrior, Settings as OfSweep};
use grammaton::models::segments::Segments;
use grammaton::models::tally::Analysis;
use grammaton::num::{Noise, Wide};
use grammaton::train::adaptor::{Settings, Trainer};
use grammaton::train::logistic_normal::{Constrained, Settings as OfFits, State, Trainer as FitTrainer};
use grammaton::train::mixture::{Limit, Mixture};
use grammaton::train::round::{Summing, Totals};
use grammaton::train::trainer::{self, Collect};
use grammaton::work::engine::Engine;
use grammaton::work::shard::Shard;
use grammaton::work::task::{
    Answer, Candidates, ChainFrom, Collapse, Collapsed, Expectation, Fit, Fitted, Language, Lengths, Named,
    Request, Sample, Sampled, ShardState, Sweeping, Sweeps, Task, TaskWeights, Weighted, Work,
};
use prost::bytes::Bytes;
use proto::blob::Blob;
use proto::check;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::parts;

/// Maximum size of a task that is computed; larger ones are only slower.
const MAX_SYMBOLS: usize = 40;
const MAX_RULES: usize = 48;
const MAX_SWEEPS: u32 = 4;
const MAX_FIT_ROUNDS: u32 = 10;

/// Input: grammar, lexicon and shard of a task, the fourth blob that it may name, its work, and an answer.
pub fn run(data: &[u8]) {
    let [grammar, lexicon, shard, fourth, work, answer] = parts::split(data);
    let (Ok(grammar), Ok(lexicon), Ok(shard), Ok(work)) = (
        decode::<Grammar>(grammar),
        decode::<Lexicon>(lexicon),
        decode::<Shard>(shard),
        decode::<Request>(work),
    ) else {
        return;
    };
    // Whichever name the work has for it.
    let Ok(work) = work.resolve(|_| named(fourth), |_| named(fourth), |_| named(fourth), |_| named(fourth))
    else {
        return;
    };
    let (grammar, lexicon, shard) = (Named::new(grammar), Named::new(lexicon), Named::new(shard));
    let language = (!matches!(work, Work::Annotate(_))).then_some(Language { grammar, lexicon });
    let task = Task { language, shard, work, further: Vec::new() };
    if !fits(&task) || !is_small(&task) || !is_derived(&task) {
        return;
    }
    // An error is allowed: a task with too many weights, which no coordinator assigns, fails on every worker.
    let Ok(own) = Engine::default().run(&task) else { return };
    check::answer(&task, &own).expect("an answer fits its task");
    let again: Answer = decode(&encode(&own)).expect("what was written is read");
    assert_eq!(encode(&again), encode(&own));
    work_with(&task, own);
    if let Ok(hostile) = decode(answer)
        && check::answer(&task, &hostile).is_ok()
    {
        work_with(&task, hostile);
    }
}

fn named<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> Result<Named<T>, DecodeError> {
    decode(bytes).map(Named::new)
}

/// Checks a task as a worker does.
fn fits(task: &Task) -> bool {
    let parts = match &task.language {
        None => check::trees(&task.shard.value),
        Some(language) => check::grammar(&language.grammar.value)
            .and_then(|()| check::lexicon(&language.grammar.value, &language.lexicon.value))
            .and_then(|()| check::shard(language, &task.shard.value)),
    };
    parts.is_ok() && check::work(task).is_ok()
}

fn is_small(task: &Task) -> bool {
    let is_small_language = |Language { grammar, lexicon }: &Language| {
        let strings = lexicon.value.sticks.iter().flat_map(|stick| &stick.strings);
        let sides: usize = grammar.value.rules.iter().map(|rule| rule.children.len()).sum();
        sides <= MAX_RULES && strings.map(<[_]>::len).sum::<usize>() <= MAX_SYMBOLS
    };
    let items = match &*task.shard.value {
        Shard::Sentences(sentences) => sentences.iter().map(|sentence| sentence.tokens.len()).sum(),
        Shard::Strings(_) => 0,
        Shard::Trees { rules, trees } => rules.rules.len() + trees.trees.iter().map(Vec::len).sum::<usize>(),
    };
    let occurrences = match (&*task.shard.value, &task.work) {
        (Shard::Sentences(sentences), Work::Sample(_) | Work::Collapse(_) | Work::Sweep(_)) => {
            sentences.iter().map(|sentence| sentence.multiplicity as usize).sum()
        }
        _ => 0,
    };
    let n_sweeps = if let Work::Sweep(sweeps) = &task.work { sweeps.n } else { 0 };
    let n_fit_rounds = if let Work::Fit(fit) = &task.work { fit.value.until.max_rounds } else { 0 };
    items <= MAX_SYMBOLS
        && n_sweeps <= MAX_SWEEPS
        && n_fit_rounds <= MAX_FIT_ROUNDS
        && occurrences <= MAX_SYMBOLS
        && task.language.as_ref().is_none_or(is_small_language)
}

/// Whether all sentences have derivations, as a request for trees requires.
fn is_derived(task: &Task) -> bool {
    if !matches!(task.work, Work::Sample(_)) {
        return true;
    }
    let indexed = Engine::default().run(&Task { work: Work::Index, ..task.clone() });
    matches!(indexed, Ok(Answer::Index(index)) if index.unparsable.is_empty())
}

/// The best four candidates of each nonterminal.
fn best(adapted: &[SymbolId], found: &Candidates) -> Vec<StickStrings> {
    let mut ranking = Ranking::new(adapted, 4, -0.2);
    let mut known = BTreeSet::new();
    let once = found.counted.iter().filter(|(symbol, string, _)| known.insert((*symbol, *string)));
    once.for_each(|(symbol, string, expected)| ranking.add(symbol, string, expected));
    ranking.top()
}

/// The grammar and the strings of a task that is not on trees.
fn language(task: &Task) -> &Language {
    task.language.as_ref().expect("only trees have none")
}

/// Uses an answer that fits as a coordinator does.
fn work_with(task: &Task, answer: Answer) {
    if let Answer::Annotated(annotated) = answer {
        // It fits, so it has a number for each split rule.
        assert!(!annotated.expectation.ln_z.is_nan());
        return;
    }
    let (grammar, lexicon) = (&language(task).grammar.value, &language(task).lexicon.value);
    match answer {
        Answer::Annotated(_) => {}
        Answer::Candidates(found) => {
            let adapted: Vec<SymbolId> = grammar.adapted().collect();
            index(task, Lexicon { sticks: best(&adapted, &found) });
        }
        Answer::Missing(missing) => {
            let mut covered = lexicon.as_ref().clone();
            for (symbol, string) in missing {
                if let Some(stick) = covered.sticks.iter_mut().find(|stick| stick.symbol == symbol) {
                    stick.strings.push(&string);
                }
            }
            index(task, covered);
        }
        Answer::Index(index) => {
            let weights = vec![Wide::ONE; lexicon.space(grammar).n_params()];
            index.params.iter().for_each(|param| assert_eq!(weights[param.index()], Wide::ONE));
            index.unparsable.iter().for_each(|&item| assert!((item as usize) < task.shard.value.len()));
        }
        Answer::Expectation(found) => {
            let totals = totals(task, found);
            if lexicon.check(grammar).is_ok() {
                absorb(grammar.clone(), lexicon.clone(), totals);
            }
        }
        Answer::Sampled(Sampled { counts, analyses, missing }) => {
            if missing.is_empty() {
                judge_analyses(&occurrences(task), analyses);
            }
            totals(task, Expectation { counts, missing, ..Expectation::default() });
        }
        Answer::Collapsed(Collapsed { expectation, shard_state }) => {
            let n_touched = expectation.counts.len();
            totals(task, expectation);
            pass_again(task, n_touched, shard_state);
        }
        Answer::Chained(chained) => {
            let (ShardState::Chain(state) | ShardState::Sweeping(Sweeping { state, .. })) =
                &chained.shard_state
            else {
                panic!("a chain is shard_state")
            };
            let derived =
                occurrences(task).into_iter().zip(&state.trees).filter(|(_, tree)| !tree.is_empty());
            let tokens: Vec<Vec<SymbolId>> = derived.map(|(tokens, _)| tokens).collect();
            judge_analyses(&tokens, chained.analyses);
            sweep_again(task, chained.shard_state);
        }
        Answer::Fitted(fitted) => maximise(task, fitted),
        Answer::Decoded(decoded) => {
            let tokens: Vec<Vec<SymbolId>> =
                sentences(task).iter().map(|sentence| sentence.tokens.clone()).collect();
            let Work::Decode(with) = &task.work else { return };
            for at in 0..with.value.decoders.len() {
                let found: Vec<Vec<u32>> =
                    decoded.iter().map(|decoded| decoded.segmentations[at].clone()).collect();
                judge(&tokens, &found);
            }
            for (tokens, decoded) in tokens.iter().zip(decoded) {
                let segments = Segments::new(tokens.len() as u32, decoded.spans);
                assert_eq!(segments.best().last().copied().unwrap_or_default() as usize, tokens.len());
                let is_probability = |probability: &f64| (0.0..=1.0).contains(probability);
                assert!(segments.boundaries().iter().all(is_probability));
            }
        }
    }
}

fn sentences(task: &Task) -> &[Sentence] {
    if let Shard::Sentences(sentences) = &*task.shard.value { sentences } else { &[] }
}

/// The tokens of every occurrence of a sentence.
fn occurrences(task: &Task) -> Vec<Vec<SymbolId>> {
    let once = |sentence: &Sentence| vec![sentence.tokens.clone(); sentence.multiplicity as usize];
    sentences(task).iter().flat_map(once).collect()
}

/// Scores analyses of these sentences, if there are any.
fn judge_analyses(tokens: &[Vec<SymbolId>], analyses: Vec<Analysis>) {
    let ends: Vec<Vec<u32>> = analyses.into_iter().map(|analysis| analysis.ends).collect();
    judge(&tokens[..ends.len()], &ends);
}

/// Sums over the single shard.
fn totals(task: &Task, found: Expectation) -> Totals {
    let Ok(Answer::Index(index)) = Engine::default().run(&Task { work: Work::Index, ..task.clone() }) else {
        panic!("a shard that can be counted can be indexed")
    };
    let mut sums = Summing::new(language(task).n_params(), !found.losses.is_empty());
    let params = index.params.iter().copied();
    let is_added = match &task.work {
        Work::Expect { weights, .. } => {
            let in_use: Vec<bool> =
                weights.of(&index.params).iter().map(|weight| !weight.is_zero()).collect();
            let params = params.zip(in_use).filter(|(_, in_use)| *in_use).map(|(param, _)| param);
            sums.add(0, task.shard.value.strings(), params, found)
        }
        _ => sums.add(0, task.shard.value.strings(), params, found),
    };
    assert!(is_added, "an answer that fits its task has numbers for its parameters");
    sums.finish()
}

/// Scores segmentations of whole sentences.
fn judge(tokens: &[Vec<SymbolId>], found: &[Vec<u32>]) {
    let gold: Vec<Vec<u32>> = tokens.iter().map(|tokens| vec![tokens.len() as u32]).collect();
    assert!(found.iter().zip(&gold).all(|(found, gold)| found.last() == gold.last()));
    score(tokens, &gold, found);
}

/// Passes the state to the next lease, which must have an answer.
fn pass_again(task: &Task, n_touched: usize, shard_state: ShardState) {
    let groups = Groups::new(&language(task).grammar.value, &language(task).lexicon.value);
    let others = Collapse::Others {
        pseudo: vec![0.5; n_touched],
        sums: vec![2.0; groups.len()],
        temperature: 1.5,
        shard_state: Named::new(shard_state),
    };
    let task = Task { work: Work::Collapse(others), ..task.clone() };
    assert!(fits(&task), "a state from an answer fits the next task");
    let again = Engine::default().run(&task).expect("what fits is passed over");
    check::answer(&task, &again).expect("an answer fits its task");
}

/// Passes the state to the next lease; a state that does not match the shard is an error, not a panic.
fn sweep_again(task: &Task, shard_state: ShardState) {
    let Work::Sweep(sweeps) = &task.work else { panic!("a chain comes of sweeps") };
    let from = ChainFrom::ShardState(Named::new(shard_state));
    let task = Task { work: Work::Sweep(Sweeps { from, n: 1, ..sweeps.clone() }), ..task.clone() };
    assert!(fits(&task), "a state from an answer fits the next task");
    if let Ok(again) = Engine::default().run(&task) {
        check::answer(&task, &again).expect("an answer fits its task");
    }
}

/// Updates a trainer with this answer alone; invalid priors are an error, not a panic.
fn maximise(task: &Task, fitted: Fitted) {
    let Work::Fit(fit) = &task.work else { panic!("sentences were fitted") };
    let components: Vec<Component> =
        fit.value.components.iter().map(|weighted| weighted.component.clone()).collect();
    let names: Vec<String> = components.iter().map(|component| component.name.clone()).collect();
    let Ok(mixture) = Mixture::new(&names, &[], Some(Limit::default())) else { return };
    let mut state = State { priors: fit.value.priors.clone(), past: Default::default(), weights: Vec::new() };
    let mut constrained = None;
    if !components.is_empty() {
        state = state.with_mixture(&mixture).expect("equal bounds have best weights");
        constrained = Some(Constrained { components, mixture });
    }
    let until = fit.value.until;
    let settings = OfFits { until, estimate: PointEstimate::Softmax, tolerance: 0.0, constrained };
    let mut trainer = FitTrainer::new(settings, state);
    let fitted = |_, _| Answer::Fitted(fitted.clone());
    if trainer::round(&mut trainer, &vec![Arc::default()], Collect::default(), fitted).is_ok() {
        trainer.params().check(&language(task).grammar.value).expect("the priors are still of the grammar");
    }
}

/// Chooses strings from the candidates of an answer, and indexes the shard.
fn index(task: &Task, lexicon: Lexicon) {
    let language = Language { lexicon: Named::new(lexicon), ..language(task).clone() };
    let task = Task { language: Some(language), work: Work::Index, ..task.clone() };
    if fits(&task) {
        let indexed = Engine::default().run(&task);
        assert!(matches!(indexed, Ok(Answer::Index(_))), "{indexed:?}");
    }
}

/// Runs two rounds of a trainer with these totals.
fn absorb(grammar: Arc<Grammar>, lexicon: Arc<Lexicon>, totals: Totals) {
    let settings = Settings {
        select_by_bound: true,
        drop_share: 0.5,
        resort: true,
        fit: hyper::Fit { concentration: true, discount: true, alpha: true },
        pitman_yor: true,
        discount: 0.1,
        concentration: 1.0,
        growth: None,
        tolerance: 1e-5,
        start: Start::Uniform,
        samples: None,
    };
    let mut trainer = Trainer::new(grammar, lexicon, settings, Noise::new(1, 1));
    for _ in 0..4 {
        trainer.weights();
        if trainer.absorb(totals.clone()).is_err() {
            return;
        }
    }
}

/// A task and its answer.
pub struct Example {
    /// The task.
    pub task: Task,
    /// Its answer.
    pub answer: Answer,
}

/// Tasks of every kind, with their answers.
pub fn examples() -> Vec<Example> {
    let engine = Engine::default();
    let mut examples = Vec::new();
    for text in &crate::GRAMMARS[..2] {
        let grammar = syntax::parse(text, "seed.gr").expect("the text is a grammar").0;
        let adapted: Vec<SymbolId> = grammar.adapted().collect();
        let letter = |name: &str| grammar.symbol(name).expect("the grammar has this letter");
        let sentence = |letters: &[&str], multiplicity| {
            let tokens = letters.iter().map(|name| letter(name)).collect();
            Sentence::new(tokens, multiplicity)
        };
        let sentences = vec![sentence(&["a", "b"], 2), sentence(&["b", "a", "a"], 1)];
        let empty = Lexicon { sticks: best(&adapted, &Candidates::default()) };
        let (grammar, sentences) = (Named::new(grammar), Named::new(Shard::Sentences(sentences)));
        let mut example = |lexicon: &Lexicon, shard: &Named<Shard>, work| {
            let (grammar, lexicon) = (grammar.clone(), Named::new(lexicon.clone()));
            let task = Task {
                language: Some(Language { grammar, lexicon }),
                shard: shard.clone(),
                work,
                further: Vec::new(),
            };
            let answer = engine.run(&task).expect("the task is in order");
            examples.push(Example { task, answer: answer.clone() });
            answer
        };
        let Answer::Candidates(found) = example(
            &empty,
            &sentences,
            Work::Candidates(Lengths { max_length: 4, longer_than: 0, up_to: 2 }),
        ) else {
            panic!("candidates were asked for")
        };
        // Chains have no strings of adapted nonterminals.
        let mut sweep = |from, relabel: bool, keep| {
            let hyper = relabel.then_some(HyperPrior { shape: 1.0, scale: 10.0 });
            let settings = OfSweep { temperature: 1.5, relabel, hyper };
            let pseudo = vec![0.5; empty.space(&grammar.value).n_params()];
            let sweeps = Sweeps { from, n: 2, settings, pseudo, stream: 7, keep };
            match example(&empty, &sentences, Work::Sweep(sweeps)) {
                Answer::Chained(chained) => chained,
                _ => panic!("sweeps were asked for"),
            }
        };
        let hyper = Hyper { discount: 0.5, concentration: 1.0 };
        let chained = sweep(ChainFrom::Start { incremental: true, hyper }, true, Some(vec![adapted[0]]));
        let trees: Vec<String> = chained.analyses.into_iter().map(|analysis| analysis.tree).collect();
        sweep(ChainFrom::Trees { trees: Arc::new(trees), hyper }, true, None);
        sweep(ChainFrom::ShardState(Named::new(chained.shard_state)), false, None);
        let lexicon = Lexicon { sticks: best(&adapted, &found) };
        example(&lexicon, &sentences, Work::Cover);
        let first = lexicon.space(&grammar.value).stick(StickId(0 as u32));
        for shard in [sentences.clone(), Named::new(Shard::Strings(first))] {
            let Answer::Index(index) = example(&lexicon, &shard, Work::Index) else {
                panic!("an index was asked for")
            };
            let weights = vec![Wide::from_f64(0.3); index.params.len()];
            let n_touched = index.params.len() as u32;
            let all = vec![Wide::from_f64(0.3); lexicon.space(&grammar.value).n_params()];
            let all = Named::new(all.into_iter().collect());
            let shared = TaskWeights::Shared { all, n_touched, n_in_use: n_touched };
            for weights in [weights.iter().copied().collect(), shared] {
                example(&lexicon, &shard, Work::Expect { weights, losses: true });
            }
            if shard.hash != sentences.hash {
                continue;
            }
            for keep in [None, Some(vec![adapted[0]])] {
                example(&lexicon, &shard, Work::Sample(Sample { weights: weights.clone(), stream: 7, keep }));
            }
            let start = Work::Collapse(Collapse::Start { weights });
            let Answer::Collapsed(Collapsed { shard_state, .. }) = example(&lexicon, &shard, start) else {
                panic!("a pass was asked for")
            };
            let others = Collapse::Others {
                pseudo: vec![0.5; index.params.len()],
                sums: vec![2.0; Groups::new(&grammar.value, &lexicon).len()],
                temperature: 1.5,
                shard_state: Named::new(shard_state),
            };
            example(&lexicon, &shard, Work::Collapse(others));
        }
        for open in [false, true] {
            let weights = vec![Wide::from_f64(0.3); lexicon.space(&grammar.value).n_with_escapes()];
            let decoders = vec![Decoder::Viterbi, Decoder::Mbr, Decoder::MbrTree];
            let decode =
                Decode { weights, segments: vec![adapted[0]], decoders, trees: true, spans: true, open };
            example(&lexicon, &sentences, Work::Decode(Named::new(decode)));
        }
    }
    examples.push(fitted());
    examples.extend(dependencies());
    examples
}

/// A task of a grammar without strings.
fn fitted() -> Example {
    let text = "1 1 S --> A S\n1 1 S --> A\n1 1 A --> a\n1 1 A --> b\n";
    let grammar = syntax::parse(text, "seed.gr").expect("the text is a grammar").0;
    let tokens = ["a", "b", "a"].map(|name| grammar.symbol(name).expect("the grammar has this letter"));
    let shard = Shard::Sentences(vec![Sentence::new(tokens.to_vec(), 2)]);
    let prior = |mean| Prior::related(mean, &[Some(0), Some(0)]).expect("it is one");
    let priors = vec![prior(vec![-1.0, 0.5]), prior(vec![0.0, 0.25])];
    let until = StopRule { tolerance: 1e-5, max_rounds: MAX_FIT_ROUNDS };
    let task = Task {
        language: Some(Language { grammar: Named::new(grammar), lexicon: Named::new(Lexicon::default()) }),
        shard: Named::new(shard),
        work: Work::Fit(Named::new(Fit { priors, until, components: Vec::new() })),
        further: Vec::new(),
    };
    let answer = Engine::default().run(&task).expect("the task is in order");
    Example { task, answer }
}

/// Tasks of a dependency grammar: its own decoder, and a mixture with a component that sets every field.
fn dependencies() -> [Example; 2] {
    let grammar = dmv::grammar(&["NOUN", "VERB"].map(str::to_owned)).expect("tags have a grammar");
    let tokens = dmv::Layout::new(2).tokens(&[0, 1, 0]);
    let noun = || vec!["noun".to_owned()];
    let component = Component {
        name: "own".to_owned(),
        roots: vec!["NOUN".to_owned()],
        longest_arc: Some(2),
        forbid: vec![ArcClass { head: noun(), child: noun(), side: Some(dmv::Side::Right) }],
        phrases: noun(),
    };
    let multinomials = Multinomials::new(&grammar).expect("nothing is adapted");
    let prior =
        |range: std::ops::Range<usize>| Prior::independent(vec![0.5; range.len()]).expect("it is one");
    let priors = multinomials.iter().map(prior).collect();
    let until = StopRule { tolerance: 1e-5, max_rounds: MAX_FIT_ROUNDS };
    let components = vec![Weighted { component, weight: 0.25 }];
    let weights = vec![Wide::from_f64(0.3); dmv::Layout::new(2).n_params()];
    let decoders = vec![Decoder::Viterbi, Decoder::MbrArcs];
    let decode = Decode { weights, segments: Vec::new(), decoders, trees: true, spans: true, open: true };
    let shard = Named::new(Shard::Sentences(vec![Sentence::new(tokens, 2)]));
    let (grammar, lexicon) = (Named::new(grammar), Named::new(Lexicon::default()));
    [Work::Fit(Named::new(Fit { priors, until, components })), Work::Decode(Named::new(decode))].map(|work| {
        let (grammar, lexicon, shard) = (grammar.clone(), lexicon.clone(), shard.clone());
        let task = Task { language: Some(Language { grammar, lexicon }), shard, work, further: Vec::new() };
        let answer = Engine::default().run(&task).expect("the task is in order");
        Example { task, answer }
    })
}

/// Encoded examples.
pub fn seeds() -> Vec<Vec<u8>> {
    let seed = |Example { task, answer }: &Example| {
        let mut blobs: Vec<_> = Blob::of_task(task).into_iter().map(|blob| blob.to_bytes()).collect();
        if task.language.is_none() {
            blobs.splice(0..0, [Bytes::new(), Bytes::new()]);
        }
        blobs.resize(4, Bytes::new());
        parts::join(&[&blobs[0], &blobs[1], &blobs[2], &blobs[3], &encode(&task.work), &encode(answer)])
    };
    examples().iter().map(seed).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn seeds_are_tasks_that_fit_and_are_small() {
        for example in super::examples() {
            assert!(super::fits(&example.task) && super::is_small(&example.task));
        }
    }
}
