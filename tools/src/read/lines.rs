//! JSON lines: the lines of a file with their numbers, and what a line must hold to be a document or a triple.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use serde_json::{Map, Value};

/// A line that has text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its number, from 1.
    pub number: u64,
    /// Its text without the line end.
    pub text: String,
}

/// Why a line cannot be read; only the last reason ends the reading.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// The line exceeds the limit.
    #[error("the line is longer than {LINE_BYTES_MAX} bytes; split the record")]
    TooLong {
        /// Its number, from 1.
        line: u64,
    },
    /// The line is not UTF-8.
    #[error("the line is not UTF-8 (its byte {byte}); save the file as UTF-8")]
    NotText {
        /// Its number, from 1.
        line: u64,
        /// The first byte that does not fit.
        byte: usize,
    },
    /// The operating system could not read on.
    #[error("line {line} could not be read: {source}")]
    Io {
        /// Its number, from 1.
        line: u64,
        /// What the system says.
        source: io::Error,
    },
}

/// The longest line that is read.
pub const LINE_BYTES_MAX: usize = 64 << 20;

/// Values that a line of JSON may hold: each takes some 32 to 100 bytes once it is read, and as few as two in the line.
/// A document of a million chunks that are only text has fewer.
const VALUES_MAX: usize = 1 << 22;

/// The lines of a source, blank ones left out; at most one line is in memory.
#[derive(Debug)]
pub struct Lines<R> {
    source: R,
    number: u64,
    is_done: bool,
}

impl Lines<BufReader<File>> {
    /// The lines of a file.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Lines::new(BufReader::with_capacity(1 << 18, File::open(path)?)))
    }
}

impl<R: BufRead> Lines<R> {
    /// The lines of any source.
    pub fn new(source: R) -> Self {
        Lines { source, number: 0, is_done: false }
    }

    /// The next line's bytes with its end; `None` inside for a line that is too long; empty at the end.
    fn read_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        let limit = LINE_BYTES_MAX as u64 + 1;
        self.source.by_ref().take(limit).read_until(b'\n', &mut bytes)?;
        if bytes.len() <= LINE_BYTES_MAX || bytes.ends_with(b"\n") {
            return Ok(Some(bytes));
        }
        self.source.skip_until(b'\n')?;
        Ok(None)
    }

    fn line(&self, bytes: Vec<u8>) -> Result<Line, LineError> {
        let number = self.number;
        let mut text = String::from_utf8(bytes)
            .map_err(|error| LineError::NotText { line: number, byte: error.utf8_error().valid_up_to() })?;
        text.truncate(text.trim_end_matches(['\n', '\r']).len());
        if number == 1 && text.starts_with('\u{FEFF}') {
            text.drain(..'\u{FEFF}'.len_utf8());
        }
        Ok(Line { number, text })
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = Result<Line, LineError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.is_done {
            self.number += 1;
            let line = match self.read_line() {
                Ok(Some(bytes)) if bytes.is_empty() => break,
                Ok(Some(bytes)) => self.line(bytes),
                Ok(None) => Err(LineError::TooLong { line: self.number }),
                Err(source) => {
                    self.is_done = true;
                    Err(LineError::Io { line: self.number, source })
                }
            };
            if !line.as_ref().is_ok_and(|line| line.text.trim().is_empty()) {
                return Some(line);
            }
        }
        self.is_done = true;
        None
    }
}

/// A document as a line gives it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DocumentRecord {
    /// Its key.
    pub key: String,
    /// Its title; empty when none is given.
    pub title: String,
    /// Its text; empty when only chunks are given.
    pub text: String,
    /// Its metadata, with the fields that mean nothing else.
    pub metadata: Map<String, Value>,
    /// Its chunks, when the line gives them; never empty.
    pub chunks: Option<Vec<ChunkRecord>>,
}

/// A chunk as a line gives it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChunkRecord {
    /// Its text.
    pub text: String,
    /// Its metadata, with the fields that mean nothing else.
    pub metadata: Map<String, Value>,
}

/// A relation as a line gives it.
#[derive(Clone, Debug, PartialEq)]
pub struct TripleRecord {
    /// Name of the entity it starts from.
    pub subject: String,
    /// Its label.
    pub predicate: String,
    /// Name of the entity it leads to.
    pub object: String,
    /// Key of the chunk that says so.
    pub chunk: Option<String>,
    /// Key of the document that says so.
    pub document: Option<String>,
    /// How strongly; finite and above zero, 1 when not given.
    pub weight: f32,
    /// Type of the subject; empty when unknown.
    pub subject_type: String,
    /// Type of the object; empty when unknown.
    pub object_type: String,
}

