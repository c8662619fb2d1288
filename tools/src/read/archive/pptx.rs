//! PPTX: the slides in their order, each a page under its title, with tables and notes.

use crate::read::archive::xml::{Node, Tag, Xml};
use crate::read::archive::{Archive, docx, resolved};
use crate::read::composer::Composer;
use crate::read::document::{Parsed, Refusal};
use crate::read::grid::Grid;

const FORMAT: &str = "PPTX";

/// Reads a presentation.
///
/// # Errors
/// [`Refusal`].
pub fn read(bytes: &[u8]) -> Result<Parsed, Refusal> {
    let mut archive = Archive::open(bytes, FORMAT)?;
    let mut composer = Composer::default();
    for (number, slide) in (1..).zip(slides(&mut archive)?) {
        let Some(text) = archive.text(&slide)? else { continue };
        composer.page(number);
        composer.under(1, "");
        let mut walk = Walk { composer, ..Walk::default() };
        walk.run(&text)?;
        composer = walk.composer;
        let related = relations(&mut archive, &slide)?;
        let notes = related.iter().find(|(_, kind, _)| kind.ends_with("/notesSlide"));
        if let Some(notes) = notes.map(|(_, _, target)| archive.text(target)).transpose()?.flatten() {
            let mut walk = Walk { composer, is_notes: true, ..Walk::default() };
            walk.run(&notes)?;
            composer = walk.composer;
        }
    }
    let (title, metadata) = docx::properties(&mut archive, "docProps/core.xml", FORMAT)?;
    let (text, parts) = composer.finish();
    let media_type = "application/vnd.openxmlformats-officedocument.presentationml.presentation".to_owned();
    Ok(Parsed { title, text, parts, metadata, media_type })
}

/// The paths of the slides, in the order of the presentation.
fn slides(archive: &mut Archive<'_>) -> Result<Vec<String>, Refusal> {
    let main = "ppt/presentation.xml";
    let text = archive.need(main)?;
    let related = relations(archive, main)?;
    let mut xml = Xml::new(&text, FORMAT);
    let mut slides = Vec::new();
    while let Some(node) = xml.next()? {
        let Node::Start(tag) = node else { continue };
        if tag.name == "sldId" {
            // Of its two ids the one of the relation begins with letters.
            let found = related.iter().find(|(id, ..)| tag.attributes("id").any(|value| value == id));
            slides.extend(found.map(|(_, _, target)| target.clone()));
        }
    }
    Ok(slides)
}

/// Id, kind and target of what a file of the archive refers to.
fn relations(archive: &mut Archive<'_>, of: &str) -> Result<Vec<(String, String, String)>, Refusal> {
    let (folder, name) = of.rsplit_once('/').unwrap_or(("", of));
    let Some(text) = archive.text(&format!("{folder}/_rels/{name}.rels"))? else { return Ok(Vec::new()) };
    let mut xml = Xml::new(&text, FORMAT);
    let mut related = Vec::new();
    while let Some(node) = xml.next()? {
        let Node::Start(tag) = node else { continue };
        if let Some(target) = resolved(of, tag.attribute("Target")).filter(|_| tag.name == "Relationship") {
            related.push((tag.attribute("Id").to_owned(), tag.attribute("Type").to_owned(), target));
        }
    }
    Ok(related)
}

#[derive(Debug, Default)]
struct Walk {
    composer: Composer,
    is_notes: bool,
    /// What the shape is for, such as `title`, `sldNum`.
    placeholder: String,
    line: String,
    is_text: bool,
    grid: Option<Grid>,
}

impl Walk {
    fn run(&mut self, text: &str) -> Result<(), Refusal> {
        let mut xml = Xml::new(text, FORMAT);
        while let Some(node) = xml.next()? {
            match node {
                Node::Start(tag) => self.start(&tag)?,
                Node::End(name) => self.end(&name)?,
                Node::Text(text) if self.is_text => self.line.push_str(&text),
                Node::Text(_) => {}
            }
        }
        Ok(())
    }

    fn start(&mut self, tag: &Tag) -> Result<(), Refusal> {
        match tag.name.as_str() {
            "sp" => self.placeholder.clear(),
            "ph" => tag.attribute("type").clone_into(&mut self.placeholder),
            "t" => self.is_text = true,
            "br" => self.line.push('\n'),
            "tbl" => self.grid = Some(Grid::default()),
            "tr" => self.grid.as_mut().map_or((), Grid::row),
            "tc" => {
                let columns = tag.attribute("gridSpan").parse().unwrap_or(1).clamp(1, 100);
                self.grid.as_mut().map_or(Ok(()), |grid| grid.cell(false, columns, 1))?;
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, name: &str) -> Result<(), Refusal> {
        match name {
            "t" => self.is_text = false,
            "p" => {
                let line = std::mem::take(&mut self.line);
                if let Some(grid) = &mut self.grid {
                    grid.put(&line);
                    return Ok(());
                }
                return match self.placeholder.as_str() {
                    "sldNum" | "dt" | "ftr" | "hdr" | "sldImg" => Ok(()),
                    "title" | "ctrTitle" if !self.is_notes => self.composer.heading(1, &line),
                    _ => self.composer.block(line.trim()),
                };
            }
            "tbl" => {
                if let Some(grid) = self.grid.take() {
                    grid.write(&mut self.composer)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}
