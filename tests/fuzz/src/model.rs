//! Model files: as files, and as bodies in a valid envelope. A loaded model can be shown, saved and used for decoding.

use std::path::Path;

use grammaton::data::Sentence;
use grammaton::grammar::lexicon::Lexicon;
use grammaton::grammar::{SymbolId, syntax};
use grammaton::models::decode::{Decode, Decoder};
use grammaton::models::logistic_normal::{self, PointEstimate, Prior};
use grammaton::models::{Model, Params, Trained as Learned};
use grammaton::work::engine::Engine;
use grammaton::work::shard::Shard;
use grammaton::work::task::{Answer, Language, Named, Task, Work};
use training::model::{SEAL, SavedModel, grammar_text, parameters_sha256, top, write_sticks};

use crate::trained::Trained;

/// Maximum size of a grammar that is decoded with; larger ones are only slower.
const MAX_RULES: usize = 64;

/// Input: the first byte selects a file or its body.
pub fn run(data: &[u8]) {
    let Some((kind, rest)) = data.split_first() else { return };
    let file = if kind % 2 == 0 { rest.to_vec() } else { SEAL.close(rest) };
    let Ok(saved) = SavedModel::from_bytes(&file, Path::new("model.bin")) else { return };
    // A model of an earlier format is saved in the latest one.
    if file[8] == SEAL.version as u8 {
        assert_eq!(saved.to_bytes(), file);
    }
    parameters_sha256(&saved.model);
    write_sticks(&saved, &mut std::io::sink()).expect("a sink takes all");
    let text = grammar_text(&saved.model);
    let Some(model) = saved.model.of_grammar() else { return };
    (0..model.lexicon.sticks.len()).for_each(|at| drop(top(&saved, at, 5)));
    syntax::parse(&text, "grammar.txt").expect("the learned grammar is a grammar");
    if model.grammar.rules.len() <= MAX_RULES {
        decode(model.clone(), file.last().copied().unwrap_or(0));
    }
}

/// Decodes a sentence of the model's terminals.
fn decode(model: Model, which: u8) {
    let (weights, segments) = (model.decoding_weights(), model.segments);
    let grammar = Named::new(model.grammar);
    let terminals: Vec<SymbolId> =
        (grammar.value.n_nonterminals..grammar.value.symbols.len() as u32).map(SymbolId).collect();
    let Some(n) = u8::try_from(terminals.len()).ok().filter(|&n| n > 0) else { return };
    let tokens: Vec<SymbolId> =
        (0..6).map(|at| terminals[usize::from((which.wrapping_mul(at)) % n)]).collect();
    let shard = Named::new(Shard::Sentences(vec![Sentence::new(tokens, 1)]));
    let language = Language { grammar, lexicon: Named::new(model.lexicon) };
    for open in [false, true] {
        let with = Decode {
            weights: weights.clone(),
            segments: segments.clone(),
            decoders: vec![Decoder::Viterbi, Decoder::Mbr, Decoder::MbrTree],
            trees: true,
            spans: true,
            open,
        };
        let work = Work::Decode(Named::new(with));
        let task = Task { language: Some(language.clone()), shard: shard.clone(), work, further: Vec::new() };
        let answer = Engine::default().run(&task);
        assert!(matches!(answer, Ok(Answer::Decoded(ref sentences)) if sentences.len() == 1), "{answer:?}");
    }
}

/// A trained model and one with logistic-normal priors, in both forms.
pub fn seeds() -> Vec<Vec<u8>> {
    let job = Trained::new();
    let forms = |model: Learned| {
        let file = job.job().corpus.saved(model).to_bytes();
        let (_, body) = SEAL.open(&file).expect("the file is valid");
        [[&[0][..], &file].concat(), [&[1][..], body].concat()]
    };
    [forms(job.train().model), forms(normal())].concat()
}

fn normal() -> Learned {
    let text = "1 1 S --> A S\n1 1 S --> A\n1 1 A --> a\n1 1 A --> b\n";
    let grammar = syntax::parse(text, "seed.gr").expect("the text is a grammar").0;
    let prior = |mean| Prior::related(mean, &[Some(0), Some(0)]).expect("it is one");
    let priors = vec![prior(vec![-1.0, 0.5]), prior(vec![0.0, 0.25])];
    let params = Params::LogisticNormal(logistic_normal::Params { priors, estimate: PointEstimate::Raw });
    Learned::Grammar(Model { grammar, lexicon: Lexicon::default(), params, segments: Vec::new() })
}
