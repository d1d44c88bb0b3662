//! Tags: their numbers, sets of them by name and class, and families of them.

use std::collections::BTreeMap;

use crate::data::dependency::Sentence;

pub mod classes;
pub mod families;

/// Tags by number, in the order in which they come.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TagSet {
    /// Names of the tags.
    pub names: Vec<String>,
    numbers: BTreeMap<String, u32>,
}

/// Sentences of tags.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tagged {
    /// The tags that occur.
    pub tags: TagSet,
    /// Their numbers, by sentence.
    pub sentences: Vec<Vec<u32>>,
}

impl TagSet {
    /// The numbers of the tags of a sentence; new tags are added.
    pub fn numbers(&mut self, sentence: &Sentence) -> Vec<u32> {
        let number = |tag: &String| {
            *self.numbers.entry(tag.clone()).or_insert_with(|| {
                self.names.push(tag.clone());
                self.names.len() as u32 - 1
            })
        };
        sentence.tags.iter().map(number).collect()
    }

    /// The numbers of the tags of a sentence; `None` if one is unknown.
    pub fn known(&self, sentence: &Sentence) -> Option<Vec<u32>> {
        sentence.tags.iter().map(|tag| self.numbers.get(tag).copied()).collect()
    }
}

impl Tagged {
    /// The tags of these sentences.
    pub fn new(sentences: &[Sentence]) -> Tagged {
        let mut tags = TagSet::default();
        let sentences = sentences.iter().map(|sentence| tags.numbers(sentence)).collect();
        Tagged { tags, sentences }
    }
}
