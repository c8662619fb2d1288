//! PDF: the words of each page in reading order, under the headings that larger letters make.

mod layout;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use hayro_interpret::font::GlyphRun;
use hayro_interpret::hayro_cmap::BfString;
use hayro_interpret::hayro_syntax::page::Page;
use hayro_interpret::hayro_syntax::{DecryptionError, LoadPdfError, Pdf};
use hayro_interpret::kurbo::{Affine, BezPath, Point, Rect};
use hayro_interpret::{
    BlendMode, ClipPath, Context, Device, DrawMode, DrawProps, Image, ImageDrawProps, InterpreterCache,
    InterpreterSettings, RenderContent, SoftMask, interpret_page,
};

use unicode_normalization::UnicodeNormalization;

use crate::read::composer::Composer;
use crate::read::document::{Parsed, Refusal};
use crate::read::pdf::layout::{Glyph, Line};

const FORMAT: &str = "PDF";

/// Letters of a page at most; a page of a newspaper has 50,000.
const GLYPHS_MAX: usize = 1 << 21;

/// Reads a file: with the empty password, then with the one that is given.
///
/// # Errors
/// [`Refusal`].
pub fn read(bytes: &[u8], password: Option<&str>) -> Result<Parsed, Refusal> {
    let pdf = open(bytes, password)?;
    let settings = InterpreterSettings {
        warning_sink: Arc::new(|_| {}),
        render_content: RenderContent::all(),
        ..InterpreterSettings::default()
    };
    let cache = InterpreterCache::new();
    let mut pages: Vec<Vec<Line>> = Vec::new();
    for page in pdf.pages().iter() {
        let mut letters = Letters::new(page);
        let frame = Rect::new(0.0, 0.0, letters.width, letters.height);
        let transform = Affine::new(page.initial_transform(true).as_coeffs());
        let mut context = Context::new(transform, frame, &cache, pdf.xref(), settings.clone());
        interpret_page(page, &mut context, &mut letters);
        pages.push(layout::lines(letters.glyphs));
    }
    if pages.iter().flatten().all(|line| line.text.trim().is_empty()) {
        return Err(Refusal::NoTextLayer { pages: pages.len() });
    }
    let outline = Outline::of(&pages);
    let mut composer = Composer::default();
    for (number, lines) in (1..).zip(&pages) {
        composer.page(number);
        outline.write(lines, &mut composer)?;
    }
    let named = pdf.metadata().title.as_deref().map(text_string).filter(|title| is_title(title));
    let title = named.or_else(|| outline.title(&pages)).unwrap_or_default();
    let mut metadata = serde_json::Map::new();
    if let Some(author) = pdf.metadata().author.as_deref().map(text_string).filter(|author| !author.trim().is_empty()) {
        metadata.insert("author".to_owned(), author.into());
    }
    metadata.insert("pages".to_owned(), pages.len().into());
    let (text, parts) = composer.finish();
    Ok(Parsed { title, text, parts, metadata, media_type: "application/pdf".to_owned() })
}

fn open(bytes: &[u8], password: Option<&str>) -> Result<Pdf, Refusal> {
    let data = Arc::new(bytes.to_vec());
    let refused = |error| match error {
        LoadPdfError::Decryption(DecryptionError::PasswordProtected) => {
            Refusal::Password { format: FORMAT, is_given: password.is_some() }
        }
        LoadPdfError::Decryption(_) => Refusal::Encryption { format: FORMAT },
        LoadPdfError::Invalid => {
            Refusal::Broken { format: FORMAT, what: "it has no pages that can be found".to_owned() }
        }
    };
    let empty = Pdf::new(data.clone());
    match (empty, password) {
        (Err(LoadPdfError::Decryption(_)), Some(password)) => Pdf::new_with_password(data, password).map_err(refused),
        (opened, _) => opened.map_err(refused),
    }
}

/// A device that notes letters and where they stand, and draws nothing.
struct Letters {
    glyphs: Vec<Glyph>,
    known: HashSet<(String, i64, i64)>,
    width: f64,
    height: f64,
}

impl Letters {
    fn new(page: &Page<'_>) -> Letters {
        let (width, height) = page.render_dimensions();
        Letters { glyphs: Vec::new(), known: HashSet::new(), width: width.into(), height: height.into() }
    }

    fn add(&mut self, text: BfString, transform: Affine, advance: f32) {
        let text = match text {
            BfString::Char(letter) => shown(letter),
            BfString::String(text) => text.chars().map(shown).collect(),
        };
        let (at, along) = (transform * Point::ZERO, transform * Point::new(1.0, 0.0) - transform * Point::ZERO);
        let size = 1000.0 * (transform * Point::new(0.0, 1.0) - transform * Point::ZERO).hypot();
        let is_inside = at.x > -size && at.y > -size && at.x < self.width + size && at.y < self.height + size;
        if self.glyphs.len() == GLYPHS_MAX || !is_inside || !size.is_finite() || size < 0.5 {
            return;
        }
        // Letters that are drawn twice, to look bold or outlined, count once.
        #[expect(clippy::cast_possible_truncation, reason = "a place on a page, in quarters of its unit")]
        let place = ((at.x * 4.0) as i64, (at.y * 4.0) as i64);
        if text.trim().is_empty() || self.known.insert((text.clone(), place.0, place.1)) {
            self.glyphs.push(Glyph::new(text, (at.x, at.y), (along.x, along.y), size, f64::from(advance)));
        }
    }
}

