//! EPUB: the chapters in reading order.

use std::collections::HashMap;

use serde_json::Map;

use crate::read::archive::xml::{Node, Xml, fields};
use crate::read::archive::{Archive, broken, resolved};
use crate::read::composer::Composer;
use crate::read::document::{Parsed, Refusal};
use crate::read::html;

const FORMAT: &str = "EPUB";

/// Reads a book.
///
/// # Errors
/// [`Refusal`].
pub fn read(bytes: &[u8]) -> Result<Parsed, Refusal> {
    let mut archive = Archive::open(bytes, FORMAT)?;
    let container = archive.need("META-INF/container.xml")?;
    if let Some(rights) = archive.text("META-INF/encryption.xml")?
        && rights.contains("xhtml")
    {
        return Err(Refusal::Encryption { format: FORMAT });
    }
    let package_path = package_path(&container)?;
    let package = archive.need(&package_path)?;
    let mut composer = Composer::default();
    for chapter in chapters(&package, &package_path)? {
        if let Some(text) = archive.text(&chapter)? {
            // Headings of a chapter do not hold for the next.
            composer.under(1, "");
            composer = html::chapter(&text, composer)?;
        }
    }
    let mut title = String::new();
    let mut metadata = Map::new();
    for (name, value) in fields(&package, FORMAT, &["title", "creator", "language", "publisher", "date", "identifier"])?
    {
        match name {
            "title" if title.is_empty() => title = value,
            "title" => {}
            "creator" => _ = metadata.entry("author").or_insert(value.into()),
            name => _ = metadata.entry(name).or_insert(value.into()),
        }
    }
    let (text, parts) = composer.finish();
    Ok(Parsed { title, text, parts, metadata, media_type: "application/epub+zip".to_owned() })
}

fn package_path(container: &str) -> Result<String, Refusal> {
    let mut xml = Xml::new(container, FORMAT);
    while let Some(node) = xml.next()? {
        if let Node::Start(tag) = node
            && tag.name == "rootfile"
        {
            return Ok(tag.attribute("full-path").to_owned());
        }
    }
    Err(broken(FORMAT, "META-INF/container.xml names no package"))
}

/// The paths of the chapters, without the page of contents.
fn chapters(package: &str, path: &str) -> Result<Vec<String>, Refusal> {
    let mut xml = Xml::new(package, FORMAT);
    let mut files: HashMap<String, String> = HashMap::new();
    let mut chapters = Vec::new();
    while let Some(node) = xml.next()? {
        let Node::Start(tag) = node else { continue };
        match tag.name.as_str() {
            "item" => {
                let is_contents = tag.attribute("properties").split_whitespace().any(|property| property == "nav");
                let is_text = matches!(tag.attribute("media-type"), "application/xhtml+xml" | "text/html" | "");
                if let Some(file) = resolved(path, tag.attribute("href")).filter(|_| is_text && !is_contents) {
                    files.insert(tag.attribute("id").to_owned(), file);
                }
            }
            // A chapter that is named twice is read once.
            "itemref" => chapters.extend(files.remove(tag.attribute("idref"))),
            _ => {}
        }
    }
    Ok(chapters)
}
