//! Cost of a round and of its parts on one core.
//!
//! ```text
//! cargo bench -p grammaton-training --bench rounds -- [CORPUS] [JOB.toml …]
//! ```
//!
//! Without arguments: the corpus and the grammars of `examples/segmentation`. For every job it measures the shortest of the rounds, since
//! the machine may have other load, with all strings in use (none is dropped, so that rounds are comparable); and the passes alone, in
//! edges per second, with the rate of reading as many bytes for comparison.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fleet::{Inline, Stage};
use grammaton::forest::Forest;
use grammaton::forest::Prepared;
use grammaton::forest::binary::{Adapted, Kind};
use grammaton::forest::build::Builder;
use grammaton::forest::chains::Chains;
use grammaton::forest::inside::{Counts, Scratch, Weights, expect, real};
use grammaton::grammar::ParamId;
use grammaton::methods::{self, RunStart};
use grammaton::prepare::candidates::StringChoice;
use grammaton::train::trainer::Collect;
use grammaton::work::shard::Shard;
use grammaton::work::task::Language;
use training::job::{Job, OutputTable};
use training::train::input::Input;
use training::train::plan::{self, Plan};
use training::train::prepare::{self, Items};

const ROUNDS: usize = 30;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let corpus = args.first().map_or("examples/segmentation/corpus.txt", String::as_str);
    let jobs = args.get(1..).filter(|jobs| !jobs.is_empty()).map(<[String]>::to_vec);
    for job in jobs.unwrap_or_else(|| vec!["examples/segmentation/job.toml".to_owned()]) {
        measure(&from_root(&job), &from_root(corpus));
    }
}

/// Paths are relative to the repository: `cargo bench` runs in the folder of the crate.
fn from_root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn measure(path: &Path, corpus: &Path) {
    let corpus = format!("corpus.path={}", corpus.display());
    let job =
        Job::load(path, &[corpus, "inference.selection=fixed".to_owned()]).expect("the job file is in order");
    let folder = tempfile::tempdir().expect("there is room for shards");
    let job = Job { output: OutputTable { dir: folder.path().to_owned(), ..job.output.clone() }, ..job };
    let input = Input::load(&job).expect("the files are in order");
    let fleet = Inline::default();
    let begun = now();
    let choice = StringChoice::from(&job.inference);
    let (_, plan) =
        prepare::plan(&fleet, &input, Items::new(&input), &choice, None).expect("the corpus can be prepared");
    println!("{}: {} sentences", path.display(), input.text.n_sentences);
    println!("  prepare        {:8.1} ms", millis(begun));
    rounds(&job, &plan, &fleet);
    passes(&plan);
}

fn rounds(job: &Job, plan: &Plan, fleet: &Inline) {
    let (model, inference) = (job.model.model(), &job.inference);
    let beginning = RunStart { model, inference, restart: 1, trees: None, families: None };
    let mut trainer = methods::trainer(plan, &beginning, None).expect("a run begins");
    let mut best = [f64::INFINITY; 4];
    for round in 0..ROUNDS {
        let begun = now();
        trainer.begin(Collect::default());
        let prepared = millis(begun);
        let groups = plan.groups(&trainer.shards(plan), 0);
        let asked: Vec<_> = groups.iter().cloned().map(|group| (0, group)).collect();
        let (ask, takes) =
            (trainer.ask(plan).expect("the shards are there"), vec![Duration::ZERO; asked.len()]);
        let tasks = plan::round(vec![(plan, ask)], asked, takes, 0);
        let stage = Stage::Round { run: 1, round };
        let add = |at: usize, answer| {
            assert!(trainer.add(plan, groups[at].clone(), answer).expect("the shards are there"));
            Ok(())
        };
        plan::map(fleet, stage, tasks, add).expect("workers answer");
        let expected = millis(begun);
        trainer.finish().expect("the bound rises");
        let all = millis(begun);
        if round > 1 && all < best[0] {
            best = [all, prepared, expected - prepared, all - expected]; // the first weights cost nothing
        }
    }
    let [all, weights, expect, update] = best;
    println!("  round          {all:8.2} ms  (weights {weights:.2}, E-step {expect:.2}, update {update:.2})");
}

/// Inside–outside alone, over all items, as folded forests.
fn passes(plan: &Plan) {
    let Language { grammar, lexicon } = plan.language().expect("the plan is of sentences");
    let prepared = Prepared::new(grammar.value.clone(), lexicon.value.clone());
    let mut builder = Builder::new(&prepared.binary, &prepared.strings, Adapted::Strings);
    let mut chains = Chains::default();
    let first_string = prepared.grammar.space().first_string().0;
    let mut forests: Vec<Forest> = Vec::new();
    let begun = now();
    for planned in &plan.shards.each {
        let mut keep = |root, tokens| {
            let forest = builder.build(root, tokens).unwrap().expect("every item has a derivation");
            forests.push(chains.fold(&forest, first_string));
        };
        match &*planned.shard.value().expect("the shard is there") {
            Shard::Sentences(sentences) => sentences.iter().for_each(|sentence| keep(0, &sentence.tokens)),
            Shard::Strings(params) => {
                for param in params.clone() {
                    let string = prepared.lexicon.string(&prepared.grammar, ParamId(param));
                    let (symbol, string) = string.expect("the shard is of this lexicon");
                    if let Kind::Adapted(stick) = prepared.binary.kinds[symbol.index()] {
                        keep(prepared.binary.base[stick.index()], string);
                    }
                }
            }
            Shard::Trees { .. } => {} // they have no forests
        }
    }
    println!("  build forests  {:8.1} ms", millis(begun));
    let wide = chains.weights(&vec![grammaton::num::Wide::from_ln(-3.0); prepared.space().n_params()]);
    let weights = Weights { wide: &wide, real: &real(&wide) };
    let mut uses = vec![0.0; chains.len()];
    let mut scratch = Scratch::default();
    let edges: usize = forests.iter().map(|forest| forest.edges.len()).sum();
    let bytes: usize = forests.iter().map(|forest| 12 * forest.edges.len() + 4 * forest.n_nodes()).sum();
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let begun = now();
        for forest in &forests {
            let mut counts = Counts { uses: &mut uses, losses: &mut [] };
            black_box(expect(forest, &weights, 1.0, &mut counts, &mut scratch));
        }
        best = best.min(millis(begun));
    }
    let block = vec![1u64; bytes / 8];
    let mut read = f64::INFINITY;
    for _ in 0..ROUNDS {
        let begun = now();
        black_box(black_box(&block).iter().fold(0u64, |sum, &word| sum.wrapping_add(word)));
        read = read.min(millis(begun));
    }
    let per_second = |amount: usize, millis: f64| amount as f64 / millis / 1e3;
    println!(
        "  inside-outside {best:8.2} ms  {edges} edges, {:.0} M edges/s; {:.1} MB twice: {:.1} GB/s against {:.1} GB/s read",
        per_second(edges, best),
        bytes as f64 / 1e6,
        2.0 * per_second(bytes, best) / 1e3,
        per_second(bytes, read) / 1e3,
    );
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn now() -> Instant {
    Instant::now()
}

fn millis(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}
