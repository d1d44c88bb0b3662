//! The treebank of the examples is what its README says.

use std::collections::BTreeSet;
use std::fs;

use grammaton::data::dependency::{Punctuation, Sentence, Tags, read, select};
use grammaton::models::dmv::heads::check;
use grammaton::{Decoder, Fit, Method};

fn treebank(name: &str) -> Vec<Sentence> {
    let path = format!("{}/../examples/dependency/{name}", env!("CARGO_MANIFEST_DIR"));
    read(&fs::read(path).unwrap(), name, Tags::Upos).unwrap()
}

#[test]
fn the_example_has_projective_trees_with_one_verb_as_root() {
    let files = ["train.conllu", "dev.conllu", "test.conllu"].map(treebank);
    assert_eq!(files.each_ref().map(Vec::len), [300, 30, 30]);
    let words =
        |file: &[Sentence]| file.iter().map(|sentence| sentence.words.clone()).collect::<BTreeSet<_>>();
    let [train, dev, test] = files.each_ref().map(|file| words(file));
    assert!(train.is_disjoint(&dev) && train.is_disjoint(&test) && dev.is_disjoint(&test));
    let all = files.concat();
    let without = select(&all, Punctuation::Removed, 12).sentences;
    assert_eq!(without.len(), all.len(), "none is longer, and none is nothing but punctuation");
    assert!(without.iter().all(|sentence| sentence.n_words() >= 2));
    assert!(all.iter().any(|sentence| sentence.punctuation.contains(&true)));
    for sentence in all.iter().chain(&without) {
        let heads = sentence.heads.as_ref().expect("every sentence has heads");
        assert_eq!(check(sentence.n_words(), heads), Ok(()), "{:?}", sentence.words);
        let root = heads.iter().position(|&head| head == 0).expect("it is a tree");
        assert_eq!(sentence.tags[root], "VERB", "{:?}", sentence.words);
        for (tag, &head) in sentence.tags.iter().zip(heads) {
            let head = (head as usize).checked_sub(1).map(|head| sentence.tags[head].as_str());
            assert!(tag != "DET" || head == Some("NOUN"), "{:?}", sentence.words);
        }
    }
}

#[test]
fn logistic_normal_priors_start_from_a_model_with_events_that_it_never_had() {
    let train = select(&treebank("train.conllu"), Punctuation::Removed, 5).sentences;
    // EM leaves many events without any count.
    let em = Fit::dependencies(Method::em()).max_rounds(40).run(&train[..40]).unwrap();
    let mut objectives = Vec::new();
    let normal = Fit::dependencies(Method::logistic_normal())
        .max_rounds(3)
        .on_round(|round| objectives.push(round.objective))
        .start_from_model(em)
        .run(&train[..40])
        .unwrap();
    assert!(objectives.is_sorted(), "{objectives:?}");
    let heads = normal.heads(&train[..40], Decoder::MbrArcs).unwrap();
    assert!(heads.iter().all(Option::is_some));
}
