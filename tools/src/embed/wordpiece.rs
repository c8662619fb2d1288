//! The uncased `WordPiece` tokenizer of BERT: text to token ids, exactly as the model's own tokenizer gives them.

use unicode_normalization::char::decompose_canonical;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

/// A vocabulary and its index: an open-addressing table of ids over the bytes of the vocabulary's text.
///
/// It gives the ids that the `tokenizers` crate gives, but for characters newer than that crate's tables.
#[derive(Debug)]
pub struct Vocabulary<'v> {
    /// Each id's piece of a word.
    pieces: Vec<Piece<'v>>,
    /// As many as there are hashes of 16 bits, so more than there are ids: a probe always meets an empty one.
    slots: Vec<Slot>,
    piece_bytes_max: usize,
}

impl<'v> Vocabulary<'v> {
    /// Indexes a vocabulary: one token a line, its number the line's, `##` before a piece that continues a word. O(text).
    pub fn new(text: &'v str) -> Self {
        let mut vocabulary = Vocabulary { pieces: Vec::new(), slots: vec![Slot::EMPTY; 1 << 16], piece_bytes_max: 0 };
        for (id, line) in (0..Slot::EMPTY.id).zip(text.lines()) {
            let piece = line.strip_prefix("##").map_or(Piece { continues: false, text: line.as_bytes() }, |rest| {
                Piece { continues: true, text: rest.as_bytes() }
            });
            vocabulary.insert(piece, id);
        }
        vocabulary
    }

    /// Appends the ids of a text's tokens.
    pub fn encode(&self, text: &str, ids: &mut Vec<u16>) {
        let mut words = Words { vocabulary: self, word: Vec::with_capacity(64), ids };
        for letter in text.chars() {
            words.read(letter);
        }
        words.finish_word();
    }

    fn insert(&mut self, piece: Piece<'v>, id: u16) {
        let hash = piece.text.iter().fold(seed(piece.continues), |hash, &byte| extended(hash, byte));
        let (mut at, tag) = slot_and_tag(hash);
        while self.slots.get(usize::from(at)).is_some_and(|slot| slot.id != Slot::EMPTY.id) {
            at = at.wrapping_add(1);
        }
        if let Some(slot) = self.slots.get_mut(usize::from(at)) {
            *slot = Slot { tag, id };
        }
        self.piece_bytes_max = self.piece_bytes_max.max(piece.text.len());
        self.pieces.push(piece);
    }

    fn find(&self, piece: Piece<'_>, hash: u64) -> Option<u16> {
        let (mut at, tag) = slot_and_tag(hash);
        loop {
            let slot = self.slots.get(usize::from(at))?;
            if slot.id == Slot::EMPTY.id {
                return None;
            }
            if slot.tag == tag && self.pieces.get(usize::from(slot.id)) == Some(&piece) {
                return Some(slot.id);
            }
            at = at.wrapping_add(1);
        }
    }

    /// The longest piece that opens `rest`, and its length in bytes. A prefix that ends inside a character is in no
    /// vocabulary, so bytes will do.
    fn longest(&self, rest: &[u8], continues: bool) -> Option<(u16, usize)> {
        let mut hashes = [0; PIECE_BYTES_LIMIT];
        let mut hash = seed(continues);
        let mut length = 0;
        for (place, &byte) in hashes.iter_mut().zip(rest).take(self.piece_bytes_max) {
            hash = extended(hash, byte);
            *place = hash;
            length += 1;
        }
        (1..=length).rev().find_map(|length| {
            let piece = Piece { continues, text: rest.get(..length)? };
            Some((self.find(piece, *hashes.get(length - 1)?)?, length))
        })
    }

    /// Appends the pieces of one word, or the unknown token when it cannot be put together.
    fn encode_word(&self, word: &[u8], ids: &mut Vec<u16>) {
        let start = ids.len();
        let mut rest = word;
        while !rest.is_empty() {
            let found = self.longest(rest, rest.len() < word.len());
            let Some((id, length)) = found.filter(|_| !is_too_long(word)) else {
                ids.truncate(start);
                ids.push(UNKNOWN);
                return;
            };
            ids.push(id);
            rest = rest.get(length..).unwrap_or_default();
        }
    }
}

const UNKNOWN: u16 = 100;
const WORD_CHARS_MAX: usize = 100;
/// Pieces longer than this are never found; BERT's longest has 18 bytes.
const PIECE_BYTES_LIMIT: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece<'v> {
    continues: bool,
    text: &'v [u8],
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// More bits of the hash, which spare nearly all comparisons with a piece that is not the one.
    tag: u16,
    id: u16,
}

impl Slot {
    const EMPTY: Slot = Slot { tag: 0, id: u16::MAX };
}

