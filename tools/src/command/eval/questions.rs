//! Questions with known answers, as a file has them, and the vectors that belong to them.

use std::path::Path;

use hedgerow::{Snapshot, Space};
use serde::Deserialize;
use serde_json::Value;

use crate::command::render::layout::counted;
use crate::failure::Failure;
use crate::read::lines::{LineError, Lines, json_fault};
use crate::read::npy::Matrix;
use crate::session::RejectedRecord;

/// A line of the file.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Record {
    pub id: String,
    pub question: String,
    /// Keys of documents or chunks.
    pub gold: Vec<String>,
    /// What kind of question it is.
    #[serde(rename = "type")]
    kind: Option<Value>,
    /// The set that it comes from.
    src: Option<Value>,
    /// Position among all lines, refused ones included: the row of its vector.
    #[serde(skip)]
    pub row: usize,
}

/// The fields by which figures are told apart.
pub(super) const FIELDS: [&str; 2] = ["type", "src"];

impl Record {
    /// Reads a line that stands in such a row.
    pub(super) fn from_json(line: &str, row: usize) -> Result<Self, String> {
        let record: Record = serde_json::from_str(line).map_err(|error| {
            let found = json_fault(&error);
            format!("expected {{\"id\", \"question\", \"gold\": [document keys]}}, found {found}")
        })?;
        if record.gold.is_empty() {
            return Err("\"gold\" names no document; give it at least one key".to_owned());
        }
        Ok(Record { row, ..record })
    }

    /// The values of [`FIELDS`]; none where the line does not have the field.
    pub(super) fn fields(&self) -> [Option<String>; 2] {
        [&self.kind, &self.src].map(|field| match field {
            Some(Value::String(text)) => Some(text.clone()),
            None | Some(Value::Null) => None,
            Some(other) => Some(other.to_string()),
        })
    }
}

/// A file of questions, as far as it can be read.
#[derive(Debug, Default)]
pub(super) struct Records {
    pub good: Vec<Record>,
    pub rejected: Vec<RejectedRecord>,
    pub lines: usize,
}

impl Records {
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let lines = Lines::open(path).map_err(Failure::io("read", path))?;
        let mut records = Records::default();
        for (line, row) in lines.zip(0..) {
            records.lines += 1;
            let (line, parsed) = match line {
                Ok(line) => (line.number, Record::from_json(&line.text, row)),
                Err(LineError::Io { source, .. }) => {
                    return Err(Failure::io("read", path)(source));
                }
                Err(error @ (LineError::TooLong { line } | LineError::NotText { line, .. })) => {
                    (line, Err(error.to_string()))
                }
            };
            match parsed {
                Ok(record) => records.good.push(record),
                Err(reason) => {
                    records.rejected.push(RejectedRecord {
                        file: path.display().to_string(),
                        line: Some(line),
                        reason,
                    });
                }
            }
        }
        Ok(records)
    }
}

/// The questions' own vectors and the space that they belong to.
#[derive(Debug, Default)]
pub(super) struct Vectors {
    pub space: Option<String>,
    pub rows: Vec<Vec<f32>>,
}

impl Vectors {
    /// Reads the vectors of so many questions; without a path there are none.
    pub(super) fn read(
        path: Option<&Path>,
        space: Option<&str>,
        snapshot: &Snapshot,
        questions: usize,
    ) -> Result<Self, Failure> {
        let mut space = space.map(str::to_owned);
        let Some(path) = path else {
            let rows = Vec::new();
            return Ok(Vectors { space, rows });
        };
        let matrix = Matrix::open(path)?;
        if matrix.row_count() < questions as u64 {
            let found = counted(matrix.row_count(), "row", "rows");
            let questions = counted(questions as u64, "question", "questions");
            return Err(Failure::Usage(format!(
                "{} has {found} for {questions}; each question needs its own",
                path.display()
            )));
        }
        if space.is_none() {
            let columns = matrix.columns();
            let spaces = snapshot.spaces()?.iter();
            let fitting: Vec<&Space> = spaces.filter(|space| space.dimensions == columns).collect();
            space = match fitting.as_slice() {
                [one] => Some(one.name.clone()),
                _ => {
                    return Err(Failure::Usage(format!(
                        "{} of {columns} components in this store; name one with --space",
                        counted(fitting.len() as u64, "space", "spaces")
                    )));
                }
            };
        }
        let mut rows = Vec::with_capacity(questions);
        for (row, number) in matrix.rows().take(questions).zip(1..) {
            let row = row?;
            if let Err(fault) = hedgerow::normalise(&mut row.clone()) {
                return Err(Failure::Usage(format!("{}, row {number}: {fault}", path.display())));
            }
            rows.push(row);
        }
        Ok(Vectors { space, rows })
    }
}

#[cfg(test)]
mod tests {
    use crate::command::eval::questions::Record;

    #[test]
    fn a_malformed_question_says_why() {
        for (line, reason) in [
            ("[1", "expected {"),
            (r#"{"id": "1", "question": "x"}"#, "found missing field `gold` (column 28)"),
            (r#"{"id": "1", "question": "x", "gold": []}"#, "\"gold\" names no document"),
            (
                r#"{"id": "1", "question": 7, "gold": ["a"]}"#,
                "found invalid type: integer `7`, expected a string (column 25)",
            ),
        ] {
            let error = Record::from_json(line, 0).unwrap_err();
            assert!(error.contains(reason), "{line}: {error}");
        }
        let record = Record::from_json(r#"{"id":"1","question":"x","gold":["a"],"other":"y"}"#, 7).unwrap();
        assert_eq!((record.row, record.fields()), (7, [None, None]));
    }

    #[test]
    fn a_question_may_say_its_type_and_where_it_comes_from_in_any_form() {
        let line = r#"{"id":"1","question":"x","gold":["a"],"type":2,"src":"hand"}"#;
        let fields = Record::from_json(line, 0).unwrap().fields();
        assert_eq!(fields, [Some("2".to_owned()), Some("hand".to_owned())]);
        let line = r#"{"id":"1","question":"x","gold":["a"],"type":null}"#;
        assert_eq!(Record::from_json(line, 0).unwrap().fields(), [None, None]);
    }
}
