//! Makes passages in which look-alikes bear the titles of what answers questions, to see what false definition links cost:
//! `title_collisions PASSAGES.jsonl QUESTIONS.jsonl VECTORS.npy K OUT.jsonl`.
//!
//! Row N of VECTORS belongs to line N of PASSAGES. In the order of the file, every passage with a title that is gold of a
//! question lends this title to the K nearest passages, by exact cosine, that are gold of no question and have no lent
//! title yet. Such a passage begins with its own title then, unless it does so already, so that it still defines its own
//! name. Keys stay, so that QUESTIONS can be asked of the result. Flat search, which counts titles three times, meets the
//! same collisions.

use hedgerow_cli::read::npy::Matrix;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [passages, questions, vectors, count, out] = arguments.as_slice() else {
        eprintln!("usage: title_collisions PASSAGES.jsonl QUESTIONS.jsonl VECTORS.npy K OUT.jsonl");
        std::process::exit(2);
    };
    let count: usize = count.parse().expect("K is a number");
    let mut passages = records(Path::new(passages));
    let questions = records(Path::new(questions));
    let golds = questions.iter().filter_map(|question| question["gold"].as_array()).flatten();
    let gold: BTreeSet<&str> = golds.filter_map(Value::as_str).collect();
    let is_gold: Vec<bool> = passages.iter().map(|passage| gold.contains(text(passage, "id"))).collect();
    let vectors = Vectors::read(Path::new(vectors), passages.len());
    let titled = |row: &usize| is_gold[*row] && !text(&passages[*row], "title").trim().is_empty();
    let targets: Vec<usize> = (0..passages.len()).filter(titled).collect();
    let (mut is_taken, mut lent) = (is_gold, Vec::new());
    for target in &targets {
        for row in vectors.nearest(*target, count, &is_taken) {
            is_taken[row] = true;
            lent.push((row, text(&passages[*target], "title").to_owned()));
        }
    }
    println!("{} passages lend their titles to {}", targets.len(), lent.len());
    for (row, title) in lent {
        collide(&mut passages[row], title);
    }
    let mut file = BufWriter::new(File::create(out).expect("OUT.jsonl can be written"));
    for passage in passages {
        writeln!(file, "{passage}").expect("a line can be written");
    }
    file.flush().expect("all lines can be written");
}

fn records(path: &Path) -> Vec<Value> {
    let lines = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    lines.lines().map(|line| serde_json::from_str(line).expect("every line is JSON")).collect()
}

fn text<'r>(record: &'r Value, field: &str) -> &'r str {
    record[field].as_str().unwrap_or_default()
}

/// Gives a passage another title, and its own to its text.
fn collide(passage: &mut Value, title: String) {
    let (own, body) = (text(passage, "title"), text(passage, "text"));
    let name = own.split(" (").next().unwrap_or_default().trim();
    let begins = body.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
    let body = if begins { body.to_owned() } else { format!("{name}. {body}") };
    passage["text"] = body.into();
    passage["title"] = title.into();
}

/// Rows of length one.
struct Vectors {
    dimensions: usize,
    components: Vec<f32>,
}

impl Vectors {
    fn read(path: &Path, rows: usize) -> Self {
        let matrix = Matrix::open(path).unwrap_or_else(|error| panic!("{error}"));
        let dimensions = matrix.columns();
        let mut components = Vec::with_capacity(rows * dimensions);
        for row in matrix.rows().take(rows) {
            let mut row = row.unwrap_or_else(|error| panic!("{error}"));
            hedgerow::normalise(&mut row).expect("a vector has a direction");
            components.extend(row);
        }
        assert_eq!(components.len(), rows * dimensions, "every passage has a vector");
        Self { dimensions, components }
    }

    fn row(&self, row: usize) -> &[f32] {
        &self.components[row * self.dimensions..][..self.dimensions]
    }

    /// The nearest rows that are not taken, the nearest first, among equals the first.
    fn nearest(&self, target: usize, count: usize, is_taken: &[bool]) -> Vec<usize> {
        let free = (0..is_taken.len()).filter(|row| !is_taken[*row]);
        let mut scored: Vec<(f32, usize)> =
            free.map(|row| (hedgerow::dot(self.row(target), self.row(row)), row)).collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        scored.into_iter().take(count).map(|(_, row)| row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_nearest_are_the_first_of_equals_and_not_taken() {
        let components = [[1.0, 0.0], [0.6, 0.8], [0.8, 0.6], [0.8, 0.6], [0.0, 1.0]].concat();
        let vectors = Vectors { dimensions: 2, components };
        let is_taken = [true, false, false, false, false];
        assert_eq!(vectors.nearest(0, 2, &is_taken), [2, 3]);
        assert_eq!(vectors.nearest(0, 2, &[true, false, true, false, false]), [3, 1]);
    }

    #[test]
    fn a_passage_keeps_its_own_title_at_the_start_of_its_text() {
        let mut passage = json!({"id": "a", "title": "Rush (band)", "text": "They are a band."});
        collide(&mut passage, "Genesis".into());
        assert_eq!(passage, json!({"id": "a", "title": "Genesis", "text": "Rush. They are a band."}));
        let mut passage = json!({"id": "a", "title": "Rush (band)", "text": "rush is a band."});
        collide(&mut passage, "Genesis".into());
        assert_eq!(passage["text"], "rush is a band.");
    }
}
