//! Held-out sentences, and their probability under a model.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use fleet::{Map, Stage};
use grammaton::data::corpus::hold_out;
use grammaton::models::Trained;
use grammaton::models::decode::Decode;
use grammaton::num::Noise;
use grammaton::num::special::exp;
use grammaton::work::shard::Shard;

use super::plan::Plan;
use super::spill::Stored;
use crate::metrics::HeldOut;

/// Splits `items` at random, by the seed: all but a `share`, and the rest. An error, which calls the items `what`, if either part is empty
/// although `share` is not 0.
pub fn split<T>(items: Vec<T>, share: f64, seed: u64, what: &str) -> Result<(Vec<T>, Vec<T>)> {
    let n = items.len();
    let (kept, held_out) = hold_out(n, share, Noise::new(seed, 0));
    if share > 0.0 && (kept.is_empty() || held_out.is_empty()) {
        bail!(
            "corpus.held_out_share: {share} of {n} {what} leaves none to train on, or none to hold out; choose another share"
        );
    }
    let held_out: BTreeSet<usize> = held_out.into_iter().collect();
    let (rest, kept): (Vec<_>, Vec<_>) =
        items.into_iter().enumerate().partition(|(at, _)| held_out.contains(at));
    let plain = |items: Vec<(usize, T)>| items.into_iter().map(|(_, item)| item).collect();
    Ok((plain(kept), plain(rest)))
}

/// Held-out sentences, in shards.
pub struct HeldOutShards {
    shards: Vec<Stored<Shard>>,
    tokens_per_symbol: usize,
}

impl HeldOutShards {
    /// Held-out sentences of a job, possibly none. A symbol of the corpus is `tokens_per_symbol` tokens.
    pub fn new(shards: Vec<Stored<Shard>>, tokens_per_symbol: usize) -> HeldOutShards {
        HeldOutShards { shards, tokens_per_symbol }
    }

    /// Whether no sentences are held out.
    pub fn is_empty(&self) -> bool {
        self.shards.is_empty()
    }

    /// Measures their probability under `model`. New strings are allowed, with the probability of the escape.
    pub fn measure(&self, fleet: &dyn Map, plan: &Plan, model: &Trained) -> Result<Option<HeldOut>> {
        let Some(model) = model.of_grammar().filter(|_| !self.is_empty()) else {
            return Ok(None);
        };
        let with = Decode {
            weights: model.predictive_weights(),
            segments: Vec::new(),
            decoders: Vec::new(),
            trees: false,
            spans: false,
            open: true,
        };
        let (mut found, mut n_tokens) = (HeldOut::default(), 0);
        // Rules are no part of their probability.
        let parser = plan.parser_with(model, with)?.without_factors();
        let decoded = parser.parse(fleet, Stage::HeldOut, self.shards.clone())?;
        for (shard, decoded) in self.shards.iter().zip(decoded) {
            let Shard::Sentences(sentences) = &*shard.value()? else { continue };
            for (sentence, decoded) in sentences.iter().zip(decoded) {
                let times = sentence.multiplicity as usize;
                found.sentences += times;
                if decoded.log_z > f64::NEG_INFINITY {
                    found.log_likelihood += times as f64 * decoded.log_z;
                    n_tokens += times * sentence.tokens.len();
                } else {
                    found.without += times;
                }
            }
        }
        let n_symbols = (n_tokens / self.tokens_per_symbol).max(1);
        found.perplexity = exp(-found.log_likelihood / n_symbols as f64);
        Ok(Some(found))
    }
}
