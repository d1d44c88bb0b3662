//! Sentences that are not trained on, and how well they are predicted.

use anyhow::Result;
use shared::corpus::shards::SentenceShard;
use shared::model::Model;
use shared::shard::Shard;
use shared::task::{Answer, Decode, Named, Task, Work};

use super::plan::Plan;
use crate::fleet::{Map, Stage};
use crate::metrics::HeldOut;

/// Held-out sentences, in shards.
pub struct HeldOutShards {
    shards: Vec<Named<Shard>>,
}

impl HeldOutShards {
    /// Those of a job; there may be none.
    pub fn new(shards: &[SentenceShard]) -> HeldOutShards {
        HeldOutShards { shards: shards.iter().map(|shard| Named::new(shard.shard.clone())).collect() }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.shards.is_empty()
    }

    /// How well `model` predicts them; strings that it does not know may be made at the price of new ones.
    pub fn measure(&self, fleet: &dyn Map, plan: &Plan, model: &Model) -> Result<Option<HeldOut>> {
        if self.is_empty() {
            return Ok(None);
        }
        let with = Named::new(Decode {
            weights: model.predictive_weights(),
            segments: Vec::new(),
            decoders: Vec::new(),
            trees: false,
            open: true,
        });
        let lexicon = plan.lexicon_of(model);
        let task = |shard: &Named<Shard>| Task {
            grammar: plan.grammar.clone(),
            lexicon: lexicon.clone(),
            shard: shard.clone(),
            work: Work::Decode(with.clone()),
        };
        let (mut found, mut n_symbols) = (HeldOut::default(), 0);
        fleet.map(Stage::HeldOut, self.shards.iter().map(task).collect(), &mut |at, answer| {
            let (Shard::Sentences(sentences), Answer::Decoded(decoded)) = (&*self.shards[at].value, answer)
            else {
                return;
            };
            for (sentence, decoded) in sentences.iter().zip(decoded) {
                let times = sentence.multiplicity as usize;
                found.sentences += times;
                if decoded.log_z > f64::NEG_INFINITY {
                    found.log_likelihood += times as f64 * decoded.log_z;
                    n_symbols += times * sentence.tokens.len();
                } else {
                    found.without += times;
                }
            }
        })?;
        found.perplexity = (-found.log_likelihood / n_symbols.max(1) as f64).exp();
        Ok(Some(found))
    }
}
