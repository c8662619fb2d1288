//! Reads expressions of filters, by recursive descent.

use std::fmt;

use serde_json::Value;

use crate::query::filter::{Field, FilterError, Neighbourhood, Rule, Sign, Test, TextField};

const BYTES_MAX: usize = 1 << 16;
const CONDITIONS_MAX: usize = 1 << 10;
/// How deep `not` and `(` may stand inside one another; what is read is at most three times as deep.
const DEPTH_MAX: usize = 64;
const PATH_MAX: usize = 64;
/// Characters of a wrong word that an error shows.
const SHOWN_MAX: usize = 40;

const ONE: &str = "a field (kind, source, title, key, media_type, metadata.NAME), `within`, `not` or `(`";
const TEST: &str = "one of = != < <= > >= ~, `in` or `exists`";

/// What a value may be, in words and as a test.
type Accepted = (&'static str, fn(&Value) -> bool);

const TEXT: Accepted = ("a text in double quotes", Value::is_string);
const ORDERED: Accepted = ("a text in double quotes or a number", |value| value.is_string() || value.is_number());
const HOPS: Accepted = ("a number of hops", |value| value.as_u64().is_some_and(|hops| u32::try_from(hops).is_ok()));
const SCALAR: Accepted = ("a text in double quotes, a number, true or false", |value| {
    value.is_string() || value.is_number() || value.is_boolean()
});

/// Reads a whole expression.
pub(super) fn read(expression: &str) -> Result<Rule, FilterError> {
    if expression.len() > BYTES_MAX {
        let found = format!("{} bytes", expression.len());
        let position = expression.floor_char_boundary(BYTES_MAX);
        return Err(FilterError { position, expected: "at most 65,536 bytes", found });
    }
    let mut parser = Parser { expression, position: 0, depth: 0, conditions: 0 };
    parser.skip_space();
    if parser.rest().is_empty() {
        return Ok(Rule::All(Vec::new()));
    }
    let rule = parser.any()?;
    if parser.rest().is_empty() { Ok(rule) } else { Err(parser.error("`and`, `or` or the end")) }
}

struct Parser<'e> {
    expression: &'e str,
    position: usize,
    /// How many of `not` and `(` it is inside.
    depth: usize,
    /// How many it has read.
    conditions: usize,
}

