//! Makes questions that one passage answers, to see that a strategy does not harm ordinary search:
//! `single_passage PASSAGES.jsonl QUESTIONS.jsonl [COUNT]`.
//!
//! Of each of two kinds, COUNT questions (1,000) are kept, those whose BLAKE3 hash of kind and passage is lowest; the same
//! passages give the same questions. A sentence ends at `.`, `?` or `!` before a space and a capital. A *content word* has
//! three or more letters, digits or `_` and stands in at most one passage of twenty; being that rare takes the place of a
//! list of stop words.
//!
//! - `keywords`: the sentence of 8 to 40 words, four of five of letters only, whose content words outside the title tell
//!   the most: the sum of ln(N / df) over three, the rarest of those that stand in one passage of a thousand or more. The
//!   question is these three in the order of the sentence: it resembles what people type, and neither the title nor a
//!   single word gives the passage away.
//! - `definition`: a sentence `X is a …` gives `What is X?`, and one `X returns …`, or with a verb of the same kind, gives
//!   `What does X do?`. X has at most four words, a content word among them, no word that points at something else, and
//!   is explained so by no other passage.

use hedgerow::Document;
use hedgerow_benches::passages_of;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [passages, questions, rest @ ..] = arguments.as_slice() else {
        eprintln!("usage: single_passage PASSAGES.jsonl QUESTIONS.jsonl [COUNT]");
        std::process::exit(2);
    };
    let count = rest.first().map_or(1000, |count| count.parse().expect("COUNT is a number"));
    let passages = passages_of(Path::new(passages));
    let frequencies = Frequencies::of(&passages);
    let mut out = BufWriter::new(File::create(questions).expect("QUESTIONS.jsonl can be written"));
    for (kind, all) in
        [("keywords", keywords(&passages, &frequencies)), ("definition", definitions(&passages, &frequencies))]
    {
        println!("{kind}: {} of {} possible", count.min(all.len()), all.len());
        for (key, question) in chosen(kind, all, count) {
            let src = key.split_once('-').map_or("", |(set, _)| set);
            let line =
                json!({"id": format!("{kind}-{key}"), "question": question, "gold": [key], "type": kind, "src": src});
            writeln!(out, "{line}").expect("a line can be written");
        }
    }
    out.flush().expect("all lines can be written");
}

/// Key of a passage, and a question that it answers.
type Asked = (String, String);

/// The questions with the lowest hashes.
fn chosen(kind: &str, mut all: Vec<Asked>, count: usize) -> Vec<Asked> {
    all.sort_by_key(|(key, _)| *blake3::hash(format!("{kind} {key}").as_bytes()).as_bytes());
    all.truncate(count);
    all
}

/// In how many passages each word stands.
struct Frequencies {
    passages: usize,
    by_word: BTreeMap<String, usize>,
}

impl Frequencies {
    fn of(passages: &[Document]) -> Self {
        let mut by_word = BTreeMap::new();
        for passage in passages {
            let words: BTreeSet<String> = words(&passage.text).map(str::to_lowercase).collect();
            for word in words {
                *by_word.entry(word).or_default() += 1;
            }
        }
        Self { passages: passages.len(), by_word }
    }

    /// The passages with a content word; none for any other word.
    fn of_content(&self, word: &str) -> Option<usize> {
        let count = *self.by_word.get(&word.to_lowercase())?;
        (word.chars().count() >= 3 && count <= self.passages / 20).then_some(count)
    }

    /// ln(N / df) of a content word that does not give its passage away by itself.
    #[expect(clippy::cast_precision_loss, reason = "counts of passages")]
    fn told_by(&self, word: &str) -> Option<f64> {
        let count = self.of_content(word).filter(|count| *count >= self.passages / 1000)?;
        Some((self.passages as f64 / count as f64).ln())
    }
}

/// Runs of letters, digits and `_`.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