fn seed(continues: bool) -> u64 {
    if continues { 0x9E37_79B9_7F4A_7C15 } else { 0 }
}

fn extended(hash: u64, byte: u8) -> u64 {
    (hash.rotate_left(5) ^ u64::from(byte)).wrapping_mul(0xF135_7AEA_2E62_A9C5)
}

fn slot_and_tag(hash: u64) -> (u16, u16) {
    let [a, b, c, d, ..] = hash.to_be_bytes();
    (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))
}

fn is_too_long(word: &[u8]) -> bool {
    // A byte that does not continue a character starts one.
    word.len() > WORD_CHARS_MAX && word.iter().filter(|&&byte| byte & 0xC0 != 0x80).count() > WORD_CHARS_MAX
}

/// The word that is being read, normalised.
struct Words<'a> {
    vocabulary: &'a Vocabulary<'a>,
    word: Vec<u8>,
    ids: &'a mut Vec<u16>,
}

impl Words<'_> {
    fn read(&mut self, letter: char) {
        match letter {
            'a'..='z' | 'A'..='Z' | '0'..='9' => self.push(letter.to_ascii_lowercase()),
            ' ' | '\t' | '\n' | '\r' => self.finish_word(),
            _ if letter.is_ascii_punctuation() => self.push_alone(letter),
            _ if is_dropped(letter) => {}
            _ if letter.is_whitespace() => self.finish_word(),
            _ if is_ideograph(letter) => {
                self.finish_word();
                self.read_parts(letter);
                self.finish_word();
            }
            _ => self.read_parts(letter),
        }
    }

    fn read_parts(&mut self, letter: char) {
        decompose_canonical(letter, |part| {
            if part.general_category() == GeneralCategory::NonspacingMark {
                return;
            }
            for lower in part.to_lowercase() {
                if is_punctuation(lower) {
                    self.push_alone(lower);
                } else if lower.is_whitespace() {
                    self.finish_word();
                } else {
                    self.push(lower);
                }
            }
        });
    }

    fn push(&mut self, letter: char) {
        self.word.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
    }

    fn push_alone(&mut self, sign: char) {
        self.finish_word();
        self.push(sign);
        self.finish_word();
    }

    fn finish_word(&mut self) {
        self.vocabulary.encode_word(&self.word, self.ids);
        self.word.clear();
    }
}

fn is_dropped(letter: char) -> bool {
    use GeneralCategory::{Control, Format, PrivateUse};
    letter == char::REPLACEMENT_CHARACTER || matches!(letter.general_category(), Control | Format | PrivateUse)
}

fn is_punctuation(letter: char) -> bool {
    letter.is_ascii_punctuation() || letter.general_category_group() == GeneralCategoryGroup::Punctuation
}

/// The ideographs that BERT sets apart: Han only, neither kana nor hangul.
fn is_ideograph(letter: char) -> bool {
    matches!(
        letter,
        '\u{3400}'..='\u{4DBF}'
            | '\u{4E00}'..='\u{9FFF}'
            | '\u{F900}'..='\u{FAFF}'
            | '\u{20000}'..='\u{2A6DF}'
            | '\u{2A700}'..='\u{2B73F}'
            | '\u{2B740}'..='\u{2B81F}'
            | '\u{2B920}'..='\u{2CEAF}'
            | '\u{2F800}'..='\u{2FA1F}'
    )
}

#[cfg(test)]
mod tests {
    use crate::embed::wordpiece::Vocabulary;

    fn check(text: &str, expected: &[u16]) {
        // `[UNK]` must stand at 100: the lines before it are tokens that no text has.
        let filler = "[unused]\n".repeat(100);
        let vocabulary = format!("{filler}[UNK]\nwall\n##s\nw\n##a\n,\ne\n京\n²");
        let mut ids = Vec::new();
        Vocabulary::new(&vocabulary).encode(text, &mut ids);
        assert_eq!(ids, expected, "{text:?}");
    }

    #[test]
    fn the_longest_pieces_come_first() {
        check("Walls, wa", &[101, 102, 105, 103, 104]);
    }

    #[test]
    fn a_word_with_an_unknown_piece_is_unknown_as_a_whole() {
        check("wallx wall", &[100, 101]);
        check("swall", &[100]);
    }

    #[test]
    fn a_word_of_more_than_a_hundred_characters_is_unknown() {
        check(&format!("w{}", "a".repeat(100)), &[100]);
        check(&format!("w{}", "s".repeat(99)), &[[103].as_slice(), &[102; 99]].concat());
    }

    #[test]
    fn marks_and_controls_are_dropped_and_ideographs_stand_alone() {
        check("É\u{301}\u{200D}\u{7}", &[106]);
        check("e京e\u{2003}e\u{B}", &[106, 107, 106, 106]);
        check("²", &[108]);
        check("", &[]);
    }
}
