//! `extract`, `answer`, `ask` and `ingest` as processes, with a model behind a URL.

use crate::command::{Run, command};
use crate::models::stub::{Reply, Seen, Stub, said};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tempfile::TempDir;

/// A folder with a store in it, and a model.
pub struct Desk {
    pub folder: TempDir,
    pub stub: Stub,
}

/// Runs the command with `--json` and a key that it must not tell.
pub fn hedgerow(arguments: &[&str]) -> Run {
    let run = Run::of(command().args(arguments).arg("--json").env("HEDGEROW_LLM_KEY", "top-secret"));
    assert!(!run.out.contains("top-secret") && !run.err.contains("top-secret"));
    run
}

/// The same for people.
pub fn human(arguments: &[&str]) -> Run {
    Run::of(command().args(arguments))
}

impl Desk {
    pub fn new(answer: impl Fn(&Seen, usize) -> Reply + Send + Sync + 'static) -> Desk {
        let folder = TempDir::new().expect("there is room for a temporary folder");
        Desk { folder, stub: Stub::new(answer) }
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().expect("the path is text").to_owned()
    }

    /// Imports documents, each a key and a text.
    pub fn import(&self, documents: &[(&str, &str)]) {
        let line = |(key, text): &(&str, &str)| json!({"key": key, "title": key, "text": text}).to_string() + "\n";
        let file = self.path("documents.jsonl");
        fs::write(&file, documents.iter().map(line).collect::<String>()).expect("the file can be written");
        let run = hedgerow(&["import", &self.path("store"), "--documents", &file]);
        assert_eq!(run.code, 0, "{}", run.err);
    }

    fn extract_into(&self, store: &str, more: &[&str]) -> Run {
        let (url, store) = (self.stub.url(), self.path(store));
        let given = ["extract", &store, "--llm", &url, "--model", "toy", "--attempts", "2"];
        hedgerow(&[&given[..], more].concat())
    }

    pub fn extract(&self, more: &[&str]) -> Run {
        self.extract_into("store", more)
    }

    /// Keys of the documents that the requests from one on were about.
    pub fn asked_about(&self, from: usize) -> Vec<String> {
        let title = |seen: &Seen| seen.question().rsplit("called \"").next()?.split('"').next().map(str::to_owned);
        let mut titles: Vec<String> = self.stub.seen().iter().skip(from).filter_map(title).collect();
        titles.sort();
        titles
    }
}

/// What a model that works says: the first word of a passage founds its last one, `Nobody` nothing.
pub fn founded(seen: &Seen) -> Reply {
    let passage = seen.question().lines().rev().nth(1).unwrap_or_default();
    let words: Vec<&str> = passage.split(' ').collect();
    let triples = match words.as_slice() {
        [first, .., last] if *first != "Nobody" => json!([{"subject": first, "predicate": "founded", "object": last}]),
        _ => json!([]),
    };
    Reply::Json(said(json!({"entities": [], "triples": triples}).to_string()))
}

pub const FIVE: [(&str, &str); 5] = [
    ("a", "Anna set up the firm Arbor"),
    ("b", "Bruno set up the firm Betula"),
    ("c", "Clara set up the firm Cornus"),
    ("d", "Nobody set up anything at all"),
    ("e", "Emil set up the firm Ebenus"),
];

