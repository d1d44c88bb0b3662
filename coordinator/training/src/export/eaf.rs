//! EAF, the format of ELAN: a tier of words that subdivides each annotation, and one of their morphemes below it.
//!
//! In: a file, and the names of its tiers of text. Out: the same text with the new tiers, their linguistic type and the stereotype `Symbolic_Subdivision`
//! ([Annotation Format 3.0](https://www.mpi.nl/tools/elan/EAF_Annotation_Format_3.0_and_ELAN.pdf)). Without a file: one with a tier of text for each speaker, whose
//! lines last a second each unless their times are known.
//!
//! Law: everything that was there stays but for the number of the last annotation; identifiers of annotations are unique.

use std::fmt::Write as _;
use std::ops::Range;

use anyhow::{Context as _, Result, ensure};
use rustc_hash::FxHashMap;

use super::document::{Document, Utterance, choose};
use super::line::{Line, Source, Speech, speeches};
use super::xml::{Insertions, Node, attribute, escaped, nodes};

/// A file.
pub struct Eaf {
    text: String,
    tiers: Vec<Tier>,
    /// Names of all tiers.
    names: Vec<String>,
    utterances: Vec<Utterance>,
    /// The greatest number of an annotation.
    last_id: u64,
    /// Where the header has that number.
    last_id_place: Option<Range<usize>>,
    /// Where tiers end, and where a linguistic type and a constraint may stand.
    places: [usize; 3],
    has_type: bool,
    has_constraint: bool,
}

/// A tier of text.
struct Tier {
    name: String,
    participant: Option<String>,
    /// Identifier, text and times of each annotation.
    annotations: Vec<Annotation>,
}

#[derive(Default)]
struct Annotation {
    id: String,
    text: String,
    /// Names of its time slots.
    slots: Option<(String, String)>,
    /// The annotation that it belongs to.
    parent: Option<String>,
}

/// The linguistic type of the new tiers.
const TYPE: &str = "grammaton segments";
const STEREOTYPE: &str = "Symbolic_Subdivision";

