//! The letters of a page and where they stand: a device that draws nothing.

use std::collections::HashSet;

use hayro_interpret::font::{Glyph as Shape, GlyphRun};
use hayro_interpret::hayro_cmap::BfString;
use hayro_interpret::hayro_syntax::page::Page;
use hayro_interpret::kurbo::{Affine, BezPath, ParamCurve, PathSeg, Point};
use hayro_interpret::{BlendMode, ClipPath, Device, DrawMode, DrawProps, Image, ImageDrawProps, SoftMask};
use unicode_normalization::UnicodeNormalization;

use crate::read::pdf::cells::Rule;
use crate::read::pdf::layout::Glyph;

/// Letters of a page at most; a page of a newspaper has 50,000.
const GLYPHS_MAX: usize = 1 << 21;

/// Lines across a page at most.
const RULES_MAX: usize = 4096;

/// The least length of a line that parts rows.
const RULE_LENGTH: f64 = 16.0;

/// Strokes of a path at most that is looked at: more of them are a drawing.
const PATH_ELEMENTS_MAX: usize = 256;

/// The least size of a letter that someone can read.
const SIZE_MIN: f64 = 0.5;

/// The largest size of a letter: that of the largest page (ISO 32000-1, annex C).
const SIZE_MAX: f64 = 14_400.0;

/// The least weight of bold letters; 400 is that of plain ones.
const BOLD_WEIGHT: u32 = 600;

/// A device that notes letters and where they stand, and draws nothing.
pub struct Letters {
    /// The letters in the order in which they are drawn.
    pub glyphs: Vec<Glyph>,
    /// The lines across the page that are drawn, as those between the rows of a table.
    pub rules: Vec<Rule>,
    known: HashSet<(String, i64, i64)>,
    /// The page's width.
    pub width: f64,
    /// The page's height.
    pub height: f64,
}

impl Letters {
    /// No letters of this page yet.
    pub fn new(page: &Page<'_>) -> Letters {
        let (width, height) = page.render_dimensions();
        Letters {
            glyphs: Vec::new(),
            rules: Vec::new(),
            known: HashSet::new(),
            width: width.into(),
            height: height.into(),
        }
    }

    fn add(&mut self, text: BfString, transform: Affine, advance: f32, is_bold: bool) {
        let text = match text {
            BfString::Char(letter) => shown(letter),
            BfString::String(text) => text.chars().map(shown).collect(),
        };
        let (at, along) = (transform * Point::ZERO, transform * Point::new(1.0, 0.0) - transform * Point::ZERO);
        let size = 1000.0 * (transform * Point::new(0.0, 1.0) - transform * Point::ZERO).hypot();
        let is_inside = at.x > -size && at.y > -size && at.x < self.width + size && at.y < self.height + size;
        if self.glyphs.len() == GLYPHS_MAX || !is_inside || !(SIZE_MIN..=SIZE_MAX).contains(&size) {
            return;
        }
        // Letters that are drawn twice, to look bold or outlined, count once.
        #[expect(clippy::cast_possible_truncation, reason = "a place on a page, in quarters of its unit")]
        let place = ((at.x * 4.0) as i64, (at.y * 4.0) as i64);
        if text.trim().is_empty() || self.known.insert((text.clone(), place.0, place.1)) {
            let mut glyph = Glyph::new(text, (at.x, at.y), (along.x, along.y), size, f64::from(advance));
            glyph.is_bold = is_bold;
            self.glyphs.push(glyph);
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
    fn draw_path(&mut self, path: &BezPath, props: DrawProps<'a>, _: &DrawMode) {
        if path.elements().len() > PATH_ELEMENTS_MAX {
            return;
        }
        for segment in path.segments() {
            let (from, to) = (props.transform * segment.start(), props.transform * segment.end());
            let is_rule = matches!(segment, PathSeg::Line(_)) && (from.y - to.y).abs() <= 1.0;
            let is_long = (from.x - to.x).abs() >= RULE_LENGTH && from.x.is_finite() && to.x.is_finite();
            if is_rule && is_long && self.rules.len() < RULES_MAX {
                self.rules.push(Rule { y: from.y, left: from.x.min(to.x), right: from.x.max(to.x) });
            }
        }
    }

    fn push_clip_path(&mut self, _: &ClipPath) {}
    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'a>>, _: BlendMode) {}
    fn draw_image(&mut self, _: Image<'a, '_>, _: ImageDrawProps<'a>) {}
    fn pop_clip(&mut self) {}
    fn pop_transparency_group(&mut self) {}

    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, 'a>, props: DrawProps<'a>, _: &DrawMode) {
        // A run is of one font.
        let is_bold = run.glyphs().first().is_some_and(|glyph| is_bold(glyph));
        for glyph in run.glyphs() {
            let Some(text) = glyph.as_unicode() else { continue };
            let advance = match &**glyph {
                Shape::Outline(glyph) => glyph.advance_width(),
                Shape::Type3(glyph) => glyph.advance_width(),
            };
            self.add(text, props.transform * glyph.transform(), advance.unwrap_or(500.0), is_bold);
        }
    }
}

/// Whether a letter is bold. Fonts of type 1 do not tell.
fn is_bold(glyph: &Shape<'_>) -> bool {
    let Shape::Outline(glyph) = glyph else { return false };
    glyph.font_data().is_some_and(|font| {
        let name = font.postscript_name.unwrap_or_default().to_lowercase();
        font.weight.is_some_and(|weight| weight >= BOLD_WEIGHT)
            || ["bold", "black", "heavy"].iter().any(|word| name.contains(word))
    })
}
