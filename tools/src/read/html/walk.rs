//! A walk over the tags of a page, one by one: no tree is built, so that no nesting is too deep.

use std::collections::BTreeMap;

use html5gum::emitters::default::DefaultEmitter;
use html5gum::{HtmlString, Spanned, Token, Tokenizer};

use crate::read::composer::{Composer, one_line};
use crate::read::document::Refusal;
use crate::read::grid::Grid;

/// Whether the text of scripts and titles may hold tags, as it does in XML.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// HTML.
    #[default]
    Html,
    /// XHTML.
    Xml,
}

/// What a walk looks for.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// HTML or XHTML.
    pub dialect: Dialect,
    /// Whether only what is marked as main content counts.
    pub is_main_only: bool,
    /// Whether navigation and the like count too.
    pub is_everything: bool,
    /// The title, when known: a first heading that says the same is left out.
    pub title: Option<String>,
}

/// What a walk found.
#[derive(Debug, Default)]
pub struct Found {
    /// The content.
    pub composer: Composer,
    /// What `<title>` says.
    pub title: String,
    /// The first heading of the highest level.
    pub first_heading: Option<String>,
    /// Whether something is marked as main content.
    pub has_main: bool,
}

/// Walks over a page and adds its content to what is there.
///
/// # Errors
/// [`Refusal::TooLong`].
pub fn walk(html: &str, options: Options, composer: Composer) -> Result<Found, Refusal> {
    let mut walk = Walk { options, found: Found { composer, ..Found::default() }, ..Walk::default() };
    walk.run(html)?;
    Ok(walk.found)
}

#[derive(Debug, Default)]
struct Walk {
    options: Options,
    found: Found,
    line: String,
    is_item: bool,
    is_title: bool,
    is_caption: bool,
    heading: Option<u8>,
    pre: usize,
    main: usize,
    articles: usize,
    skipped: Option<(Vec<u8>, usize)>,
    grids: Vec<Grid>,
}

type Attributes = BTreeMap<HtmlString, Spanned<HtmlString, ()>>;

/// Tables in tables that are told apart; deeper ones are text.
const GRIDS_MAX: usize = 16;

/// Elements whose text is no content anywhere.
const NEVER: [&str; 13] = [
    "script", "style", "noscript", "template", "svg", "iframe", "object", "select", "button", "canvas", "audio",
    "video", "textarea",
];

/// Elements that surround the content.
const AROUND: [&str; 3] = ["nav", "footer", "aside"];

/// Roles of elements that surround the content.
const ROLES_AROUND: [&str; 7] = ["navigation", "banner", "contentinfo", "search", "complementary", "menu", "dialog"];

/// Classes and ids of navigation in the output of common generators: Sphinx, `DocBook`, mdBook.
const NAMES_AROUND: [&str; 9] = [
    "navheader",
    "navfooter",
    "sphinxsidebar",
    "related",
    "headerlink",
    "skip-link",
    "sidebar",
    "menu-bar",
    "theme-popup",
];

/// Elements that may be left out as a whole by an attribute: those whose end tag is always written.
const CLOSED: [&str; 10] = ["div", "section", "nav", "ul", "ol", "header", "table", "span", "a", "form"];

/// Elements that begin a block and end one.
const BLOCKS: [&str; 32] = [
    "p",
    "div",
    "section",
    "article",
    "main",
    "header",
    "footer",
    "nav",
    "aside",
    "ul",
    "ol",
    "li",
    "dl",
    "dt",
    "dd",
    "blockquote",
    "pre",
    "figure",
    "figcaption",
    "address",
    "details",
    "summary",
    "fieldset",
    "form",
    "hr",
    "table",
    "caption",
    "thead",
    "tbody",
    "body",
    "center",
    "legend",
];

impl Walk {
    fn run(&mut self, html: &str) -> Result<(), Refusal> {
        let mut emitter = DefaultEmitter::default();
        emitter.naively_switch_states(self.options.dialect == Dialect::Html);
        for token in Tokenizer::new_with_emitter(html, emitter) {
            let Ok(token) = token;
            match token {
                Token::StartTag(tag) => {
                    self.start(&tag.name, &tag.attributes)?;
                    if tag.self_closing && self.options.dialect == Dialect::Xml {
                        self.end(&tag.name)?;
                    }
                }
                Token::EndTag(tag) => self.end(&tag.name)?,
                Token::String(text) => self.text(&String::from_utf8_lossy(&text)),
                Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
            }
        }
        while !self.grids.is_empty() {
            self.end_table()?;
        }
        self.flush()
    }

    fn start(&mut self, name: &[u8], attributes: &Attributes) -> Result<(), Refusal> {
        if let Some((skipped, depth)) = &mut self.skipped {
            if skipped.as_slice() == name {
                *depth += 1;
            }
            return Ok(());
        }
        let name = std::str::from_utf8(name).unwrap_or_default();
        if self.is_left_out(name, attributes) {
            self.skipped = Some((name.as_bytes().to_vec(), 1));
            return Ok(());
        }
        if name == "main" || attribute(attributes, b"role") == "main" {
            self.found.has_main = true;
            // Its end is that of an element of the same name; `main` inside of it is not counted.
            self.main += 1;
        } else if self.main > 0 && name == "div" {
            self.main += 1;
        }
        self.articles += usize::from(name == "article");
        match name {
            "title" => self.is_title = true,
            "br" => self.line.push('\n'),
            "table" => return self.start_table(),
            "tr" | "td" | "th" if !self.grids.is_empty() => return self.start_cell(name, attributes),
            _ => {}
        }
        if let Some(level) = heading_level(name) {
            self.flush()?;
            self.leave_grids()?;
            self.heading = Some(level);
        } else if BLOCKS.contains(&name) {
            self.flush()?;
            self.pre += usize::from(name == "pre");
            self.is_item = name == "li";
            self.is_caption = name == "caption";
        }
        Ok(())
    }

