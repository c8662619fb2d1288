//! Mentions by the shape of words: capitalised runs first, then identifiers, dates and quoted names beside them.

use hedgerow::Certainty;
use hedgerow_format::name::{Token, fold_lower_into, is_meaningful, is_stop_word, name_key_text};

use crate::extract::scripts::{self, closing, ends_clause, is_unspaced};
use crate::extract::{Shape, Span, starts_block};

/// All mentions of a text in the order of their first token, longer ones first.
pub fn mentions(text: &str, tokens: &[Token<'_>], shapes: &[Shape]) -> Vec<Span> {
    let reader = Reader { text, tokens, shapes };
    let mut spans = reader.runs();
    let runs = spans.len();
    for at in 0..tokens.len() {
        let extra = reader.quoted(at).or_else(|| reader.date(at)).or_else(|| reader.identifier(at));
        let Some((first, last, kind)) = extra else {
            continue;
        };
        // Runs never overlap and stand in order; one that covers the same tokens only learns its kind.
        let known = spans.get_mut(..runs).unwrap_or_default();
        let place = known.partition_point(|run| run.first < first);
        match known.get_mut(place) {
            Some(run) if (run.first, run.last) == (first, last) => run.kind = kind,
            _ => {
                let span = Span { first, last, kind, certainty: Certainty::Certain };
                spans.extend(reader.meaningful(span));
            }
        }
    }
    spans.sort_by_key(|span| (span.first, usize::MAX - span.last));
    spans
}

const QUOTED_TOKENS_MAX: usize = 8;

struct Reader<'a> {
    text: &'a str,
    tokens: &'a [Token<'a>],
    shapes: &'a [Shape],
}

impl<'a> Reader<'a> {
    fn runs(&self) -> Vec<Span> {
        let mut found = Vec::with_capacity(self.tokens.len() / 8);
        let mut at = 0;
        while at < self.tokens.len() {
            let year = self.shape(at) == Some(Shape::Digits) && self.word(at).chars().count() == 4;
            if year || self.is_upper(at) {
                let last = self.run_end(at);
                found.extend(self.trimmed_run(at, last).and_then(|span| self.meaningful(span)));
                at = last + 1;
            } else {
                at += 1;
            }
        }
        found
    }

    /// The last token of the run that starts at `start`.
    fn run_end(&self, start: usize) -> usize {
        let starts_with_name = self.is_upper(start);
        let (mut last, mut at) = (start, start + 1);
        while let Some(shape) = self.shape(at) {
            match shape {
                _ if starts_block(self.text, self.tokens, at) => break,
                Shape::Upper => last = at,
                Shape::Digits if starts_with_name => last = at,
                Shape::Word | Shape::Sign('&') if self.is_connector(at) => {
                    if !self.is_upper(at + 1) && !self.is_connector(at + 1) {
                        break;
                    }
                }
                Shape::Word if scripts::is_connector(self.word(at)) => {
                    // Hyphens may stand around it: Ростов-на-Дону.
                    let next = if self.sign(at + 1) == Some('-') && self.touches(at) { at + 2 } else { at + 1 };
                    if !self.is_upper(next) {
                        break;
                    }
                }
                Shape::Sign('・') if is_unspaced(self.word(at - 1)) && self.is_upper(at + 1) => {}
                Shape::Sign('-' | '\'' | '’') if self.is_word(at + 1) => {}
                Shape::Sign('.') if self.is_initial(at - 1) && self.is_upper(at + 1) => {}
                _ => break,
            }
            at += 1;
        }
        last
    }

    /// A run without the stop words that lead it.
    fn trimmed_run(&self, start: usize, last: usize) -> Option<Span> {
        let mut first = start;
        while first <= last && self.is_stop_word(first) {
            first += 1;
        }
        let opens_sentence = first == start && self.opens_sentence(start);
        // Scripts without capitals do not write a sentence's first word in another way.
        let is_among_unspaced =
            is_unspaced(self.word(last)) || (self.touches(last) && is_unspaced(self.word(last + 1)));
        let certainty = if opens_sentence && start == last && self.is_upper(start) && !is_among_unspaced {
            Certainty::SentenceStart
        } else {
            Certainty::Certain
        };
        while first <= last && !self.is_word(first) {
            first += 1;
        }
        (first <= last).then(|| Span { first, last, kind: self.run_kind(first, last), certainty })
    }

