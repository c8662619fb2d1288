//! RTF: its running text, paragraph by paragraph, without fonts, pictures and fields' instructions.

use encoding_rs::{Encoding, WINDOWS_1252};

use crate::read::archive::broken;
use crate::read::composer::Composer;
use crate::read::document::{Parsed, Refusal};
use crate::read::table::{Header, Table};

const FORMAT: &str = "RTF";

/// Groups in groups at most.
const DEPTH_MAX: usize = 1000;

/// Destinations that hold no text of the document.
const HIDDEN: [&str; 20] = [
    "fonttbl",
    "colortbl",
    "stylesheet",
    "info",
    "pict",
    "object",
    "header",
    "footer",
    "headerl",
    "headerr",
    "headerf",
    "footerl",
    "footerr",
    "footerf",
    "fldinst",
    "listtable",
    "listoverridetable",
    "themedata",
    "datastore",
    "generator",
];

#[derive(Clone, Copy, Debug)]
struct Group {
    is_hidden: bool,
    /// Characters that stand for one of `\u`, for programs that do not know it.
    fallback: usize,
}

#[derive(Debug)]
struct Walk {
    composer: Composer,
    line: String,
    groups: Vec<Group>,
    group: Group,
    /// Bytes in the code page that are not decoded yet.
    bytes: Vec<u8>,
    encoding: &'static Encoding,
    skipped: usize,
    high: Option<u16>,
    level: Option<u8>,
    cells: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// Reads a document.
///
/// # Errors
/// [`Refusal`].
pub fn read(bytes: &[u8]) -> Result<Parsed, Refusal> {
    if !bytes.starts_with(b"{\\rtf") {
        return Err(broken(FORMAT, "it does not begin with {\\rtf"));
    }
    let mut walk = Walk {
        composer: Composer::default(),
        line: String::new(),
        groups: Vec::new(),
        group: Group { is_hidden: false, fallback: 1 },
        bytes: Vec::new(),
        encoding: WINDOWS_1252,
        skipped: 0,
        high: None,
        level: None,
        cells: Vec::new(),
        rows: Vec::new(),
    };
    walk.run(bytes)?;
    let (text, parts) = walk.composer.finish();
    Ok(Parsed { text, parts, media_type: "application/rtf".to_owned(), ..Parsed::default() })
}

impl Walk {
    fn run(&mut self, mut rest: &[u8]) -> Result<(), Refusal> {
        while let [byte, after @ ..] = rest {
            rest = after;
            match byte {
                b'{' => {
                    if self.groups.len() == DEPTH_MAX {
                        return Err(broken(FORMAT, &format!("groups nest more than {DEPTH_MAX} deep")));
                    }
                    self.groups.push(self.group);
                }
                b'}' => {
                    self.decode();
                    match self.groups.pop() {
                        Some(group) => self.group = group,
                        None => break,
                    }
                }
                b'\\' => rest = self.control(after)?,
                b'\r' | b'\n' => {}
                byte => self.byte(*byte),
            }
        }
        self.paragraph()
    }

