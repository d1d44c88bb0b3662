//! A conditional random field learned on a finished result, without training its models again.
//!
//! In: what the models of the result found in each sentence, and annotated sentences. Out: the text as the field segments it, with its probabilities.
//!
//! Law: it is what training the job with these annotations gives (`coordinator/cli/tests/all/annotate.rs`).

use grammaton::models::crf::statistics::Statistics;
use grammaton::models::crf::{Crf, Evidence, Known, whole};

use crate::annotation_file::Annotations;
use crate::segmented::Segmented;

/// Segments `text` as a field does that learns from `annotated` sentences of it; these are as they are annotated.
pub fn relearn(text: &mut Segmented, annotated: &Annotations) {
    let known = annotated.iter().filter_map(|(symbols, ends)| {
        let first = text.sentences.iter().find(|sentence| text.symbols(sentence) == symbols)?;
        Some((first.evidence(symbols), whole(ends)))
    });
    let known: Vec<(Evidence<'_>, Known)> = known.collect();
    let crf = Crf::learn(Statistics::of(text.trained_on()), &known);
    let mut segmentation = text.corpus.segmentation();
    let read = text.sentences.iter().map(|sentence| {
        let symbols = text.symbols(sentence);
        let (probabilities, ends) = match annotated.get(symbols) {
            Some(ends) => (Evidence::shares_of(ends), ends.clone()),
            None => {
                let reading = crf.read(&sentence.evidence(symbols));
                (reading.probabilities, reading.ends)
            }
        };
        segmentation[sentence.at] = ends;
        probabilities
    });
    let read: Vec<Vec<f64>> = read.collect();
    for (sentence, probabilities) in text.sentences.iter_mut().zip(read) {
        sentence.probabilities = probabilities;
    }
    text.corpus.gold = Some(segmentation.into_iter().map(|ends| vec![ends]).collect());
}
