//! The treebank of the examples is what its README says.

use std::collections::BTreeSet;
use std::fs;

use shared::dependency::{Punctuation, Sentence, Tags, read, select};
use shared::dmv::heads::check;

fn treebank(name: &str) -> Vec<Sentence> {
    let path = format!("{}/../examples/dependency/{name}", env!("CARGO_MANIFEST_DIR"));
    read(&fs::read(path).unwrap(), name, Tags::Upos).unwrap()
}

#[test]
fn the_example_has_projective_trees_with_one_verb_as_root() {
    let (train, test) = (treebank("train.conllu"), treebank("test.conllu"));
    assert_eq!((train.len(), test.len()), (300, 60));
    let words: BTreeSet<&Vec<String>> = train.iter().map(|sentence| &sentence.words).collect();
    assert!(test.iter().all(|sentence| !words.contains(&sentence.words)));
    let all = [train.clone(), test.clone()].concat();
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
