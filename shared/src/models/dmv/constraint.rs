//! Constraints: named sets of dependency trees that are defined by the arcs allowed in them.
//!
//! In: a [`Component`] as a job file has it, by its name if it is built in. Out: for a tag set, which arcs of a sentence are allowed
//! ([`Constraint::on`]), and the forest of the trees that have no others ([`restricted`]).
//!
//! Four things can be said, and a tree must obey all that are: which tags the root may have (`roots`); how long an arc may be
//! (`longest_arc`); which arcs do not exist, by the tags of head and child and by the side of the head that the child is on
//! (`forbid`); and which tags make phrases (`phrases`): in each unbroken sequence of words with such tags, as long as it can be, all
//! but the last word have the last one as head. Lists name tags and classes of tags ([`crate::data::tags::classes`]).
//! The six of Cohen & Smith (2009), §3, are:
//!
//! ```toml
//! { name = "right-attach", forbid = [{ side = "right" }] }                  # each word's head is to its right
//! { name = "all-right", phrases = ["any"] }                                 # the last word is the head of all others
//! { name = "left-chain", forbid = [{ side = "right" }], longest_arc = 1 }   # each word's head is the next one
//! { name = "verb-as-root", roots = ["verb"] }
//! { name = "noun-sequence", phrases = ["noun"] }
//! { name = "short-dep", longest_arc = 4 }
//! ```
//!
//! The root has no arc, so neither `longest_arc` nor `forbid` concerns it. Where no tree obeys there is no forest: what a sentence
//! does without is for the caller to say. Does not relate arcs to one another, beyond their being a projective tree.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::layout::{Layout, Side};
use super::nouns;
use crate::data::tags::classes::{self, ANY, UnknownTags};
use crate::forest::Forest;
use crate::grammar::{Grammar, SymbolId};

/// A named set of allowed trees, declared. One that is built in is written as its name alone.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Component {
    /// Its name.
    pub name: String,
    /// Tags of which the root has one.
    #[serde(default = "any")]
    pub roots: Vec<String>,
    /// The largest distance of a child from its head; none if any will do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_arc: Option<u32>,
    /// Arcs of which there are none.
    #[serde(default)]
    pub forbid: Vec<ArcClass>,
    /// Tags whose unbroken sequences have their last word as head.
    #[serde(default)]
    pub phrases: Vec<String>,
}

/// A class of arcs, by what they join.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArcClass {
    /// Tags of the head.
    #[serde(default = "any")]
    pub head: Vec<String>,
    /// Tags of the child.
    #[serde(default = "any")]
    pub child: Vec<String>,
    /// The side of the head that the child is on; none for both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<Side>,
}

fn any() -> Vec<String> {
    vec![ANY.to_owned()]
}