#[test]
fn chunks_that_fail_are_told_and_asked_about_again_and_no_others() {
    let is_sick = Arc::new(AtomicBool::new(true));
    let sick = Arc::clone(&is_sick);
    let desk = Desk::new(move |seen, _| {
        let question = seen.question();
        match sick.load(Ordering::SeqCst) {
            true if question.contains("Bruno") => Reply::Status(500, "", "broken".into()),
            true if question.contains("Clara") => Reply::Json(said("No JSON here.")),
            true if question.contains("Emil") => Reply::Half(said("{")),
            _ => founded(seen),
        }
    });
    desk.import(&FIVE);
    let run = desk.extract(&["--batch", "5"]);
    assert_eq!(run.code, 1, "{}", run.err);
    let told = run.json();
    let mut failed: Vec<(&str, &str)> = told["failed"]
        .as_array()
        .unwrap()
        .iter()
        .map(|failed| (failed["chunk"].as_str().unwrap(), failed["kind"].as_str().unwrap()))
        .collect();
    failed.sort_unstable();
    assert_eq!(failed, [("b#0", "status"), ("c#0", "content"), ("e#0", "broken off")]);
    assert!(run.err.contains("failed b#0: the server answered 500"), "{}", run.err);
    let counts =
        ["chunks", "empty", "triples", "known", "remaining", "failed_count"].map(|name| told[name].as_u64().unwrap());
    assert_eq!(counts, [2, 1, 1, 0, 3, 3]);
    is_sick.store(false, Ordering::SeqCst);
    let before = desk.stub.seen().len();
    let run = desk.extract(&[]);
    assert_eq!((run.code, desk.asked_about(before)), (0, vec!["b".into(), "c".into(), "e".into()]), "{}", run.err);
    let relations = hedgerow(&["ls", &desk.path("store"), "relations"]).json();
    let evidence =
        |name: &str| relations.as_array().unwrap().iter().find(|line| line["subject"] == name).unwrap().clone();
    assert_eq!(evidence("Bruno")["evidence"], json!(["b#0"]));
    assert_eq!(evidence("Anna")["predicate"], "founded");
    let before = desk.stub.seen().len();
    let again = desk.extract(&[]).json();
    assert_eq!((&again["chunks"], &again["known"], desk.stub.seen().len()), (&json!(0), &json!(5), before));
}

#[test]
fn marks_go_with_their_chunks_and_stay_through_compaction_and_backup() {
    let desk = Desk::new(|seen, _| founded(seen));
    desk.import(&FIVE);
    assert_eq!(desk.extract(&["--limit", "4"]).json()["remaining"], 1);
    assert_eq!(desk.extract(&[]).json()["chunks"], 1);
    let store = desk.path("store");
    // One document is replaced, one comes back after it was removed.
    desk.import(&[("a", "Anna set up the firm Abies"), FIVE[1]]);
    assert_eq!(hedgerow(&["rm", &store, "c"]).code, 0);
    let before = desk.stub.seen().len();
    desk.import(&FIVE[2..3]);
    assert_eq!((desk.extract(&[]).code, desk.asked_about(before)), (0, vec!["a".into(), "c".into()]));
    let relations = hedgerow(&["ls", &store, "relations"]).out;
    assert!(relations.contains("Abies") && !relations.contains("Arbor"), "{relations}");
    assert_eq!(hedgerow(&["compact", &store]).code, 0);
    let (pack, again) = (desk.path("pack"), desk.path("again"));
    assert_eq!(hedgerow(&["backup", &store, &pack, "--canonical"]).code, 0);
    assert_eq!(hedgerow(&["restore", &pack, &again]).code, 0);
    let before = desk.stub.seen().len();
    for store in ["store", "again"] {
        assert_eq!(desk.extract_into(store, &[]).json()["known"], 5);
    }
    assert_eq!(desk.stub.seen().len(), before);
    // Another ontology is another prompt.
    let ontology = desk.path("ontology");
    fs::write(&ontology, "predicate founded\n").unwrap();
    assert_eq!(desk.extract(&["--ontology", &ontology]).json()["chunks"], 5);
    let extracted = hedgerow(&["stats", &store]).json()["extractions"].clone();
    assert_eq!((&extracted[0]["extractor"], &extracted[0]["chunks"]), (&json!("llm"), &json!(5)), "{extracted}");
    let asked = hedgerow(&["ask", &store, "Who set up Betula?"]);
    assert_eq!((asked.code, &asked.json()["trace"]["vector"]["space"]), (0, &json!("static")), "{}", asked.err);
    assert_eq!(hedgerow(&["edges", &store]).code, 0);
}

