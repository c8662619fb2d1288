//! HTML: its main content as blocks under headings, without navigation, scripts and what is hidden.

mod walk;

use encoding_rs::Encoding;

use crate::read::composer::{Composer, one_line};
use crate::read::document::{Parsed, Refusal};
use crate::read::html::walk::{Dialect, Found, Options, walk};
use crate::read::text::{self, Unreadable};

/// Bytes in which a page names its encoding.
const HEAD_BYTES: usize = 4096;

/// The main content counts alone where it is at least this share of all text: one in so many bytes.
const MAIN_SHARE: usize = 5;

/// Reads a page.
///
/// # Errors
/// [`Refusal`].
pub fn read(bytes: &[u8]) -> Result<Parsed, Refusal> {
    let parsed = read_text(&decode(bytes)?)?;
    if parsed.text.is_empty() && parsed.title.is_empty() {
        return Err(Refusal::NoWords { format: "HTML" });
    }
    Ok(parsed)
}

/// Reads a page that is text already, such as the body of a message.
///
/// # Errors
/// [`Refusal::TooLong`].
pub fn read_text(html: &str) -> Result<Parsed, Refusal> {
    let all = walk(html, Options::default(), Composer::default())?;
    let title = title(&all);
    let bytes = all.composer.bytes();
    // A heading that only says the title again would count twice.
    let options = Options { title: Some(title.clone()), is_main_only: all.has_main, ..Options::default() };
    let mut chosen = walk(html, options.clone(), Composer::default())?;
    if all.has_main && chosen.composer.bytes() * MAIN_SHARE < bytes {
        chosen = walk(html, Options { is_main_only: false, ..options }, Composer::default())?;
    }
    if chosen.composer.bytes() == 0 {
        // Nothing but navigation, or a part that is never closed.
        chosen = walk(html, Options { is_everything: true, ..Options::default() }, Composer::default())?;
    }
    let (text, parts) = chosen.composer.finish();
    Ok(Parsed { title, text, parts, media_type: "text/html".to_owned(), ..Parsed::default() })
}

/// The first heading where the page has no title or one that adds the name of the site to it.
fn title(walk: &Found) -> String {
    let title = one_line(&walk.title);
    match &walk.first_heading {
        Some(heading) if title.is_empty() || title.contains(heading.as_str()) => heading.clone(),
        _ => title,
    }
}

/// By a byte order mark, by what the page says, else by what its bytes tell.
fn decode(bytes: &[u8]) -> Result<String, Unreadable> {
    let is_marked = Encoding::for_bom(bytes).is_some() || bytes.contains(&0) || std::str::from_utf8(bytes).is_ok();
    let said = said_encoding(bytes.get(..bytes.len().min(HEAD_BYTES)).unwrap_or_default());
    match said.filter(|_| !is_marked) {
        Some(encoding) => Ok(encoding.decode_without_bom_handling(bytes).0.into_owned()),
        None => text::decode(bytes),
    }
}

/// What `<meta charset=…>`, `<meta … content="text/html; charset=…">` or `<?xml encoding=…?>` says.
fn said_encoding(head: &[u8]) -> Option<&'static Encoding> {
    let head = head.to_ascii_lowercase();
    [&b"charset="[..], b"encoding="].iter().find_map(|word| {
        let at = head.windows(word.len()).position(|window| window == *word)? + word.len();
        let rest = head.get(at..)?;
        let quotes = rest.iter().take_while(|byte| matches!(byte, b'"' | b'\'' | b' ')).count();
        let label = rest.get(quotes..)?;
        let end = label.iter().position(|byte| !(byte.is_ascii_alphanumeric() || b"-_:.".contains(byte)))?;
        Encoding::for_label(label.get(..end)?)
    })
}

/// Adds a chapter of a book, which is XHTML, to what is there.
///
/// # Errors
/// [`Refusal::TooLong`].
pub fn chapter(html: &str, composer: Composer) -> Result<Composer, Refusal> {
    Ok(walk(html, Options { dialect: Dialect::Xml, ..Options::default() }, composer)?.composer)
}

/// Adds the body of a message to what is there.
///
/// # Errors
/// [`Refusal::TooLong`].
pub fn body(html: &str, composer: Composer) -> Result<Composer, Refusal> {
    Ok(walk(html, Options::default(), composer)?.composer)
}

