//! The corpus as every decoder reads it, and, of samplers, as most samples do; block by block.

use anyhow::Result;
use shared::eval::segmentation::Scorer;
use shared::sampler::tally::Tally;
use shared::tree::Tree;

use super::input::Input;
use super::plan::Plan;
use super::rounds::FinishedPoint;
use crate::fleet::{Map, Stage};
use crate::job::Job;
use crate::metrics::{MAXIMUM_MARGINAL, SAMPLE_AVERAGE, Scores, ScoresByDecoder, decoder_name};
use crate::outcome::{Decoding, Lines, Sample, Samples};

/// What was found.
#[derive(Default)]
pub struct Readings {
    /// What every decoder finds; nothing is written down unless it is kept.
    pub decodings: Vec<Decoding>,
    /// Sentences to show.
    pub samples: Vec<Sample>,
    /// Against gold; empty without.
    pub scores: ScoresByDecoder,
}

impl Readings {
    /// By the model of `point`; to be written down if it is `kept`.
    pub fn of(
        job: &Job,
        input: &Input,
        plan: &Plan,
        fleet: &dyn Map,
        point: &FinishedPoint,
        kept: bool,
    ) -> Result<Readings> {
        let (text, decoders) = (&input.text, &job.output.decoders);
        // Every sentence has a tree in every sample.
        let trees: Option<Vec<&str>> = point.tallies.iter().map(Tally::tree).collect();
        let of_samples = trees.filter(|trees| !trees.is_empty());
        let is_segment =
            |label: &str| input.segments.iter().any(|&symbol| input.grammar.name(symbol) == label);
        let mut names: Vec<&'static str> = decoders.iter().map(|&decoder| decoder_name(decoder)).collect();
        if of_samples.is_some() {
            names.extend([SAMPLE_AVERAGE, MAXIMUM_MARGINAL]);
        }
        let decoding = |&name| Decoding {
            name,
            segmentations: Lines::new_in(&job.output.dir),
            trees: Lines::new_in(&job.output.dir),
        };
        let mut decodings: Vec<Decoding> = names.iter().map(decoding).collect();
        let mut scorers: Vec<Scorer<u32>> = names.iter().map(|_| Scorer::default()).collect();
        let mut samples = Samples::default();
        let parser = plan.parser(&point.model, decoders, kept);
        text.blocks(|sentences, shards, block| {
            let decoded = parser.parse(fleet, Stage::Decode, plan.shards(shards))?;
            for ((at, place), decoded) in sentences.enumerate().zip(block.by_sentence(&decoded)) {
                let mut trees = decoded.trees.iter().map(String::as_str);
                let mut found: Vec<(Vec<u32>, Option<&str>)> = Vec::with_capacity(names.len());
                for (decoder, ends) in decoders.iter().zip(&decoded.segmentations) {
                    found.push((ends.clone(), if decoder.gives_trees() { trees.next() } else { None }));
                }
                if let Some(of_samples) = &of_samples {
                    let tree = of_samples[place];
                    found.push((Tree::parse(tree)?.segment_ends(is_segment), Some(tree)));
                    found.push((point.tallies[place].segmentation().unwrap_or_default().to_vec(), None));
                }
                if let Some(gold) = &block.corpus.gold {
                    for (scorer, (ends, _)) in scorers.iter_mut().zip(&found) {
                        scorer.add(&block.corpus.sentences[at], &gold[at], ends);
                    }
                }
                if kept {
                    let line = |ends: &Vec<u32>| block.corpus.line(at, ends);
                    let segmentations: Vec<String> = found.iter().map(|(ends, _)| line(ends)).collect();
                    for ((decoding, line), (_, tree)) in decodings.iter_mut().zip(&segmentations).zip(&found)
                    {
                        decoding.segmentations.push(line)?;
                        tree.map_or(Ok(()), |tree| decoding.trees.push(tree))?;
                    }
                    samples.offer(&segmentations[0], || Sample {
                        gold: block.corpus.gold.as_ref().map(|gold| line(&gold[at])),
                        tree: found.iter().find_map(|(_, tree)| *tree).map(str::to_owned),
                        segmentations: segmentations.clone(),
                    });
                }
            }
            Ok(())
        })?;
        let is_scored = text.has_gold && !input.segments.is_empty();
        let scored = names.iter().zip(&scorers).filter(|_| is_scored);
        let scores =
            scored.map(|(&name, scorer)| (name.to_owned(), Scores::from(&scorer.scores()))).collect();
        Ok(Readings { decodings, samples: samples.chosen(), scores })
    }
}