/// What a letter is to a reader: ligatures are the letters that they join; symbol fonts have their letters where none are,
/// and the most common are marks of lists.
fn shown(letter: char) -> String {
    match letter {
        '\u{FB00}'..='\u{FB06}' => letter.nfkc().collect(),
        '\u{F0B7}' | '\u{F0A7}' => '•'.into(),
        '\u{E000}'..='\u{F8FF}' | '\0'..='\u{1F}' | '\u{A0}' | '\u{FFFD}' => ' '.into(),
        letter => letter.into(),
    }
}

impl<'a> Device<'a> for Letters {
    fn draw_path(&mut self, _: &BezPath, _: DrawProps<'a>, _: &DrawMode) {}
    fn push_clip_path(&mut self, _: &ClipPath) {}
    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'a>>, _: BlendMode) {}
    fn draw_image(&mut self, _: Image<'a, '_>, _: ImageDrawProps<'a>) {}
    fn pop_clip(&mut self) {}
    fn pop_transparency_group(&mut self) {}

    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, 'a>, props: DrawProps<'a>, _: &DrawMode) {
        for glyph in run.glyphs() {
            let Some(text) = glyph.as_unicode() else { continue };
            let advance = match &**glyph {
                hayro_interpret::font::Glyph::Outline(glyph) => glyph.advance_width(),
                hayro_interpret::font::Glyph::Type3(glyph) => glyph.advance_width(),
            };
            self.add(text, props.transform * glyph.transform(), advance.unwrap_or(500.0));
        }
    }
}

/// A text of the document's own data: UTF-16 or UTF-8 with a mark, else bytes that are nearly Latin-1.
fn text_string(bytes: &[u8]) -> String {
    let text = match bytes {
        [0xFE, 0xFF, rest @ ..] => encoding_rs::UTF_16BE.decode_without_bom_handling(rest).0,
        [0xFF, 0xFE, rest @ ..] => encoding_rs::UTF_16LE.decode_without_bom_handling(rest).0,
        [0xEF, 0xBB, 0xBF, rest @ ..] => String::from_utf8_lossy(rest),
        bytes => encoding_rs::WINDOWS_1252.decode_without_bom_handling(bytes).0,
    };
    text.chars().filter(|letter| !letter.is_control()).collect()
}

/// Whether a title was given by someone, and not by the program that made the file.
fn is_title(title: &str) -> bool {
    let lower = title.trim().to_lowercase();
    let is_file =
        [".doc", ".docx", ".dvi", ".tex", ".pdf", ".indd", ".qxd", ".ps", ".fm"].iter().any(|end| lower.ends_with(end));
    !lower.is_empty() && !is_file && !lower.starts_with("microsoft word") && !lower.starts_with("untitled")
}

/// The sizes of letters that make headings.
struct Outline {
    body: i64,
    headings: Vec<i64>,
}

/// Characters of a heading at most.
const HEADING_CHARACTERS: usize = 160;

/// Headings that are no titles.
const CONTENTS: [&str; 4] = ["contents", "table of contents", "abstract", "index"];

impl Outline {
    fn of(pages: &[Vec<Line>]) -> Outline {
        let mut letters: BTreeMap<i64, usize> = BTreeMap::new();
        for line in pages.iter().flatten() {
            *letters.entry(half_points(line.size)).or_default() += line.text.chars().count();
        }
        // Of sizes that are as common the smaller one, so that the same file always gives the same text.
        let body = letters.iter().max_by_key(|(size, count)| (**count, -**size)).map_or(0, |(size, _)| *size);
        let mut headings: Vec<i64> = letters.into_keys().filter(|size| is_larger(*size, body)).collect();
        headings.reverse();
        Outline { body, headings }
    }

    fn level(&self, line: &Line) -> Option<u8> {
        let size = half_points(line.size);
        let words = line.text.chars().filter(|letter| letter.is_alphabetic()).count();
        let is_heading = is_larger(size, self.body)
            && words > 1
            && !line.is_turned
            && line.text.chars().count() <= HEADING_CHARACTERS;
        let rank = self.headings.iter().position(|heading| *heading == size).filter(|_| is_heading)?;
        Some(u8::try_from(rank + 1).unwrap_or(u8::MAX))
    }

    /// The words in the largest letters of the first page.
    fn title(&self, pages: &[Vec<Line>]) -> Option<String> {
        let lines = pages.first()?;
        let level = |line: &Line| self.level(line).filter(|_| !CONTENTS.contains(&line.text.to_lowercase().as_str()));
        let largest = lines.iter().filter_map(level).min();
        let is_largest = |line: &&Line| largest.is_some() && level(line) == largest;
        let words: Vec<&str> = lines
            .iter()
            .skip_while(|line| !is_largest(line))
            .take_while(is_largest)
            .map(|line| line.text.as_str())
            .collect();
        Some(words.join(" ")).filter(|title| !title.is_empty() && title.chars().count() <= HEADING_CHARACTERS)
    }

    fn write(&self, lines: &[Line], composer: &mut Composer) -> Result<(), Refusal> {
        let mut rest = lines.iter().peekable();
        while let Some(line) = rest.next() {
            let level = self.level(line);
            let mut block = line.text.clone();
            let is_next = |next: &&Line| self.level(next) == level && (!next.is_paragraph || level.is_some());
            while let Some(next) = rest.next_if(is_next) {
                layout::join(&mut block, &next.text);
            }
            match level {
                Some(level) => composer.heading(level, &block)?,
                None => composer.block(&block)?,
            }
        }
        Ok(())
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the size of a letter is a small number")]
fn half_points(size: f64) -> i64 {
    (size * 2.0).round() as i64
}

fn is_larger(size: i64, body: i64) -> bool {
    size * 100 >= body * 108 && size > body
}
