//! XML: the elements and texts of a document with their places, and texts to put into one.
//!
//! In: a document. Out: its nodes in order, with byte ranges, so that a document is changed by insertions alone and keeps everything else.

use std::ops::Range;

use anyhow::{Result, anyhow, bail};
use quick_xml::XmlVersion;
use quick_xml::escape;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

/// A part of a document.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Node {
    /// The begin of an element: its name, its attributes, and the place of its tag.
    Open(String, Vec<(String, String)>, Range<usize>),
    /// The end of an element: its name, and the place of its tag; the end of that of [`Node::Open`] if the element is written as one tag.
    Close(String, Range<usize>),
    /// Text.
    Text(String),
}

/// The value of an attribute of an element.
pub fn attribute<'a>(attributes: &'a [(String, String)], name: &str) -> Option<&'a str> {
    attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// The nodes of a document; comments and processing instructions are left out. Messages call it `name`.
///
/// # Errors
/// What is not well-formed, with its line.
pub fn nodes(text: &str, name: &str) -> Result<Vec<Node>> {
    let mut reader = Reader::from_str(text);
    reader.config_mut().expand_empty_elements = true;
    let (mut nodes, mut depth) = (Vec::new(), 0);
    loop {
        let start = reader.buffer_position() as usize;
        let event = reader.read_event();
        let end = reader.buffer_position() as usize;
        let line = || 1 + text[..start.min(text.len())].matches('\n').count();
        let wrong = |what: &str| anyhow!("{name}:{}: not well-formed XML: {what}", line());
        let event = event.map_err(|error| wrong(&error.to_string()))?;
        let node = match event {
            Event::Start(tag) => {
                depth += 1;
                let attributes = attributes(&tag).map_err(|error| wrong(&error.to_string()))?;
                Node::Open(utf8(tag.name().as_ref())?, attributes, start..end)
            }
            Event::End(tag) => {
                depth -= 1;
                Node::Close(utf8(tag.name().as_ref())?, start..end)
            }
            Event::Text(text) => Node::Text(utf8(&text)?),
            Event::CData(text) => Node::Text(utf8(&text)?),
            Event::GeneralRef(entity) => {
                let known = match entity.resolve_char_ref().map_err(|error| wrong(&error.to_string()))? {
                    Some(letter) => Some(letter.to_string()),
                    None => escape::resolve_predefined_entity(&utf8(&entity)?).map(str::to_owned),
                };
                Node::Text(known.ok_or_else(|| wrong("an entity that XML does not have"))?)
            }
            Event::Eof if depth > 0 => bail!(wrong("it ends inside of an element")),
            Event::Eof => return Ok(nodes),
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {
                continue;
            }
        };
        if depth > 0 || !matches!(node, Node::Text(_)) {
            nodes.push(node);
        }
    }
}

fn attributes(tag: &BytesStart<'_>) -> Result<Vec<(String, String)>> {
    let mut attributes = Vec::new();
    for found in tag.attributes() {
        let found = found?;
        let value = found.normalized_value(XmlVersion::Implicit1_0)?;
        attributes.push((utf8(found.key.as_ref())?, value.into_owned()));
    }
    Ok(attributes)
}

fn utf8(bytes: &[u8]) -> Result<String> {
    Ok(std::str::from_utf8(bytes)?.to_owned())
}

/// A text as the content of an element, or the value of an attribute in double quotes.
pub fn escaped(text: &str) -> String {
    escape::escape(text).into_owned()
}

/// Texts to put into a document, each in place of a range of it.
#[derive(Default)]
pub struct Insertions(Vec<(Range<usize>, String)>);

impl Insertions {
    /// Puts `text` at a place.
    pub fn at(&mut self, place: usize, text: String) {
        self.instead_of(place..place, text);
    }

    /// Puts `text` in place of a range.
    pub fn instead_of(&mut self, range: Range<usize>, text: String) {
        self.0.push((range, text));
    }

    /// The document with all of them; of several at a place, in the order in which they were put.
    pub fn into(mut self, document: &str) -> String {
        self.0.sort_by_key(|(range, _)| range.start);
        let (mut written, mut done) = (String::with_capacity(document.len()), 0);
        for (range, text) in self.0 {
            written += &document[done..range.start];
            written += &text;
            done = range.end;
        }
        written + &document[done..]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::line::tests::any_text;
    use super::*;

    #[test]
    fn nodes_have_places() {
        let text = "<?xml version=\"1.0\"?>\n<!-- c --><a x='1 &amp; 2'>b &lt;&#65;<![CDATA[<]]><c/></a>";
        let found = nodes(text, "file").unwrap();
        let Node::Open(_, attributes, range) = &found[0] else { panic!("{found:?}") };
        assert_eq!((attribute(attributes, "x"), &text[range.clone()]), (Some("1 & 2"), "<a x='1 &amp; 2'>"));
        let texts: String =
            found.iter().map(|node| if let Node::Text(text) = node { text.as_str() } else { "" }).collect();
        assert_eq!(texts, "b <A<");
        let places: Vec<&str> = found
            .iter()
            .filter_map(|node| match node {
                Node::Open(_, _, range) | Node::Close(_, range) => Some(&text[range.clone()]),
                Node::Text(_) => None,
            })
            .collect();
        assert_eq!(places[1..], ["<c/>", "", "</a>"]);
    }

    #[test]
    fn what_is_not_well_formed_is_refused_with_its_line() {
        for text in ["<a>\n<b></a>", "<a>\n&x;</a>", "<a>\n<b", "<a>\n<b x=1/></a>"] {
            let refused = nodes(text, "file.eaf").unwrap_err().to_string();
            assert!(refused.starts_with("file.eaf:2: not well-formed XML"), "{refused}");
        }
        assert!(nodes("<a>", "file").is_err());
    }

    proptest! {
        /// Law: an escaped text is read back, as content and in an attribute; control characters are refused elsewhere.
        #[test]
        fn any_text_is_read_back(text in any_text()) {
            let text: String = text.chars().filter(|letter| !letter.is_control()).collect();
            let document = format!("<a x=\"{0}\">{0}</a>", escaped(&text));
            let found = nodes(&document, "file").unwrap();
            let Node::Open(_, attributes, _) = &found[0] else { panic!("{found:?}") };
            prop_assert_eq!(attribute(attributes, "x"), Some(text.as_str()));
            let texts: String =
                found.iter().map(|node| if let Node::Text(text) = node { text.as_str() } else { "" }).collect();
            prop_assert_eq!(texts, text);
        }
    }
}
