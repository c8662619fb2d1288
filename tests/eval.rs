//! `hedgerow eval` and `compare`: several strategies at once, gold of both kinds, and why gold was missed.

use crate::command::command;
use crate::corpus;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Runs the command with `--json`; what it prints last.
#[track_caller]
fn told(arguments: &[&str]) -> Value {
    let output = command().args(arguments).arg("--json").output().expect("the command starts");
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("the command writes text");
    serde_json::from_str(text.lines().next_back().unwrap_or_default()).expect("its last line is JSON")
}

/// What it says where it refuses.
#[track_caller]
fn refused(arguments: &[&str]) -> String {
    let output = command().args(arguments).output().expect("the command starts");
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    String::from_utf8(output.stderr).expect("the command writes text")
}

fn path(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).to_str().expect("the path is text").to_owned()
}

fn write(folder: &TempDir, name: &str, lines: &[Value]) -> String {
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    fs::write(folder.path().join(name), lines.join("\n")).expect("the file can be written");
    path(folder, name)
}

fn text(path: &Path) -> String {
    path.to_str().expect("the path is text").to_owned()
}

#[test]
fn an_evaluation_has_the_json_that_was_agreed_and_graph_wins() {
    let folder = TempDir::new().expect("there is room for a temporary folder");
    let (store, questions) = (path(&folder, "store"), text(&corpus::path("questions.jsonl")));
    told(&["import", &store, "--documents", &text(&corpus::path("passages.jsonl"))]);
    let [flat, graph] = ["flat", "graph"].map(|strategy| told(&["eval", &store, &questions, "--strategy", strategy]));
    for (report, strategy) in [(&flat, "flat"), (&graph, "graph")] {
        assert_eq!((&report["questions"], &report["strategy"]), (&json!(64), &json!(strategy)), "{report}");
        let cut = |measure: &str, at: &str| report[measure][at].as_f64().expect("it is a number");
        assert!(cut("recall", "5") <= cut("recall", "10") && cut("recall", "10") <= cut("recall", "20"), "{report}");
        assert!(cut("all", "5") <= cut("all", "10") && cut("all", "10") <= cut("all", "20"), "{report}");
        assert!(report["mrr"].as_f64().is_some_and(|mrr| (0.0..=1.0).contains(&mrr)), "{report}");
    }
    assert!(graph["recall"]["5"].as_f64() > flat["recall"]["5"].as_f64(), "{graph} {flat}");
}

#[test]
fn strategies_stand_beside_the_first_with_their_differences_and_the_same_each_time() {
    let folder = TempDir::new().expect("there is room for a temporary folder");
    let (store, questions) = (path(&folder, "store"), text(&corpus::path("questions.jsonl")));
    told(&["import", &store, "--documents", &text(&corpus::path("passages.jsonl"))]);
    let untimed = || {
        let mut report = told(&["eval", &store, &questions, "--strategy", "flat,graph", "--misses=1"]);
        assert!(report["latency_ms"]["p99"].as_f64() >= report["latency_ms"]["median"].as_f64(), "{report}");
        report["latency_ms"].take();
        report["others"][0]["latency_ms"].take();
        report
    };
    let report = untimed();
    assert_eq!(report, untimed());
    let graph = &report["others"][0];
    assert_eq!((&report["strategy"], &graph["strategy"]), (&json!("flat"), &json!("graph")));
    let differences = graph["differences"].as_array().expect("it is a list");
    assert_eq!(differences.len(), 5);
    for difference in differences {
        let [mean, low, high] = ["mean", "low", "high"].map(|field| difference[field].as_f64().expect("a number"));
        assert!(low <= mean && mean <= high, "{difference}");
        let counts = ["better", "same", "worse"].map(|field| difference[field].as_u64().expect("a count"));
        assert_eq!(counts.iter().sum::<u64>(), 64, "{difference}");
    }
    let recall = |report: &Value| report["recall"]["10"].as_f64().expect("a number");
    let mean = differences[1]["mean"].as_f64().expect("a number");
    assert!((recall(graph) - recall(&report) - mean).abs() < 1e-9 && mean > 0.0, "{report}");
    for field in ["type", "src"] {
        let groups = report["groups"].as_array().expect("it is a list").iter();
        let counts = groups.filter(|group| group["field"] == field).map(|group| group["questions"].as_u64());
        assert_eq!(counts.sum::<Option<u64>>(), Some(64), "{report}");
    }
    let [flat, graph] = [&report, graph].map(|report| report["misses"]["count"].as_u64().expect("a count"));
    assert!(graph < flat, "{report}");
}

/// A store whose first five passages for [`QUESTION`] are known, without vectors.
fn connected(folder: &TempDir) -> String {
    let document = |key: &str, title: &str, text: &str| json!({"id": key, "title": title, "text": text});
    let mut lines: Vec<Value> =
        (10..40).map(|number| document(&format!("filler-{number}"), "", "A lighthouse, and little else.")).collect();
    lines.push(document(
        "seed",
        "Skerry Light",
        "The lighthouse was repainted when Quentin Marsh repainted a lighthouse. So said Boris Vane.",
    ));
    lines.push(document("link", "Quentin Marsh", "He was born near Petra Long."));
    lines.push(document("steps", "Petra Long", "She is a potter."));
    lines.push(document("back", "", "Few boats pass Skerry Light in winter."));
    lines.push(document("name", "", "One poem of Boris Vane is about gulls."));
    lines.push(document("alone", "", "Bread is made of flour."));
    // What the seed lacks of the question, so that the walk leaves it.
    lines.push(document("open", "", "Some varnish lasts for years."));
    let (store, documents) = (path(folder, "store"), write(folder, "d.jsonl", &lines));
    told(&["import", &store, "--documents", &documents, "--embedder", "none"]);
    store
}