impl<'e> Parser<'e> {
    fn rest(&self) -> &'e str {
        &self.expression[self.position..]
    }

    /// Goes on behind so many bytes and the white space after them.
    fn advance(&mut self, bytes: usize) {
        self.position += bytes;
        self.skip_space();
    }

    fn skip_space(&mut self) {
        self.position = self.expression.len() - self.rest().trim_start().len();
    }

    fn error(&self, expected: &'static str) -> FilterError {
        let found = match Token::of(self.rest()) {
            Some(token) => token.to_string(),
            None => "the end".to_owned(),
        };
        FilterError { position: self.position, expected, found }
    }

    /// Whether a word or a character stands here, which is taken then.
    fn take(&mut self, token: &str) -> bool {
        let is_here = Token::of(self.rest()).is_some_and(|found| found.0 == token);
        if is_here {
            self.advance(token.len());
        }
        is_here
    }

    fn any(&mut self) -> Result<Rule, FilterError> {
        let mut rules = Vec::new();
        loop {
            match self.all()? {
                Rule::Any(inner) => rules.extend(inner),
                rule => rules.push(rule),
            }
            if !self.take("or") {
                return Ok(several(rules, Rule::Any));
            }
        }
    }

    fn all(&mut self) -> Result<Rule, FilterError> {
        let mut rules = Vec::new();
        loop {
            match self.one()? {
                Rule::All(inner) => rules.extend(inner),
                rule => rules.push(rule),
            }
            if !self.take("and") {
                return Ok(several(rules, Rule::All));
            }
        }
    }

    fn one(&mut self) -> Result<Rule, FilterError> {
        let before = self.position;
        let is_not = self.take("not");
        if !is_not && !self.take("(") {
            return self.condition();
        }
        if self.depth == DEPTH_MAX {
            self.position = before;
            return Err(self.error("at most 64 of `not` and `(` inside one another"));
        }
        self.depth += 1;
        let rule = if is_not { Rule::Not(Box::new(self.one()?)) } else { self.any()? };
        self.depth -= 1;
        if is_not || self.take(")") { Ok(rule) } else { Err(self.error("`and`, `or` or `)`")) }
    }

    fn condition(&mut self) -> Result<Rule, FilterError> {
        self.count()?;
        if self.take("within") {
            let hops = self.value(HOPS)?.as_u64().and_then(|hops| u32::try_from(hops).ok()).unwrap_or(u32::MAX);
            if !self.take("of") {
                return Err(self.error("`of` and the key of a node"));
            }
            let of = self.value(TEXT)?.as_str().unwrap_or_default().to_owned();
            return Ok(Rule::Within(Neighbourhood { hops, of }));
        }
        let field = self.field()?;
        let test = self.test(&field)?;
        Ok(Rule::Condition(field, test))
    }

    /// Counts the condition or value of a list that stands here.
    fn count(&mut self) -> Result<(), FilterError> {
        if self.conditions == CONDITIONS_MAX {
            return Err(self.error("at most 1,024 conditions and values of lists"));
        }
        self.conditions += 1;
        Ok(())
    }

    fn field(&mut self) -> Result<Field, FilterError> {
        let name = Token::of(self.rest()).map_or("", |token| token.0);
        let field = match TextField::ALL.into_iter().find(|field| field.name() == name) {
            Some(field) => {
                self.position += name.len();
                Field::Text(field)
            }
            None if name == "metadata" => {
                self.position += name.len();
                Field::Metadata(self.path()?)
            }
            None => return Err(self.error(ONE)),
        };
        self.skip_space();
        Ok(field)
    }

    fn test(&mut self, field: &Field) -> Result<Test, FilterError> {
        let is_text = matches!(field, Field::Text(_));
        if self.take("exists") {
            return Ok(Test::Exists);
        }
        if self.take("~") {
            return self.value(TEXT).map(|text| Test::contains(text.as_str().unwrap_or_default()));
        }
        if self.take("in") {
            return self.list(if is_text { TEXT } else { SCALAR }).map(Test::In);
        }
        let sign = Sign::ALL.into_iter().find(|sign| self.rest().starts_with(sign.written()));
        let sign = sign.ok_or_else(|| self.error(TEST))?;
        self.advance(sign.written().len());
        let accepted = match sign {
            _ if is_text => TEXT,
            Sign::Equal | Sign::Unequal => SCALAR,
            Sign::Less | Sign::LessOrEqual | Sign::Greater | Sign::GreaterOrEqual => ORDERED,
        };
        Ok(Test::Compare(sign, self.value(accepted)?))
    }

    /// Values between `[` and `]`.
    fn list(&mut self, accepted: Accepted) -> Result<Vec<Value>, FilterError> {
        if !self.take("[") {
            return Err(self.error("`[` and values"));
        }
        let mut values = vec![self.value(accepted)?];
        while self.take(",") {
            self.count()?;
            values.push(self.value(accepted)?);
        }
        if self.take("]") { Ok(values) } else { Err(self.error("`,` or `]`")) }
    }

    /// The names after `metadata`, each after a dot.
    fn path(&mut self) -> Result<Vec<String>, FilterError> {
        let mut path = Vec::new();
        while path.is_empty() || self.rest().starts_with('.') {
            if !self.rest().starts_with('.') {
                return Err(self.error("a dot and a name"));
            }
            if path.len() == PATH_MAX {
                return Err(self.error("at most 64 names in a path"));
            }
            self.position += 1;
            let name = Token::of(self.rest()).filter(Token::is_name).ok_or_else(|| self.error("a name"))?;
            self.position += name.0.len();
            path.push(name.0.to_owned());
        }
        Ok(path)
    }

    fn value(&mut self, (expected, is_accepted): Accepted) -> Result<Value, FilterError> {
        let written = literal(self.rest());
        let value = serde_json::from_str(written).ok().filter(is_accepted).ok_or_else(|| self.error(expected))?;
        self.advance(written.len());
        Ok(value)
    }
}

