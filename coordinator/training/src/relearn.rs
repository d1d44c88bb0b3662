//! A conditional random field learned on a finished result, without training its models again.
//!
//! In: what the models of the result found in each sentence, and annotated sentences. Out: the text as the field segments it, with its probabilities.
//!
//! Law: it is what training the job with these annotations gives (`coordinator/cli/tests/all/annotate.rs`).

use crate::input::segmented_file::Annotated;
use crate::segmented::Segmented;
use crate::train::annotations::{Found, Sentences};

/// Segments `text` as a field does that learns from `annotated` sentences of it, in agreement with what is known of these.
pub fn relearn(text: &mut Segmented, annotated: &Annotated) {
    let found = text.trained_on().map(|(at, sentence)| -> Found {
        let symbols = text.corpus.sentences[at].clone();
        match sentence {
            Some(sentence) => (symbols, sentence.shares.clone(), sentence.ends.clone()),
            None => (symbols, Vec::new(), vec![1]),
        }
    });
    let learned = Sentences::again(found.collect()).learned(annotated);
    let mut segmentation = text.corpus.segmentation();
    let mut probabilities = Vec::with_capacity(text.sentences.len());
    for (place, (at, sentence)) in text.trained_on().enumerate() {
        segmentation[at] = learned.ends(place).to_vec();
        probabilities.extend(sentence.map(|_| learned.probabilities(place).boundaries));
    }
    for (sentence, probabilities) in text.sentences.iter_mut().zip(probabilities) {
        sentence.probabilities = probabilities;
    }
    text.corpus.gold = Some(segmentation.into_iter().map(|ends| vec![ends]).collect());
}