fn sentences(text: &str) -> Vec<&str> {
    let (mut found, mut start) = (Vec::new(), 0);
    for (at, mark) in text.match_indices(['.', '?', '!']) {
        let rest = &text[at + mark.len()..];
        let next = rest.trim_start();
        if rest.len() > next.len() && next.starts_with(char::is_uppercase) {
            found.push(text[start..=at].trim());
            start = text.len() - next.len();
        }
    }
    found.push(text[start..].trim());
    found
}

const KEYWORDS: usize = 3;

fn keywords(passages: &[Document], frequencies: &Frequencies) -> Vec<Asked> {
    let of = |passage: &Document| {
        let title: BTreeSet<String> = words(&passage.title).map(str::to_lowercase).collect();
        let mut best: Option<(f64, Vec<&str>)> = None;
        for sentence in sentences(&passage.text).into_iter().filter(|sentence| is_prose(sentence)) {
            let (told, kept) = telling(sentence, &title, frequencies);
            if kept.len() == KEYWORDS && best.as_ref().is_none_or(|(most, _)| told > *most) {
                best = Some((told, kept));
            }
        }
        best.map(|(_, kept)| (passage.key.clone(), kept.join(" ")))
    };
    passages.iter().filter_map(of).collect()
}

/// Whether it has 8 to 40 words, four of five of letters only.
fn is_prose(sentence: &str) -> bool {
    let words: Vec<&str> = sentence.split_whitespace().collect();
    let of_letters =
        |word: &&&str| word.trim_matches(|c: char| c.is_ascii_punctuation()).chars().all(char::is_alphabetic);
    (8..=40).contains(&words.len()) && words.iter().filter(of_letters).count() * 5 >= words.len() * 4
}

/// The rarest content words outside the title in the order of the sentence, and how much they tell.
fn telling<'t>(sentence: &'t str, title: &BTreeSet<String>, frequencies: &Frequencies) -> (f64, Vec<&'t str>) {
    let mut seen = BTreeSet::new();
    let mut content: Vec<(usize, &str, f64)> = Vec::new();
    for (place, word) in words(sentence).enumerate() {
        let lower = word.to_lowercase();
        let told = frequencies.told_by(word).filter(|_| !title.contains(&lower));
        if let Some(told) = told.filter(|_| seen.insert(lower)) {
            content.push((place, word, told));
        }
    }
    content.sort_by(|a, b| b.2.total_cmp(&a.2).then(a.0.cmp(&b.0)));
    content.truncate(KEYWORDS);
    content.sort_by_key(|(place, ..)| *place);
    (content.iter().map(|(.., told)| told).sum(), content.into_iter().map(|(_, word, _)| word).collect())
}

const SUBJECT_WORDS_MAX: usize = 4;
/// What a thing does.
const DOES: [&str; 16] = [
    "returns",
    "provides",
    "defines",
    "creates",
    "specifies",
    "controls",
    "allows",
    "contains",
    "represents",
    "sets",
    "describes",
    "converts",
    "implements",
    "performs",
    "removes",
    "checks",
];
/// What begins a phrase that names nothing by itself.
const POINTING: [&str; 48] = [
    "this",
    "that",
    "these",
    "those",
    "it",
    "its",
    "they",
    "their",
    "he",
    "she",
    "we",
    "you",
    "your",
    "there",
    "here",
    "what",
    "which",
    "who",
    "if",
    "when",
    "where",
    "while",
    "each",
    "any",
    "all",
    "some",
    "another",
    "one",
    "such",
    "both",
    "most",
    "many",
    "other",
    "and",
    "or",
    "but",
    "for",
    "in",
    "on",
    "as",
    "to",
    "of",
    "by",
    "with",
    "not",
    "note",
    "also",
    "following",
];

