//! The small multi-hop set that the tests ship with: passages of an encyclopaedia, and questions that need two or more.

use hedgerow::Document;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// A question and the documents that together answer it.
pub struct Asked {
    pub question: String,
    pub gold: Vec<String>,
}

/// All passages, in the order of the file.
pub fn documents() -> Vec<Document> {
    let records = records("passages.jsonl").into_iter();
    records
        .map(|record| Document::new(text(&record, "id")).title(text(&record, "title")).text(text(&record, "text")))
        .collect()
}

/// All questions, in the order of the file.
pub fn questions() -> Vec<Asked> {
    let asked = records("questions.jsonl").into_iter().map(|record| {
        let gold = record["gold"].as_array().expect("gold is a list").iter();
        Asked {
            question: text(&record, "question"),
            gold: gold.map(|key| key.as_str().expect("gold is keys").to_owned()).collect(),
        }
    });
    asked.collect()
}

/// A file of the set.
pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/multihop-ci").join(name)
}

fn records(name: &str) -> Vec<Value> {
    let lines = fs::read_to_string(path(name)).expect("the set is part of the project");
    lines.lines().map(|line| serde_json::from_str(line).expect("every line is JSON")).collect()
}

fn text(record: &Value, field: &str) -> String {
    record[field].as_str().expect("the field is text").to_owned()
}
