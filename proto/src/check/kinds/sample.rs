//! Trees drawn for sentences.

use grammaton::models::tally::Analysis;
use grammaton::work::task::{Sample, Sampled};

use crate::check::items::{Items, n_occurrences, sentences};
use crate::check::sizes::{DOUBLE, VARINT, of_occurrences, segmentation, tree};
use crate::check::values::{self, Trees, missing, nonterminals, uses, whole};
use crate::check::{self, Invalid, same_length};

pub fn check(task: &Items<'_>, sample: &Sample) -> Result<(), Invalid> {
    check::weights("sample.weights", &sample.weights)?;
    nonterminals("sample.segments", task.grammar, sample.keep.iter().flatten())
}

pub fn check_answer(task: &Items<'_>, sample: &Sample, sampled: &Sampled) -> Result<(), Invalid> {
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
            values::segments("sampled.ends", task.grammar, segments, &tree, ends)?;
            n_uses += n_nodes;
        }
    }
    if sampled.counts.iter().sum::<f64>() == n_uses as f64 {
        Ok(())
    } else {
        Err(Invalid::Inconsistent { field: "sampled.counts" })
    }
}

pub fn largest_answer(task: &Items<'_>, Sample { weights, keep, .. }: &Sample) -> u64 {
    let (grammar, lexicon) = (task.grammar, task.lexicon);
    let of_tree = |length| segmentation(length).saturating_add(tree(grammar, length));
    let trees = keep.as_ref().map_or(0, |_| of_occurrences(task.shard, of_tree));
    trees.saturating_add(weights.len() as u64 * DOUBLE + lexicon.space(grammar).n_params() as u64 * VARINT)
}
