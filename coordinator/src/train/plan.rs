//! What does not change from round to round, and the maps over it.

use anyhow::{Result, bail};
use shared::adaptor::Params;
use shared::grammar::{Grammar, SymbolId};
use shared::num::Wide;
use shared::round::Totals;
use shared::shard::{Lexicon, ParamId, Shard};
use shared::task::{Answer, Decode, Decoded, Decoder, Named, Task, Work};

use crate::fleet::{Map, MapReport, Stage};

/// A model in training.
pub struct Plan {
    /// The grammar.
    pub grammar: Named<Grammar>,
    /// The strings.
    pub lexicon: Named<Lexicon>,
    /// Sentences first, then strings.
    pub shards: Vec<PlannedShard>,
}

/// A shard and the parameters that it touches.
pub struct PlannedShard {
    /// The shard.
    pub shard: Named<Shard>,
    /// Its parameters, in the order of its weights and counts.
    pub params: Vec<ParamId>,
}

impl Plan {
    fn task(&self, shard: &PlannedShard, work: Work) -> Task {
        let (grammar, lexicon) = (self.grammar.clone(), self.lexicon.clone());
        Task { grammar, lexicon, shard: shard.shard.clone(), work }
    }

    /// One E-step: weights out, counts in, added in shard order; and what it cost.
    pub fn expect(
        &self,
        fleet: &dyn Map,
        stage: Stage,
        weights: &[Wide],
        losses: bool,
    ) -> Result<(Totals, MapReport)> {
        let tasks = self.shards.iter().map(|shard| {
            let weights = shard.params.iter().map(|param| weights[param.index()]).collect();
            self.task(shard, Work::Expect { weights, losses })
        });
        let mut totals = Totals::new(weights.len());
        let mut foreign = None;
        let report = fleet.map(stage, tasks.collect(), &mut |at, answer| match answer {
            Answer::Expectation(found) => {
                let shard = &self.shards[at];
                totals.add(&shard.shard.value, &shard.params, found);
            }
            _ => foreign = Some(at),
        })?;
        match foreign {
            Some(at) => bail!("internal error: shard {at} has no counts; please report it"),
            None => Ok((totals, report)),
        }
    }

    /// Best analyses of all distinct sentences, by sentence shard.
    pub fn decode(
        &self,
        fleet: &dyn Map,
        params: &Params,
        segments: &[SymbolId],
        decoders: &[Decoder],
        trees: bool,
    ) -> Result<Vec<Vec<Decoded>>> {
        let with = Named::new(Decode {
            weights: params.decoding_weights(&self.grammar.value, &self.lexicon.value),
            segments: segments.to_vec(),
            decoders: decoders.to_vec(),
            trees,
            open: false,
        });
        let sentences =
            self.shards.iter().filter(|shard| matches!(shard.shard.value.as_ref(), Shard::Sentences(_)));
        let tasks = sentences.map(|shard| self.task(shard, Work::Decode(with.clone()))).collect();
        let mut decoded = Vec::new();
        fleet.map(Stage::Decode, tasks, &mut |_, answer| {
            if let Answer::Decoded(sentences) = answer {
                decoded.push(sentences);
            }
        })?;
        Ok(decoded)
    }
}