/// Reads `{"key" or "id", "title", "text", "metadata", "chunks"?: [{"text", "metadata"}]}`; other fields become metadata.
///
/// # Errors
/// A sentence that names the field, what was expected and what was found.
pub fn document_from_json(line: &str) -> Result<DocumentRecord, String> {
    let mut fields = Fields::parse(line)?;
    let key = fields.text("key")?;
    let key = if key.is_some() { key } else { fields.text("id")? };
    let key = key.ok_or("the document has no \"key\" (or \"id\"); give it one")?;
    if key.trim().is_empty() {
        return Err("the document's \"key\" (or \"id\") is empty; give it one".to_owned());
    }
    let title = fields.text("title")?.unwrap_or_default();
    let text = fields.text("text")?;
    let chunks = fields.chunks()?;
    if text.is_none() && chunks.is_none() {
        return Err("the document has neither \"text\" nor \"chunks\"; give it one of them".to_owned());
    }
    let metadata = fields.metadata()?;
    Ok(DocumentRecord { key, title, text: text.unwrap_or_default(), metadata, chunks })
}

/// Reads `{"subject", "predicate", "object", "chunk"? or "document"?, "weight"?, "subject_type"?, "object_type"?}`; other
/// fields are passed over.
///
/// # Errors
/// A sentence that names the field, what was expected and what was found.
pub fn triple_from_json(line: &str) -> Result<TripleRecord, String> {
    let mut fields = Fields::parse(line)?;
    let triple = TripleRecord {
        subject: fields.name("subject")?,
        predicate: fields.name("predicate")?,
        object: fields.name("object")?,
        chunk: fields.text("chunk")?,
        document: fields.text("document")?,
        weight: fields.weight()?,
        subject_type: fields.text("subject_type")?.unwrap_or_default(),
        object_type: fields.text("object_type")?.unwrap_or_default(),
    };
    if triple.chunk.is_some() && triple.document.is_some() {
        return Err("the triple has both \"chunk\" and \"document\"; give one of them".to_owned());
    }
    Ok(triple)
}

/// What is wrong with a line of JSON and where in the line; which line it is, is told beside it.
#[must_use]
pub fn json_fault(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let reason = message.rsplit_once(" at line ").map_or(message.as_str(), |parts| parts.0);
    format!("{reason} (column {})", error.column())
}

/// The fields of an object that are not read yet, and where the object stands, for messages.
struct Fields {
    map: Map<String, Value>,
    place: String,
}

impl Fields {
    fn parse(line: &str) -> Result<Fields, String> {
        if values(line) > VALUES_MAX {
            return Err(format!("the line holds more than {VALUES_MAX} values of JSON; split the record"));
        }
        match serde_json::from_str(line) {
            Ok(Value::Object(map)) => Ok(Fields { map, place: String::new() }),
            Ok(other) => Err(format!("expected an object, found {}", described(&other))),
            Err(error) => Err(format!("expected an object in JSON, found {}", json_fault(&error))),
        }
    }

    /// A field's value; null counts as absent. The order of the fields that remain is kept.
    fn take(&mut self, field: &str) -> Option<Value> {
        self.map.remove(field).filter(|value| !value.is_null())
    }

    fn fault(&self, field: &str, expected: &str, found: &Value) -> String {
        format!("\"{}{field}\": expected {expected}, found {}", self.place, described(found))
    }