impl Component {
    /// Names of those that are built in.
    pub const BUILT_IN: [&'static str; 6] =
        ["right-attach", "all-right", "left-chain", "verb-as-root", "noun-sequence", "short-dep"];

    /// The one of a name, if it is built in.
    pub fn built_in(name: &str) -> Option<Component> {
        let name = name.to_owned();
        let all =
            Component { name, roots: any(), longest_arc: None, forbid: Vec::new(), phrases: Vec::new() };
        let class = |class: &str| vec![class.to_owned()];
        let to_the_right = || vec![ArcClass { head: any(), child: any(), side: Some(Side::Right) }];
        Some(match all.name.as_str() {
            "right-attach" => Component { forbid: to_the_right(), ..all },
            "all-right" => Component { phrases: any(), ..all },
            "left-chain" => Component { forbid: to_the_right(), longest_arc: Some(1), ..all },
            "verb-as-root" => Component { roots: class("verb"), ..all },
            "noun-sequence" => Component { phrases: class("noun"), ..all },
            "short-dep" => Component { longest_arc: Some(4), ..all },
            _ => return None,
        })
    }

    #[doc(hidden)]
    /// Returns the constraint over a tag set.
    ///
    /// # Errors
    /// [`UnknownTags`] for a list that names none of `tags`.
    ///
    /// ```
    /// use grammaton::models::dmv::constraint::Component;
    ///
    /// let short = Component::built_in("short-dep").expect("it is");
    /// let constraint = short.resolve(&["NOUN".to_owned(), "VERB".to_owned()])?;
    /// let sentence = constraint.on(&[0, 1, 0, 0, 0, 0]);
    /// assert!(sentence.allows(0, 6) && sentence.allows(2, 6) && !sentence.allows(1, 6));
    /// # Ok::<(), grammaton::data::tags::classes::UnknownTags>(())
    /// ```
    pub fn resolve(&self, tags: &[String]) -> Result<Constraint, UnknownTags> {
        let n = tags.len();
        let resolve = |list, named: &[String]| {
            classes::among(tags, named, &format!("`{list}` of component `{}`", self.name))
        };
        let mut forbidden = vec![[false; 2]; n * n];
        for arcs in &self.forbid {
            let (heads, children) = (resolve("head", &arcs.head)?, resolve("child", &arcs.child)?);
            for (head, child) in (0..n).flat_map(|head| (0..n).map(move |child| (head, child))) {
                for side in [Side::Left, Side::Right] {
                    forbidden[head * n + child][side as usize] |=
                        heads[head] && children[child] && arcs.side.is_none_or(|only| only == side);
                }
            }
        }
        let phrases = match &self.phrases[..] {
            [] => vec![false; n],
            named => resolve("phrases", named)?,
        };
        let longest_arc = self.longest_arc.map_or(usize::MAX, |longest| longest as usize);
        Ok(Constraint { roots: resolve("roots", &self.roots)?, longest_arc, forbidden, phrases })
    }
}

/// The lists of a component without names of fields, as they travel: name, roots, longest arc, heads, children and sides that are forbidden,
/// phrases.
type Lists = (String, Vec<String>, Option<u32>, Vec<(Vec<String>, Vec<String>, Option<Side>)>, Vec<String>);

impl Serialize for Component {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            let Component { name, roots, longest_arc, forbid, phrases } = self.clone();
            let forbid = forbid.into_iter().map(|arcs| (arcs.head, arcs.child, arcs.side)).collect();
            let lists: Lists = (name, roots, longest_arc, forbid, phrases);
            return lists.serialize(serializer);
        }
        match Component::built_in(&self.name) {
            Some(built_in) if built_in == *self => serializer.serialize_str(&self.name),
            _ => Component::serialize(self, serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Component {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Component, D::Error> {
        if !deserializer.is_human_readable() {
            let (name, roots, longest_arc, forbid, phrases) = Lists::deserialize(deserializer)?;
            let arcs = |(head, child, side)| ArcClass { head, child, side };
            let forbid = forbid.into_iter().map(arcs).collect();
            return Ok(Component { name, roots, longest_arc, forbid, phrases });
        }
        deserializer.deserialize_any(NameOrTable)
    }
}

struct NameOrTable;

impl<'de> Visitor<'de> for NameOrTable {
    type Value = Component;

    fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str("the name of a built-in component, or a table")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Component, E> {
        Component::built_in(name).ok_or_else(|| E::unknown_variant(name, &Component::BUILT_IN))
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Component, A::Error> {
        Component::deserialize(MapAccessDeserializer::new(table))
    }
}

/// A [`Component`] on a tag set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Constraint {
    /// `[n_tags]`: whether the root may have it.
    roots: Vec<bool>,
    longest_arc: usize,
    /// `[n_tags, n_tags]`: by head and child, the sides of the head on which the child is forbidden.
    forbidden: Vec<[bool; 2]>,
    /// `[n_tags]`: whether it is part of phrases.
    phrases: Vec<bool>,
}

impl Constraint {
    /// Returns the constraint on a sentence; `[n]` tags of the tag set.
    pub fn on<'a>(&'a self, tags: &'a [u32]) -> Allowed<'a> {
        let in_phrase = |&tag: &u32| self.phrases[tag as usize];
        let mut phrase_heads = vec![None; tags.len()];
        for child in
            (1..tags.len()).rev().filter(|&child| in_phrase(&tags[child - 1]) && in_phrase(&tags[child]))
        {
            phrase_heads[child - 1] = phrase_heads[child].or(Some(child + 1));
        }
        Allowed { constraint: self, tags, phrase_heads }
    }
}

/// The arcs that a [`Constraint`] allows in a sentence.
#[derive(Clone, Debug)]
pub struct Allowed<'a> {
    constraint: &'a Constraint,
    tags: &'a [u32],
    /// `[n]`: the last word of the phrase that a word is in, if it is another one.
    phrase_heads: Vec<Option<usize>>,
}

impl Allowed<'_> {
    /// Whether `child` may hang on `head`; positions counted from 1, and head 0 if the child is the root.
    pub fn allows(&self, head: usize, child: usize) -> bool {
        let Constraint { roots, longest_arc, forbidden, .. } = self.constraint;
        let tag = |word: usize| self.tags[word - 1] as usize;
        let is_allowed = match head {
            0 => roots[tag(child)],
            _ => {
                let side = if child < head { Side::Left } else { Side::Right };
                let forbidden = forbidden[tag(head) * roots.len() + tag(child)];
                head.abs_diff(child) <= *longest_arc && !forbidden[side as usize]
            }
        };
        is_allowed && self.phrase_heads[child - 1].is_none_or(|phrase_head| phrase_head == head)
    }
}

/// Components on the tags of a grammar.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Constraints {
    layout: Layout,
    constraints: Vec<Constraint>,
}