    fn opens_sentence(&self, at: usize) -> bool {
        let Some(mut before) = at.checked_sub(1) else {
            return true;
        };
        // A heading may have several signs.
        while before > 0 && self.sign(before) == Some('#') && self.sign(before - 1) == Some('#') {
            before -= 1;
        }
        match self.sign(before) {
            Some('.' | '!' | '?' | '"') => true,
            // The mark of a heading or a list item.
            Some(_) => starts_block(self.text, self.tokens, before),
            None => starts_block(self.text, self.tokens, at),
        }
    }

    fn run_kind(&self, first: usize, last: usize) -> &'static str {
        let ends_in_digits = self.shape(last) == Some(Shape::Digits);
        match last - first {
            0 if ends_in_digits => "year",
            1 if ends_in_digits && self.is_month(first) => "date",
            _ => "name",
        }
    }

    /// At a quote that opens: what it holds up to the quote that closes, without articles and closing punctuation.
    fn quoted(&self, at: usize) -> Option<(usize, usize, &'static str)> {
        let closing = match self.shape(at)? {
            Shape::Sign('"') if at == 0 || !self.touches(at - 1) || !self.is_word(at - 1) => '"',
            Shape::Sign(sign) => closing(sign)?,
            _ => return None,
        };
        let end = (at + 1..self.tokens.len().min(at + QUOTED_TOKENS_MAX + 2))
            .find(|&end| self.shape(end) == Some(Shape::Sign(closing)))?;
        if !self.touches(at) || !self.touches(end - 1) {
            return None;
        }
        let opening = (at + 1..end).find(|&at| self.is_word(at))?;
        let is_article = |at| matches!(self.word(at), "The" | "A" | "An");
        let first = (opening..end).find(|&at| self.is_word(at) && !is_article(at))?;
        let last = (first..end).rfind(|&at| self.is_word(at))?;
        if closing != '"' && closing != '”' && (at..end).any(|at| self.sign(at).is_some_and(ends_clause)) {
            return None;
        }
        let begins_lower = self.word(opening).starts_with(char::is_lowercase);
        (!begins_lower).then_some((first, last, "quoted"))
    }

    fn date(&self, at: usize) -> Option<(usize, usize, &'static str)> {
        let last = match self.shape(at)? {
            Shape::Digits if self.is_year(at) => self.iso_date_end(at),
            Shape::Upper if self.is_month(at) => {
                let after_month = if self.sign(at + 1) == Some('.') { at + 2 } else { at + 1 };
                self.year_end(after_month)
                    .or_else(|| self.is_day(after_month).then(|| self.year_end(after_month + 1)).flatten())
            }
            Shape::Digits | Shape::Word if self.is_day(at) => {
                let month = if self.word(at + 1) == "of" { at + 2 } else { at + 1 };
                self.is_month(month).then(|| self.year_end(month + 1)).flatten()
            }
            _ => None,
        };
        Some((at, last?, "date"))
    }

    fn iso_date_end(&self, at: usize) -> Option<usize> {
        let is_part = |part, max| {
            self.sign(part - 1) == Some('-')
                && self.touches(part - 2)
                && self.touches(part - 1)
                && self.word(part).len() == 2
                && self.word(part).parse().is_ok_and(|number: u8| (1..=max).contains(&number))
        };
        (is_part(at + 2, 12) && is_part(at + 4, 31)).then_some(at + 4)
    }

    /// The token of a year that stands at `at` or after a comma there.
    fn year_end(&self, at: usize) -> Option<usize> {
        let year = if self.sign(at) == Some(',') { at + 1 } else { at };
        self.is_year(year).then_some(year)
    }

    /// Words joined without spaces by `_` or `::`, capitals and digits joined by `-`, or one word such as `camelCase`.
    fn identifier(&self, at: usize) -> Option<(usize, usize, &'static str)> {
        if !self.is_word(at) || (at > 0 && self.touches(at - 1) && matches!(self.sign(at - 1), Some('_' | '-' | ':'))) {
            return None;
        }
        let mut last = at;
        let mut is_code = self.is_upper(at) && self.is_code_part(at);
        let (mut is_path, mut has_number) = (false, false);
        while self.touches(last) && self.touches(last + 1) {
            let (next, joins_path) = match self.sign(last + 1) {
                Some('_') => (last + 2, true),
                Some(':') if self.sign(last + 2) == Some(':') && self.touches(last + 2) => (last + 3, true),
                Some('-') if is_code && !is_path && self.is_code_part(last + 2) => (last + 2, false),
                _ => break,
            };
            if !self.is_word(next) {
                break;
            }
            is_path |= joins_path;
            is_code &= !joins_path;
            has_number |= self.word(next).contains(|letter: char| letter.is_ascii_digit());
            last = next;
        }
        // Two letters are a unit such as kW.
        let is_camel = || {
            let word = self.word(at);
            word.len() > 2 && word.starts_with(char::is_lowercase) && word.contains(char::is_uppercase)
        };
        let is_identifier = if last == at { is_camel() } else { is_path || has_number };
        is_identifier.then_some((at, last, "identifier"))
    }

    fn meaningful(&self, span: Span) -> Option<Span> {
        let name = self.text.get(span.bytes(self.tokens))?;
        is_meaningful(&name_key_text(name)).then_some(span)
    }

    fn shape(&self, at: usize) -> Option<Shape> {
        self.shapes.get(at).copied()
    }

    fn word(&self, at: usize) -> &'a str {
        self.tokens.get(at).map_or("", |token| token.text)
    }

    fn sign(&self, at: usize) -> Option<char> {
        match self.shape(at) {
            Some(Shape::Sign(sign)) => Some(sign),
            _ => None,
        }
    }

    fn is_word(&self, at: usize) -> bool {
        self.shape(at).is_some_and(|shape| !matches!(shape, Shape::Sign(_)))
    }

    fn is_upper(&self, at: usize) -> bool {
        self.shape(at) == Some(Shape::Upper)
    }

    /// Whether no space parts a token from the next.
    fn touches(&self, at: usize) -> bool {
        matches!(self.tokens.get(at..at.saturating_add(2)), Some([token, next]) if token.end == next.start)
    }

    #[rustfmt::skip]
    fn is_connector(&self, at: usize) -> bool {
        matches!(
            self.word(at),
            "of" | "the" | "de" | "la" | "le" | "von" | "van" | "der" | "da" | "del" | "di" | "du" | "al" | "el" | "bin" | "ibn"
                | "and" | "for" | "in" | "on" | "at" | "&" | "to" | "des" | "den" | "y" | "e" | "dos" | "do" | "st"
        )
    }

    fn is_initial(&self, at: usize) -> bool {
        self.is_upper(at) && self.word(at).chars().nth(2).is_none()
    }

    fn is_stop_word(&self, at: usize) -> bool {
        let mut lower = String::new();
        fold_lower_into(self.word(at), &mut lower);
        is_stop_word(&lower) || (!lower.is_ascii() && scripts::is_leading(&lower))
    }

    fn is_code_part(&self, at: usize) -> bool {
        self.is_word(at) && self.word(at).bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
    }

    fn is_year(&self, at: usize) -> bool {
        self.shape(at) == Some(Shape::Digits) && self.word(at).len() == 4
    }

    fn is_day(&self, at: usize) -> bool {
        let word = self.word(at);
        let number = ["st", "nd", "rd", "th"].iter().find_map(|suffix| word.strip_suffix(suffix)).unwrap_or(word);
        number.len() <= 2 && number.parse().is_ok_and(|day: u8| (1..=31).contains(&day))
    }

    fn is_month(&self, at: usize) -> bool {
        const MONTHS: [&str; 12] = [
            "January",
            "February",
            "March",
            "April",
            "May",
            "June",
            "July",
            "August",
            "September",
            "October",
            "November",
            "December",
        ];
        let word = self.word(at);
        word.len() >= 3 && MONTHS.iter().any(|month| word == *month || month.get(..3) == Some(word))
    }
}