const QUESTION: &str = "Which lighthouse was repainted with varnish?";

#[test]
fn what_was_missed_is_sorted_by_how_it_is_connected() {
    let folder = TempDir::new().expect("there is room for a temporary folder");
    let store = connected(&folder);
    let gold = ["seed", "link", "steps", "back", "name", "alone", "gone"];
    let questions = write(&folder, "q.jsonl", &[json!({"id": "1", "question": QUESTION, "gold": gold})]);
    let report = told(&["eval", &store, &questions, "--strategy", "flat", "--misses"]);
    let misses = &report["misses"];
    assert_eq!((&misses["count"], &misses["questions"]), (&json!(6), &json!(1)), "{misses}");
    let causes = json!({"absent": 1, "link": 1, "steps": 1, "back": 1, "name": 1, "unconnected": 1});
    assert_eq!(misses["causes"], causes, "{misses}");
    let examples = misses["examples"].as_array().expect("it is a list");
    for (gold, cause, edges) in
        [("link", "link", 2), ("steps", "steps", 4), ("back", "back", 2), ("alone", "unconnected", 0)]
    {
        let example = examples.iter().find(|example| example["gold"] == gold).expect("it is told");
        assert_eq!(
            (&example["cause"], example["path"].as_array().map(Vec::len)),
            (&json!(cause), Some(edges)),
            "{example}"
        );
    }
    let graph = told(&["eval", &store, &questions, "--misses=0"]);
    assert_eq!(
        (&graph["misses"]["causes"]["link"], &graph["misses"]["examples"]),
        (&Value::Null, &json!([])),
        "{graph}"
    );
}

#[test]
fn what_only_similarity_connects_is_told_apart_from_what_nothing_connects() {
    let folder = TempDir::new().expect("there is room for a temporary folder");
    let store = connected(&folder);
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }";
    let mut matrix = b"\x93NUMPY\x01\x00".to_vec();
    matrix.extend(118_u16.to_le_bytes());
    matrix.extend(format!("{header:<117}\n").into_bytes());
    matrix.extend([1.0_f32, 0.0, 1.0, 0.1].map(f32::to_le_bytes).concat());
    fs::write(folder.path().join("v.npy"), matrix).expect("the file can be written");
    fs::write(folder.path().join("ids.txt"), "seed\nalone\n").expect("the file can be written");
    let (vectors, ids) = (path(&folder, "v.npy"), path(&folder, "ids.txt"));
    told(&["import", &store, "--vectors", &vectors, "--ids", &ids, "--space", "toy"]);
    told(&["edges", &store, "--percentile", "0", "--top-m", "1"]);
    let questions = write(&folder, "q.jsonl", &[json!({"id": "1", "question": QUESTION, "gold": ["alone", "name"]})]);
    let misses = &told(&["eval", &store, &questions, "--strategy", "flat", "--misses"])["misses"];
    assert_eq!(misses["causes"], json!({"similar": 1, "name": 1}), "{misses}");
}

#[test]
fn gold_may_be_a_chunk() {
    let folder = TempDir::new().expect("there is room for a temporary folder");
    let chunks = json!([{"text": "Gulls are birds."}, {"text": "The lighthouse was repainted."}]);
    let lines = [json!({"id": "a", "chunks": chunks}), json!({"id": "b", "text": "A lighthouse has a lamp."})];
    let (store, documents) = (path(&folder, "store"), write(&folder, "d.jsonl", &lines));
    told(&["import", &store, "--documents", &documents, "--embedder", "none"]);
    let rank = |gold: &[&str]| {
        let questions = write(&folder, "q.jsonl", &[json!({"id": "1", "question": QUESTION, "gold": gold})]);
        told(&["eval", &store, &questions, "--strategy", "flat"])["mrr"].as_f64().expect("a number")
    };
    let found = [rank(&["a#1"]), rank(&["a#0"]), rank(&["a"]), rank(&["b"]), rank(&["b#0"]), rank(&["a#7"])];
    assert_eq!(found.map(|rank| rank > 0.0), [true, false, true, true, true, false]);
    assert_eq!([found[0], found[2], found[4]].map(f64::to_bits), [1.0_f64, 1.0, 0.5].map(f64::to_bits));
}

#[test]
fn two_strategies_or_more_are_compared_and_each_once() {
    let folder = TempDir::new().expect("there is room for a temporary folder");
    let store = connected(&folder);
    let compared = told(&["compare", &store, QUESTION, "--strategy", "graph,flat", "-k", "2", "--neighbours", "1"]);
    for strategy in ["flat", "graph"] {
        assert_eq!(compared[strategy]["strategy"], strategy);
        assert_eq!(compared[strategy]["passages"].as_array().map(Vec::len), Some(3), "{compared}");
    }
    assert!(refused(&["compare", &store, QUESTION, "--strategy", "flat"]).contains("name two or more"));
    assert!(refused(&["compare", &store, QUESTION, "--strategy", "flat,flat"]).contains("flat is given twice"));
    let questions = write(&folder, "q.jsonl", &[]);
    assert!(refused(&["eval", &store, &questions, "--strategy", "graph,graph"]).contains("graph is given twice"));
    assert!(refused(&["eval", &store, &questions, "--strategy", "flat,deep"]).contains("possible values"));
}
