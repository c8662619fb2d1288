//! Relations by sentence patterns: two mentions of one sentence with a known verb phrase between them.

use std::ops::Range;

use hedgerow::{Certainty, FoundRelation};
use hedgerow_format::name::{Token, name_key_text};

use crate::extract::{Shape, Span, starts_block};

/// The relations that the text states, in the order of their verbs.
///
/// | form | verb phrases | what may stand between the subject and the phrase |
/// |---|---|---|
/// | passive | `owned by`, `operated by`, `maintained by`, `staffed by`, `triggered by`, `caused by`, `released by`, `written by`, `recorded by` | nothing, a form of `be`, or an aside after a comma |
/// | noun | `part of`, `member of` | a form of `be`, or an aside after a comma |
/// | active | `owns`, `operates`, `maintains`, `depends on` | anything below |
///
/// At most three tokens part the phrase from each mention. Nothing is taken from a denial (`not`, `never`, `no longer`), from a
/// subject that hangs on a preposition or is cut off by a conjunction, nor from an object behind a preposition: the
/// sentence then speaks of something else. Precision is preferred to recall.
pub fn relations(text: &str, tokens: &[Token<'_>], shapes: &[Shape], mentions: &[Span]) -> Vec<FoundRelation> {
    let reader = Reader { text, tokens, shapes, mentions };
    let mut found = Vec::new();
    let mut sentence = 0..0;
    for at in 0..tokens.len() {
        let Some(phrase) = reader.phrase(at) else {
            continue;
        };
        if at >= sentence.end {
            sentence = reader.sentence(sentence.end, at);
        }
        found.extend(reader.relation(at, &phrase, &sentence));
    }
    found
}

const GAP_TOKENS_MAX: usize = 3;
/// Mentions that overlap stand side by side; more than this many at one place are not looked at.
const OVERLAPPING_MENTIONS_MAX: usize = 6;

struct Phrase {
    label: &'static str,
    form: Form,
}

impl Phrase {
    fn tokens(&self) -> usize {
        self.label.split(' ').count()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Passive,
    Noun,
    Active,
}

struct Reader<'a> {
    text: &'a str,
    tokens: &'a [Token<'a>],
    shapes: &'a [Shape],
    mentions: &'a [Span],
}

impl<'a> Reader<'a> {
    /// The verb phrase that starts at a token.
    fn phrase(&self, at: usize) -> Option<Phrase> {
        if self.shapes.get(at) != Some(&Shape::Word) {
            return None;
        }
        let (label, form, second) = match self.word(at) {
            "owned" => ("owned by", Form::Passive, "by"),
            "operated" => ("operated by", Form::Passive, "by"),
            "maintained" => ("maintained by", Form::Passive, "by"),
            "staffed" => ("staffed by", Form::Passive, "by"),
            "triggered" => ("triggered by", Form::Passive, "by"),
            "caused" => ("caused by", Form::Passive, "by"),
            "released" => ("released by", Form::Passive, "by"),
            "written" => ("written by", Form::Passive, "by"),
            "recorded" => ("recorded by", Form::Passive, "by"),
            "part" => ("part of", Form::Noun, "of"),
            "member" => ("member of", Form::Noun, "of"),
            "depends" | "depend" => ("depends on", Form::Active, "on"),
            "owns" => {
                return Some(Phrase { label: "owns", form: Form::Active });
            }
            "operates" => {
                return Some(Phrase { label: "operates", form: Form::Active });
            }
            "maintains" => {
                return Some(Phrase { label: "maintains", form: Form::Active });
            }
            _ => return None,
        };
        (self.word(at + 1) == second).then_some(Phrase { label, form })
    }

