//! Bytes of a file to text: the encoding is told by a byte order mark, by zero bytes, or by what the letters are.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{
    Encoding, ISO_2022_JP, ISO_8859_2, WINDOWS_1250, WINDOWS_1252, WINDOWS_1254, WINDOWS_1257, WINDOWS_1258,
};

/// Why bytes are not read as text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unreadable {
    /// No bytes at all.
    #[error("the file is empty; remove it or give it text")]
    Empty,
    /// Only white space.
    #[error("the file holds only white space; remove it or give it text")]
    Blank,
    /// Bytes that no text has.
    #[error(
        "found the byte {byte:#04x} at offset {offset}, which no text has: this is a binary file; convert it to UTF-8 text first"
    )]
    Binary {
        /// The first such byte.
        byte: u8,
        /// Where it stands.
        offset: usize,
    },
    /// A file that names its encoding and does not keep to it.
    #[error("the file is marked as {encoding} but breaks its rules at offset {offset}; save it again as UTF-8")]
    Malformed {
        /// The encoding that the mark or the zero bytes tell.
        encoding: &'static str,
        /// The first byte that does not fit.
        offset: usize,
    },
}

/// Decodes UTF-8, UTF-16 and UTF-32 (with a byte order mark or told by their zero bytes), else the encoding that the
/// letters make likely, such as Windows-1252, which agrees with Latin-1 on all letters.
///
/// # Errors
/// When the bytes hold no text, are binary, or break the encoding that they are marked with.
pub fn decode(bytes: &[u8]) -> Result<String, Unreadable> {
    if bytes.is_empty() {
        return Err(Unreadable::Empty);
    }
    let text = decode_any(bytes)?;
    if text.trim().is_empty() { Err(Unreadable::Blank) } else { Ok(text) }
}

fn decode_any(bytes: &[u8]) -> Result<String, Unreadable> {
    // The mark of UTF-32 LE begins with that of UTF-16 LE.
    match bytes {
        [0xFF, 0xFE, 0, 0, rest @ ..] => utf32(rest, u32::from_le_bytes, "UTF-32 (little-endian)"),
        [0, 0, 0xFE, 0xFF, rest @ ..] => utf32(rest, u32::from_be_bytes, "UTF-32 (big-endian)"),
        [0xFF, 0xFE, rest @ ..] => utf16(rest, 2, &LITTLE),
        [0xFE, 0xFF, rest @ ..] => utf16(rest, 2, &BIG),
        [0xEF, 0xBB, 0xBF, rest @ ..] => match std::str::from_utf8(rest) {
            Ok(text) => Ok(text.to_owned()),
            Err(error) => Err(Unreadable::Malformed { encoding: "UTF-8", offset: 3 + error.valid_up_to() }),
        },
        _ if bytes.contains(&0) => utf32_unmarked(bytes).map_or_else(|| utf16_unmarked(bytes), Ok),
        _ => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(escaped(bytes).unwrap_or_else(|| text.to_owned())),
            Err(_) => detected(bytes),
        },
    }
}

struct Utf16 {
    name: &'static str,
    unit: fn([u8; 2]) -> u16,
}

const LITTLE: Utf16 = Utf16 { name: "UTF-16 (little-endian)", unit: u16::from_le_bytes };
const BIG: Utf16 = Utf16 { name: "UTF-16 (big-endian)", unit: u16::from_be_bytes };

/// `offset` is that of the first byte in the file.
fn utf16(bytes: &[u8], offset: usize, encoding: &Utf16) -> Result<String, Unreadable> {
    let malformed = |offset| Unreadable::Malformed { encoding: encoding.name, offset };
    let (units, odd) = bytes.as_chunks::<2>();
    let mut text = String::with_capacity(bytes.len() / 2);
    let mut at = offset;
    for letter in char::decode_utf16(units.iter().map(|&unit| (encoding.unit)(unit))) {
        let letter = letter.map_err(|_| malformed(at))?;
        at += 2 * letter.len_utf16();
        text.push(letter);
    }
    if odd.is_empty() { Ok(text) } else { Err(malformed(at)) }
}

