//! Plain text: its title is a short first line above a blank one.

use crate::read::document::Parsed;

const TITLE_CHARACTERS_MAX: usize = 80;

/// Reads a text. A title that stands in it is taken out of it, as it counts by itself.
#[must_use]
pub fn read(text: &str) -> Parsed {
    let (title, body) = plain_title(text).unwrap_or_else(|| (String::new(), text.to_owned()));
    let text = first_with_words([&body, text]);
    Parsed { title, text, media_type: "text/plain".to_owned(), ..Parsed::default() }
}

/// The first of the texts that has words.
#[must_use]
pub fn first_with_words<const N: usize>(texts: [&str; N]) -> String {
    texts.into_iter().find(|text| !text.trim().is_empty()).unwrap_or_default().to_owned()
}

/// A short first line with a blank line after it that does not end as a sentence does, and the text after it.
fn plain_title(text: &str) -> Option<(String, String)> {
    let (first, rest) = without_blank_lines(text).split_once('\n')?;
    let (second, _) = rest.split_once('\n')?;
    let title = first.trim();
    let is_title = second.trim().is_empty()
        && title.chars().count() <= TITLE_CHARACTERS_MAX
        && !title.ends_with(['.', ',', ';', ':', '!', '?']);
    is_title.then(|| (title.to_owned(), without_blank_lines(rest).to_owned()))
}

/// The text from its first line with words on.
#[must_use]
pub fn without_blank_lines(mut text: &str) -> &str {
    while let Some((line, rest)) = text.split_once('\n')
        && line.trim().is_empty()
    {
        text = rest;
    }
    text
}

#[cfg(test)]
mod tests {
    use crate::read::plain::read;

    fn check(text: &str, title: &str, body: &str) {
        let document = read(text);
        assert_eq!((document.title.as_str(), document.text.as_str()), (title, body), "{text:?}");
    }

    #[test]
    fn the_title_of_plain_text_is_a_short_first_line_above_a_blank_one() {
        for (text, title, body) in [
            ("\nThe Wall\r\n\r\nA rock opera.", "The Wall", "A rock opera."),
            ("It is a sentence.\n\nMore.", "", "It is a sentence.\n\nMore."),
            ("One line\nand the next\n", "", "One line\nand the next\n"),
            ("One line", "", "One line"),
            ("Alone\n\n", "Alone", "Alone\n\n"),
        ] {
            check(text, title, body);
        }
        let long = format!("{}\n\nText", "x".repeat(81));
        check(&long, "", &long);
    }
}
