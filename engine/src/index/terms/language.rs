//! Languages whose words are stemmed, and how the language of a passage is told: by its script and its most common words.

use std::sync::LazyLock;

use hedgerow_format::name::{fold_lower_into, tokens};
use rust_stemmers::Algorithm;

/// A language other than English that has a stemmer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Language(usize);

struct Row {
    code: &'static str,
    algorithm: Algorithm,
    script: Script,
    /// Words that nearly every text has; none where the script tells the language.
    common: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Script {
    Latin,
    Cyrillic,
    Greek,
    Arabic,
    Tamil,
}

/// In alphabetical order.
#[rustfmt::skip]
const LANGUAGES: [Row; 17] = [
    Row { code: "ar", algorithm: Algorithm::Arabic, script: Script::Arabic, common: "في من على أن إلى التي الذي هذا هذه عن مع كان ما لا كل أو ذلك بين وقد كما بعد قد هو هي لم" },
    Row { code: "da", algorithm: Algorithm::Danish, script: Script::Latin, common: "og i at det en den til er som på de med af for ikke der var et har fra ved blev eller også kan mig hvad efter skal" },
    Row { code: "de", algorithm: Algorithm::German, script: Script::Latin, common: "der die das und ist nicht ein eine einer den dem des mit auf für von zu im sich auch als aus bei nach wie wird werden wurde sind oder über durch haben hat zum zur" },
    Row { code: "el", algorithm: Algorithm::Greek, script: Script::Greek, common: "" },
    Row { code: "es", algorithm: Algorithm::Spanish, script: Script::Latin, common: "el la los las de y en que es un una del por con no para se su lo al como más pero fue son esta este sus ha ser" },
    Row { code: "fi", algorithm: Algorithm::Finnish, script: Script::Latin, common: "ja on ei että se oli hän ovat joka tai myös kun mutta kuin sen ole niin mukaan hänen olla jotka vain" },
    Row { code: "fr", algorithm: Algorithm::French, script: Script::Latin, common: "le la les des du de et est une un dans que qui pour pas sur au aux avec par ce cette sont il elle ont ou mais plus nous vous leur être été" },
    Row { code: "hu", algorithm: Algorithm::Hungarian, script: Script::Latin, common: "a az és hogy nem is egy van volt meg de ez csak már még mint el vagy azt kell pedig" },
    Row { code: "it", algorithm: Algorithm::Italian, script: Script::Latin, common: "il lo la i gli le di e che è un una del della dei nel nella con per non si sono da al alla come più anche ma o questo" },
    Row { code: "nl", algorithm: Algorithm::Dutch, script: Script::Latin, common: "de het een en van is niet dat op te met voor zijn aan er ook als bij door naar uit om worden werd wordt deze dit zij hij maar over heeft" },
    Row { code: "no", algorithm: Algorithm::Norwegian, script: Script::Latin, common: "og i at det en den til er som på de med av for ikke der var et har fra ved ble eller også kan meg hva etter å skal" },
    Row { code: "pt", algorithm: Algorithm::Portuguese, script: Script::Latin, common: "o a os as de e que do da em um uma para com não no na por mais dos das se foi ao são é pelo pela como mas" },
    Row { code: "ro", algorithm: Algorithm::Romanian, script: Script::Latin, common: "și în de la cu pe nu o un este din care că a fost sau pentru mai al lui ale sunt prin după" },
    Row { code: "ru", algorithm: Algorithm::Russian, script: Script::Cyrillic, common: "и в не на что он с как это по но из у за от к его а она они был было были для или же так мы вы чтобы только все" },
    Row { code: "sv", algorithm: Algorithm::Swedish, script: Script::Latin, common: "och i att det en den till är som på de med av för inte var ett har från vid blev eller också kan om efter ska" },
    Row { code: "ta", algorithm: Algorithm::Tamil, script: Script::Tamil, common: "" },
    Row { code: "tr", algorithm: Algorithm::Turkish, script: Script::Latin, common: "ve bir bu da de için ile olarak olan çok daha ne gibi kadar sonra en değil ama olduğu ya o" },
];

const ENGLISH: &str = "the of and to in is was for that it with as on by at from his he are be this which or an had has were not but they a";

/// Bytes at the beginning of a text that tell its language.
const LOOKED_AT_BYTES: usize = 4096;
/// Different common words of a language that a text in it has at least.
const COMMON_MIN: u32 = 3;
/// Of so many words one is common at least.
const COMMON_SHARE: u32 = 10;

impl Language {
    /// What terms in a language begin with, below every letter and digit.
    pub const MARK: char = '.';
    /// How many there are.
    pub const COUNT: usize = LANGUAGES.len();

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..LANGUAGES.len()).map(Self)
    }

    /// The language of a text, if it is surely none but one of these: its first 4 KiB have at least three different ones of
    /// its common words, one in ten words is one, and there are more of them than of any other language, English included.
    /// Greek and Tamil are told by script: most words are written in it.
    pub fn of(text: &str) -> Option<Self> {
        let mut counts = Counts::new();
        let text = &text[..text.floor_char_boundary(LOOKED_AT_BYTES)];
        for part in text.split_ascii_whitespace() {
            if part.is_ascii() {
                part.as_bytes().split(|byte| !byte.is_ascii_alphanumeric()).for_each(|word| counts.add(word));
                continue;
            }
            let mut folded = String::new();
            for token in tokens(part).iter().filter(|token| token.is_word()) {
                folded.clear();
                fold_lower_into(token.text, &mut folded);
                counts.add(folded.as_bytes());
                counts.add_script(folded.chars().next().and_then(script_of));
            }
        }
        counts.language()
    }

    /// What its terms begin with, which no other term does: `.de:`, with two letters as in ISO 639-1.
    pub fn prefix(self) -> String {
        format!("{}{}:", Self::MARK, LANGUAGES[self.0].code)
    }

    /// Its place among all.
    pub fn index(self) -> usize {
        self.0
    }

    /// Snowball's stemmer.
    pub fn algorithm(self) -> Algorithm {
        LANGUAGES[self.0].algorithm
    }

    /// Whether a folded word may be one of the language: letters of its script alone.
    pub fn writes(self, word: &str) -> bool {
        let script = LANGUAGES[self.0].script;
        word.chars().all(|letter| letter.is_alphabetic() && script_of(letter) == Some(script))
    }
}