impl Eaf {
    /// Reads a file, whose text is in the `wanted` tiers, or in its only one. Messages call it `name`.
    pub fn read(text: String, wanted: &[String], name: &str) -> Result<Eaf> {
        let nodes = nodes(&text, name)?;
        let mut tiers: Vec<Tier> = Vec::new();
        let mut slots: FxHashMap<String, f64> = FxHashMap::default();
        let (mut last_id, mut last_id_place, mut in_value, mut in_last_id) = (0, None, false, None);
        let mut places = [0; 3];
        let (mut has_type, mut has_constraint) = (false, false);
        for node in &nodes {
            match node {
                Node::Open(element, attributes, place) => {
                    let value = |name: &str| attribute(attributes, name).map(str::to_owned);
                    let required = |name: &str| {
                        let line = 1 + text[..place.start].matches('\n').count();
                        value(name).with_context(|| format!("`{element}` in line {line} lacks {name}"))
                    };
                    match element.as_str() {
                        "TIME_SLOT" => {
                            let time = value("TIME_VALUE").and_then(|time| time.parse::<f64>().ok());
                            slots.extend(Some(required("TIME_SLOT_ID")?).zip(time));
                        }
                        "TIER" => tiers.push(Tier {
                            name: required("TIER_ID")?,
                            participant: value("PARTICIPANT").filter(|name| !name.is_empty()),
                            annotations: Vec::new(),
                        }),
                        "ALIGNABLE_ANNOTATION" | "REF_ANNOTATION" => {
                            let annotation = Annotation {
                                id: required("ANNOTATION_ID")?,
                                text: String::new(),
                                slots: value("TIME_SLOT_REF1").zip(value("TIME_SLOT_REF2")),
                                parent: value("ANNOTATION_REF"),
                            };
                            let number =
                                annotation.id.strip_prefix('a').and_then(|number| number.parse().ok());
                            last_id = number.map_or(last_id, |number: u64| last_id.max(number));
                            let tier = tiers.last_mut().context("an annotation outside of a tier")?;
                            tier.annotations.push(annotation);
                        }
                        "ANNOTATION_VALUE" => in_value = true,
                        "PROPERTY" if value("NAME").as_deref() == Some("lastUsedAnnotationId") => {
                            in_last_id = Some(place.end);
                        }
                        "LINGUISTIC_TYPE" => has_type |= value("LINGUISTIC_TYPE_ID").as_deref() == Some(TYPE),
                        "CONSTRAINT" => has_constraint |= value("STEREOTYPE").as_deref() == Some(STEREOTYPE),
                        _ => {}
                    }
                }
                Node::Close(element, place) => match element.as_str() {
                    "ANNOTATION_VALUE" => in_value = false,
                    "PROPERTY" => {
                        last_id_place =
                            in_last_id.take().map(|start| start..place.start.max(start)).or(last_id_place);
                    }
                    "TIME_ORDER" | "TIER" => places = [place.end; 3],
                    "LINGUISTIC_TYPE" => places[1..].fill(place.end),
                    "LOCALE" | "LANGUAGE" | "CONSTRAINT" => places[2] = place.end,
                    _ => {}
                },
                Node::Text(part) => {
                    if let Some(tier) = tiers.last_mut().filter(|_| in_value) {
                        tier.annotations.last_mut().context("a value outside of an annotation")?.text += part;
                    }
                }
            }
        }
        ensure!(places[0] > 0, "{name}: the file has no TIME_ORDER, which every file of ELAN has");
        if let Some(place) = &last_id_place {
            last_id = text[place.clone()].trim().parse().unwrap_or(0).max(last_id);
        }
        let by_id: FxHashMap<&str, &Annotation> =
            tiers.iter().flat_map(|tier| &tier.annotations).map(|it| (it.id.as_str(), it)).collect();
        let time = |annotation: &Annotation| {
            // Tiers may be as deep as there are tiers.
            let mut found = annotation;
            for _ in 0..tiers.len() {
                match &found.parent {
                    Some(parent) => found = by_id.get(parent.as_str()).copied()?,
                    None => break,
                }
            }
            let (start, end) = found.slots.as_ref()?;
            Some((slots.get(start)? / 1000.0, slots.get(end)? / 1000.0))
        };
        let names = tiers.iter().map(|tier| tier.name.clone()).collect();
        let with_text: Vec<usize> = (0..tiers.len())
            .filter(|&at| tiers[at].annotations.iter().any(|it| !it.text.trim().is_empty()))
            .collect();
        let chosen = choose(with_text.iter().map(|&at| tiers[at].name.as_str()), wanted, name)?;
        let chosen: Vec<usize> = chosen.into_iter().map(|at| with_text[at]).collect();
        let utterance = |tier: &Tier, annotation: &Annotation| Utterance {
            words: annotation.text.split_whitespace().map(str::to_owned).collect(),
            source: Source {
                id: Some(annotation.id.clone()),
                speaker: tier.participant.clone(),
                time: time(annotation),
            },
        };
        let of_tier = |&at: &usize| tiers[at].annotations.iter().map(move |it| (at, it));
        let utterances = chosen
            .iter()
            .flat_map(of_tier)
            .map(|(at, annotation)| utterance(&tiers[at], annotation))
            .collect();
        let mut tiers: Vec<Option<Tier>> = tiers.into_iter().map(Some).collect();
        let tiers = chosen.into_iter().filter_map(|at| tiers[at].take()).collect();
        Ok(Eaf { text, tiers, names, utterances, last_id, last_id_place, places, has_type, has_constraint })
    }
}

impl Document for Eaf {
    fn utterances(&self) -> &[Utterance] {
        &self.utterances
    }

    fn with(&self, lines: &[Option<Line>]) -> Result<String> {
        let mut insertions = Insertions::default();
        let (mut ids, mut lines) = (self.last_id, lines);
        for Tier { name, participant, annotations } in &self.tiers {
            let (of_tier, rest) = lines.split_at(annotations.len().min(lines.len()));
            lines = rest;
            for kind in ["words", "morphemes"] {
                let name = format!("{name} {kind}");
                ensure!(
                    !self.names.contains(&name),
                    "the file has a tier `{name}` already; rename or remove it"
                );
            }
            let ids_of_tier = annotations.iter().map(|annotation| annotation.id.as_str());
            let found: Vec<(&str, &Line)> =
                ids_of_tier.zip(of_tier).filter_map(|(id, line)| Some((id, line.as_ref()?))).collect();
            insertions.at(self.places[0], subdivisions(name, participant.as_deref(), &found, &mut ids)?);
        }
        if let Some(place) = &self.last_id_place {
            insertions.instead_of(place.clone(), ids.to_string());
        }
        if !self.has_type {
            insertions.at(self.places[1], linguistic_type(TYPE, Some(STEREOTYPE)));
        }
        if !self.has_constraint {
            insertions.at(self.places[2], constraint());
        }
        Ok(insertions.into(&self.text))
    }
}

