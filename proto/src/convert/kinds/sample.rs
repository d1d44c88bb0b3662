//! Trees drawn for sentences.

use grammaton::grammar::SymbolId;
use grammaton::limits::is_count;
use grammaton::models::tally::Analysis;
use grammaton::work::task::{Sample, Sampled};

use crate::convert::checks::{self, Trees, missing, nonterminals, uses, whole};
use crate::convert::items::{Items, n_occurrences, sentences};
use crate::convert::sizes::{DOUBLE, VARINT, of_occurrences, segmentation, tree};
use crate::convert::{
    COUNT, Wire, WireError, analyses_from_wire, analyses_to_wire, numbers, params, same_length,
};
use crate::v1;

impl Wire for Sample {
    type Message = v1::Sample;
    const NAME: &'static str = "sample";

    fn to_wire(&self) -> v1::Sample {
        let segments = self.keep.iter().flatten().map(|symbol| symbol.0).collect();
        v1::Sample {
            weights: Some(self.weights.to_wire()),
            stream: self.stream,
            keep: self.keep.is_some(),
            segments,
        }
    }

    fn from_wire(message: v1::Sample) -> Result<Sample, WireError> {
        let v1::Sample { weights, stream, keep, segments } = message;
        let weights = Vec::from_wire(weights.ok_or(WireError::Missing { field: "sample.weights" })?)?;
        let keep = keep.then(|| segments.into_iter().map(SymbolId).collect());
        Ok(Sample { weights, stream, keep })
    }
}

pub fn to_wire(sampled: &Sampled) -> v1::Sampled {
    let (ends, trees) = analyses_to_wire(&sampled.analyses);
    v1::Sampled {
        counts: sampled.counts.clone(),
        ends: Some(ends),
        trees,
        missing: sampled.missing.iter().map(|param| param.0).collect(),
    }
}

pub fn from_wire(message: v1::Sampled) -> Result<Sampled, WireError> {
    let v1::Sampled { counts, ends, trees, missing } = message;
    numbers("sampled.counts", &counts, COUNT, is_count)?;
    let analyses = analyses_from_wire(["sampled.ends", "sampled.trees"], ends, trees)?;
    Ok(Sampled { counts, analyses, missing: params("sampled.missing", missing)? })
}

pub fn check(task: &Items<'_>, sample: &Sample) -> Result<(), WireError> {
    nonterminals("sample.segments", task.grammar, sample.keep.iter().flatten())
}

pub fn check_answer(task: &Items<'_>, sample: &Sample, sampled: &Sampled) -> Result<(), WireError> {
    let Sample { weights, keep, .. } = sample;
    let n_zero = weights.iter().filter(|weight| weight.is_zero()).count() as u64;
    missing("sampled.missing", task, n_zero, &sampled.missing)?;
    same_length("sampled.counts", sampled.counts.len(), weights.len())?;
    uses("sampled.counts", task, &sampled.counts)?;
    if !sampled.missing.is_empty() {
        return Ok(()); // some sentences have no trees, and those of the others are not used
    }
    let n_trees = if keep.is_some() { n_occurrences(task.shard) } else { 0 };
    same_length("sampled.trees", sampled.analyses.len(), n_trees)?;
    let Some(segments) = keep else { return Ok(()) };
    let (mut analyses, trees, mut n_uses) = (sampled.analyses.iter(), Trees::new(task), 0);
    for sentence in sentences(task.shard) {
        for Analysis { ends, tree } in analyses.by_ref().take(sentence.multiplicity as usize) {
            whole("sampled.ends", [ends], sentence.tokens.len())?;
            let (tree, n_nodes) = trees.read(tree, &sentence.tokens)?;
            checks::segments("sampled.ends", task.grammar, segments, &tree, ends)?;
            n_uses += n_nodes;
        }
    }
    if sampled.counts.iter().sum::<f64>() == n_uses as f64 {
        Ok(())
    } else {
        Err(WireError::Inconsistent { field: "sampled.counts" })
    }
}

pub fn largest_answer(task: &Items<'_>, Sample { weights, keep, .. }: &Sample) -> u64 {
    let (grammar, lexicon) = (task.grammar, task.lexicon);
    let of_tree = |length| segmentation(length).saturating_add(tree(grammar, length));
    let trees = keep.as_ref().map_or(0, |_| of_occurrences(task.shard, of_tree));
    trees.saturating_add(weights.len() as u64 * DOUBLE + lexicon.space(grammar).n_params() as u64 * VARINT)
}
