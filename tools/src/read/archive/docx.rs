//! DOCX: paragraphs under the headings of their styles, tables, notes; pages as the program that saved it counted them.

use std::collections::{HashMap, HashSet};

use hedgerow::Part;
use serde_json::{Map, Value};

use crate::read::archive::Archive;
use crate::read::archive::xml::{Node, Tag, Xml, fields};
use crate::read::composer::{Composer, one_line};
use crate::read::document::{Parsed, Refusal};
use crate::read::grid::Grid;

const FORMAT: &str = "DOCX";

/// The media type of such a document.
const MEDIA_TYPE: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";

/// Reads a document.
///
/// # Errors
/// [`Refusal`].
pub fn read(bytes: &[u8]) -> Result<Parsed, Refusal> {
    let mut archive = Archive::open(bytes, FORMAT)?;
    let body = archive.need("word/document.xml")?;
    let styles = archive.text("word/styles.xml")?.map_or(Ok(Styles::default()), |text| Styles::read(&text))?;
    let mut walk = Walk { styles, has_rendered_breaks: body.contains("lastRenderedPageBreak"), ..Walk::default() };
    if walk.has_rendered_breaks || body.contains("\"page\"") {
        walk.page = 1;
        walk.composer.page(1);
    }
    walk.run(&body)?;
    for notes in ["word/footnotes.xml", "word/endnotes.xml"] {
        if let Some(notes) = archive.text(notes)? {
            walk.run(&notes)?;
        }
    }
    let (named, metadata) = properties(&mut archive, "docProps/core.xml", FORMAT)?;
    let title = if walk.title.is_empty() { named } else { walk.title };
    let has_rendered_breaks = walk.has_rendered_breaks;
    let (text, mut parts) = walk.composer.finish();
    if !has_rendered_breaks && has_long_page(&parts) {
        // Only some of the breaks were marked by hand, so none of the numbers is right.
        for part in &mut parts {
            part.page = None;
        }
    }
    Ok(Parsed { title, text, parts, metadata, media_type: MEDIA_TYPE.to_owned() })
}

/// Bytes of text that no page holds.
const PAGE_BYTES: usize = 8000;

fn has_long_page(parts: &[Part]) -> bool {
    let mut bytes: HashMap<Option<u32>, usize> = HashMap::new();
    for part in parts {
        *bytes.entry(part.page).or_default() += part.range.len();
    }
    bytes.values().any(|bytes| *bytes > PAGE_BYTES)
}

/// Title and metadata of an Office document.
///
/// # Errors
/// [`Refusal`].
pub fn properties(
    archive: &mut Archive<'_>,
    name: &str,
    format: &'static str,
) -> Result<(String, Map<String, Value>), Refusal> {
    let Some(text) = archive.text(name)? else { return Ok(Default::default()) };
    let mut title = String::new();
    let mut metadata = Map::new();
    for (name, value) in fields(&text, format, &["title", "creator", "subject", "created", "modified"])? {
        match name {
            "title" => title = value,
            "creator" => _ = metadata.insert("author".to_owned(), value.into()),
            name => _ = metadata.insert(name.to_owned(), value.into()),
        }
    }
    Ok((title, metadata))
}

/// Which styles are headings, and of which level.
#[derive(Debug, Default)]
struct Styles {
    levels: HashMap<String, u8>,
    titles: HashSet<String>,
}

impl Styles {
    fn read(text: &str) -> Result<Styles, Refusal> {
        let mut xml = Xml::new(text, FORMAT);
        let mut styles = Styles::default();
        let mut based: HashMap<String, String> = HashMap::new();
        let mut style = String::new();
        while let Some(node) = xml.next()? {
            let Node::Start(tag) = node else { continue };
            match tag.name.as_str() {
                "style" => tag.attribute("styleId").clone_into(&mut style),
                "name" => {
                    let name = tag.attribute("val").to_ascii_lowercase();
                    if let Some(level) = name.strip_prefix("heading ").and_then(|level| level.parse().ok()) {
                        styles.levels.insert(style.clone(), level);
                    }
                    if name == "title" {
                        styles.titles.insert(style.clone());
                    }
                }
                "basedOn" => _ = based.insert(style.clone(), tag.attribute("val").to_owned()),
                "outlineLvl" => {
                    if let Some(level) = outline_level(&tag) {
                        styles.levels.entry(style.clone()).or_insert(level);
                    }
                }
                _ => {}
            }
        }
        for (style, base) in &based {
            if let Some(level) = styles.levels.get(base).copied() {
                styles.levels.entry(style.clone()).or_insert(level);
            }
        }
        Ok(styles)
    }
}

/// Levels are counted from 0; 9 is that of running text.
fn outline_level(tag: &Tag) -> Option<u8> {
    tag.attribute("val").parse::<u8>().ok().filter(|level| *level < 9).map(|level| level + 1)
}

/// A paragraph in the making.
#[derive(Debug, Default)]
struct Paragraph {
    text: String,
    /// The page of its first word.
    page: Option<u32>,
    level: Option<u8>,
    is_title: bool,
    is_item: bool,
}