/// Why components say nothing of a grammar.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unsuited {
    /// A grammar other than that of the DMV.
    #[error("components are of dependency trees, and this is another grammar")]
    Grammar,
    /// A list names none of its tags.
    #[error(transparent)]
    Tags(#[from] UnknownTags),
}

impl Constraints {
    /// The constraints of `components`, in their order, on `grammar`.
    ///
    /// # Errors
    /// [`Unsuited`] if it has no dependency trees, or none of the tags that a list names.
    pub fn new<'a>(
        grammar: &Grammar,
        components: impl IntoIterator<Item = &'a Component>,
    ) -> Result<Constraints, Unsuited> {
        let (layout, tags) = layout_of(grammar).ok_or(Unsuited::Grammar)?;
        let constraints = components.into_iter().map(|component| component.resolve(&tags));
        Ok(Constraints { layout, constraints: constraints.collect::<Result<_, _>>()? })
    }

    /// The forest of each component in that of a sentence, of which [`Layout::arc`] says which kind it is; `None` where it has
    /// no trees.
    pub fn restrict(&self, forest: &Forest, tokens: &[SymbolId]) -> Vec<Option<Forest>> {
        let tags = self.layout.tags(tokens);
        let restrict = |constraint: &Constraint| {
            let allowed = constraint.on(&tags);
            restricted(self.layout, forest, |head, child| allowed.allows(head, child))
        };
        self.constraints.iter().map(restrict).collect()
    }
}

/// The trees of a forest ([`Layout::arc`] says of which kind) that have only arcs that `allows` is true of, by head and child as in
/// [`Allowed::allows`]; `None` if there are none.
pub fn restricted(layout: Layout, forest: &Forest, allows: impl Fn(usize, usize) -> bool) -> Option<Forest> {
    forest
        .filtered(|node, edge| layout.arc(forest, node, edge).is_none_or(|(head, child)| allows(head, child)))
}

