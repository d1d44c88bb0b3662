//! Sealed files with arbitrary content behind a valid checksum.
//!
//! Law: no content of a model or a checkpoint causes a panic. It is refused in one line, or training resumes to its end and the model
//! parses.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use fleet::Inline;
use grammaton::data::Sentence;
use grammaton::models::decode::{Decode, Decoder};
use grammaton::models::latent::parse::{self, Parser};
use grammaton::models::{Model, Params, Trained as Learned};
use grammaton::work::engine::Engine;
use grammaton::work::shard::Shard;
use grammaton::work::task::{Language, Named, Task, Work};
use tempfile::TempDir;
use training::events::All;
use training::job::Job;
use training::model::{self, SavedModel, grammar_text, parameters_sha256, top, write_sticks};
use training::outcome::Outcome;
use training::train::checkpoint::{self, Checkpoints};
use training::train::group::Inputs;
use training::train::train;

const ADAPTED: &str = "1 1 S --> W\n1 1 S --> W S\nW --> L\nW --> L W\n1 1 L --> a\n1 1 L --> b\n";
const SUBSTRINGS: &str = "1 1 S --> W\n1 1 S --> W S\n1 1 W --> <substrings>\n";
const PLAIN: &str = "1 1 S --> L S\n1 1 S --> L\n1 1 L --> a\n1 1 L --> b\n";
const SENTENCES: &str = "ab a\nb ab\n";
const TREES: &str = "(S (N a) (V b))\n(S (N (N c) (N d)) (V b))\n";
const HEADS: &str = "w\tN\t2\nv\tV\t0\n\nv\tV\t0\nw\tN\t1\n\n";

/// A small job of each kind of model and method: tables `[model]` and `[inference]`, and further keys of the corpus.
const JOBS: &[(&str, &str, &str, &str)] = &[
    ("", ADAPTED, "grow_from = 2\ngrow_by = 2\nrestarts = 2", ""),
    ("", ADAPTED, "method = \"svb\"\nsample_shards = 1", "held_out_share = 0.5\n"),
    ("", ADAPTED, "method = \"hastings\"\nkeep_every = 1\nfit = [\"concentration\"]", ""),
    ("kind = \"pcfg\"", SUBSTRINGS, "method = \"em\"\nmax_string = 2", "held_out_share = 0.5\n"),
    ("kind = \"pcfg\"", SUBSTRINGS, "method = \"svb\"\nmax_string = 2\nsample_shards = 1", ""),
    ("kind = \"pcfg\"", PLAIN, "method = \"cvb\"", ""),
    ("kind = \"pcfg\"", SUBSTRINGS, "method = \"em\"", "annotated = \"corpus.txt\"\n"),
    ("kind = \"pcfg\"", PLAIN, "method = \"gibbs\"\nkeep_every = 1", ""),
    ("kind = \"pcfg\"", PLAIN, "method = \"hastings\"\nkeep_every = 1", ""),
    ("kind = \"pcfg\"", PLAIN, "method = \"vb\"\nprior = \"logistic-normal\"", ""),
    ("kind = \"dmv\"", HEADS, "method = \"vb-em\"", ""),
    ("kind = \"pcfg-la\"", TREES, "method = \"em\"", ""),
    ("kind = \"pcfg-la\"", TREES, "method = \"cvb\"", ""),
];

/// A trained job, with a checkpoint of every round.
struct Trained {
    job: Job,
    inputs: Inputs,
    folder: TempDir,
    model: SavedModel,
    /// Body of the second checkpoint.
    checkpoint: Vec<u8>,
}

