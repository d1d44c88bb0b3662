//! Test sentences (`corpus.test`), which are scored at the end and affect neither training nor any choice.
//!
//! Grammar and strings are made without them, so that a job has the same parameters with and without a test file. A sentence with a symbol
//! that the grammar lacks has no derivation.

use anyhow::Result;
use fleet::{Map, Stage};
use grammaton::data::corpus::{Analyses, Corpus};
use grammaton::data::eval::segmentation::Scorer;
use grammaton::grammar::{Grammar, SymbolId};
use grammaton::models::decode::Decode;
use grammaton::models::{Model, Trained};
use grammaton::work::shard::{self, DEFAULT_SHARD_SYMBOLS};

use super::held_out::HeldOutShards;
use super::plan::Plan;
use super::spill::SpillStore;
use super::text::{Source, Text};
use super::{dependencies, trees};
use crate::job::Job;
use crate::metrics::{Scores, ScoresByDecoder, TestScores, decoder_name};

/// Sentences to score at the end.
pub struct Test {
    /// Sentences whose probability is measured.
    predicted: HeldOutShards,
    /// Number of sentences with a symbol that the grammar lacks.
    n_unknown: usize,
    analysed: Analysed,
}

/// Sentences to analyse, with their gold analysis.
enum Analysed {
    /// Sentences of text, to segment.
    Text {
        /// Sentences with known symbols.
        text: Box<Text>,
        /// The other sentences, with gold if the file has it.
        unknown: Vec<(Vec<u32>, Analyses)>,
    },
    /// Sentences with gold heads.
    Heads(dependencies::ToFind),
    /// Sentences with gold trees.
    Trees(trees::ToFind),
}

impl Test {
    /// The sentences of a corpus, for this grammar.
    pub fn of_text(source: &Source, grammar: &Grammar, spill: &SpillStore) -> Result<Test> {
        let mut text = Text::new(source);
        let mut unknown = Vec::new();
        source.blocks(|block| {
            let tokens: Vec<Option<Vec<SymbolId>>> = block.each_tokens_for(grammar).map(Result::ok).collect();
            let (known, others): (Vec<usize>, Vec<usize>) =
                (0..tokens.len()).partition(|&at| tokens[at].is_some());
            let Corpus { sentences, gold, .. } = block.subset(&others);
            let gold = gold.unwrap_or_else(|| vec![Analyses::new(); sentences.len()]);
            unknown.extend(sentences.into_iter().zip(gold));
            let tokens: Vec<Vec<SymbolId>> = tokens.into_iter().flatten().collect();
            let known = block.subset(&known);
            let cut = shard::cut_counted(&tokens, &known.occurrences, DEFAULT_SHARD_SYMBOLS);
            text.push(spill, known, cut, None)
        })?;
        let predicted = HeldOutShards::new(text.shards.clone(), 1);
        let n_unknown = unknown.len();
        Ok(Test { predicted, n_unknown, analysed: Analysed::Text { text: Box::new(text), unknown } })
    }

    /// Tagged sentences: `to_find` to analyse, and `predicted` to measure; `n_unknown` others have tags that the model lacks.
    pub fn of_heads(to_find: dependencies::ToFind, predicted: HeldOutShards, n_unknown: usize) -> Test {
        Test { predicted, n_unknown, analysed: Analysed::Heads(to_find) }
    }

    /// Trees to find.
    pub fn of_trees(to_find: trees::ToFind) -> Test {
        Test {
            predicted: HeldOutShards::new(Vec::new(), 1),
            n_unknown: 0,
            analysed: Analysed::Trees(to_find),
        }
    }

    /// Scores of `model`.
    pub fn score(&self, job: &Job, fleet: &dyn Map, plan: &Plan, model: &Trained) -> Result<TestScores> {
        let mut predicted = self.predicted.measure(fleet, plan, model)?;
        if let Some(predicted) = &mut predicted {
            predicted.sentences += self.n_unknown;
            predicted.without += self.n_unknown;
        }
        let scores = TestScores { predicted, ..TestScores::default() };
        Ok(match (&self.analysed, model) {
            (Analysed::Text { text, unknown }, Trained::Grammar(model)) => {
                TestScores { scores: segmented(text, unknown, job, fleet, plan, model)?, ..scores }
            }
            (Analysed::Heads(to_find), Trained::Grammar(model)) => {
                let attachment = to_find.find(fleet, plan, model, &job.output.decoders)?.1;
                TestScores { attachment, ..scores }
            }
            (Analysed::Trees(to_find), Trained::Treebank(model)) => {
                TestScores { brackets: to_find.find(fleet, model)?.1, ..scores }
            }
            (Analysed::Trees(_), Trained::Grammar(_)) | (_, Trained::Treebank(_)) => scores,
        })
    }
}

/// Scores of the text as every decoder segments it, strings that the model does not know at the price of new ones; a sentence
/// without a derivation is one segment.
fn segmented(
    text: &Text,
    unknown: &[(Vec<u32>, Analyses)],
    job: &Job,
    fleet: &dyn Map,
    plan: &Plan,
    model: &Model,
) -> Result<ScoresByDecoder> {
    if !text.has_gold || model.segments.is_empty() {
        return Ok(ScoresByDecoder::new());
    }
    let decoders = &job.output.decoders;
    let with = Decode {
        weights: model.decoding_weights(),
        segments: model.segments.clone(),
        decoders: decoders.clone(),
        trees: false,
        spans: false,
        open: true,
    };
    let parser = plan.parser_with(model, with)?;
    let mut scorers: Vec<Scorer<u32>> = decoders.iter().map(|_| Scorer::default()).collect();
    text.blocks(|_, shards, block| {
        let decoded = parser.parse(fleet, Stage::Decode, text.shards[shards].to_vec())?;
        let gold = block.corpus.gold.iter().flatten();
        let sentences = block.corpus.sentences.iter().zip(gold).zip(block.by_sentence(&decoded)?);
        for ((sentence, gold), decoded) in sentences {
            let whole = vec![sentence.len() as u32];
            for (at, scorer) in scorers.iter_mut().enumerate() {
                let found = decoded.segmentations.get(at).filter(|_| decoded.log_z > f64::NEG_INFINITY);
                scorer.add(sentence, gold, found.unwrap_or(&whole));
            }
        }
        Ok(())
    })?;
    for (sentence, gold) in unknown {
        scorers.iter_mut().for_each(|scorer| scorer.add(sentence, gold, &[sentence.len() as u32]));
    }
    let names = decoders.iter().map(|&decoder| decoder_name(decoder).to_owned());
    Ok(names.zip(scorers.iter().map(|scorer| Scores::from(&scorer.scores()))).collect())
}