    fn text(&mut self, field: &str) -> Result<Option<String>, String> {
        match self.take(field) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.fault(field, "a text", &other)),
        }
    }

    fn name(&mut self, field: &str) -> Result<String, String> {
        match self.text(field)?.map(|name| name.trim().to_owned()) {
            Some(name) if !name.is_empty() => Ok(name),
            found => {
                Err(format!("\"{field}\": expected a name, found {}", found.map_or("nothing", |_| "an empty text")))
            }
        }
    }

    fn weight(&mut self) -> Result<f32, String> {
        let Some(value) = self.take("weight") else {
            return Ok(1.0);
        };
        #[expect(
            clippy::cast_possible_truncation,
            reason = "weights are kept as f32; the range is checked after rounding"
        )]
        let weight = value.as_f64().map(|weight| weight as f32);
        let weight = weight.filter(|weight| weight.is_finite() && *weight > 0.0);
        weight.ok_or_else(|| self.fault("weight", "a finite number above zero", &value))
    }

    fn chunks(&mut self) -> Result<Option<Vec<ChunkRecord>>, String> {
        let chunks = match self.take("chunks") {
            None => return Ok(None),
            Some(Value::Array(chunks)) => chunks,
            Some(other) => return Err(self.fault("chunks", "a list", &other)),
        };
        let chunks = chunks.into_iter().enumerate().map(|(index, chunk)| match chunk {
            Value::Object(map) => {
                let mut fields = Fields { map, place: format!("chunks[{index}].") };
                let text = fields.text("text")?.ok_or_else(|| fields.fault("text", "a text", &Value::Null))?;
                Ok(ChunkRecord { text, metadata: fields.metadata()? })
            }
            other => Err(self.fault(&format!("chunks[{index}]"), "an object", &other)),
        });
        let chunks = chunks.collect::<Result<Vec<_>, String>>()?;
        Ok(Some(chunks).filter(|chunks| !chunks.is_empty()))
    }

    /// The metadata and the fields that were not taken; of two with one name, the one inside `metadata` counts.
    fn metadata(mut self) -> Result<Map<String, Value>, String> {
        let given = match self.take("metadata") {
            None => Map::new(),
            Some(Value::Object(given)) => given,
            Some(other) => return Err(self.fault("metadata", "an object", &other)),
        };
        let mut metadata = self.map;
        metadata.extend(given);
        Ok(metadata)
    }
}

/// How many values JSON may hold at most, told by its signs without parsing it.
fn values(json: &str) -> usize {
    let (mut count, mut is_text, mut is_escaped) = (1, false, false);
    for byte in json.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_text,
            b'"' => is_text = !is_text,
            b',' | b':' | b'[' | b'{' if !is_text => count += 1,
            _ => {}
        }
    }
    count
}

