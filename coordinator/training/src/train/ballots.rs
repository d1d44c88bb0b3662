//! Segmentations of a text by the models of several chains and grammars, which vote.

use anyhow::Result;
use fleet::{Map, Stage};
use grammaton::models::Model;
use grammaton::models::decode::Decoder;
use grammaton::models::segments::Segments;
use grammaton::models::vote::{Vote, vote_with};

use super::input::Input;
use super::plan::Plan;
use super::posterior::Posterior;
use super::rounds::FinishedPoint;
use crate::job::Job;

/// Segmentations of every sentence of the corpus by several models.
#[derive(Default)]
pub struct Ballots {
    /// By sentence and model.
    pub segmentations: Vec<Vec<Vec<u32>>>,
    /// Probabilities of segments by sentence: sums over the models.
    probabilities: Vec<Segments>,
    /// The samples of the chains whose models vote.
    pub posterior: Posterior,
}

impl Ballots {
    /// Adds the segmentation that `model` finds by MBR, and its probabilities.
    pub fn add(&mut self, input: &Input, plan: &Plan, fleet: &dyn Map, model: &Model) -> Result<()> {
        self.segmentations.resize(input.text.n_sentences, Vec::new());
        self.probabilities.resize(input.text.n_sentences, Segments::default());
        let parser = plan.parser(model, &[Decoder::Mbr], false, true)?;
        input.text.blocks(|sentences, shards, block| {
            let decoded = parser.parse(fleet, Stage::Decode, plan.shards(shards))?;
            for (at, decoded) in sentences.zip(block.by_sentence(&decoded)?) {
                let ends = decoded.segmentations.first().cloned().unwrap_or_default();
                let segments = match decoded.log_z {
                    f64::NEG_INFINITY => Segments::certain(&ends),
                    _ => Segments::new(ends.last().copied().unwrap_or_default(), decoded.spans.clone()),
                };
                self.probabilities[at].add(&segments, 1.0);
                self.segmentations[at].push(ends);
            }
            Ok(())
        })
    }

    /// Adds the samples of the chains of a point.
    pub fn add_samples(&mut self, point: &FinishedPoint) {
        self.posterior.add(point.runs.len(), point.tallies.clone());
    }

    /// What the models, the job's baselines and contexts vote for.
    pub fn vote(&mut self, job: &Job, input: &Input) -> Result<Vote> {
        let mut sentences = Vec::new();
        // With a threshold they have a segmentation of their own.
        let with_contexts = job.output.contexts && job.output.threshold == 0.0;
        if with_contexts || !job.model.baselines.is_empty() {
            input.text.blocks(|_, _, block| {
                sentences.extend(block.corpus.sentences.iter().cloned());
                Ok(())
            })?;
        }
        let n_models = self.segmentations.first().map_or(1, Vec::len) as f64;
        let means =
            std::mem::take(&mut self.probabilities).into_iter().map(|sum| sum.over(n_models)).collect();
        Ok(vote_with(&job.model.baselines, with_contexts, &sentences, means))
    }
}