fn script_of(letter: char) -> Option<Script> {
    match u32::from(letter) {
        0x41..=0x24F | 0x1E00..=0x1EFF => Some(Script::Latin),
        0x370..=0x3FF | 0x1F00..=0x1FFF => Some(Script::Greek),
        0x400..=0x52F => Some(Script::Cyrillic),
        0x600..=0x6FF | 0x750..=0x77F => Some(Script::Arabic),
        0xB80..=0xBFF => Some(Script::Tamil),
        _ => None,
    }
}

/// What the words of a text say.
struct Counts {
    known: &'static Common,
    words: u32,
    /// Common words of each language; the last is English.
    common: [u32; LANGUAGES.len() + 1],
    /// The same, each word once.
    different: [u32; LANGUAGES.len() + 1],
    /// Common words that were seen, a bit each, by their slot.
    seen: [u64; SLOTS / 64],
    greek: u32,
    tamil: u32,
}

impl Counts {
    fn new() -> Self {
        let languages = [0; LANGUAGES.len() + 1];
        Self {
            known: &COMMON,
            words: 0,
            common: languages,
            different: languages,
            seen: [0; SLOTS / 64],
            greek: 0,
            tamil: 0,
        }
    }

    fn add_script(&mut self, script: Option<Script>) {
        self.greek += u32::from(script == Some(Script::Greek));
        self.tamil += u32::from(script == Some(Script::Tamil));
    }

    /// A word that is folded, but for the case of ASCII letters.
    fn add(&mut self, word: &[u8]) {
        self.words += u32::from(!word.is_empty());
        let Some((slot, mut languages)) = self.known.find(word) else { return };
        let seen = &mut self.seen[slot / 64];
        let is_new = *seen & (1 << (slot % 64)) == 0;
        *seen |= 1 << (slot % 64);
        while languages != 0 {
            let language = languages.trailing_zeros() as usize;
            self.common[language] += 1;
            self.different[language] += u32::from(is_new);
            languages &= languages - 1;
        }
    }

    fn language(&self) -> Option<Language> {
        for (script, count) in [(Script::Greek, self.greek), (Script::Tamil, self.tamil)] {
            if count > self.words / 2 {
                return LANGUAGES.iter().position(|row| row.script == script).map(Language);
            }
        }
        let most = self.common.iter().copied().max().unwrap_or_default();
        let mut best = (0..self.common.len()).filter(|language| self.common[*language] == most);
        let (language, other) = (best.next()?, best.next());
        let is_sure =
            other.is_none() && self.different[language] >= COMMON_MIN && most >= self.words.div_ceil(COMMON_SHARE);
        (is_sure && language < LANGUAGES.len()).then_some(Language(language))
    }
}