/// Text in Latin letters and spaces has a zero in every such unit's upper byte; a zero in the other one is a NUL.
fn utf16_unmarked(bytes: &[u8]) -> Result<String, Unreadable> {
    let zeros = |first: usize| bytes.iter().skip(first).step_by(2).filter(|&&byte| byte == 0).count();
    let (even, odd) = (zeros(0), zeros(1));
    let encoding = match (even, odd) {
        // East Asian text has few such units, and units such as U+3000 besides.
        _ if odd > 3 * even => &LITTLE,
        _ if even > 3 * odd => &BIG,
        _ => return Err(zero(bytes)),
    };
    match utf16(bytes, 0, encoding) {
        Ok(text) if !text.chars().any(is_control) => Ok(text),
        _ => Err(zero(bytes)),
    }
}

fn zero(bytes: &[u8]) -> Unreadable {
    Unreadable::Binary { byte: 0, offset: bytes.iter().position(|&byte| byte == 0).unwrap_or(0) }
}

fn utf32(bytes: &[u8], unit: fn([u8; 4]) -> u32, encoding: &'static str) -> Result<String, Unreadable> {
    let malformed = |index: usize| Unreadable::Malformed { encoding, offset: 4 + 4 * index };
    let (units, rest) = bytes.as_chunks::<4>();
    let letters = units.iter().enumerate();
    let text = letters
        .map(|(index, &bytes)| char::from_u32(unit(bytes)).ok_or_else(|| malformed(index)))
        .collect::<Result<String, Unreadable>>()?;
    if rest.is_empty() { Ok(text) } else { Err(malformed(units.len())) }
}

/// No letter needs the upper byte of four, and most need only the lowest.
fn utf32_unmarked(bytes: &[u8]) -> Option<String> {
    let (units, _) = bytes.as_chunks::<4>();
    let has_upper = |place: usize| units.iter().any(|unit| unit[place] != 0);
    let decoded = match (has_upper(0), has_upper(3)) {
        (true, false) => utf32(bytes, u32::from_le_bytes, "UTF-32 (little-endian)"),
        (false, true) => utf32(bytes, u32::from_be_bytes, "UTF-32 (big-endian)"),
        _ => return None,
    };
    decoded.ok().filter(|text| !text.chars().any(is_control))
}

/// Text in ISO-2022-JP is ASCII with escapes.
fn escaped(bytes: &[u8]) -> Option<String> {
    if !bytes.is_ascii() || !bytes.contains(&0x1B) {
        return None;
    }
    let text = ISO_2022_JP.decode_without_bom_handling_and_without_replacement(bytes)?;
    (!text.chars().any(is_control)).then(|| text.into_owned())
}

/// The encoding that makes the likeliest letters of the bytes, without errors.
fn detected(bytes: &[u8]) -> Result<String, Unreadable> {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, true);
    let encoding = western(bytes, detector.guess(None, Utf8Detection::Deny));
    let is_foreign = |byte: &u8| byte.is_ascii() && is_control(char::from(*byte));
    if bytes.iter().any(is_foreign) {
        return Err(binary(bytes));
    }
    [encoding, WINDOWS_1252]
        .into_iter()
        .filter_map(|encoding| encoding.decode_without_bom_handling_and_without_replacement(bytes))
        .find(|text| !text.chars().any(is_control))
        .map(std::borrow::Cow::into_owned)
        .ok_or_else(|| binary(bytes))
}