    fn relation(&self, at: usize, phrase: &Phrase, sentence: &Range<usize>) -> Option<FoundRelation> {
        let after = at + phrase.tokens();
        let subject = self.subject(at, sentence)?;
        let object = self.object(after, sentence)?;
        if self.hangs_on_preposition(subject.first)
            || !self.may_stand_between(phrase.form, subject, subject.last + 1..at)
            || (after..object.first).any(|at| is_preposition(self.word(at)))
        {
            return None;
        }
        let (subject, object) = (self.name(subject)?, self.name(object)?);
        let evidence = self.tokens.get(sentence.clone())?;
        let range = evidence.first()?.start..evidence.last()?.end;
        (name_key_text(subject) != name_key_text(object)).then(|| FoundRelation {
            subject: subject.to_owned(),
            predicate: phrase.label.to_owned(),
            object: object.to_owned(),
            weight: 1.0,
            range,
        })
    }

    /// The mention that ends nearest before the phrase; of several that end there, the longest.
    fn subject(&self, at: usize, sentence: &Range<usize>) -> Option<&'a Span> {
        let before = self.mentions.partition_point(|span| span.first < at);
        self.mentions
            .iter()
            .take(before)
            .rev()
            .take(OVERLAPPING_MENTIONS_MAX)
            .filter(|span| is_thing(span) && span.first >= sentence.start && span.last < at)
            .filter(|span| at - span.last <= GAP_TOKENS_MAX + 1)
            .max_by_key(|span| (span.last, usize::MAX - span.first))
    }

    /// The mention that starts nearest after the phrase; of several that start there, the longest, as they are in that order.
    fn object(&self, after: usize, sentence: &Range<usize>) -> Option<&'a Span> {
        let next = self.mentions.partition_point(|span| span.first < after);
        self.mentions
            .iter()
            .skip(next)
            .take(OVERLAPPING_MENTIONS_MAX)
            .find(|span| is_thing(span))
            .filter(|span| span.first - after <= GAP_TOKENS_MAX && span.last < sentence.end)
    }

    fn may_stand_between(&self, form: Form, subject: &Span, gap: Range<usize>) -> bool {
        let opening = self.word(gap.start);
        let is_empty = gap.is_empty();
        let opens_aside = !is_empty && matches!(opening, "," | "(");
        // `Both types are part of …`: the word that opens the sentence is no name.
        if subject.certainty == Certainty::SentenceStart && !is_empty && !opens_aside && !is_be(opening) {
            return false;
        }
        let mut has_be = false;
        for word in gap.map(|at| self.word(at)) {
            match word {
                "not" | "never" | "no" | "longer" | "t" => return false,
                "and" | "or" | "but" | ";" if !has_be => return false,
                _ => has_be |= is_be(word),
            }
        }
        match form {
            Form::Passive => is_empty || opens_aside || has_be,
            Form::Noun => opens_aside || has_be,
            Form::Active => true,
        }
    }

    /// Whether a name is the object of a preposition, an article between them or not.
    fn hangs_on_preposition(&self, first: usize) -> bool {
        let Some(before) = first.checked_sub(1) else {
            return false;
        };
        let before =
            if matches!(self.word(before), "the" | "The" | "a" | "an") { before.checked_sub(1) } else { Some(before) };
        before.is_some_and(|before| is_preposition(self.word(before)))
    }

    /// The tokens of the sentence around `at`; `from` is known to start one.
    fn sentence(&self, from: usize, at: usize) -> Range<usize> {
        let start = (from + 1..=at).rfind(|&at| self.starts_sentence(at)).unwrap_or(from);
        let end = (at + 1..self.tokens.len()).find(|&at| self.starts_sentence(at)).unwrap_or(self.tokens.len());
        start..end
    }

    /// Whether a token begins a block, or follows a full stop (and closing signs) and a space without being in lower case;
    /// the stop of an initial or a form of address ends nothing.
    fn starts_sentence(&self, at: usize) -> bool {
        let before = at.checked_sub(1).and_then(|before| self.tokens.get(before));
        let (Some(before), Some(token)) = (before, self.tokens.get(at)) else {
            return true;
        };
        if before.end == token.start {
            return false;
        }
        if starts_block(self.text, self.tokens, at) {
            return true;
        }
        let closing = if matches!(before.text, "\"" | "”" | ")" | "'" | "’") { 2 } else { 1 };
        let Some(stop) = at.checked_sub(closing) else {
            return false;
        };
        let abbreviates = || {
            stop.checked_sub(1).is_some_and(|before| {
                let word = self.word(before);
                let is_initial = self.shapes.get(before) == Some(&Shape::Upper) && word.chars().nth(1).is_none();
                is_initial || matches!(word, "Dr" | "Mr" | "Mrs" | "Ms" | "St" | "Prof" | "Gen" | "Col" | "Lt" | "Capt")
            })
        };
        match self.word(stop) {
            "!" | "?" => true,
            "." => !token.text.starts_with(char::is_lowercase) && !abbreviates(),
            _ => false,
        }
    }

    fn name(&self, span: &Span) -> Option<&'a str> {
        self.text.get(span.bytes(self.tokens))
    }

    fn word(&self, at: usize) -> &'a str {
        self.tokens.get(at).map_or("", |token| token.text)
    }
}