#[derive(Debug, Default)]
struct Walk {
    styles: Styles,
    composer: Composer,
    title: String,
    page: u32,
    has_rendered_breaks: bool,
    paragraphs: Vec<Paragraph>,
    grids: Vec<Grid>,
    is_text: bool,
    /// Depth inside of what stands twice, for programs that do not know the first.
    fallback: usize,
}

/// Text boxes in text boxes, and tables in tables, that are told apart.
const NESTING_MAX: usize = 16;

impl Walk {
    fn run(&mut self, text: &str) -> Result<(), Refusal> {
        let mut xml = Xml::new(text, FORMAT);
        while let Some(node) = xml.next()? {
            match node {
                Node::Start(tag) if tag.name == "Fallback" => self.fallback += 1,
                Node::End(name) if name == "Fallback" => self.fallback = self.fallback.saturating_sub(1),
                _ if self.fallback > 0 => {}
                Node::Start(tag) => self.start(&tag)?,
                Node::End(name) => self.end(&name)?,
                Node::Text(text) if self.is_text => self.push(&text),
                Node::Text(_) => {}
            }
        }
        Ok(())
    }

    fn start(&mut self, tag: &Tag) -> Result<(), Refusal> {
        match tag.name.as_str() {
            "p" if self.paragraphs.len() < NESTING_MAX => self.paragraphs.push(Paragraph::default()),
            "pStyle" => self.style(tag.attribute("val")),
            "outlineLvl" => self.open(|paragraph| paragraph.level = outline_level(tag)),
            "numPr" => self.open(|paragraph| paragraph.is_item = true),
            "t" => self.is_text = true,
            "tab" if !self.paragraphs.is_empty() => self.push("\t"),
            "noBreakHyphen" => self.push("-"),
            "cr" => self.push("\n"),
            "br" => {
                let is_page = tag.attribute("type") == "page";
                if is_page && !self.has_rendered_breaks {
                    self.turn();
                }
                self.push("\n");
            }
            "lastRenderedPageBreak" => self.turn(),
            "tbl" => {
                self.leave_grids()?;
                if self.grids.len() < NESTING_MAX {
                    self.grids.push(Grid::default());
                }
            }
            "tr" => self.grids.last_mut().map_or((), Grid::row),
            "tc" => self.grids.last_mut().map_or(Ok(()), |grid| grid.cell(false, 1, 1))?,
            "tblHeader" => self.grids.last_mut().map_or((), Grid::mark_header),
            "gridSpan" => {
                let columns = tag.attribute("val").parse().unwrap_or(1).clamp(1, 100);
                if let Some(grid) = self.grids.last_mut() {
                    grid.widen(columns);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, name: &str) -> Result<(), Refusal> {
        match name {
            "p" => self.close_paragraph(),
            "t" => {
                self.is_text = false;
                Ok(())
            }
            "tbl" => match self.grids.pop().filter(|grid| !grid.is_frame) {
                Some(grid) => grid.write(&mut self.composer),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn close_paragraph(&mut self) -> Result<(), Refusal> {
        let Some(paragraph) = self.paragraphs.pop() else { return Ok(()) };
        let Some(page) = paragraph.page else { return Ok(()) };
        if page > 0 {
            self.composer.page(page);
        }
        let closed = self.put(&paragraph);
        if page > 0 {
            self.composer.page(self.page);
        }
        closed
    }

    fn put(&mut self, paragraph: &Paragraph) -> Result<(), Refusal> {
        if let Some(grid) = self.grids.last_mut().filter(|grid| !grid.is_frame) {
            grid.put(&paragraph.text);
            return Ok(());
        }
        if paragraph.is_title && self.title.is_empty() && self.composer.bytes() == 0 {
            self.title = one_line(&paragraph.text);
            return Ok(());
        }
        match paragraph.level {
            Some(level) => self.composer.heading(level, &paragraph.text),
            None if paragraph.is_item => self.composer.block(&format!("- {}", paragraph.text.trim())),
            None => self.composer.block(paragraph.text.trim()),
        }
    }

    fn style(&mut self, style: &str) {
        let (level, is_title) = (self.styles.levels.get(style).copied(), self.styles.titles.contains(style));
        self.open(|paragraph| {
            paragraph.level = level;
            paragraph.is_title = is_title;
        });
    }

    /// What follows is on the next page.
    fn turn(&mut self) {
        if self.page > 0 {
            self.page += 1;
            self.composer.page(self.page);
        }
    }

    fn push(&mut self, text: &str) {
        let page = self.page;
        self.open(|paragraph| {
            if !text.trim().is_empty() {
                paragraph.page.get_or_insert(page);
            }
            paragraph.text.push_str(text);
        });
    }

    fn open(&mut self, change: impl FnOnce(&mut Paragraph)) {
        if let Some(paragraph) = self.paragraphs.last_mut() {
            change(paragraph);
        }
    }

    fn leave_grids(&mut self) -> Result<(), Refusal> {
        for grid in &mut self.grids {
            grid.leave(&mut self.composer)?;
        }
        Ok(())
    }
}
