//! Lists of tags: tags, and classes of tags.
//!
//! The classes are `any`, of all tags, and those of `classes.txt`, which know several tag sets. A name that is a tag of the corpus is
//! that tag, whatever classes there are.

use crate::data::tags::families::Families;

/// A list in which nothing is known.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what}: nothing in {named:?} is a tag of the corpus, or a class with one; {way_out}")]
pub struct UnknownTags {
    /// The purpose of the list, for messages.
    pub what: String,
    /// The tags named.
    pub named: Vec<String>,
    /// The nearest known names, or all of them.
    pub way_out: String,
}

/// The class of all tags.
pub const ANY: &str = "any";

/// Marks the `tags` that a list names, `[n_tags]`; `what` is for errors.
///
/// # Errors
/// [`UnknownTags`] if there is none. If there is one, the rest of the list may be tags that this corpus does not have.
///
/// ```
/// let tags = ["NN", "VBZ", "VBD"].map(str::to_owned);
/// assert_eq!(grammaton::data::tags::classes::among(&tags, &["verb".to_owned()], "roots")?, [false, true, true]);
/// # Ok::<(), grammaton::data::tags::classes::UnknownTags>(())
/// ```
pub fn among(tags: &[String], named: &[String], what: &str) -> Result<Vec<bool>, UnknownTags> {
    let classes = classes();
    let is_named = |tag: &String| {
        let class = classes.family(tag).map(|class| &classes.names[class]);
        named.iter().any(|name| name == tag || !tags.contains(name) && (name == ANY || Some(name) == class))
    };
    let found: Vec<bool> = tags.iter().map(is_named).collect();
    found.contains(&true).then_some(found).ok_or_else(|| UnknownTags {
        what: what.to_owned(),
        named: named.to_vec(),
        way_out: way_out(tags, named, &classes),
    })
}

fn classes() -> Families {
    Families::parse(include_str!("classes.txt"), "classes.txt").expect("a test reads it")
}

fn way_out(tags: &[String], named: &[String], classes: &Families) -> String {
    let known = || tags.iter().chain(&classes.names);
    let distance = |a: &str, b: &str| strsim::damerau_levenshtein(&a.to_lowercase(), &b.to_lowercase());
    let pairs = named.iter().flat_map(|name| known().map(move |known| (distance(name, known), known)));
    match pairs.min_by_key(|&(distance, _)| distance) {
        Some((distance, known)) if distance <= known.chars().count().div_ceil(3) => {
            format!("did you mean `{known}`?")
        }
        _ => {
            let known: Vec<&str> = known().map(String::as_str).collect();
            format!("there are: {}, {ANY}", known.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(names: &str) -> Vec<String> {
        names.split_whitespace().map(str::to_owned).collect()
    }

    fn named(tags: &str, named: &str) -> String {
        let tags = owned(tags);
        let found = among(&tags, &owned(named), "roots").unwrap();
        tags.into_iter()
            .zip(found)
            .filter(|(_, found)| *found)
            .map(|(tag, _)| tag)
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn lists_name_tags_and_classes() {
        assert_eq!(named("NN VB VBZ NNS", "noun VBZ"), "NN VBZ NNS");
        assert_eq!(named("NN VB MD ,", "verb"), "VB MD");
        assert_eq!(named("NOUN PROPN AUX", "verb proper"), "PROPN AUX");
        assert_eq!(named("VA NN NR", "noun verb"), "VA NN");
        assert_eq!(named("a b", "any"), "a b");
        assert_eq!(named("a any", "any"), "any", "a tag comes before a class");
        assert_eq!(named("NN IN", "NNPS verb NN"), "NN", "not every tag has to occur");
    }

    #[test]
    fn lists_of_nothing_known_are_refused() {
        let error =
            |names: &str| among(&owned("NOUN VERB ADP"), &owned(names), "roots").unwrap_err().to_string();
        assert_eq!(
            error("VREB"),
            "roots: nothing in [\"VREB\"] is a tag of the corpus, or a class with one; did you mean `VERB`?"
        );
        assert_eq!(
            error("wh-word ZZZZ"),
            "roots: nothing in [\"wh-word\", \"ZZZZ\"] is a tag of the corpus, or a class with one; \
             there are: NOUN, VERB, ADP, noun, proper, verb, any"
        );
        assert!(error("").starts_with("roots: nothing in [] is"));
        assert!(error("proper").starts_with("roots: nothing in [\"proper\"] is"));
    }
}