/// One rule as it is, several as one.
fn several(mut rules: Vec<Rule>, joined: fn(Vec<Rule>) -> Rule) -> Rule {
    match rules.pop() {
        Some(rule) if rules.is_empty() => rule,
        last => {
            rules.extend(last);
            joined(rules)
        }
    }
}

/// What stands at the beginning of a text as one value, right or wrong: up to the closing quote, or a run of what numbers and
/// words are made of.
fn literal(text: &str) -> &str {
    let Some(inside) = text.strip_prefix('"') else {
        let end = text.find(|letter| !in_name(letter) && !matches!(letter, '.' | '+'));
        return &text[..end.unwrap_or(text.len())];
    };
    let mut is_escaped = false;
    let end = inside.find(|letter| {
        let ends = letter == '"' && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
        ends
    });
    &text[..end.map_or(text.len(), |end| end + 2)]
}

/// A name (letters, digits, `_` and `-`) or one other character, as errors show it.
struct Token<'e>(&'e str);

impl<'e> Token<'e> {
    fn of(text: &'e str) -> Option<Self> {
        let first = text.chars().next()?;
        let name = text.find(|letter| !in_name(letter)).unwrap_or(text.len());
        Some(Self(&text[..name.max(if in_name(first) { 0 } else { first.len_utf8() })]))
    }

    fn is_name(&self) -> bool {
        self.0.starts_with(in_name)
    }
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(SHOWN_MAX) {
            Some((end, _)) => write!(f, "`{}…`", &self.0[..end]),
            None => write!(f, "`{}`", self.0),
        }
    }
}

fn in_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '-'
}

#[cfg(test)]
mod tests {
    use crate::query::filter::Filter;

