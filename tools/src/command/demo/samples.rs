//! The sample documents that come with the program, and the questions that they answer together.

use std::path::Path;

use crate::command::intake::{Feed, Origin, files};
use crate::failure::Failure;
use crate::read::document::Format;
use crate::read::folder::FileKind;
use crate::read::lines::Lines;

/// A question and where its answer stands.
#[derive(Debug)]
pub(super) struct Story {
    /// What the documents are about.
    pub heading: &'static str,
    /// What is asked.
    pub question: &'static str,
    /// The answer, in a sentence.
    pub answer: &'static str,
    /// Key of the document that is the hardest part of the answer to find.
    pub answer_key: &'static str,
    /// Documents that the answer is taken from, each with words of the sentence that says it.
    pub evidence: &'static [(&'static str, &'static str)],
}

/// The questions, in the order in which they are asked.
pub(super) static STORIES: [Story; 2] = [
    Story {
        heading: "Sixteen pages of an airline's operations",
        question: "Which team should be paged for incident INC-2209, and which team caused it?",
        answer: "Page Ramp Control. Network Planning caused it.",
        answer_key: "airline/stand-conflict-runbook.md",
        evidence: &[
            ("airline/stand-conflict-runbook.md", "duty desk of Ramp Control"),
            ("airline/gate-scheduler.md", "typed in by Network Planning"),
        ],
    },
    Story {
        heading: "Eight notes about Pink Floyd",
        question: "Which rock opera was released by the band formed in 1965?",
        answer: "The Wall.",
        answer_key: "pink-floyd/the-wall",
        evidence: &[("pink-floyd/pink-floyd", "formed in London in 1965"), ("pink-floyd/the-wall", "rock opera")],
    },
];

/// Puts all samples into the feed, under the keys that `ingest` would give them.
///
/// # Errors
/// [`Failure::Interrupted`].
pub(super) fn read(feed: &mut Feed<'_>) -> Result<(), Failure> {
    for (key, text) in AIRLINE {
        let origin = Origin { file: key.into(), line: None };
        feed.document(origin, files::text_document(FileKind::Document(Format::Markdown), key, key, text))?;
    }
    files::read_lines(Lines::new(PINK_FLOYD.as_bytes()), Path::new("pink-floyd.jsonl"), feed)
}

macro_rules! airline {
    ($($name:literal)*) => {
        [$((concat!("airline/", $name), include_str!(concat!("../../../samples/airline/", $name)))),*]
    };
}

static AIRLINE: [(&str, &str); 16] = airline! {
    "aircraft-sk-lar.md"
    "crew-desk.md"
    "crew-duty-rules.md"
    "crew-message-runbook.md"
    "flight-214.md"
    "flight-381.md"
    "flight-612.md"
    "gate-scheduler.md"
    "inc-2174.md"
    "inc-2209-review.md"
    "inc-2209.md"
    "maintenance-control.md"
    "network-planning.md"
    "ramp-control.md"
    "staffing-policy.md"
    "stand-conflict-runbook.md"
};

static PINK_FLOYD: &str = include_str!("../../../samples/pink-floyd.jsonl");

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use crate::command::demo::samples::{AIRLINE, PINK_FLOYD, STORIES};
    use crate::read::lines::document_from_json;

    #[test]
    fn the_words_that_answer_stand_in_the_samples() {
        let mut texts: HashMap<String, String> =
            AIRLINE.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect();
        for line in PINK_FLOYD.lines() {
            let record = document_from_json(line).unwrap();
            texts.insert(record.key, record.text);
        }
        assert_eq!(texts.len(), 24);
        for story in &STORIES {
            assert!(story.evidence.iter().any(|(key, _)| *key == story.answer_key));
            for (key, words) in story.evidence {
                assert!(texts[*key].contains(words), "{key}: {words}");
            }
        }
    }
}