impl Trained {
    fn new(&(model, text, inference, corpus): &(&str, &str, &str, &str)) -> Trained {
        let folder = tempfile::tempdir().unwrap();
        let is_grammar = text.contains("-->");
        let (grammar, sentences) =
            if is_grammar { ("grammar = \"grammar.gr\"\n", SENTENCES) } else { ("", text) };
        fs::write(folder.path().join("grammar.gr"), text).unwrap();
        fs::write(folder.path().join("corpus.txt"), sentences).unwrap();
        let segments = match text {
            PLAIN => "segments = [\"L\"]\n",
            _ if is_grammar => "segments = [\"W\"]\n",
            _ => "",
        };
        let job = format!(
            "[model]\n{model}\n{grammar}[corpus]\npath = \"corpus.txt\"\n{corpus}[inference]\nmax_rounds = 3\n{inference}\n\
             [output]\ncheckpoint_seconds = 0\nkeep_checkpoints = 100\n{segments}"
        );
        let job = Job::parse(&job, "job.toml", folder.path(), &[]).unwrap();
        let inputs = Inputs::load(&job).unwrap();
        let mut trained =
            Trained { model: job.corpus.saved(empty()), job, inputs, folder, checkpoint: Vec::new() };
        let learned = trained.train(false).unwrap().model;
        trained.model = trained.job.corpus.saved(learned);
        let file = fs::read(trained.file(2)).unwrap();
        let (_, body) = checkpoint::SEAL.open(&file).unwrap();
        trained.checkpoint = zstd::decode_all(body).unwrap();
        fs::remove_dir_all(trained.file(1).parent().unwrap()).unwrap();
        trained
    }

    fn file(&self, number: usize) -> std::path::PathBuf {
        self.folder.path().join(format!("out/checkpoints/{number:06}.ckpt"))
    }

    fn train(&self, resume: bool) -> anyhow::Result<Outcome> {
        let mut output = self.job.output.clone();
        if resume {
            output.keep_checkpoints = 0;
        }
        let mut checkpoints = Checkpoints::open(&output, resume)?;
        train(&self.job, &self.inputs, &Inline::default(), &mut checkpoints, &mut All(Vec::new()))
    }

    /// Resumes from a checkpoint with this body; returns the error, if any.
    fn resume(&self, body: &[u8]) -> Option<String> {
        let file = checkpoint::SEAL.close(&zstd::encode_all(body, 1).unwrap());
        fs::create_dir_all(self.file(1).parent().unwrap()).unwrap();
        fs::write(self.file(1), file).unwrap();
        self.train(true).err().map(|error| format!("{error:#}"))
    }

    /// Reads a model with this body and parses with it; returns the error, if any.
    fn load(&self, body: &[u8]) -> Option<String> {
        let file = model::SEAL.close(body);
        match SavedModel::from_bytes(&file, Path::new("model.bin")) {
            Ok(saved) => {
                show(&saved);
                parse(saved.model);
                None
            }
            Err(error) => Some(error.to_string()),
        }
    }
}

/// A placeholder model.
fn empty() -> Learned {
    let grammar = grammaton::grammar::syntax::parse("1 1 S --> a", "g").unwrap().0;
    let params = grammaton::models::adaptor::Params::new(&grammar, Vec::new());
    let params = Params::Adaptor(params);
    Learned::Grammar(Model { grammar, lexicon: Default::default(), params, segments: Vec::new() })
}

fn show(saved: &SavedModel) {
    parameters_sha256(&saved.model);
    write_sticks(saved, &mut std::io::sink()).unwrap();
    let n_sticks = saved.model.of_grammar().map_or(0, |model| model.lexicon.sticks.len());
    (0..n_sticks).for_each(|at| drop(top(saved, at, 5)));
    grammar_text(&saved.model);
}

fn parse(model: Learned) {
    let model = match model {
        Learned::Grammar(model) => model,
        Learned::Treebank(model) => {
            let parser = Parser::new(&model, parse::THRESHOLD);
            for decoder in [parse::Decoder::Viterbi, parse::Decoder::MaxRule] {
                parser.parse(&["a", "b", "new"], decoder);
            }
            return;
        }
    };
    let (weights, segments) = (model.predictive_weights(), model.segments.clone());
    let tokens: Vec<_> = (model.grammar.n_nonterminals..model.grammar.symbols.len() as u32)
        .map(grammaton::grammar::SymbolId)
        .take(4)
        .collect();
    let shard = Named::new(Shard::Sentences(vec![Sentence::new(tokens, 1)]));
    let (grammar, lexicon) = (Named::new(model.grammar.clone()), Named::new(model.lexicon.clone()));
    let language = Language { grammar, lexicon };
    for (weights, open) in [(model.decoding_weights(), false), (weights, true)] {
        let decoders = vec![Decoder::Viterbi, Decoder::Mbr, Decoder::MbrTree];
        let with = Decode { weights, segments: segments.clone(), decoders, trees: true, spans: false, open };
        let work = Work::Decode(Named::new(with));
        let task = Task { language: Some(language.clone()), shard: shard.clone(), work, further: Vec::new() };
        Engine::default().run(&task).unwrap();
    }
}