#[test]
fn what_is_stored_does_not_depend_on_how_many_calls_there_are_at_once() {
    let uneven = |seen: &Seen, number: usize| match founded(seen) {
        Reply::Json(answer) => Reply::Late(Duration::from_millis(number as u64 * 7 % 40), answer),
        other => other,
    };
    let mut stored = Vec::new();
    for concurrency in ["1", "8"] {
        let desk = Desk::new(uneven);
        let many: Vec<(String, String)> =
            (0..24).map(|row| (format!("d{row}"), format!("Anna{row} set up the firm Betula{}", row % 5))).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect();
        desk.import(&many);
        let run = desk.extract(&["--concurrency", concurrency, "--batch", "6"]);
        assert_eq!((run.code, run.out.lines().count()), (0, 5), "{}", run.err);
        let relations = hedgerow(&["ls", &desk.path("store"), "relations"]).json();
        // Questions are the same ones too, history included.
        let mut questions: Vec<String> = desk.stub.seen().iter().map(|seen| seen.question().to_owned()).collect();
        questions.sort();
        assert!(questions.iter().any(|question| question.contains("| founded |")));
        stored.push((relations, questions));
    }
    assert_eq!(stored[0], stored[1]);
}

#[test]
fn a_model_that_answers_nothing_ends_the_run_and_the_store_is_as_it_was() {
    let desk = Desk::new(|_, _| Reply::Status(404, "", json!({"error": "no such model"}).to_string()));
    desk.import(&FIVE);
    let before = hedgerow(&["stats", &desk.path("store")]).json()["generation"].clone();
    let run = desk.extract(&["--batch", "2"]);
    assert_eq!((run.code, desk.stub.seen().len()), (5, 2), "{}", run.err);
    assert!(run.err.contains("no such model"), "{}", run.err);
    assert_eq!(hedgerow(&["stats", &desk.path("store")]).json()["generation"], before);
    for wrong in [
        vec!["--llm", "localhost", "--model", "m"],
        vec!["--llm", "http://u:p@h", "--model", "m"],
        vec!["--llm", "http://h"],
        vec![],
    ] {
        let run = hedgerow(&[&["extract", &desk.path("store")], &wrong[..]].concat());
        assert_eq!(run.code, 2, "{wrong:?}: {}", run.err);
    }
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_keeps_what_it_committed_and_asks_for_the_rest_the_next_time() {
    let desk = Desk::new(|seen, _| match founded(seen) {
        Reply::Json(answer) => Reply::Late(Duration::from_millis(150), answer),
        other => other,
    });
    desk.import(&FIVE);
    let (store, url) = (desk.path("store"), desk.stub.url());
    let mut command = command();
    let arguments = ["extract", &store, "--llm", &url, "--model", "toy", "--batch", "1", "--concurrency", "1"];
    let mut child = command.args(arguments).stdout(Stdio::piped()).spawn().expect("the command starts");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    assert!(lines.next().unwrap().unwrap().starts_with("committed generation"));
    let interrupt = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupt.expect("there is such a program").success());
    let committed = 1 + lines.map_while(Result::ok).filter(|line| line.starts_with("committed")).count();
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    let (asked, told) = (desk.stub.seen().len(), desk.extract(&[]).json());
    assert!(committed < 5 && asked == committed, "{asked} were asked about, {committed} committed");
    assert_eq!((&told["known"], &told["chunks"]), (&json!(committed), &json!(5 - committed)));
}

#[test]
fn an_answer_cites_passages_and_other_numbers_are_told() {
    let desk = Desk::new(|_, _| Reply::Json(said("Bruno did [1]. So it is said [1, 9].")));
    desk.import(&FIVE);
    let (store, url) = (desk.path("store"), desk.stub.url());
    let question = ["answer", &store, "Who set up the firm Betula?"];
    let run = hedgerow(&[&question[..], &["--llm", &url, "--model", "toy"]].concat());
    assert_eq!(run.code, 0, "{}", run.err);
    let told = run.json();
    assert_eq!(told["answer"], "Bruno did [1]. So it is said [1, 9].");
    assert_eq!(told["citations"].as_array().map(Vec::len), Some(1));
    let citation = &told["citations"][0];
    assert_eq!((&citation["number"], &citation["key"], &citation["start"]), (&json!(1), &json!("b#0"), &json!(0)));
    assert_eq!((&told["unknown"], &told["prompt_tokens"]), (&json!([9]), &json!(100)));
    assert!(run.err.contains("cites [9]"), "{}", run.err);
    let request = &desk.stub.seen()[0];
    assert!(
        request.question().contains("[1] \"b\"")
            && request.question().ends_with("Question: Who set up the firm Betula?")
    );
    let alone = hedgerow(&question);
    assert_eq!((alone.code, &alone.json()["answer"], desk.stub.seen().len()), (0, &Value::Null, 1));
    assert_eq!(alone.json()["context"]["passages"][0]["key"], "b#0");
}