#[cfg(test)]
mod tests {
    use hedgerow::PartKind;

    use crate::read::html::{read, read_text};

    #[track_caller]
    fn check(html: &str, title: &str, text: &str) {
        let parsed = read_text(html).unwrap();
        assert_eq!((parsed.title.as_str(), parsed.text.as_str()), (title, text), "{html}");
    }

    #[test]
    fn main_content_stays_and_what_surrounds_it_is_left_out() {
        check(
            "<title>Gates - Site</title><nav>Home<nav>More</nav></nav><h1>Gates</h1><p>A  gate\n<b>op</b>ens.</p>\
             <script>if (a < b) {}</script><style>p {}</style><div hidden>x<div>y</div>z</div><p>Shut<br>it.<footer>©</footer>",
            "Gates",
            "A gate opens.\n\nShut\nit.",
        );
        check(
            "<title>T</title><div>Menu of the site</div><main><h2>Part</h2><p>Words of the main content.</p></main>Ads",
            "T",
            "Part\n\nWords of the main content.",
        );
        check("<nav>Only this", "", "Only this");
        check("<ul><li>One<li>Two</ul><pre>a\n  b</pre>", "", "- One\n\n- Two\n\na\n  b");
    }

    #[test]
    fn headings_are_paths_and_tables_are_parts() {
        let html = "<h1>Store</h1><h2>Files</h2><p>Text.</p><h3>Names</h3>\
             <table><caption>All names</caption><tr><th>Name<th>Bytes<tr><td>HEAD<td>64<tr><td>LOCK<td>0</table><h2>End</h2><p>Bye.";
        let parsed = read_text(html).unwrap();
        let parts: Vec<(&str, PartKind, &str)> = parsed
            .parts
            .iter()
            .map(|part| (part.heading.as_str(), part.kind, &parsed.text[part.range.clone()]))
            .collect();
        assert_eq!(parts[0], ("Files", PartKind::Text, "Files\n\nText."));
        assert_eq!(parts[1].0, "Files > Names");
        assert!(parts[1].2.starts_with("Names\n\nAll names\n\nTable with 2 rows."), "{}", parts[1].2);
        assert_eq!(parts[2], ("Files > Names", PartKind::Table, "Name | Bytes\nHEAD | 64\nLOCK | 0"));
        assert_eq!(parts[3], ("End", PartKind::Text, "End\n\nBye."));
    }

    #[test]
    fn tables_that_only_place_things_are_text() {
        check(
            "<table><tr><td>Left<td><table><tr><td>Inner<td>x</table><td>Right</table>",
            "",
            "Left\n\nInner\n\nx\n\nRight",
        );
        check("<table><tr><td><h2>Head</h2><p>One</p><p>Two</p></table>", "", "Head\n\nOne\n\nTwo");
    }

    #[test]
    fn cells_over_several_rows_and_columns_keep_the_columns_apart() {
        let parsed = read_text("<table><tr><th>A<th>B<th>C<tr><td rowspan=2>1<td colspan=2>2<tr><td>3<td>4</table>");
        assert!(parsed.unwrap().text.ends_with("A | B | C\n1 | 2\n1 | 3 | 4"));
    }

    #[test]
    fn the_encoding_is_that_which_the_page_names() {
        let page = b"<meta charset='windows-1251'><p>\xcf\xf0\xe8\xe2\xe5\xf2</p>";
        assert_eq!(read(page).unwrap().text, "Привет");
        let page = "<meta charset=latin1><p>Grüße</p>";
        assert_eq!(read(page.as_bytes()).unwrap().text, "Grüße");
    }

    #[test]
    fn pages_without_words_are_refused() {
        assert!(read(b"<html><body><img src=x></body></html>").unwrap_err().to_string().contains("no words"));
        assert!(read(b"").is_err());
    }

    #[test]
    fn deep_nesting_takes_no_stack() {
        for tag in ["<div>", "<table><tr><td>", "<b>", "<nav>", "<h1>", "<pre>"] {
            let html = format!("{}deep", tag.repeat(20_000));
            assert!(read_text(&html).unwrap().text.contains("deep"), "{tag}");
        }
    }
}