    #[test]
    fn an_expression_that_is_too_long_is_refused_where_it_becomes_so() {
        let deep = |names: usize| format!("metadata{} = 1", ".a".repeat(names));
        let wide = |conditions: usize| vec!["key = \"k\""; conditions].join(" and ");
        let listed = |values: usize| format!("key in [{}]", vec!["\"k\""; values].join(", "));
        let nested =
            |depth: usize| format!("{}key exists{}", "not (key exists or ".repeat(depth / 2), ")".repeat(depth / 2));
        let long = |bytes: usize| format!("key = \"{}\"", "é".repeat((bytes - 8) / 2));
        for expression in [deep(64), wide(1024), listed(1024), nested(64), long(65_536)] {
            let filter = Filter::parse(&expression).unwrap();
            assert_eq!(filter.to_string(), expression);
        }
        for (expression, position, expected, found) in [
            (deep(65), 136, "at most 64 names", "`.`"),
            (wide(1025), 1024 * 14, "at most 1,024 conditions", "`key`"),
            (listed(1025), 8 + 1024 * 5, "at most 1,024 conditions", "`\"`"),
            (nested(66), 32 * 19, "at most 64 of", "`not`"),
            ("not ".repeat(16_000), 64 * 4, "at most 64 of", "`not`"),
            ("(".repeat(60_000), 64, "at most 64 of", "`(`"),
            (long(65_538), 65_535, "at most 65,536 bytes", "65538 bytes"),
            (format!("metadata.a = {}1", "[".repeat(60_000)), 13, "a text in double quotes", "`[`"),
            ("x".repeat(60_000), 0, "a field", &format!("`{}…`", "x".repeat(40))),
        ] {
            let error = Filter::parse(&expression).unwrap_err();
            assert_eq!((error.position, error.found.as_str()), (position, found));
            assert!(error.expected.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn errors_say_where_what_was_expected_and_what_was_found() {
        for (expression, position, expected, found) in [
            ("colour = 1", 0, "a field", "`colour`"),
            ("kind \"x\"", 5, "one of = != < <= > >= ~", "`\"`"),
            ("kind == \"x\"", 6, "a text", "`=`"),
            ("kind not in [\"x\"]", 5, "one of = ", "`not`"),
            ("kind = text", 7, "a text", "`text`"),
            ("kind = 3", 7, "a text", "`3`"),
            ("kind < 3", 7, "a text", "`3`"),
            ("kind ~ 3", 7, "a text", "`3`"),
            ("metadata.a ~ 3", 13, "a text", "`3`"),
            ("metadata.a < true", 13, "a text in double quotes or a number", "`true`"),
            ("metadata.a = 1e999", 13, "a text in double quotes, a number", "`1e999`"),
            ("kind = \"x", 7, "a text", "`\"`"),
            ("kind = \"x\" or", 13, "a field", "the end"),
            ("kind = \"x\" and ", 15, "a field", "the end"),
            ("kind = \"x\" AND", 11, "`and`, `or` or the end", "`AND`"),
            ("kind exists)", 11, "`and`, `or` or the end", "`)`"),
            ("kind exists exists", 12, "`and`, `or` or the end", "`exists`"),
            ("not (kind exists", 16, "`and`, `or` or `)`", "the end"),
            ("()", 1, "a field", "`)`"),
            ("not", 3, "a field", "the end"),
            ("kind in \"x\"", 8, "`[`", "`\"`"),
            ("kind in []", 9, "a text", "`]`"),
            ("kind in [\"x\" \"y\"]", 13, "`,` or `]`", "`\"`"),
            ("kind in [\"x\",]", 13, "a text", "`]`"),
            ("metadata.a in [1, null]", 18, "a text in double quotes, a number", "`null`"),
            ("metadata = 1", 8, "a dot", "` `"),
            ("metadata. = 1", 9, "a name", "` `"),
            ("metadata.é = null", 14, "a text in double quotes, a number", "`null`"),
            ("metadata.a = 1.", 13, "a text in double quotes, a number", "`1`"),
            ("metadata.a =", 12, "a text in double quotes, a number", "the end"),
            ("=", 0, "a field", "`=`"),
            ("within \"x\" of 1", 7, "a number of hops", "`\"`"),
            ("within 1.5 of \"x\"", 7, "a number of hops", "`1`"),
            ("within 4294967296 of \"x\"", 7, "a number of hops", "`4294967296`"),
            ("within 2 \"x\"", 9, "`of`", "`\"`"),
            ("within 2 of x", 12, "a text", "`x`"),
        ] {
            let error = Filter::parse(expression).unwrap_err();
            assert_eq!((error.position, error.found.as_str()), (position, found), "{expression}");
            assert!(error.expected.starts_with(expected), "{expression}: {error}");
        }
    }

    #[test]
    fn not_binds_closer_than_and_which_binds_closer_than_or() {
        for (expression, printed) in [
            ("", ""),
            ("key exists or(kind exists)and not title exists", "key exists or kind exists and not title exists"),
            ("(key exists or kind exists) and title exists", "(key exists or kind exists) and title exists"),
            ("not (key exists and kind exists)", "not (key exists and kind exists)"),
            ("not not ((key exists))", "not not key exists"),
            ("key exists and (kind exists and (title exists))", "key exists and kind exists and title exists"),
            ("(key exists or kind exists) or title exists", "key exists or kind exists or title exists"),
            (
                "metadata.in in[1,\"a]\\\"\",true]and metadata.a>=-1",
                "metadata.in in [1, \"a]\\\"\", true] and metadata.a >= -1",
            ),
            ("metadata.a=1 or kind!=\"\"", "metadata.a = 1 or kind != \"\""),
            ("(metadata.a=1)or(kind~\"É\")", "metadata.a = 1 or kind ~ \"É\""),
            ("not(within 2 of\"a b\")", "not within 2 of \"a b\""),
        ] {
            assert_eq!(
                Filter::parse(expression).map(|filter| filter.to_string()).as_deref(),
                Ok(printed),
                "{expression}"
            );
        }
    }
}