fn definitions(passages: &[Document], frequencies: &Frequencies) -> Vec<Asked> {
    let mut by_subject: BTreeMap<String, Vec<Asked>> = BTreeMap::new();
    for passage in passages {
        for sentence in sentences(&passage.text) {
            if let Some((subject, question)) = explained(sentence, frequencies) {
                by_subject.entry(subject).or_default().push((passage.key.clone(), question));
            }
        }
    }
    let mut once = BTreeMap::new();
    for asked in by_subject.into_values() {
        // More than once in a passage is as good as once.
        if let [(key, question), rest @ ..] = asked.as_slice()
            && rest.iter().all(|(other, _)| other == key)
        {
            once.entry(key.clone()).or_insert_with(|| question.clone());
        }
    }
    once.into_iter().collect()
}

/// What a sentence explains, in lower case, and the question about it.
fn explained(sentence: &str, frequencies: &Frequencies) -> Option<(String, String)> {
    let mut words: Vec<&str> = sentence.split_whitespace().take(SUBJECT_WORDS_MAX + 3).collect();
    if words.first().is_some_and(|first| ["The", "A", "An"].contains(first)) {
        words.remove(0);
    }
    let verb = words.iter().position(|word| *word == "is" || *word == "are" || DOES.contains(word))?;
    let (subject, rest) = words.split_at(verb);
    let is_name = (1..=SUBJECT_WORDS_MAX).contains(&subject.len())
        && subject
            .iter()
            .all(|word| !POINTING.contains(&word.to_lowercase().as_str()) && !word.ends_with([',', ':', ';']))
        && subject.iter().flat_map(|part| crate::words(part)).any(|word| frequencies.of_content(word).is_some());
    let subject = subject.join(" ");
    let question = match rest {
        [verb, ..] if DOES.contains(verb) => format!("What does {subject} do?"),
        [verb, "a" | "an" | "the" | "one", ..] => format!("What {verb} {subject}?"),
        _ => return None,
    };
    is_name.then(|| (subject.to_lowercase(), question))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passages() -> Vec<Document> {
        let filler =
            (0..60).map(|number| Document::new(format!("f-{number}")).text("The other thing is said of it here."));
        let mut passages: Vec<Document> = filler.collect();
        let text = "See below. The garbage collector frees unreachable objects whenever memory becomes rather scarce. \
                    Sweeper returns the freed pages.";
        passages.push(Document::new("lang-1").title("Collector").text(text));
        let text =
            "Unreachable objects, garbage and scarce memory are freed. A sweeper is a thread. Nobody frees pages.";
        passages.push(Document::new("lang-2").title("Other").text(text));
        passages
    }

    #[test]
    fn keywords_are_the_rare_words_of_one_sentence_without_those_of_the_title() {
        let passages = passages();
        let asked = keywords(&passages, &Frequencies::of(&passages));
        let of = |key: &str| asked.iter().find(|(passage, _)| passage == key).map(|(_, question)| question.as_str());
        assert_eq!(of("lang-1"), Some("whenever becomes rather"));
    }

    #[test]
    fn a_definition_is_asked_for_only_where_one_passage_has_it() {
        let passages = passages();
        let frequencies = Frequencies::of(&passages);
        assert_eq!(definitions(&passages, &frequencies), []);
        let explained = |sentence| explained(sentence, &frequencies).map(|(_, question)| question);
        assert_eq!(explained("A sweeper is a thread."), Some("What is sweeper?".into()));
        assert_eq!(explained("Sweeper returns the freed pages."), Some("What does Sweeper do?".into()));
        assert_eq!(explained("This sweeper is a thread."), None);
        assert_eq!(explained("Nothing here is a thread."), None);
    }

    #[test]
    fn sentences_end_before_capitals_only() {
        assert_eq!(sentences("Use a.b. It works? yes. No"), ["Use a.b.", "It works? yes.", "No"]);
        assert_eq!(sentences(""), [""]);
    }

    #[test]
    fn the_choice_follows_from_the_hashes_alone() {
        let all: Vec<Asked> = (0..9).map(|number| (format!("k{number}"), String::new())).collect();
        let backwards: Vec<Asked> = all.iter().rev().cloned().collect();
        assert_eq!(chosen("keywords", all, 4), chosen("keywords", backwards, 4));
    }
}
