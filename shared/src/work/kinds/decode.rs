//! Best analyses of sentences.

use crate::models::decode::{Decode, Decoded, Decoder, decode_marked};
use crate::models::dmv::nouns;
use crate::work::context::Context;
use crate::work::error::ComputeError;
use crate::work::heap::{flat, rows};

/// The analyses of every sentence of the shard.
pub fn run(context: &Context<'_>, with: &Decode) -> Result<Vec<Decoded>, ComputeError> {
    let (sentences, prepared) = (context.sentences()?, context.prepared());
    let expected = prepared.space().n_with_escapes();
    if with.weights.len() != expected {
        return Err(ComputeError::Weights { found: with.weights.len(), expected });
    }
    if with.decoders.contains(&Decoder::MbrArcs) && nouns::tags(&prepared.grammar).is_none() {
        return Err(ComputeError::NotDependencies);
    }
    context.end_chains();
    let sentences = sentences.iter().map(|sentence| (&sentence.tokens[..], &sentence.marks));
    Ok(decode_marked(&prepared, with, sentences)?)
}

/// Bytes of an answer on the heap.
pub fn size(decoded: &[Decoded]) -> usize {
    rows(decoded, |Decoded { segmentations, trees, spans, .. }| {
        rows(segmentations, |ends| flat(ends)) + rows(trees, String::len) + flat(spans)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::data::Sentence;
    use crate::grammar::lexicon::{Lexicon, StickStrings, Strings};
    use crate::grammar::syntax;
    use crate::num::Wide;
    use crate::work::content::Named;
    use crate::work::context::Cache;
    use crate::work::language::Language;
    use crate::work::shard::Shard;

    /// Law: decoding with the strings of a chain, which has ended then, gives back the memory of its charts; a chain that goes on makes them again.
    #[test]
    fn charts_are_gone_once_sentences_are_decoded_with_the_strings_of_a_chain() {
        let (grammar, _) = syntax::parse("1 1 S --> W\n1 1 S --> W S\nW --> a\nW --> a a\n", "test").unwrap();
        let [a, w] = ["a", "W"].map(|name| grammar.symbol(name).unwrap());
        let shard = Named::new(Shard::Sentences(vec![Sentence::new(vec![a; 4], 1)]));
        let grammar = Named::new(grammar);
        let [bare, learned] = [vec![], vec![vec![a]]].map(|yields| {
            let mut strings = Strings::new();
            yields.iter().for_each(|tokens: &Vec<_>| strings.push(tokens));
            let sticks = vec![StickStrings { symbol: w, strings }];
            Language { grammar: grammar.clone(), lexicon: Named::new(Lexicon { sticks }) }
        });
        let cache = Cache::with_memory(1 << 20);
        let [chain, reading] = [&bare, &learned].map(|language| Context::new(&cache, language, &shard));
        let charts = || Arc::downgrade(&chain.chain_items().unwrap());
        let first = charts();
        assert!(first.ptr_eq(&charts()));
        let weights = vec![Wide::ONE; reading.prepared().space().n_with_escapes()];
        let (segments, decoders) = (vec![w], vec![Decoder::Viterbi]);
        let with = Decode { weights, segments, decoders, trees: false, spans: false, open: false };
        assert_eq!(run(&reading, &with).unwrap()[0].segmentations, [[1, 2, 3, 4]]);
        assert!(first.upgrade().is_none());
        assert_eq!(charts().upgrade().map(|items| items.occurrences().len()), Some(1));
    }
}