#[test]
fn words_that_a_model_names_are_searched_for_as_well() {
    let desk = Desk::new(|_, number| match number {
        0 => Reply::Json(said(r#"{"keywords": ["Ebenus"]}"#)),
        _ => Reply::Status(400, "", String::new()),
    });
    desk.import(&FIVE);
    let (store, url) = (desk.path("store"), desk.stub.url());
    let question =
        ["ask", &store, "Which black wood?", "-k", "1", "--neighbours", "0", "--llm", &url, "--model", "toy"];
    let run = hedgerow(&question);
    assert_eq!((run.code, &run.json()["question"]), (0, &json!("Which black wood?")), "{}", run.err);
    assert_eq!(run.json()["passages"][0]["key"], "e#0");
    assert!(run.err.contains("Ebenus"), "{}", run.err);
    let without = hedgerow(&question);
    assert!(without.code == 0 && without.err.contains("asked without keywords"), "{}", without.err);
}

#[test]
fn an_embedder_behind_a_url_serves_documents_and_questions() {
    let desk = Desk::new(|seen, _| {
        let texts = seen.body["input"].as_array().cloned().unwrap_or_default();
        let vector = |(index, text): (usize, &Value)| {
            let is_wood = ["Ebenus", "wood"].iter().any(|word| text.as_str().is_some_and(|text| text.contains(word)));
            json!({"index": index, "embedding": if is_wood { [1.0, 0.1] } else { [0.1, 1.0] }})
        };
        Reply::Json(json!({"data": texts.iter().enumerate().map(vector).collect::<Vec<_>>()}))
    });
    let file = desk.path("emil.txt");
    fs::write(&file, "Emil set up the firm Ebenus").unwrap();
    desk.import(&FIVE[..4]);
    let (store, embedder) = (desk.path("store"), format!("{}#toy", desk.stub.url()));
    let run = hedgerow(&["ingest", &store, &file, "--embedder", &embedder]);
    assert_eq!(run.code, 0, "{}", run.err);
    let run = hedgerow(&["ask", &store, "Which black wood?", "--embedder", &embedder, "-k", "1", "--neighbours", "0"]);
    assert_eq!((run.code, &run.json()["passages"][0]["key"]), (0, &json!("emil.txt#0")), "{}", run.err);
    assert_eq!(run.json()["trace"]["vector"]["model"], "toy");
    let run = hedgerow(&["ingest", &store, &file, "--embedder", "http://127.0.0.1:1#toy"]);
    assert_eq!(run.code, 5, "{}", run.err);
}

#[test]
fn a_server_that_goes_away_ends_the_run_and_one_bad_chunk_does_not() {
    let many: Vec<(String, String)> =
        (0..30).map(|row| (format!("d{row}"), format!("Anna{row} set up the firm Betula{row}"))).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect();
    let desk =
        Desk::new(
            |seen, number| {
                if number < 4 { founded(seen) } else { Reply::Status(503, "retry-after: 0\r\n", String::new()) }
            },
        );
    desk.import(&many);
    let run = desk.extract(&["--batch", "2", "--concurrency", "1"]);
    let told = run.json();
    let counts =
        ["chunks", "failed_count", "remaining", "requests", "retries"].map(|name| told[name].as_u64().unwrap());
    assert_eq!((run.code, counts), (1, [4, 8, 26, 20, 8]), "{}", run.err);
    assert!(told["stopped"].as_str().unwrap().contains("the last 8 calls failed"), "{told}");
    let desk = Desk::new(|seen, _| {
        if seen.question().contains("Anna7 ") { Reply::Status(400, "", String::new()) } else { founded(seen) }
    });
    desk.import(&many);
    let run = desk.extract(&["--batch", "1"]);
    let told = run.json();
    assert_eq!((run.code, &told["chunks"], &told["stopped"]), (1, &json!(29), &Value::Null), "{}", run.err);
}
