//! ODT: paragraphs under headings, lists and tables; pages where the program that saved it marked them.

use serde_json::Map;

use crate::read::archive::Archive;
use crate::read::archive::xml::{Node, Tag, Xml, fields};
use crate::read::composer::{Composer, one_line};
use crate::read::document::{Parsed, Refusal};
use crate::read::grid::Grid;

const FORMAT: &str = "ODT";

/// Reads a document.
///
/// # Errors
/// [`Refusal`].
pub fn read(bytes: &[u8]) -> Result<Parsed, Refusal> {
    let mut archive = Archive::open(bytes, FORMAT)?;
    let content = archive.need("content.xml")?;
    let mut walk = Walk::default();
    if content.contains("soft-page-break") {
        walk.page = 1;
        walk.composer.page(1);
    }
    walk.run(&content).map_err(|refusal| encrypted(refusal, &mut archive))?;
    let mut metadata = Map::new();
    let mut title = walk.title;
    if let Some(meta) = archive.text("meta.xml")? {
        for (name, value) in fields(&meta, FORMAT, &["title", "creator", "subject", "creation-date", "date"])? {
            match name {
                "title" if title.is_empty() => title = value,
                "title" => {}
                "creator" => _ = metadata.insert("author".to_owned(), value.into()),
                "creation-date" => _ = metadata.insert("created".to_owned(), value.into()),
                "date" => _ = metadata.insert("modified".to_owned(), value.into()),
                name => _ = metadata.insert(name.to_owned(), value.into()),
            }
        }
    }
    let (text, parts) = walk.composer.finish();
    let media_type = "application/vnd.oasis.opendocument.text".to_owned();
    Ok(Parsed { title, text, parts, metadata, media_type })
}

/// An encrypted document has files that are no XML, and says so in its manifest.
fn encrypted(refusal: Refusal, archive: &mut Archive<'_>) -> Refusal {
    match archive.text("META-INF/manifest.xml") {
        Ok(Some(manifest)) if manifest.contains("encryption-data") => Refusal::Encryption { format: FORMAT },
        _ => refusal,
    }
}

#[derive(Debug, Default)]
struct Walk {
    composer: Composer,
    title: String,
    page: u32,
    line: String,
    level: Option<u8>,
    is_title: bool,
    lists: usize,
    paragraphs: usize,
    notes: usize,
    hidden: usize,
    grids: Vec<Grid>,
}

/// Tables in tables that are told apart.
const NESTING_MAX: usize = 16;

/// What is no text of the document: marks of changes, comments, numbers of notes.
const HIDDEN: [&str; 4] = ["tracked-changes", "annotation", "note-citation", "sequence-decls"];

impl Walk {
    fn run(&mut self, text: &str) -> Result<(), Refusal> {
        let mut xml = Xml::new(text, FORMAT);
        while let Some(node) = xml.next()? {
            match node {
                Node::Start(tag) if HIDDEN.contains(&tag.name.as_str()) => self.hidden += 1,
                Node::End(name) if HIDDEN.contains(&name.as_str()) => self.hidden = self.hidden.saturating_sub(1),
                _ if self.hidden > 0 => {}
                Node::Start(tag) => self.start(&tag)?,
                Node::End(name) => self.end(&name)?,
                Node::Text(text) if self.paragraphs > 0 => self.push(&text),
                Node::Text(_) => {}
            }
        }
        Ok(())
    }

    fn start(&mut self, tag: &Tag) -> Result<(), Refusal> {
        match tag.name.as_str() {
            "h" | "p" => {
                if self.notes == 0 {
                    self.flush()?;
                }
                self.paragraphs += 1;
                if tag.name == "h" {
                    self.level = Some(tag.attribute("outline-level").parse().unwrap_or(1).clamp(1, 9));
                }
                self.is_title = tag.attribute("style-name") == "Title";
            }
            "s" => self.push(&" ".repeat(tag.attribute("c").parse().unwrap_or(1).clamp(1, 80))),
            "tab" => self.push("\t"),
            "line-break" => self.line.push('\n'),
            "list" => self.lists += 1,
            "note-body" => {
                self.notes += 1;
                self.line.push_str(" (");
            }
            "soft-page-break" if self.page > 0 => {
                self.page += 1;
                self.composer.page(self.page);
            }
            "table" => {
                self.flush()?;
                for grid in &mut self.grids {
                    grid.leave(&mut self.composer)?;
                }
                if self.grids.len() < NESTING_MAX {
                    self.grids.push(Grid::default());
                }
            }
            "table-row" => self.grids.last_mut().map_or((), Grid::row),
            "table-header-rows" => self.grids.last_mut().map_or((), Grid::mark_header),
            "table-cell" | "covered-table-cell" => {
                let columns = tag.attribute("number-columns-repeated").parse().unwrap_or(1).clamp(1, 100);
                self.grids.last_mut().map_or(Ok(()), |grid| grid.cell(false, columns, 1))?;
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, name: &str) -> Result<(), Refusal> {
        match name {
            "h" | "p" => {
                self.paragraphs = self.paragraphs.saturating_sub(1);
                if self.notes == 0 {
                    self.flush()?;
                }
            }
            "list" => self.lists = self.lists.saturating_sub(1),
            "note-body" => {
                self.notes = self.notes.saturating_sub(1);
                self.line.push(')');
            }
            "table" => {
                if let Some(grid) = self.grids.pop().filter(|grid| !grid.is_frame) {
                    grid.write(&mut self.composer)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// White space is one space, as in HTML.
    fn push(&mut self, text: &str) {
        for (position, word) in text.split([' ', '\n', '\r']).enumerate() {
            if position > 0 && !self.line.is_empty() && !self.line.ends_with([' ', '\n']) {
                self.line.push(' ');
            }
            self.line.push_str(word);
        }
    }

    fn flush(&mut self) -> Result<(), Refusal> {
        let line = std::mem::take(&mut self.line);
        let (level, is_title) = (self.level.take(), std::mem::take(&mut self.is_title));
        if line.trim().is_empty() {
            return Ok(());
        }
        if let Some(grid) = self.grids.last_mut().filter(|grid| !grid.is_frame) {
            grid.put(&line);
            return Ok(());
        }
        match level {
            _ if is_title && self.title.is_empty() && self.composer.bytes() == 0 => {
                self.title = one_line(&line);
                Ok(())
            }
            Some(level) => self.composer.heading(level, &line),
            None if self.lists > 0 => self.composer.block(&format!("- {}", line.trim())),
            None => self.composer.block(line.trim()),
        }
    }
}
