//! Trees to start from.

use std::sync::Arc;

use anyhow::{Result, anyhow, ensure};
use fleet::Map;
use grammaton::methods::GivenTrees;
use grammaton::models::Params;
use grammaton::models::pcfg::trees;
use grammaton::prepare::MostProbable;
use grammaton::work::task::Language;

use super::input::{Given, Input, StringSource};
use super::plan::Plan;
use super::prepare;

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
            let MostProbable { by_shard, without } = prepare::most_probable_trees(fleet, input, model)?;
            ensure!(
                without == 0,
                "inference.start_from: the model has no tree for {without} sentences; start from a model of this corpus"
            );
            Ok(GivenTrees { counts, by_shard })
        }
    }
}
