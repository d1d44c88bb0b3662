//! Trees to start from.

use std::sync::Arc;

use anyhow::{Result, anyhow, ensure};
use fleet::{Map, Stage};
use grammaton::models::Params;
use grammaton::models::decode::{Decode, Decoder};
use grammaton::models::pcfg::trees;
use grammaton::work::shard::Shard;
use grammaton::work::task::{Answer, Language, Named, Work};

use super::input::{Given, Input, StringSource};
use super::plan::{self, OnShards, Plan};
use grammaton::methods::GivenTrees;

/// The trees that are given; or what a given model has counted, with `chains` the trees that it finds most probable.
pub fn given(input: &Input, plan: &Plan, fleet: &dyn Map, given: &Given, chains: bool) -> Result<GivenTrees> {
    let Language { grammar, lexicon } = plan.language()?;
    match given {
        Given::Trees(trees) => {
            let counts = match input.strings {
                StringSource::Known(_) => trees::counts(&grammar.value, &lexicon.value, trees)
                    .map_err(|(at, foreign)| anyhow!("inference.start_from: tree {}: {foreign}", at + 1))?,
                StringSource::Candidates | StringSource::Tables => Vec::new(),
            };
            let n = input.text.n_sentences;
            // Methods that want counts alone take trees of other sentences as well.
            let mut by_shard = Vec::new();
            if trees.len() == n {
                input.text.blocks(|sentences, _, block| {
                    let text = |&position: &u32| trees[sentences.start + position as usize].to_string();
                    let of_shard =
                        |positions: &Vec<Vec<u32>>| Arc::new(positions.iter().flatten().map(text).collect());
                    by_shard.extend(block.positions.iter().map(of_shard));
                    Ok(())
                })?;
            }
            Ok(GivenTrees { counts, by_shard })
        }
        Given::Model(model) => {
            let counts = match &model.params {
                Params::Pcfg(params) if model.lexicon == *lexicon.value => params.estimate.counts.clone(),
                _ => Vec::new(),
            };
            if !chains {
                ensure!(
                    !counts.is_empty(),
                    "inference.start_from: the model has no counts for the rules and strings of this corpus; start from one \
                     that was trained on it, as a PCFG"
                );
                return Ok(GivenTrees { counts, by_shard: Vec::new() });
            }
            let with = Named::new(Decode {
                weights: model.decoding_weights(),
                segments: Vec::new(),
                decoders: vec![Decoder::Viterbi],
                trees: true,
                open: true,
            });
            let language = Language {
                grammar: Named::new(model.grammar.clone()),
                lexicon: Named::new(model.lexicon.clone()),
            };
            let shards: Vec<_> = plan.shards.iter().map(|shard| shard.shard.clone()).collect();
            let mut by_shard: Vec<Arc<Vec<String>>> = Vec::new();
            let mut without = 0;
            let tasks = OnShards { language, shards, work: Work::Decode(with) };
            plan::map(fleet, Stage::Decode, tasks, |at, answer| {
                let (Shard::Sentences(sentences), Answer::Decoded(decoded)) =
                    (&*plan.shards[at].shard.value()?, answer)
                else {
                    return Ok(());
                };
                let mut trees = Vec::new();
                for (sentence, decoded) in sentences.iter().zip(decoded) {
                    without += usize::from(decoded.log_z == f64::NEG_INFINITY);
                    let tree = decoded.trees.into_iter().next().unwrap_or_default();
                    trees.extend(std::iter::repeat_n(tree, sentence.multiplicity as usize));
                }
                by_shard.push(Arc::new(trees));
                Ok(())
            })?;
            ensure!(
                without == 0,
                "inference.start_from: the model has no tree for {without} sentences; start from a model of this corpus"
            );
            Ok(GivenTrees { counts, by_shard })
        }
    }
}