/// The tiers of words and of morphemes below the tier `of`, whose annotations have these identifiers.
fn subdivisions(
    of: &str,
    participant: Option<&str>,
    found: &[(&str, &Line)],
    ids: &mut u64,
) -> Result<String> {
    let (mut words, mut morphemes) = (String::new(), String::new());
    for (id, line) in found {
        line.check()?;
        let mut last_word = None;
        for word in &line.words {
            let of_word = annotation(&mut words, id, &mut last_word, &word.text, ids);
            if word.segments.len() > 1 {
                let mut last = None;
                for segment in &word.segments {
                    annotation(&mut morphemes, &of_word, &mut last, &segment.text, ids);
                }
            }
        }
    }
    let of_words = format!("{of} words");
    let mut text = tier(&of_words, Some(of), participant, TYPE, &words);
    if !morphemes.is_empty() {
        text += &tier(&format!("{of} morphemes"), Some(&of_words), participant, TYPE, &morphemes);
    }
    Ok(text)
}

/// Adds an annotation below `parent`, behind the `last` one of it. Returns its identifier.
fn annotation(
    text: &mut String,
    parent: &str,
    last: &mut Option<String>,
    value: &str,
    ids: &mut u64,
) -> String {
    *ids += 1;
    let id = format!("a{ids}");
    let previous = last.as_deref().map_or(String::new(), |last| format!(" PREVIOUS_ANNOTATION=\"{last}\""));
    write!(
        text,
        "        <ANNOTATION>\n            <REF_ANNOTATION ANNOTATION_ID=\"{id}\" ANNOTATION_REF=\"{}\"{previous}>\n                \
         <ANNOTATION_VALUE>{}</ANNOTATION_VALUE>\n            </REF_ANNOTATION>\n        </ANNOTATION>\n",
        escaped(parent),
        escaped(value)
    )
    .expect("a string has room");
    *last = Some(id.clone());
    id
}

fn tier(
    name: &str,
    parent: Option<&str>,
    participant: Option<&str>,
    of_type: &str,
    annotations: &str,
) -> String {
    let optional = |name: &str, value: Option<&str>| {
        value.map_or(String::new(), |value| format!(" {name}=\"{}\"", escaped(value)))
    };
    format!(
        "\n    <TIER LINGUISTIC_TYPE_REF=\"{of_type}\"{}{} TIER_ID=\"{}\">\n{annotations}    </TIER>",
        optional("PARENT_REF", parent),
        optional("PARTICIPANT", participant),
        escaped(name)
    )
}

fn linguistic_type(name: &str, constraint: Option<&str>) -> String {
    let (of, is_alignable) = match constraint {
        Some(constraint) => (format!(" CONSTRAINTS=\"{constraint}\""), "false"),
        None => (String::new(), "true"),
    };
    format!(
        "\n    <LINGUISTIC_TYPE{of} GRAPHIC_REFERENCES=\"false\" LINGUISTIC_TYPE_ID=\"{name}\" TIME_ALIGNABLE=\"{is_alignable}\"/>"
    )
}

fn constraint() -> String {
    format!(
        "\n    <CONSTRAINT DESCRIPTION=\"Symbolic subdivision of a parent annotation. Annotations refering to the same parent are ordered\" STEREOTYPE=\"{STEREOTYPE}\"/>"
    )
}

