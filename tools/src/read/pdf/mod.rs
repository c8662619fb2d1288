//! PDF: the words of each page in reading order, under the headings of its outline or those that larger letters make.

mod cells;
mod headings;
mod layout;
mod letters;
mod outline;
mod owner;
mod places;
mod running;

use std::sync::Arc;

use hayro_interpret::hayro_syntax::{DecryptionError, LoadPdfError, Pdf};
use hayro_interpret::kurbo::{Affine, Rect};
use hayro_interpret::{Context, InterpreterCache, InterpreterSettings, RenderContent, interpret_page};

use crate::read::composer::Composer;
use crate::read::document::{Parsed, Refusal};
use crate::read::pdf::headings::{Headings, Sizes};
use crate::read::pdf::layout::Page;
use crate::read::pdf::letters::Letters;

const FORMAT: &str = "PDF";

/// Reads a file: with the empty password, then with the one that is given, be it the user's or the owner's.
///
/// # Errors
/// [`Refusal`].
pub fn read(bytes: &[u8], password: Option<&str>) -> Result<Parsed, Refusal> {
    let pdf = open(bytes, password)?;
    let mut pages = pages(&pdf);
    if pages.iter().flat_map(|page| &page.lines).all(|line| line.text.trim().is_empty()) {
        return Err(Refusal::NoTextLayer { pages: pages.len() });
    }
    running::leave_out(&mut pages);
    let sizes = Sizes::of(&pages);
    let named = pdf.metadata().title.as_deref().map(text_string).filter(|title| is_title(title));
    let title = named.or_else(|| sizes.title(&pages)).unwrap_or_default();
    let mut composer = Composer::default();
    Headings::of(&pages, sizes, outline::bookmarks(&pdf)).write(&pages, &mut composer)?;
    let mut metadata = serde_json::Map::new();
    if let Some(author) = pdf.metadata().author.as_deref().map(text_string).filter(|author| !author.trim().is_empty()) {
        metadata.insert("author".to_owned(), author.into());
    }
    metadata.insert("pages".to_owned(), pages.len().into());
    let (text, parts) = composer.finish();
    Ok(Parsed { title, text, parts, metadata, media_type: "application/pdf".to_owned() })
}

fn pages(pdf: &Pdf) -> Vec<Page> {
    let settings = InterpreterSettings {
        warning_sink: Arc::new(|_| {}),
        render_content: RenderContent::all(),
        ..InterpreterSettings::default()
    };
    let cache = InterpreterCache::new();
    let read = |page| {
        let mut letters = Letters::new(page);
        let frame = Rect::new(0.0, 0.0, letters.width, letters.height);
        let transform = Affine::new(page.initial_transform(true).as_coeffs());
        let mut context = Context::new(transform, frame, &cache, pdf.xref(), settings.clone());
        interpret_page(page, &mut context, &mut letters);
        Page { height: letters.height, lines: layout::lines(letters.glyphs, &letters.rules) }
    };
    pdf.pages().iter().map(read).collect()
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
    let opened = match (Pdf::new(data.clone()), password) {
        (Err(LoadPdfError::Decryption(_)), Some(password)) => {
            let mut opened = Pdf::new_with_password(data.clone(), password);
            if matches!(opened, Err(LoadPdfError::Decryption(DecryptionError::PasswordProtected))) {
                let users = owner::user_passwords(bytes, password);
                let by_owner = users.iter().find_map(|user| Pdf::new_with_password(data.clone(), user).ok());
                opened = by_owner.map_or(opened, Ok);
            }
            opened
        }
        (opened, _) => opened,
    };
    opened.map_err(refused)
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
