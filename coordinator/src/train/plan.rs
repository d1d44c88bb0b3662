//! What does not change from round to round, and the maps over it.

use std::sync::Arc;

use anyhow::Result;
use shared::grammar::Grammar;
use shared::model::Model;
use shared::shard::{Lexicon, ParamId, Shard};
use shared::task::{Answer, Decode, Decoded, Decoder, Named, Task, Work};
use shared::treebank::Treebank;

use crate::fleet::{Map, Stage};

/// A model in training.
pub struct Plan {
    /// The grammar.
    pub grammar: Named<Grammar>,
    /// The strings.
    pub lexicon: Named<Lexicon>,
    /// The treebank, where trees are annotated; neither grammar nor strings then.
    pub treebank: Option<Arc<Treebank>>,
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
    /// That work on that shard.
    pub fn task(&self, shard: &PlannedShard, work: Work) -> Task {
        let (grammar, lexicon) = (self.grammar.clone(), self.lexicon.clone());
        Task { grammar, lexicon, shard: shard.shard.clone(), work }
    }

    /// The strings of `model`, which are those of the plan unless they come from samples.
    pub fn lexicon_of(&self, model: &Model) -> Named<Lexicon> {
        match model.lexicon == *self.lexicon.value {
            true => self.lexicon.clone(),
            false => Named::new(model.lexicon.clone()),
        }
    }

    /// Best analyses of all distinct sentences, by sentence shard.
    pub fn decode(
        &self,
        fleet: &dyn Map,
        model: &Model,
        decoders: &[Decoder],
        trees: bool,
    ) -> Result<Vec<Vec<Decoded>>> {
        let with = Named::new(Decode {
            weights: model.decoding_weights(),
            segments: model.segments.clone(),
            decoders: decoders.to_vec(),
            trees,
            open: false,
        });
        let shards = self.shards.iter().map(|shard| &shard.shard);
        let sentences = shards.filter(|shard| matches!(shard.value.as_ref(), Shard::Sentences(_)));
        self.decode_shards(fleet, Stage::Decode, sentences, model, with)
    }

    /// What `with` finds for the sentences of these shards, which `model` is to read.
    pub fn decode_shards<'a>(
        &self,
        fleet: &dyn Map,
        stage: Stage,
        shards: impl Iterator<Item = &'a Named<Shard>>,
        model: &Model,
        with: Named<Decode>,
    ) -> Result<Vec<Vec<Decoded>>> {
        let lexicon = self.lexicon_of(model);
        let task = |shard: &Named<Shard>| Task {
            grammar: self.grammar.clone(),
            lexicon: lexicon.clone(),
            shard: shard.clone(),
            work: Work::Decode(with.clone()),
        };
        let mut decoded = Vec::new();
        fleet.map(stage, shards.map(task).collect(), &mut |_, answer| {
            if let Answer::Decoded(sentences) = answer {
                decoded.push(sentences);
            }
        })?;
        Ok(decoded)
    }
}
