//! Reports of communities in a model's words: asked for once, kept, and drawn from the store where the model fails.

use crate::models::commands::{Desk, hedgerow, human};
use crate::models::stub::{Reply, Seen, said};
use serde_json::{Value, json};
use std::fs;

const TEXTS: [(&str, &str); 3] = [
    ("one", "Alice Marsh met Bruno Field at the harbour."),
    ("two", "Bruno Field met Carla Hill, and Alice Marsh came too."),
    ("three", "Carla Hill met Alice Marsh."),
];

/// Finds communities with reports by the model; and how they are listed.
fn built(desk: &Desk) -> (i32, Value, Value, String) {
    let (store, url) = (desk.path("store"), desk.stub.url());
    let given = ["communities", &store, "--build", "--llm", &url, "--model", "toy", "--attempts", "1"];
    let run = hedgerow(&given);
    let listed = hedgerow(&["communities", &store]).json();
    (run.code, run.json(), listed, run.err)
}

#[test]
fn a_model_writes_reports_from_members_and_chunks_and_is_asked_once() {
    let report = |_: &Seen, _: usize| Reply::Json(said(json!({"title": "Friends", "report": "They met."}).to_string()));
    let desk = Desk::new(report);
    desk.import(&TEXTS);
    let (code, told, listed, err) = built(&desk);
    assert_eq!(code, 0, "{err}");
    let made = told["reports_made"].as_u64().expect("it is a number");
    assert!(made > 0 && told["failed"] == 0, "{told}");
    assert_eq!((desk.stub.seen().len() as u64, &listed[0]["title"]), (made, &json!("Friends")));
    assert_eq!(listed[0]["model"], "toy report-1");
    let seen = desk.stub.seen()[0].question().to_owned();
    for part in ["\"Alice Marsh\"", "\"Bruno Field\"", "Carla Hill met Alice Marsh."] {
        assert!(seen.contains(part), "{seen}");
    }
    let again = built(&desk).1;
    assert_eq!((again["reports_made"].as_u64(), again["reports_kept"].as_u64()), (Some(0), Some(made)));
    assert_eq!(desk.stub.seen().len() as u64, made);
    // A store that is salvaged keeps them.
    let saved = hedgerow(&["salvage", &desk.path("store"), &desk.path("saved")]);
    assert_eq!((saved.code, saved.json()["reports_by_models"].as_u64()), (0, Some(made)), "{}", saved.err);
    assert_eq!(hedgerow(&["communities", &desk.path("saved")]).json(), listed);
    let shown =
        hedgerow(&["show", &desk.path("store"), &format!("community:{}", listed[0]["id"].as_str().unwrap_or(""))]);
    assert_eq!(shown.json()["text"], "They met.");
}

#[test]
fn where_a_model_writes_no_report_the_store_is_drawn_from_and_that_is_told() {
    let desk = Desk::new(|_, _| Reply::Json(said("I would rather not.")));
    desk.import(&TEXTS);
    let (code, told, listed, err) = built(&desk);
    assert_eq!(code, 1, "{err}");
    assert!(told["failed"].as_u64() > Some(0) && err.contains("toy"), "{told} {err}");
    assert_eq!(listed[0]["model"], "");
    assert!(listed[0]["title"].as_str().is_some_and(|title| title.contains("Alice Marsh")), "{listed}");
}

#[test]
fn commands_that_keep_communities_in_step_give_new_reports_their_vectors() {
    let desk = Desk::new(|_, _| Reply::Json(said("nothing")));
    desk.import(&TEXTS);
    let store = desk.path("store");
    assert_eq!(hedgerow(&["communities", &store, "--build"]).code, 0);
    let counted = || hedgerow(&["stats", &store]).json()["communities"].clone();
    let before = counted();
    assert_eq!((&before["space"], &before["vectors"]), (&json!("static"), &before["communities"]));
    desk.import(&[("four", "Bruno Field met Alice Marsh and Carla Hill again.")]);
    assert_eq!(counted()["vectors"], counted()["communities"]);
    assert_eq!(hedgerow(&["rm", &store, "one"]).code, 0);
    assert_eq!(counted()["vectors"], counted()["communities"]);
    // Where the file cannot be read, nothing tells what the others were made by.
    let folder = fs::read_dir(format!("{store}/projections")).expect("there is the folder");
    let mut files = folder.map(|entry| entry.expect("it is read").path());
    let file = files.find(|path| path.to_string_lossy().ends_with(".communities.prj")).expect("there is one");
    fs::write(file, b"").expect("the file can be written");
    assert_eq!(hedgerow(&["repair", &store]).code, 0);
    assert_eq!(counted()["vectors"], counted()["communities"]);
    assert_ne!(counted()["communities"], json!(0));
}

#[test]
fn an_answer_is_written_from_reports_too_and_cites_them_after_the_passages() {
    let desk = Desk::new(|seen, _| {
        let number = seen.question().matches("between the two lines").count();
        Reply::Json(said(format!("They are friends [{number}], as one says [1], or more [{}].", number + 1)))
    });
    desk.import(&TEXTS);
    let (store, url) = (desk.path("store"), desk.stub.url());
    assert_eq!(hedgerow(&["communities", &store, "--build"]).code, 0);
    for strategy in ["reports", "combined"] {
        let question = ["answer", &store, "Whom did Alice Marsh meet?", "--strategy", strategy];
        let run = hedgerow(&[&question[..], &["--llm", &url, "--model", "toy"]].concat());
        assert_eq!(run.code, 0, "{}", run.err);
        let told = run.json();
        let count = |what: &str| told["context"][what].as_array().map_or(0, Vec::len);
        let (passages, reports) = (count("passages"), count("reports"));
        assert!(passages > 0 && reports > 0, "{told}");
        let all = passages + reports;
        let last = &told["context"]["reports"][reports - 1];
        assert_eq!(told["unknown"], json!([all + 1]));
        let [report, passage] = [&told["citations"][0], &told["citations"][1]];
        for field in ["key", "title", "level", "model", "stale"] {
            assert_eq!(report[field], last[field], "{field}");
        }
        assert_eq!((&report["number"], &passage["number"]), (&json!(all), &json!(1)));
        assert_eq!(passage["key"], told["context"]["passages"][0]["key"]);
        let seen = desk.stub.seen();
        let shown = seen.last().expect("it was asked").question();
        assert!(shown.contains(&format!("[{all}] report {}", last["title"])), "{shown}");
        assert!(shown.contains(last["text"].as_str().expect("it is a text")), "{shown}");
        let human = human(&[&question[..], &["--llm", &url, "--model", "toy"]].concat()).out;
        assert!(human.contains("report of level") && human.contains(&format!("{passages} passages and")), "{human}");
    }
}