/// A file of these lines.
pub fn document(lines: &[Line]) -> Result<String> {
    const TEXT: &str = "default-lt";
    let speeches = speeches(lines)?;
    let (mut slots, mut tiers, mut n_slots, mut ids) = (String::new(), String::new(), 0, 0);
    for Speech { speaker, lines } in &speeches {
        let name = speaker.map_or("text".to_owned(), |speaker| format!("text {speaker}"));
        let (mut annotations, mut found) = (String::new(), Vec::new());
        for (start, end, line) in lines {
            line.check()?;
            for time in [start, end] {
                n_slots += 1;
                let time = (time * 1000.0).round() as u64;
                writeln!(slots, "        <TIME_SLOT TIME_SLOT_ID=\"ts{n_slots}\" TIME_VALUE=\"{time}\"/>")?;
            }
            ids += 1;
            write!(
                annotations,
                "        <ANNOTATION>\n            <ALIGNABLE_ANNOTATION ANNOTATION_ID=\"a{ids}\" TIME_SLOT_REF1=\"ts{}\" TIME_SLOT_REF2=\"ts{n_slots}\">\n                \
                 <ANNOTATION_VALUE>{}</ANNOTATION_VALUE>\n            </ALIGNABLE_ANNOTATION>\n        </ANNOTATION>\n",
                n_slots - 1,
                escaped(&line.text())
            )?;
            found.push((format!("a{ids}"), *line));
        }
        let found: Vec<(&str, &Line)> = found.iter().map(|(id, line)| (id.as_str(), *line)).collect();
        tiers += &tier(&name, None, *speaker, TEXT, &annotations);
        tiers += &subdivisions(&name, *speaker, &found, &mut ids)?;
    }
    Ok(format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <ANNOTATION_DOCUMENT AUTHOR=\"\" DATE=\"1970-01-01T00:00:00+00:00\" FORMAT=\"3.0\" VERSION=\"3.0\" \
         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:noNamespaceSchemaLocation=\"http://www.mpi.nl/tools/elan/EAFv3.0.xsd\">\n    \
         <HEADER MEDIA_FILE=\"\" TIME_UNITS=\"milliseconds\">\n        <PROPERTY NAME=\"lastUsedAnnotationId\">{ids}</PROPERTY>\n    </HEADER>\n    \
         <TIME_ORDER>\n{slots}    </TIME_ORDER>{tiers}{}{}{}\n</ANNOTATION_DOCUMENT>\n",
        linguistic_type(TEXT, None),
        linguistic_type(TYPE, Some(STEREOTYPE)),
        constraint()
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::super::line::tests::{any_lines, line as words};
    use super::*;

    /// A file with a tier of references, one of text below it, as language documentation has them, and one of notes.
    const FILE: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ANNOTATION_DOCUMENT AUTHOR=\"\" DATE=\"2020-01-01T00:00:00+00:00\" FORMAT=\"3.0\" VERSION=\"3.0\">\n\
        <HEADER MEDIA_FILE=\"\" TIME_UNITS=\"milliseconds\"><PROPERTY NAME=\"URN\">x</PROPERTY><PROPERTY NAME=\"lastUsedAnnotationId\">9</PROPERTY></HEADER>\n\
        <TIME_ORDER><TIME_SLOT TIME_SLOT_ID=\"ts1\" TIME_VALUE=\"100\"/><TIME_SLOT TIME_SLOT_ID=\"ts2\" TIME_VALUE=\"1500\"/><TIME_SLOT TIME_SLOT_ID=\"ts3\"/></TIME_ORDER>\n\
        <!-- kept --><TIER LINGUISTIC_TYPE_REF=\"ref\" TIER_ID=\"ref@A\"><ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID=\"a1\" TIME_SLOT_REF1=\"ts1\" TIME_SLOT_REF2=\"ts2\">\
        <ANNOTATION_VALUE/></ALIGNABLE_ANNOTATION></ANNOTATION></TIER>\n\
        <TIER LINGUISTIC_TYPE_REF=\"orth\" PARENT_REF=\"ref@A\" PARTICIPANT=\"A &amp; B\" TIER_ID=\"orth@A\"><ANNOTATION><REF_ANNOTATION ANNOTATION_ID=\"a2\" ANNOTATION_REF=\"a1\">\
        <ANNOTATION_VALUE>undo &lt;it&#62;</ANNOTATION_VALUE></REF_ANNOTATION></ANNOTATION></TIER>\n\
        <LINGUISTIC_TYPE LINGUISTIC_TYPE_ID=\"ref\"/><LINGUISTIC_TYPE CONSTRAINTS=\"Symbolic_Association\" LINGUISTIC_TYPE_ID=\"orth\"/>\n\
        <CONSTRAINT DESCRIPTION=\"1-1\" STEREOTYPE=\"Symbolic_Association\"/>\n</ANNOTATION_DOCUMENT>\n";

    /// Parents and values of the annotations of a tier.
    fn tier_of(text: &str, name: &str) -> Vec<(String, String)> {
        let read = Eaf::read(text.to_owned(), &[name.to_owned()], "file").unwrap();
        let annotations = read.tiers[0].annotations.iter();
        annotations.map(|it| (it.parent.clone().unwrap_or_default(), it.text.clone())).collect()
    }

    fn ids(text: &str) -> Vec<String> {
        let found = nodes(text, "file").unwrap();
        let id = |node: Node| match node {
            Node::Open(_, attributes, _) => attribute(&attributes, "ANNOTATION_ID").map(str::to_owned),
            _ => None,
        };
        found.into_iter().filter_map(id).collect()
    }

    #[test]
    fn tiers_subdivide_annotations_and_nothing_else_changes() {
        let read = Eaf::read(FILE.to_owned(), &[], "file").unwrap();
        let expected = Utterance {
            words: vec!["undo".to_owned(), "<it>".to_owned()],
            source: Source { id: Some("a2".into()), speaker: Some("A & B".into()), time: Some((0.1, 1.5)) },
        };
        assert_eq!(read.utterances(), [expected]);
        let lines = [Some(words(1, &[&["un", "do"], &["<it>"]]))];
        let written = read.with(&lines).unwrap();
        let owned = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
        };
        assert_eq!(tier_of(&written, "orth@A words"), owned(&[("a2", "undo"), ("a2", "<it>")]));
        assert_eq!(tier_of(&written, "orth@A morphemes"), owned(&[("a10", "un"), ("a10", "do")]));
        assert_eq!(ids(&written), ["a1", "a2", "a10", "a13", "a11", "a12"]);
        // What was there is there still, in its order.
        let mut rest = written.as_str();
        for line in FILE.replace(">9<", ">13<").lines() {
            let at = rest.find(line).unwrap_or_else(|| panic!("{line} is not in {rest}"));
            rest = &rest[at + line.len()..];
        }
        let order = ["</TIME_ORDER>", "orth@A words", "<LINGUISTIC_TYPE ", TYPE, "<CONSTRAINT ", STEREOTYPE]
            .map(|part| written.rfind(part).unwrap());
        assert!(order[0] < order[1] && order[1] < order[3] && order[3] < order[5], "{order:?}");
        let twice = Eaf::read(written, &["orth@A".to_owned()], "file").unwrap().with(&lines).unwrap_err();
        assert!(twice.to_string().contains("orth@A words"), "{twice}");
    }

    proptest! {
        /// Law: a file of any lines has their texts, words and morphemes, with identifiers that differ; or is refused.
        #[test]
        fn any_text_is_read_back_or_refused(lines in any_lines()) {
            let Ok(written) = document(&lines) else {
                prop_assert!(lines.iter().any(|line| line.check().is_err()));
                return Ok(());
            };
            let all = ids(&written);
            prop_assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
            let lines: Vec<&Line> = lines.iter().filter(|line| !line.words.is_empty()).collect();
            if lines.is_empty() {
                return Ok(());
            }
            let texts = |name: &str| -> Vec<String> { tier_of(&written, name).into_iter().map(|(_, text)| text).collect() };
            prop_assert_eq!(texts("text"), lines.iter().map(|line| line.text()).collect::<Vec<_>>());
            let of_words = || lines.iter().flat_map(|line| &line.words);
            prop_assert_eq!(texts("text words"), of_words().map(|word| word.text.clone()).collect::<Vec<_>>());
            let several: Vec<String> = of_words().filter(|word| word.segments.len() > 1).flat_map(|word| &word.segments).map(|it| it.text.clone()).collect();
            if !several.is_empty() {
                prop_assert_eq!(texts("text morphemes"), several);
            }
        }
    }

    #[test]
    fn what_is_no_file_of_elan_is_refused() {
        let no_slots =
            Eaf::read("<ANNOTATION_DOCUMENT/>".to_owned(), &[], "file").map(|_| ()).unwrap_err().to_string();
        assert!(no_slots.contains("TIME_ORDER"), "{no_slots}");
        let unnamed = FILE.replace(" ANNOTATION_ID=\"a2\"", "");
        let unnamed = Eaf::read(unnamed, &[], "file").map(|_| ()).unwrap_err().to_string();
        assert!(unnamed.contains("ANNOTATION_ID"), "{unnamed}");
    }
}
