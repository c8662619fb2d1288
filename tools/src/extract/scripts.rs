//! Scripts without capitals: where their runs of letters change script, and what else tells a name.

use hedgerow_format::name::Token;

/// Letters of Katakana that a name has at least.
const KATAKANA_MIN: usize = 3;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Script {
    Katakana,
    /// Han, Hiragana, Hangul, Thai and others that have no capitals and put no space around names.
    Unspaced,
    Other,
}

fn script_of(letter: char) -> Script {
    match u32::from(letter) {
        0x30A0..=0x30FF | 0x31F0..=0x31FF | 0xFF66..=0xFF9F => Script::Katakana,
        0x0E00..=0x0EFF
        | 0x1000..=0x109F
        | 0x1780..=0x17FF
        | 0x3005..=0x3007
        | 0x3040..=0x318F
        | 0x3400..=0x4DBF
        | 0x4E00..=0x9FFF
        | 0xAC00..=0xD7FF
        | 0xF900..=0xFAFF
        | 0x20000..=0x3FFFF => Script::Unspaced,
        _ => Script::Other,
    }
}

/// The tokens, those that mix scripts cut where the script changes: `Googleマップの` is three.
pub fn parted<'t>(text: &str, tokens: Vec<Token<'t>>) -> Vec<Token<'t>> {
    if text.is_ascii() {
        return tokens;
    }
    let mut parted = Vec::with_capacity(tokens.len());
    for token in tokens {
        let mut rest = token;
        while !rest.text.is_ascii() {
            let Some(length) = script_length(rest.text) else { break };
            let (piece, after) = rest.text.split_at(length);
            let end = rest.start + length;
            parted.push(Token { text: piece, start: rest.start, end });
            rest = Token { text: after, start: end, end: rest.end };
        }
        parted.push(rest);
    }
    parted
}

/// The bytes before the script changes; none where it does not.
fn script_length(word: &str) -> Option<usize> {
    let mut letters = word.char_indices();
    let script = script_of(letters.next()?.1);
    letters
        .find(|(_, letter)| *letter != 'ー' && letter.is_alphanumeric() && script_of(*letter) != script)
        .map(|(at, _)| at)
}

/// Whether a word is foreign to Japanese, as most names that are written so.
pub fn is_katakana_name(word: &str) -> bool {
    !word.is_ascii()
        && word.chars().all(|letter| script_of(letter) == Script::Katakana)
        && word.chars().nth(KATAKANA_MIN - 1).is_some()
}

/// Whether a word is of a script without capitals.
pub fn is_unspaced(word: &str) -> bool {
    word.chars().next().is_some_and(|letter| script_of(letter) != Script::Other)
}

/// The sign that closes what a bracket for names opens.
pub fn closing(bracket: char) -> Option<char> {
    Some(match bracket {
        '“' => '”',
        '「' => '」',
        '『' => '』',
        '《' => '》',
        _ => return None,
    })
}

/// Whether a sign shows that what is in brackets was said, not named.
pub fn ends_clause(sign: char) -> bool {
    matches!(sign, '。' | '、' | '，' | '！' | '？')
}

/// Lower-case words inside names, in Russian and Greek.
pub fn is_connector(word: &str) -> bool {
    matches!(
        word,
        "на" | "де"
            | "фон"
            | "ван"
            | "дер"
            | "аль"
            | "эль"
            | "ибн"
            | "бин"
            | "да"
            | "ди"
            | "дель"
            | "ла"
            | "ле"
            | "του"
            | "της"
            | "των"
    )
}

/// Folded words that may lead a sentence before a name and are no part of it, in Russian and Greek.
#[rustfmt::skip]
pub fn is_leading(folded: &str) -> bool {
    matches!(
        folded,
        "а" | "без" | "в" | "во" | "для" | "до" | "за" | "и" | "из" | "или" | "к" | "как" | "когда" | "мы" | "на" | "но" | "о" | "об"
            | "он" | "она" | "они" | "от" | "по" | "под" | "после" | "при" | "с" | "со" | "так" | "у" | "что" | "эта" | "это" | "этот" | "я"
            | "και" | "με" | "απο" | "για" | "σε" | "ο" | "η" | "το" | "οι" | "τα" | "του" | "τησ" | "των" | "τον" | "την" | "στο"
            | "στη" | "στην" | "στον" | "στισ" | "στα" | "οταν" | "ενασ" | "μια" | "ενα"
    )
}