fn described(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(truth) => format!("{truth}"),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) if text.chars().count() <= 40 => format!("the text {text:?}"),
        Value::String(_) => "a text".to_owned(),
        Value::Array(list) => format!("a list of {}", list.len()),
        Value::Object(_) => "an object".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use crate::read::lines::{
        LINE_BYTES_MAX, Lines, TripleRecord, VALUES_MAX, document_from_json, triple_from_json, values,
    };

    #[test]
    fn lines_have_their_numbers_and_blank_ones_are_left_out() {
        let lines = Lines::new("\u{FEFF}{}\r\n\n  \n[1]\n\"é".as_bytes());
        let lines: Vec<_> =
            lines.map(|line| line.unwrap()).map(|line| format!("{} {}", line.number, line.text)).collect();
        assert_eq!(lines, ["1 {}", "4 [1]", "5 \"é"]);
    }

    #[test]
    fn a_line_that_cannot_be_read_does_not_end_the_reading() {
        let long = [&vec![b'x'; LINE_BYTES_MAX + 1], b"\n\xFF\nok\n".as_slice()].concat();
        let found: Vec<String> =
            Lines::new(&long[..]).map(|line| line.map_or_else(|error| error.to_string(), |line| line.text)).collect();
        assert_eq!(found.len(), 3);
        assert!(found[0].starts_with("the line is longer than 67108864 bytes"));
        assert!(found[1].starts_with("the line is not UTF-8 (its byte 0)"));
        assert_eq!(found[2], "ok");
        let longest = [&vec![b'x'; LINE_BYTES_MAX], b"\nok".as_slice()].concat();
        assert_eq!(Lines::new(&longest[..]).filter_map(Result::ok).count(), 2);
    }

    #[test]
    fn documents_keep_unknown_fields_as_metadata() {
        let line = r#"{"id":"k","year":2020,"lang":"en","text":"t","metadata":{"year":1},"title":null,
            "chunks":[{"text":"c","page":3}]}"#;
        let document = document_from_json(line).unwrap();
        assert_eq!((document.key.as_str(), document.title.as_str(), document.text.as_str()), ("k", "", "t"));
        assert_eq!(Value::Object(document.metadata), serde_json::json!({"year": 1, "lang": "en"}));
        let chunks = document.chunks.unwrap();
        assert_eq!((chunks[0].text.as_str(), &chunks[0].metadata["page"]), ("c", &Value::from(3)));
    }

    #[test]
    fn documents_of_wrong_types_name_field_expectation_and_finding() {
        for (line, reason) in [
            ("[]", "expected an object, found a list of 0"),
            (r#"{"key":7}"#, r#""key": expected a text, found the number 7"#),
            (r#"{"text":"t"}"#, r#"the document has no "key" (or "id"); give it one"#),
            (r#"{"key":" ","text":"t"}"#, r#"the document's "key" (or "id") is empty; give it one"#),
            (r#"{"key":"k","text":["t"]}"#, r#""text": expected a text, found a list of 1"#),
            (r#"{"key":"k","chunks":[]}"#, r#"the document has neither "text" nor "chunks"; give it one of them"#),
            (r#"{"key":"k","chunks":[{"text":"a"},{}]}"#, r#""chunks[1].text": expected a text, found nothing"#),
            (r#"{"key":"k","chunks":["a"]}"#, r#""chunks[0]": expected an object, found the text "a""#),
            (r#"{"key":"k","text":"","metadata":true}"#, r#""metadata": expected an object, found true"#),
        ] {
            assert_eq!(document_from_json(line).unwrap_err(), reason);
        }
        let reason = "expected an object in JSON, found EOF while parsing an object (column 1)";
        assert_eq!(document_from_json("{").unwrap_err(), reason);
    }

    #[test]
    fn hostile_json_is_refused_before_it_is_built() {
        let wide = format!(r#"{{"key":"k","text":"t","a":[{}0]}}"#, "0,".repeat(VALUES_MAX));
        let many = |line: &str| document_from_json(line).unwrap_err();
        assert_eq!(many(&wide), "the line holds more than 4194304 values of JSON; split the record");
        assert_eq!(triple_from_json(&wide).unwrap_err(), many(&wide));
        for open in ["[", r#"{"a":"#] {
            let deep = format!(r#"{{"key":"k","text":"t","a":{}"#, open.repeat(1_000_000));
            assert!(many(&deep).contains("recursion limit"), "{}", many(&deep));
        }
        for line in ["\0", "{\"key\":\"a\0b\"}", r#"{"key":"\ud800"}"#, r#"{"key":1e999}"#] {
            assert!(many(line).starts_with("expected an object in JSON, found "), "{}", many(line));
        }
    }

    #[test]
    fn signs_in_texts_are_no_values() {
        for (json, count) in [("1", 1), (r#"{"a":[1,2],"b":"x"}"#, 7), (r#""a,\",{[:""#, 1), (r#"["\\",1]"#, 3)] {
            assert_eq!(values(json), count, "{json}");
        }
    }

    #[test]
    fn triples_are_read_with_defaults() {
        let line =
            r#"{"subject":" A ","predicate":"owns","object":"B","weight":0.5,"document":"d","object_type":"team"}"#;
        let triple = TripleRecord {
            subject: "A".to_owned(),
            predicate: "owns".to_owned(),
            object: "B".to_owned(),
            chunk: None,
            document: Some("d".to_owned()),
            weight: 0.5,
            subject_type: String::new(),
            object_type: "team".to_owned(),
        };
        assert_eq!(triple_from_json(line), Ok(triple));
    }

    #[test]
    fn triples_without_names_or_with_impossible_weights_are_refused() {
        for (line, reason) in [
            (r#"{"predicate":"p","object":"B"}"#, r#""subject": expected a name, found nothing"#),
            (r#"{"subject":" ","predicate":"p","object":"B"}"#, r#""subject": expected a name, found an empty text"#),
            (
                r#"{"subject":"A","predicate":"p","object":"B","chunk":"c","document":"d"}"#,
                r#"the triple has both "chunk" and "document"; give one of them"#,
            ),
        ] {
            assert_eq!(triple_from_json(line).unwrap_err(), reason);
        }
        for weight in ["0", "-1", "1e39", "1e-60", "\"1\""] {
            let line = format!(r#"{{"subject":"A","predicate":"p","object":"B","weight":{weight}}}"#);
            let reason = triple_from_json(&line).unwrap_err();
            assert!(reason.starts_with("\"weight\": expected a finite number above zero, found "), "{reason}");
        }
    }
}
