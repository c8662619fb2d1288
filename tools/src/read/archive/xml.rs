//! XML, tag by tag, without document types: what an entity stands for is never looked up.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use crate::read::archive::broken;
use crate::read::document::Refusal;

/// What comes next in a file of XML. Names are without their prefix.
#[derive(Debug)]
pub enum Node {
    /// A tag opens; an empty one closes again right after it.
    Start(Tag),
    /// A tag of this name closes.
    End(String),
    /// Text.
    Text(String),
}

/// A tag with its attributes.
#[derive(Debug)]
pub struct Tag {
    /// Its name.
    pub name: String,
    attributes: Vec<(String, String)>,
}

impl Tag {
    /// The value of an attribute; empty where it has none.
    #[must_use]
    pub fn attribute(&self, name: &str) -> &str {
        self.attributes(name).next().unwrap_or_default()
    }

    /// The values of all attributes of this name: prefixes may tell several apart.
    pub fn attributes(&self, name: &str) -> impl Iterator<Item = &str> {
        self.attributes.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// A file of XML.
pub struct Xml<'x> {
    reader: Reader<&'x [u8]>,
    format: &'static str,
    closing: Option<String>,
}

impl<'x> Xml<'x> {
    /// Reads a text that is part of a document of this format.
    #[must_use]
    pub fn new(text: &'x str, format: &'static str) -> Self {
        Xml { reader: Reader::from_str(text), format, closing: None }
    }

    /// The next tag or text; `None` at the end.
    ///
    /// # Errors
    /// [`Refusal`] when it is not well formed or has a document type.
    pub fn next(&mut self) -> Result<Option<Node>, Refusal> {
        if let Some(name) = self.closing.take() {
            return Ok(Some(Node::End(name)));
        }
        loop {
            let event = self.reader.read_event().map_err(|error| broken(self.format, &format!("XML: {error}")))?;
            let node = match event {
                Event::Start(tag) => Node::Start(self.tag(&tag)?),
                Event::Empty(tag) => {
                    let tag = self.tag(&tag)?;
                    self.closing = Some(tag.name.clone());
                    Node::Start(tag)
                }
                Event::End(tag) => Node::End(tag.local_name().into_inner().to_owned()),
                Event::Text(text) => Node::Text(text.xml10_content().into_owned()),
                Event::CData(text) => Node::Text(text.xml10_content().into_owned()),
                Event::GeneralRef(entity) => match entity.resolve_char_ref() {
                    Ok(Some(letter)) => Node::Text(letter.to_string()),
                    _ => Node::Text(quick_xml::escape::resolve_xml_entity(&entity).unwrap_or_default().to_owned()),
                },
                Event::DocType(_) => {
                    let what = "its XML has a document type (DTD), which could name other files or grow without end";
                    return Err(Refusal::Bomb { what: what.to_owned() });
                }
                Event::Eof => return Ok(None),
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) => continue,
            };
            return Ok(Some(node));
        }
    }

    fn tag(&self, tag: &BytesStart<'_>) -> Result<Tag, Refusal> {
        let wrong = |error: &dyn std::fmt::Display| broken(self.format, &format!("XML: {error}"));
        let name = tag.local_name().into_inner().to_owned();
        let mut attributes = Vec::new();
        for attribute in tag.attributes().with_checks(false) {
            let attribute = attribute.map_err(|error| wrong(&error))?;
            let value = quick_xml::escape::unescape(&attribute.value).map_err(|error| wrong(&error))?;
            attributes.push((attribute.key.local_name().into_inner().to_owned(), value.into_owned()));
        }
        Ok(Tag { name, attributes })
    }
}

/// The texts of the elements of these names, in their order: fields of metadata.
///
/// # Errors
/// [`Refusal`].
pub fn fields(
    text: &str,
    format: &'static str,
    names: &[&'static str],
) -> Result<Vec<(&'static str, String)>, Refusal> {
    let mut xml = Xml::new(text, format);
    let mut found: Vec<(&'static str, String)> = Vec::new();
    let mut open = None;
    while let Some(node) = xml.next()? {
        match node {
            Node::Start(tag) => {
                open = names.iter().copied().find(|name| *name == tag.name);
                found.extend(open.map(|name| (name, String::new())));
            }
            Node::End(_) => open = None,
            Node::Text(text) => {
                if let Some((_, value)) = found.last_mut().filter(|_| open.is_some()) {
                    value.push_str(&text);
                }
            }
        }
    }
    found.retain_mut(|(_, value)| {
        *value = value.trim().to_owned();
        !value.is_empty()
    });
    Ok(found)
}