#[cfg(test)]
mod tests {
    use hedgerow::{Certainty, Extract};
    use hedgerow_format::name::name_key_text;

    use crate::extract::Patterns;

    /// `key kind` of every mention in order, `?` before an uncertain one.
    fn check(text: &str, expected: &[&str]) {
        let found = Patterns.extract("", text).unwrap().mentions;
        let found: Vec<String> = found
            .iter()
            .map(|mention| {
                assert_eq!(mention.name, text[mention.range.clone()]);
                let doubt = if mention.certainty == Certainty::SentenceStart { "?" } else { "" };
                format!("{doubt}{} {}", name_key_text(&mention.name), mention.kind)
            })
            .collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn runs_follow_connectors_initials_hyphens_and_apostrophes() {
        check("saw Ludwig van Beethoven's Ninth of May", &["ludwig van beethoven name", "ninth of may name"]);
        check("by J. R. R. Tolkien and on", &["j r r tolkien name"]);
        check("Marks & Spencer, Jean-Luc O'Neill", &["marks spencer name", "jean luc o neill name"]);
        check("a Boeing 747 of 1969 fame", &["boeing 747 name", "1969 year"]);
        check("Śrī Bjørn – 東京 Ωmega", &["sri bjørn name", "ωmega name"]);
    }

    #[test]
    fn russian_and_greek_names_are_capitalised_runs_with_their_connectors() {
        check("В Москве живёт Лев Толстой.", &["москве name", "лев толстои name"]);
        check("город Ростов-на-Дону и Вернер фон Браун", &["ростов на дону name", "вернер фон браун name"]);
        check("Это было. Река течёт", &["?река name"]);
        check(
            "στο Πανεπιστήμιο της Αθήνας. Ο Νίκος Καζαντζάκης",
            &["πανεπιστημιο τησ αθηνασ name", "νικοσ καζαντζακησ name"],
        );
    }

    #[test]
    fn names_in_scripts_without_capitals_are_quoted_katakana_or_latin() {
        check("映画『千と千尋の神隠し』を見た", &["千と千尋の神隠し quoted"]);
        check("《红楼梦》的作者", &["红楼梦 quoted"]);
        check("彼は「はい、そうです。」と言った", &[]);
        check(
            "スティーブ・ジョブズはAppleのiPhoneを発表した",
            &["スティーフ ショフス name", "apple name", "iphone identifier"],
        );
        check("Googleマップの店。カフェらーめん", &["googleマッフ name", "カフェ name"]);
        check("ใช้ Windows11กับ Linux", &["windows11 name", "linux name"]);
        check("2024年にNHK交響楽団が", &["2024 year", "nhk name"]);
    }

    #[test]
    fn leading_stop_words_go_and_a_lone_word_that_opens_a_sentence_is_uncertain() {
        check("The Wall. Crews wait. In London it rained.", &["wall name", "?crews name", "london name"]);
        check("It is. He I", &[]);
        check("1965 was", &["1965 year"]);
        check("## Timetable\nSails when Oslo", &["?timetable name", "?sails name", "oslo name"]);
        check("the Gate\nScheduler # of\nRome", &["gate scheduler name", "rome name"]);
        check("# Overview\n\nCrews of Rome\n- Oslo", &["?overview name", "crews of rome name", "?oslo name"]);
    }

    #[test]
    fn identifiers_stand_beside_the_runs_that_hold_them() {
        check("for incident INC-2209 now", &["inc 2209 identifier"]);
        check("the Incident INC-2209", &["incident inc 2209 name", "inc 2209 identifier"]);
        check(
            "call std::fs::read_dir or gate_cap on iPhone, 5 kW",
            &["std fs read dir identifier", "gate cap identifier", "iphone identifier"],
        );
        check("a well-known X-ray", &[]);
    }

    #[test]
    fn dates_are_found_whole_with_the_runs_inside_them() {
        check("on 2024-05-01.", &["2024 05 01 date", "2024 year"]);
        check("on 1 May 2024", &["1 may 2024 date", "may 2024 date"]);
        check("on May 1st, 2024", &["may 1st 2024 date", "may name", "2024 year"]);
        check("on April 1, 1954", &["april 1 1954 date", "april 1 date", "1954 year"]);
        check("on 2024-13-01 or 45 May 2024", &["2024 year", "may 2024 date"]);
    }

    #[test]
    fn quoted_names_lose_their_article_and_closing_signs() {
        check("the album \"Katy Lied\" and", &["katy lied quoted"]);
        check("“The world is not enough,” said", &["world is not enough quoted"]);
        check("a 12\" disc and a 7\" one, \"so it is\"", &[]);
        check("\"A b c d e f g h i j k\"", &[]);
    }
}