/// Maximum number of changes at one byte.
const MAX_CHANGES: usize = 18;

/// Replacements of a word or a byte of a body: indices and lengths too large or off by one, and NaN.
fn changes(body: &[u8], at: usize) -> Vec<Vec<u8>> {
    let word = |bytes: &[u8]| {
        let mut changed = body.to_vec();
        changed[at..at + bytes.len()].copy_from_slice(bytes);
        changed
    };
    let mut changed: Vec<Vec<u8>> =
        [0, 1, body[at] ^ 1, body[at].wrapping_add(1), body[at].wrapping_sub(1), 0xff]
            .map(|byte| word(&[byte]))
            .into();
    if at + 4 <= body.len() {
        changed.push(word(&u32::MAX.to_le_bytes()));
    }
    if at + 8 <= body.len() {
        let numbers = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0, 1e308, 1e-308, 5.0];
        changed.extend(numbers.map(|number| word(&number.to_le_bytes())));
        changed.extend([u64::MAX, 1 << 33, 7].map(|number| word(&number.to_le_bytes())));
    }
    changed.retain(|changed| changed != body);
    changed
}

/// Bodies, among every `step`th change, that cause a panic or an error of several lines. Adds the number of bodies tried to `n_read`.
fn unsound(
    body: &[u8],
    step: usize,
    n_read: &mut usize,
    read: impl Fn(&[u8]) -> Option<String>,
) -> Vec<String> {
    let mut found = Vec::new();
    for (at, change) in
        (0..body.len() * MAX_CHANGES).step_by(step).map(|n| (n / MAX_CHANGES, n % MAX_CHANGES))
    {
        let changes = changes(body, at);
        let Some(changed) = changes.get(change) else { continue };
        *n_read += 1;
        match catch_unwind(AssertUnwindSafe(|| read(changed))) {
            Ok(Some(printed)) if printed.trim().lines().count() != 1 => {
                found.push(format!("byte {at}: {printed}"))
            }
            Ok(_) => {}
            Err(_) => found.push(format!("byte {at}, change {change}: a panic")),
        }
    }
    found
}

/// Tries every `step`th change of the model and the checkpoint of every job.
fn check(step: usize) {
    let (mut found, mut n_bytes, mut n_read) = (Vec::new(), 0, 0);
    for job in JOBS {
        let trained = Trained::new(job);
        let file = trained.model.to_bytes();
        let (_, body) = model::SEAL.open(&file).unwrap();
        assert_eq!((trained.load(body), trained.resume(&trained.checkpoint)), (None, None), "{job:?}");
        let name = format!("{} {}", job.0, job.2.replace('\n', ", "));
        let of_model = unsound(body, step, &mut n_read, |body| trained.load(body));
        found.extend(of_model.into_iter().map(|what| format!("model of {name}: {what}")));
        let of_checkpoint = unsound(&trained.checkpoint, step, &mut n_read, |body| trained.resume(body));
        n_bytes += body.len() + trained.checkpoint.len();
        found.extend(of_checkpoint.into_iter().map(|what| format!("checkpoint of {name}: {what}")));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    // Replacements equal to the original are left out, so a byte has most of its changes.
    let floor = n_bytes * MAX_CHANGES / step / 2;
    assert!(n_read >= floor && floor > 0, "{n_read} changes of {n_bytes} bytes, expected at least {floor}");
}

#[test]
fn changed_models_and_checkpoints_cause_no_panic() {
    check(2003);
}

#[test]
#[ignore = "every change of every byte takes an hour"]
fn by_hand_all_changes_of_models_and_checkpoints_cause_no_panic() {
    check(1);
}