    /// A control word or sign; what comes after it.
    fn control<'b>(&mut self, rest: &'b [u8]) -> Result<&'b [u8], Refusal> {
        let letters = rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count().min(32);
        let (word, after) = rest.split_at(letters);
        if word.is_empty() {
            return Ok(self.sign(rest));
        }
        let minus = usize::from(after.first() == Some(&b'-'));
        let digits = after.iter().skip(minus).take_while(|byte| byte.is_ascii_digit()).count().min(10);
        let (number, after) = after.split_at(if digits == 0 { 0 } else { minus + digits });
        let number: Option<i64> = std::str::from_utf8(number).ok().and_then(|digits| digits.parse().ok());
        let after = after.strip_prefix(b" ").unwrap_or(after);
        let word = std::str::from_utf8(word).unwrap_or_default();
        if word == "bin" {
            let bytes = usize::try_from(number.unwrap_or(0)).unwrap_or(0);
            return Ok(after.get(bytes..).unwrap_or_default());
        }
        self.word(word, number)?;
        Ok(after)
    }

    fn word(&mut self, word: &str, number: Option<i64>) -> Result<(), Refusal> {
        match word {
            "par" | "sect" | "page" => self.paragraph()?,
            "pard" => self.level = None,
            "outlinelevel" => self.level = number.and_then(|level| u8::try_from(level).ok()).filter(|level| *level < 9),
            "line" => self.letter('\n'),
            "cell" => {
                self.decode();
                self.cells.push(std::mem::take(&mut self.line));
            }
            "row" => self.rows.push(std::mem::take(&mut self.cells)),
            "tab" => self.letter('\t'),
            "emdash" => self.letter('—'),
            "endash" => self.letter('–'),
            "lquote" => self.letter('‘'),
            "rquote" => self.letter('’'),
            "ldblquote" => self.letter('“'),
            "rdblquote" => self.letter('”'),
            "bullet" => self.letter('•'),
            "uc" => self.group.fallback = usize::try_from(number.unwrap_or(1)).unwrap_or(1).min(16),
            "u" => self.unit(number.unwrap_or(0)),
            "ansicpg" => {
                let label = format!("windows-{}", number.unwrap_or(1252));
                self.encoding = Encoding::for_label(label.as_bytes()).unwrap_or(WINDOWS_1252);
            }
            _ if HIDDEN.contains(&word) => self.group.is_hidden = true,
            _ => {}
        }
        Ok(())
    }

    fn sign<'b>(&mut self, rest: &'b [u8]) -> &'b [u8] {
        match rest {
            [b'\'', high, low, after @ ..] => {
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).unwrap_or_default();
                self.byte(u8::from_str_radix(digits, 16).unwrap_or(b'?'));
                after
            }
            [b'*', after @ ..] => {
                self.group.is_hidden = true;
                after
            }
            [b'~', after @ ..] => {
                self.letter(' ');
                after
            }
            [b'_', after @ ..] => {
                self.letter('-');
                after
            }
            [sign @ (b'{' | b'}' | b'\\'), after @ ..] => {
                self.byte(*sign);
                after
            }
            [_, after @ ..] => after,
            [] => rest,
        }
    }

    /// A unit of UTF-16, as a signed number.
    fn unit(&mut self, number: i64) {
        let unit = u16::try_from(number.rem_euclid(0x1_0000)).unwrap_or(0);
        match (self.high.take(), unit) {
            (_, 0xD800..=0xDBFF) => self.high = Some(unit),
            (Some(high), 0xDC00..=0xDFFF) => {
                let letters = String::from_utf16_lossy(&[high, unit]);
                self.letters(&letters);
            }
            _ => self.letters(&String::from_utf16_lossy(&[unit])),
        }
        self.skipped = self.group.fallback;
    }

    fn byte(&mut self, byte: u8) {
        if self.skipped > 0 {
            self.skipped -= 1;
        } else if !self.group.is_hidden {
            self.bytes.push(byte);
        }
    }

    fn letter(&mut self, letter: char) {
        self.letters(letter.encode_utf8(&mut [0; 4]));
    }

    fn letters(&mut self, letters: &str) {
        self.decode();
        if !self.group.is_hidden {
            self.line.push_str(letters);
        }
    }

    fn decode(&mut self) {
        let (text, _) = self.encoding.decode_without_bom_handling(&self.bytes);
        self.line.push_str(&text);
        self.bytes.clear();
        self.skipped = 0;
    }

    /// In a cell it is a line of it.
    fn paragraph(&mut self) -> Result<(), Refusal> {
        self.decode();
        if self.group.is_hidden {
            return Ok(());
        }
        if !self.cells.is_empty() {
            self.line.push('\n');
            return Ok(());
        }
        if !self.rows.is_empty() {
            let rows = std::mem::take(&mut self.rows);
            match Table::new(rows.clone(), Header::Likely) {
                Some(table) => self.composer.table(&table)?,
                None => rows.iter().flatten().try_for_each(|cell| self.composer.block(cell))?,
            }
        }
        let line = std::mem::take(&mut self.line);
        match self.level {
            Some(level) => self.composer.heading(level + 1, &line),
            None => self.composer.block(line.trim()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read::rtf::read;

    #[test]
    fn running_text_is_read_and_the_rest_is_not() {
        let rtf = br"{\rtf1\ansi\ansicpg1252{\fonttbl\f0\fswiss Helvetica;}{\*\generator x;}\f0\pard
Caf\'e9 \u937?\u55357?\u56898? {\b bold}\par Second\line line \{x\}{\pict 0102}\par}";
        assert_eq!(read(rtf).unwrap().text, "Café Ω🙂 bold\n\nSecond\nline {x}");
    }

    #[test]
    fn groups_without_end_are_refused() {
        let bomb = format!("{{\\rtf1{}", "{".repeat(2000));
        assert!(read(bomb.as_bytes()).unwrap_err().to_string().contains("deep"));
        assert!(read(b"plain").is_err());
    }
}
