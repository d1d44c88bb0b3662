//! Trees drawn for sentences.

use shared::grammar::SymbolId;
use shared::work::task::{Sample, Sampled};

use crate::convert::checks::{Items, n_occurrences, nonterminals, sentences, whole};
use crate::convert::sizes::{DOUBLE, VARINT, of_occurrences, segmentation, tree};
use crate::convert::{
    NON_NEGATIVE, Wire, WireError, analyses_from_wire, analyses_to_wire, in_range, non_negative, numbers,
    params, same_length,
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
    numbers("sampled.counts", &counts, NON_NEGATIVE, non_negative)?;
    let analyses = analyses_from_wire(["sampled.ends", "sampled.trees"], ends, trees)?;
    Ok(Sampled { counts, analyses, missing: params("sampled.missing", missing)? })
}

pub fn check(task: &Items<'_>, sample: &Sample) -> Result<(), WireError> {
    nonterminals("sample.segments", task.grammar, sample.keep.iter().flatten())
}

pub fn check_answer(task: &Items<'_>, sample: &Sample, sampled: &Sampled) -> Result<(), WireError> {
    let Sample { weights, keep, .. } = sample;
    let n_params = task.lexicon.space(task.grammar).n_params() as u64;

    in_range("sampled.missing", sampled.missing.iter().map(|param| param.0), 0..n_params)?;
    if !sampled.missing.is_empty() {
        return Ok(()); // strings are missing, so the counts are not used
    }
    same_length("sampled.counts", sampled.counts.len(), weights.len())?;
    let n_trees = if keep.is_some() { n_occurrences(task.shard) } else { 0 };
    same_length("sampled.trees", sampled.analyses.len(), n_trees)?;
    let mut analyses = sampled.analyses.iter();
    for sentence in sentences(task.shard) {
        let own = analyses.by_ref().take(sentence.multiplicity as usize);
        whole("sampled.ends", own.map(|analysis| &analysis.ends), sentence.tokens.len())?;
    }
    Ok(())
}

pub fn largest_answer(task: &Items<'_>, Sample { weights, keep, .. }: &Sample) -> u64 {
    let (grammar, lexicon) = (task.grammar, task.lexicon);
    let of_tree = |length| segmentation(length).saturating_add(tree(grammar, length));
    let trees = keep.as_ref().map_or(0, |_| of_occurrences(task.shard, of_tree));
    trees.saturating_add(weights.len() as u64 * DOUBLE + lexicon.space(grammar).n_params() as u64 * VARINT)
}