    fn end(&mut self, name: &[u8]) -> Result<(), Refusal> {
        if let Some((skipped, depth)) = &mut self.skipped {
            if skipped.as_slice() == name {
                *depth -= 1;
                if *depth == 0 {
                    self.skipped = None;
                }
            }
            return Ok(());
        }
        let name = std::str::from_utf8(name).unwrap_or_default();
        match name {
            "title" => self.is_title = false,
            "table" => {
                self.flush()?;
                self.end_table()?;
            }
            "td" | "th" | "tr" if !self.grids.is_empty() => self.flush()?,
            _ if heading_level(name).is_some() || BLOCKS.contains(&name) => self.flush()?,
            _ => {}
        }
        match name {
            "caption" => self.is_caption = false,
            "pre" => self.pre = self.pre.saturating_sub(1),
            "main" | "div" => self.main = self.main.saturating_sub(1),
            "article" => self.articles = self.articles.saturating_sub(1),
            _ => {}
        }
        Ok(())
    }

    fn text(&mut self, text: &str) {
        if self.skipped.is_some() {
            return;
        }
        if self.is_title {
            self.found.title.push_str(text);
        } else if self.pre > 0 && self.heading.is_none() {
            self.line.push_str(text);
        } else {
            for (position, word) in text.split(char::is_whitespace).enumerate() {
                if position > 0 && !self.line.is_empty() && !self.line.ends_with([' ', '\n']) {
                    self.line.push(' ');
                }
                self.line.push_str(word);
            }
        }
    }

    fn is_left_out(&self, name: &str, attributes: &Attributes) -> bool {
        if NEVER.contains(&name) {
            return true;
        }
        if self.options.is_everything || self.options.dialect == Dialect::Xml {
            return false;
        }
        let is_site_header = name == "header" && self.main == 0 && self.articles == 0;
        if AROUND.contains(&name) || is_site_header {
            return true;
        }
        if attributes.is_empty() || !CLOSED.contains(&name) {
            return false;
        }
        let style = attribute(attributes, b"style").replace(' ', "");
        attributes.contains_key(&b"hidden"[..])
            || style.contains("display:none")
            || ROLES_AROUND.contains(&attribute(attributes, b"role"))
            || NAMES_AROUND.contains(&attribute(attributes, b"id"))
            || attribute(attributes, b"class").split_whitespace().any(|class| NAMES_AROUND.contains(&class))
    }

    /// Writes what stands since the last block: into the cell that it is in, as a heading, or as a paragraph.
    fn flush(&mut self) -> Result<(), Refusal> {
        let line = std::mem::take(&mut self.line);
        let heading = self.heading.take();
        let is_item = std::mem::take(&mut self.is_item);
        if line.trim().is_empty() {
            // The words of an item may stand in a block of its own.
            self.is_item = is_item;
            return Ok(());
        }
        if let Some(grid) = self.grids.last_mut().filter(|grid| !grid.is_frame && !self.is_caption) {
            grid.put(&line);
            return Ok(());
        }
        if self.options.is_main_only && self.main == 0 {
            return Ok(());
        }
        match heading {
            Some(level) => {
                let words = one_line(&line);
                if level == 1 && self.found.first_heading.is_none() {
                    self.found.first_heading = Some(words.clone());
                }
                if level == 1 && self.options.title.as_deref() == Some(words.as_str()) {
                    self.options.title = None;
                    self.found.composer.under(level, "");
                    return Ok(());
                }
                self.found.composer.heading(level, &words)
            }
            None if self.pre > 0 => self.found.composer.block(&line),
            None if is_item => self.found.composer.block(&format!("- {}", line.trim())),
            None => self.found.composer.block(line.trim()),
        }
    }

    fn start_table(&mut self) -> Result<(), Refusal> {
        self.flush()?;
        self.leave_grids()?;
        if self.grids.len() < GRIDS_MAX {
            self.grids.push(Grid::default());
        }
        Ok(())
    }

    /// A table around a table or a heading only places things.
    fn leave_grids(&mut self) -> Result<(), Refusal> {
        let mut unread = Composer::default();
        let is_counted = !self.options.is_main_only || self.main > 0;
        let composer = if is_counted { &mut self.found.composer } else { &mut unread };
        self.grids.iter_mut().try_for_each(|grid| grid.leave(composer))
    }

    fn start_cell(&mut self, name: &str, attributes: &Attributes) -> Result<(), Refusal> {
        self.flush()?;
        self.is_caption = false;
        let Some(grid) = self.grids.last_mut() else { return Ok(()) };
        let span = |name: &[u8]| attribute(attributes, name).trim().parse().unwrap_or(1).clamp(1, 100);
        match name {
            "tr" => grid.row(),
            _ => grid.cell(name == "th", span(b"colspan"), span(b"rowspan"))?,
        }
        Ok(())
    }

    fn end_table(&mut self) -> Result<(), Refusal> {
        let Some(grid) = self.grids.pop().filter(|grid| !grid.is_frame) else { return Ok(()) };
        if self.options.is_main_only && self.main == 0 {
            return Ok(());
        }
        grid.write(&mut self.found.composer)
    }
}

fn attribute<'a>(attributes: &'a Attributes, name: &[u8]) -> &'a str {
    attributes.get(name).map_or("", |value| std::str::from_utf8(value).unwrap_or_default())
}

fn heading_level(name: &str) -> Option<u8> {
    match name.as_bytes() {
        [b'h', level @ b'1'..=b'6'] => Some(level - b'0'),
        _ => None,
    }
}
