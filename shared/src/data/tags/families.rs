//! Families of tags: which outcomes the prior relates before training.
//!
//! A text file, a family a line, `family: TAG TAG …`; `#` begins a comment line. A tag belongs to one family or to none. Two are built
//! in, [`Families::ptb`] and [`Families::ud`].

use std::collections::BTreeMap;

/// Families of tags.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Families {
    /// Names in the order of the file.
    pub names: Vec<String>,
    /// Position in `names`, by tag.
    family_of: BTreeMap<String, usize>,
}

/// Why a text does not tell families, and where.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{source_name}:{line}: {kind}")]
pub struct FamiliesError {
    /// Name of the text, usually its file's.
    pub source_name: String,
    /// Line, counted from 1.
    pub line: usize,
    /// Kind of the error.
    pub kind: FamiliesErrorKind,
}

/// Why a text does not tell families.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FamiliesErrorKind {
    /// A line without a colon, or without a name of one word before it.
    #[error("found `{found}`, expected `family: TAG TAG …`, or `#` before a comment")]
    NoFamily {
        /// The line.
        found: String,
    },
    /// A family without tags.
    #[error("family `{family}` has no tags; name them after the colon, or remove the line")]
    NoTags {
        /// Name of the family.
        family: String,
    },
    /// A family on two lines.
    #[error("family `{family}` has a line already; name all its tags there")]
    FamilyTwice {
        /// Name of the family.
        family: String,
    },
    /// A tag named twice.
    #[error("tag `{tag}` is in family `{family}` already; name it once")]
    TagTwice {
        /// The tag.
        tag: String,
        /// The family that has it.
        family: String,
    },
}

impl Families {
    /// Reads families; `source_name` is for errors.
    pub fn parse(text: &str, source_name: &str) -> Result<Families, FamiliesError> {
        let mut families = Families::default();
        for (at, line) in text.lines().map(str::trim).enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            families.add(line).map_err(|kind| FamiliesError {
                source_name: source_name.to_owned(),
                line: at + 1,
                kind,
            })?;
        }
        Ok(families)
    }

    fn add(&mut self, line: &str) -> Result<(), FamiliesErrorKind> {
        let (family, tags) = line.split_once(':').unwrap_or_default();
        let family = family.trim();
        if family.is_empty() || family.contains(char::is_whitespace) {
            return Err(FamiliesErrorKind::NoFamily { found: line.to_owned() });
        }
        let family = family.to_owned();
        if self.names.contains(&family) {
            return Err(FamiliesErrorKind::FamilyTwice { family });
        }
        if tags.trim().is_empty() {
            return Err(FamiliesErrorKind::NoTags { family });
        }
        self.names.push(family);
        for tag in tags.split_whitespace() {
            let before = self.family_of.insert(tag.to_owned(), self.names.len() - 1);
            if let Some(before) = before {
                let family = self.names[before].clone();
                return Err(FamiliesErrorKind::TagTwice { tag: tag.to_owned(), family });
            }
        }
        Ok(())
    }

    /// Families of the tags of the Penn Treebank.
    pub fn ptb() -> Families {
        Families::parse(include_str!("families/ptb.txt"), "families/ptb.txt").expect("a test reads it")
    }

    /// Families of the universal part-of-speech tags.
    pub fn ud() -> Families {
        Families::parse(include_str!("families/ud.txt"), "families/ud.txt").expect("a test reads it")
    }

    /// The position of the tag's family in `names`; `None` for a tag without one.
    pub fn family(&self, tag: &str) -> Option<usize> {
        self.family_of.get(tag).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWELVE: [&str; 12] = [
        "adjective",
        "adverb",
        "conjunction",
        "foreign",
        "interjection",
        "noun",
        "number",
        "particle",
        "preposition",
        "pronoun",
        "proper",
        "verb",
    ];

    #[test]
    fn built_in_families_are_the_twelve_of_the_paper() {
        let (ptb, ud) = (Families::ptb(), Families::ud());
        assert_eq!(ptb.names, TWELVE);
        assert_eq!(ud.names, TWELVE);
        assert_eq!(ptb.family_of.len(), 36, "word tags of the Penn Treebank");
        assert_eq!(ud.family_of.len(), 16, "universal tags but punctuation");
        assert_eq!(ptb.family("VBD"), ptb.family("MD"));
        assert_ne!(ptb.family("NN"), ptb.family("NNP"));
        assert_eq!(ptb.family(","), None);
    }

    #[test]
    fn lines_are_read() {
        let families = Families::parse("# two\n\n noun : N NS\r\nverb: V\n", "f").unwrap();
        assert_eq!(families.names, ["noun", "verb"]);
        assert_eq!(
            ["N", "NS", "V", "noun"].map(|tag| families.family(tag)),
            [Some(0), Some(0), Some(1), None]
        );
    }

    #[test]
    fn errors_say_where_and_what_to_do() {
        let error = |text: &str| Families::parse(text, "tags.txt").unwrap_err().to_string();
        let expected = "expected `family: TAG TAG …`, or `#` before a comment";
        assert_eq!(error("noun N"), format!("tags.txt:1: found `noun N`, {expected}"));
        assert_eq!(error("\n: N"), format!("tags.txt:2: found `: N`, {expected}"));
        assert_eq!(error("a b: N"), format!("tags.txt:1: found `a b: N`, {expected}"));
        assert_eq!(
            error("noun:"),
            "tags.txt:1: family `noun` has no tags; name them after the colon, or remove the line"
        );
        assert_eq!(
            error("noun: N\nnoun: NS"),
            "tags.txt:2: family `noun` has a line already; name all its tags there"
        );
        assert_eq!(
            error("noun: N\nverb: V N"),
            "tags.txt:2: tag `N` is in family `noun` already; name it once"
        );
    }
}