/// The layout of `grammar`, and its tags, if it is one of the DMV without phrases; pseudo-counts may be others.
pub fn layout_of(grammar: &Grammar) -> Option<(Layout, Vec<String>)> {
    let tags = nouns::tags(grammar)?;
    let layout = Layout::of(tags.len(), grammar.n_nonterminals as usize)?;
    grammar.adapted().next().is_none().then_some((layout, tags))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::dmv::grammar;

    fn tags(names: &str) -> Vec<String> {
        names.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn grammars_of_the_model_are_known() {
        let tags = tags("N V");
        let mut made = grammar(&tags).unwrap();
        made.rules[3].alpha = 0.5;
        assert_eq!(layout_of(&made), Some((Layout::new(2), tags)));
        made.rules.swap(8, 9);
        assert_eq!(layout_of(&made), None);
        let other = crate::grammar::syntax::parse("1 1 S --> a<\n", "g").unwrap().0;
        assert_eq!(layout_of(&other), None);
    }

    fn read(json: &str) -> Result<Component, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    /// The allowed arcs of a sentence of tags, as `head child`.
    fn allowed(component: &Component, sentence: &str) -> String {
        let mut names = tags(sentence);
        let sentence: Vec<u32> = {
            let all = names.clone();
            names.sort();
            names.dedup();
            all.iter().map(|tag| names.iter().position(|name| name == tag).unwrap() as u32).collect()
        };
        let constraint = component.resolve(&names).unwrap();
        let on = constraint.on(&sentence);
        let n = sentence.len();
        let pairs = (0..=n).flat_map(|head| (1..=n).map(move |child| (head, child)));
        let found: Vec<String> = pairs
            .filter(|&(head, child)| head != child && on.allows(head, child))
            .map(|(head, child)| format!("{head}{child}"))
            .collect();
        found.join(" ")
    }

    fn built_in(name: &str) -> Component {
        Component::built_in(name).unwrap()
    }

    #[test]
    fn built_in_components_are_those_of_the_paper() {
        for (name, expected) in [
            ("right-attach", "01 02 03 04 21 31 32 41 42 43"),
            ("all-right", "04 14 24 34 41 42 43"),
            ("left-chain", "01 02 03 04 21 32 43"),
            ("verb-as-root", "01 12 13 14 21 23 24 31 32 34 41 42 43"),
            ("noun-sequence", "01 04 14 21 24 31 34 41 42 43"),
            ("short-dep", "01 02 03 04 12 13 14 21 23 24 31 32 34 41 42 43"),
        ] {
            assert_eq!(allowed(&built_in(name), "VB NN NNS NN"), expected, "{name}");
        }
        assert_eq!(Component::BUILT_IN.map(|name| built_in(name).name), Component::BUILT_IN);
    }

    #[test]
    fn components_are_read_and_written() {
        for name in Component::BUILT_IN {
            assert_eq!(read(&format!("{name:?}")), Ok(built_in(name)));
            assert_eq!(serde_json::to_string(&built_in(name)).unwrap(), format!("{name:?}"));
        }
        let own =
            r#"{"name": "right-attach", "roots": ["VB"], "forbid": [{"child": ["noun"], "side": "left"}]}"#;
        let own = read(own).unwrap();
        assert_eq!(
            own,
            Component {
                name: "right-attach".to_owned(),
                roots: vec!["VB".to_owned()],
                longest_arc: None,
                forbid: vec![ArcClass {
                    head: any(),
                    child: vec!["noun".to_owned()],
                    side: Some(Side::Left)
                }],
                phrases: Vec::new(),
            }
        );
        assert_eq!(read(&serde_json::to_string(&own).unwrap()), Ok(own));
        for (json, expected) in [
            (r#""verbasroot""#, "unknown variant `verbasroot`, expected one of `right-attach`, `all-right`"),
            (r#"{"roots": ["VB"]}"#, "missing field `name`"),
            (r#"{"name": "x", "root": ["VB"]}"#, "unknown field `root`, expected one of `name`, `roots`"),
            (
                r#"{"name": "x", "forbid": [{"side": "up"}]}"#,
                "unknown variant `up`, expected `left` or `right`",
            ),
            ("3", "expected the name of a built-in component, or a table"),
        ] {
            let error = read(json).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn lists_of_nothing_known_are_refused() {
        let names = tags("NOUN VERB ADP");
        let error = |json: &str| read(json).unwrap().resolve(&names).unwrap_err().what;
        assert_eq!(error(r#"{"name": "x", "roots": ["VREB"]}"#), "`roots` of component `x`");
        assert_eq!(
            error(r#"{"name": "x", "forbid": [{"head": ["noun"], "child": ["ZZ"]}]}"#),
            "`child` of component `x`"
        );
        assert_eq!(error(r#"{"name": "x", "phrases": ["proper"]}"#), "`phrases` of component `x`");
    }
}