/// Places for common words, four times as many as there are.
const SLOTS: usize = 2048;

/// The languages of each common word, a bit each, looked up by the word as a number.
struct Common {
    slots: Vec<(u128, u32)>,
}

/// A word that is English, too, is English alone, so that lists and credits (`as`, `a`) are not taken for another language.
static COMMON: LazyLock<Common> = LazyLock::new(|| {
    let mut common = Common { slots: vec![(0, 0); SLOTS] };
    let lists = [(LANGUAGES.len(), ENGLISH)].into_iter().chain(LANGUAGES.iter().map(|row| row.common).enumerate());
    let english = 1 << LANGUAGES.len();
    for (language, words) in lists {
        for word in words.split_whitespace() {
            let mut folded = String::new();
            fold_lower_into(word, &mut folded);
            let Some(word) = packed(folded.as_bytes()) else { continue };
            let slot = common.slot(word);
            let (known, languages) = &mut common.slots[slot];
            *known = word;
            if *languages != english {
                *languages |= 1 << language;
            }
        }
    }
    common
});

impl Common {
    /// The slot of a word that is known, and its languages.
    fn find(&self, word: &[u8]) -> Option<(usize, u32)> {
        let word = packed(word)?;
        let slot = self.slot(word);
        let (known, languages) = self.slots[slot];
        (known == word).then_some((slot, languages))
    }

    /// The slot where a word stands or would stand; most stand where their number says.
    fn slot(&self, word: u128) -> usize {
        #[expect(clippy::cast_possible_truncation, reason = "both halves are mixed")]
        let half = (word >> 64) as u64 ^ word as u64;
        let first = (half.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 53) as usize;
        let is_free = |slot: &usize| self.slots[*slot].0 == word || self.slots[*slot].0 == 0;
        (0..SLOTS).map(|step| (first + step) % SLOTS).find(is_free).unwrap_or(first)
    }
}

/// A word of one to sixteen bytes as a number, ASCII letters in lower case.
fn packed(word: &[u8]) -> Option<u128> {
    (1..=16)
        .contains(&word.len())
        .then(|| word.iter().fold(0, |number, byte| (number << 8) | u128::from(byte.to_ascii_lowercase())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(Language::of(text).map_or("", |language| LANGUAGES[language.0].code), expected, "{text}");
    }

    #[test]
    fn the_language_of_a_passage_is_told_by_its_common_words_or_its_script() {
        check("Der Hund ist in dem Haus und bellt die Katze an.", "de");
        check("Le chien est dans la maison et il aboie.", "fr");
        check("El perro está en la casa y ladra a los gatos que pasan por la calle.", "es");
        check("Il cane è nella casa e abbaia ai gatti che passano per la strada.", "it");
        check("O cão está na casa e ladra aos gatos que passam pela rua.", "pt");
        check("De hond is in het huis en blaft naar een kat.", "nl");
        check("Hunden er i huset og bjeffer på katten som ikke har sett hva den gjorde.", "no");
        check("Hunden är i huset och skäller på katten som inte har varit ute.", "sv");
        check("Hunden er i huset og gør ad katten, som blev set af en mand.", "da");
        check("Koira on talossa ja haukkuu kissaa, joka oli ulkona ja ei ole kotona.", "fi");
        check("A kutya a házban van, és ugat egy macskát, hogy az nem jön.", "hu");
        check("Câinele este în casă și latră la o pisică care nu a fost afară.", "ro");
        check("Köpek evde ve bir kediye havlıyor, çok güzel bir gün için.", "tr");
        check("Собака в доме и лает на кошку, что была не дома.", "ru");
        check("Ο σκύλος είναι στο σπίτι.", "el");
        check("الكلب في البيت على الطريق من المدينة إلى القرية", "ar");
        check("நாய் வீட்டில் உள்ளது", "ta");
    }

    #[test]
    fn english_and_what_is_not_sure_have_no_language() {
        check("The dog is in the house and barks at the cat, as the men die in a van.", "");
        check("Der Hund", "");
        check("Pink Floyd: The Wall (1979), La Scala, Los Angeles, Van der Graaf Generator", "");
        check("Harry Carey as Lee (as Leon) ; Edwin Wallock (as E. N. Wallack), Luís da Silva, António da Silva", "");
        check("東京都に住む。", "");
        check("", "");
    }
}