/// Dates own nothing and cause nothing.
fn is_thing(span: &Span) -> bool {
    !matches!(span.kind, "date" | "year")
}

fn is_be(word: &str) -> bool {
    matches!(word, "is" | "are" | "was" | "were" | "be" | "been" | "being" | "became" | "remains")
}

fn is_preposition(word: &str) -> bool {
    matches!(
        word,
        "of" | "in"
            | "at"
            | "by"
            | "from"
            | "on"
            | "with"
            | "about"
            | "near"
            | "to"
            | "for"
            | "as"
            | "under"
            | "between"
            | "In"
            | "At"
    )
}

#[cfg(test)]
mod tests {
    use hedgerow::Extract;

    use crate::extract::Patterns;

    fn check(text: &str, expected: &[(&str, &str, &str)]) {
        let found = Patterns.extract("", text).unwrap().relations;
        let found: Vec<_> =
            found.iter().map(|it| (it.subject.as_str(), it.predicate.as_str(), it.object.as_str())).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn each_form_of_sentence_gives_its_relation() {
        check("Gate Scheduler is owned by Ground Systems.", &[("Gate Scheduler", "owned by", "Ground Systems")]);
        check("Payments is maintained by the Platform team.", &[("Payments", "maintained by", "Platform")]);
        check("INC-2209 was triggered by the Gate Cap.", &[("INC-2209", "triggered by", "Gate Cap")]);
        check("The Wall, released by Pink Floyd, sold well.", &[("Wall", "released by", "Pink Floyd")]);
        check("Roger Waters was a member of Pink Floyd.", &[("Roger Waters", "member of", "Pink Floyd")]);
        check("Crew Rules depends on gate_scheduler.", &[("Crew Rules", "depends on", "gate_scheduler")]);
        check("Both services depend on Crew Rules; Crew Desk owns Gate Two.", &[("Crew Desk", "owns", "Gate Two")]);
    }

    #[test]
    fn denials_fragments_dates_and_loops_state_nothing() {
        check("Gate Scheduler is no longer owned by Ground Systems.", &[]);
        check("Gate Scheduler isn't owned by Ground Systems.", &[]);
        check("Mark saw Gate Scheduler. Owned by Ground Systems.", &[]);
        check("It was filmed in Vermont, and released by Artist View.", &[]);
        check("A song written by Mack David, recorded by Ricky Skaggs.", &[]);
        check("Air France operates flights to Rome.", &[]);
        check("In May 1965 was recorded by Pink Floyd.", &[]);
        check("Pink Floyd is part of Pink Floyd.", &[]);
        check("Both types are part of Standard SQL.", &[]);
    }

    #[test]
    fn the_evidence_is_the_sentence() {
        let text = "See J. Smith. The Gate Scheduler is owned by Ops Tools. It runs.\n\nEnd";
        let found = Patterns.extract("", text).unwrap().relations;
        assert_eq!(&text[found[0].range.clone()], "The Gate Scheduler is owned by Ops Tools.");
        let text = "- Gate A is owned by Dr. Who\n- Gate B is owned by Ops";
        let found = Patterns.extract("", text).unwrap().relations;
        assert_eq!(&text[found[0].range.clone()], "- Gate A is owned by Dr. Who");
        assert_eq!(&text[found[1].range.clone()], "- Gate B is owned by Ops");
    }
}