/// Windows-1252 instead of a rarer encoding of Latin letters where it has only signs, such as `£` and quotes: there are no
/// letters that would tell the rarer one.
fn western(bytes: &[u8], guess: &'static Encoding) -> &'static Encoding {
    if ![WINDOWS_1250, ISO_8859_2, WINDOWS_1254, WINDOWS_1257, WINDOWS_1258].contains(&guess) {
        return guess;
    }
    let text = WINDOWS_1252.decode_without_bom_handling(bytes).0;
    let has_letters = text.chars().any(|letter| !letter.is_ascii() && letter.is_alphabetic());
    if has_letters { guess } else { WINDOWS_1252 }
}

/// Why bytes that are in no encoding are not read: names the first that no text has.
#[must_use]
pub fn binary(bytes: &[u8]) -> Unreadable {
    let letter = |byte: u8| WINDOWS_1252.decode_without_bom_handling(&[byte]).0.chars().next().unwrap_or_default();
    let found = bytes.iter().enumerate().find(|&(_, &byte)| byte == 0 || is_control(letter(byte)));
    let (offset, &byte) =
        found.or_else(|| bytes.iter().enumerate().find(|&(_, byte)| !byte.is_ascii())).unwrap_or((0, &0));
    Unreadable::Binary { byte, offset }
}

fn is_control(letter: char) -> bool {
    letter.is_control() && !matches!(letter, '\t' | '\n' | '\r' | '\u{C}')
}

#[cfg(test)]
mod tests {
    use crate::read::text::{LITTLE, Unreadable, decode};

    const TEXT: &str = "Zoë said:\n\t“Ω 🙂”";

    fn units(text: &str, unit: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(unit).collect()
    }

    #[test]
    fn marked_encodings_are_decoded_without_the_mark() {
        for (mark, body) in [
            (&b""[..], TEXT.as_bytes().to_vec()),
            (b"\xEF\xBB\xBF", TEXT.as_bytes().to_vec()),
            (b"\xFF\xFE", units(TEXT, u16::to_le_bytes)),
            (b"\xFE\xFF", units(TEXT, u16::to_be_bytes)),
            (b"\xFF\xFE\0\0", TEXT.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect()),
            (b"\0\0\xFE\xFF", TEXT.chars().flat_map(|c| u32::from(c).to_be_bytes()).collect()),
        ] {
            assert_eq!(decode(&[mark, &body].concat()).as_deref(), Ok(TEXT), "{mark:?}");
        }
    }

    #[test]
    fn zero_bytes_tell_utf_16_without_a_mark() {
        assert_eq!(decode(&units(TEXT, u16::to_le_bytes)).as_deref(), Ok(TEXT));
        assert_eq!(decode(&units(TEXT, u16::to_be_bytes)).as_deref(), Ok(TEXT));
        assert_eq!(decode(b"ab\0cd\0\0e"), Err(Unreadable::Binary { byte: 0, offset: 2 }));
    }

    #[test]
    fn zero_bytes_tell_utf_32_without_a_mark() {
        let unmarked =
            |unit: fn(u32) -> [u8; 4]| TEXT.chars().flat_map(|letter| unit(letter.into())).collect::<Vec<u8>>();
        assert_eq!(decode(&unmarked(u32::to_le_bytes)).as_deref(), Ok(TEXT));
        assert_eq!(decode(&unmarked(u32::to_be_bytes)).as_deref(), Ok(TEXT));
    }

    #[test]
    fn encodings_of_other_scripts_are_told_by_their_letters() {
        for (encoding, text) in [
            (encoding_rs::WINDOWS_1251, "Москва — столица России, крупнейший по численности населения город."),
            (encoding_rs::SHIFT_JIS, "日本語の文章を読むための簡単な試験です。"),
            (encoding_rs::ISO_2022_JP, "日本語の文章を読むための簡単な試験です。"),
            (encoding_rs::GB18030, "这是一个用来测试编码检测的中文句子。"),
            (encoding_rs::WINDOWS_1253, "Η Αθήνα είναι η πρωτεύουσα της Ελλάδας."),
        ] {
            let (bytes, _, had_errors) = encoding.encode(text);
            assert!(!had_errors);
            assert_eq!(decode(&bytes).as_deref(), Ok(text), "{}", encoding.name());
        }
    }

    #[test]
    fn western_text_is_windows_1252() {
        assert_eq!(decode(b"caf\xE9 \x93so\x94 \x80 5").as_deref(), Ok("café “so” € 5"));
        assert_eq!(
            decode(b"to lift \xA3825, not bad for a \xA32 bet").as_deref(),
            Ok("to lift £825, not bad for a £2 bet")
        );
    }

    #[test]
    fn what_is_no_text_is_refused_with_a_reason() {
        assert_eq!(decode(b""), Err(Unreadable::Empty));
        assert_eq!(decode(b"\xEF\xBB\xBF \n"), Err(Unreadable::Blank));
        assert_eq!(decode(b"GIF\x89\x81"), Err(Unreadable::Binary { byte: 0x81, offset: 4 }));
        assert_eq!(decode(b"\x89PNG\r\n\x1A\n"), Err(Unreadable::Binary { byte: 0x1A, offset: 6 }));
        assert_eq!(decode(b"\xEF\xBB\xBFa\xFF"), Err(Unreadable::Malformed { encoding: "UTF-8", offset: 4 }));
        for (bytes, offset) in [(&b"\xFF\xFEa\0\0\xD8b\0"[..], 4), (b"\xFF\xFEa\0b", 4)] {
            assert_eq!(decode(bytes), Err(Unreadable::Malformed { encoding: LITTLE.name, offset }));
        }
        let error = decode(b"\0\0\xFE\xFF\0\0\xD8\0").unwrap_err();
        assert_eq!(error, Unreadable::Malformed { encoding: "UTF-32 (big-endian)", offset: 4 });
    }
}
