//! What `extract` leaves in a store: entities with descriptions, one extraction of each name, beside other writers.

use crate::models::commands::{Desk, FIVE, founded, hedgerow};
use crate::models::stub::{Reply, Seen, Stub, said};
use hedgerow::Store;
use serde_json::{Value, json};
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A model that names the firm of a passage, and says who set it up unless it is a `lazy` one.
fn firm(seen: &Seen) -> Reply {
    let passage = seen.question().lines().rev().nth(1).unwrap_or_default();
    let (first, last) = (passage.split(' ').next().unwrap_or_default(), passage.rsplit(' ').next().unwrap_or_default());
    let is_lazy = seen.body["model"] == "lazy";
    let triples = if is_lazy { json!([]) } else { json!([{"subject": first, "predicate": "set up", "object": last}]) };
    let described = format!("a firm, says {}", seen.body["model"].as_str().unwrap_or_default());
    let entities = json!([{"name": last, "type": "firm", "description": described}]);
    Reply::Json(said(json!({"entities": entities, "triples": triples}).to_string()))
}

fn run(desk: &Desk, model: &str, more: &[&str]) -> Value {
    let (url, store) = (desk.stub.url(), desk.path("store"));
    let run = hedgerow(&[&["extract", &store, "--llm", &url, "--model", model][..], more].concat());
    assert_eq!(run.code, 0, "{}", run.err);
    run.json()
}

fn shown(desk: &Desk, key: &str) -> Value {
    let run = hedgerow(&["show", &desk.path("store"), key]);
    if run.code == 0 { run.json() } else { Value::Null }
}

#[test]
fn entities_without_a_relation_are_kept_with_type_description_and_place() {
    let desk = Desk::new(|seen, _| firm(seen));
    desk.import(&FIVE[..2]);
    let told = run(&desk, "lazy", &[]);
    let counts = ["chunks", "entities", "triples", "empty"].map(|name| told[name].as_u64().unwrap());
    assert_eq!(counts, [2, 2, 0, 0]);
    let entity = shown(&desk, "entity:Arbor");
    assert_eq!((&entity["kind"], &entity["mentioned_in"]), (&json!("firm"), &json!(["a#0"])));
    assert_eq!(entity["descriptions"], json!([{"chunk": "a#0", "extractor": "llm", "text": "a firm, says lazy"}]));
    let chunk = shown(&desk, "a#0");
    let mention = chunk["mentions"].as_array().unwrap().iter().find(|mention| mention["entity"] == "Arbor").unwrap();
    assert_eq!(mention["ranges"], json!([[21, 26]]));
    assert_eq!(chunk["extractions"][0]["extractor"], "llm");
    let told = crate::command::Run::of(crate::command::command().args(["show", &desk.path("store"), "entity:Arbor"]));
    assert!(told.out.contains("a firm, says lazy (a#0)"), "{}", told.out);
    // Vectors are for what ranks.
    assert_eq!(hedgerow(&["stats", &desk.path("store")]).json()["spaces"].as_array().map(Vec::len), Some(1));
}

#[test]
fn another_model_takes_the_place_of_the_one_before_and_another_name_stands_beside_it() {
    let desk = Desk::new(|seen, _| firm(seen));
    desk.import(&FIVE[..2]);
    let relations = || hedgerow(&["ls", &desk.path("store"), "relations"]).json().as_array().unwrap().len();
    assert_eq!((&run(&desk, "keen", &[])["replaced"], relations()), (&json!(0), 2));
    let told = run(&desk, "lazy", &["--limit", "1"]);
    assert_eq!((&told["replaced"], &told["remaining"], relations()), (&json!(1), &json!(1), 1));
    assert_eq!(run(&desk, "lazy", &[])["chunks"], 1);
    assert_eq!(relations(), 0);
    assert_eq!(shown(&desk, "entity:Arbor")["descriptions"][0]["text"], "a firm, says lazy");
    assert_eq!(run(&desk, "keen", &["--name", "second"])["replaced"], 0);
    assert_eq!((relations(), shown(&desk, "entity:Arbor")["descriptions"].as_array().unwrap().len()), (2, 2));
    // Neither is asked about again.
    let before = desk.stub.seen().len();
    assert_eq!((&run(&desk, "lazy", &[])["known"], desk.stub.seen().len()), (&json!(2), before));
    let extracted = hedgerow(&["stats", &desk.path("store")]).json()["extractions"].clone();
    let names: Vec<&str> = extracted.as_array().unwrap().iter().filter_map(|it| it["extractor"].as_str()).collect();
    assert_eq!(names, ["llm", "second"]);
    let wrong = hedgerow(&["extract", &desk.path("store"), "--llm", "http://h", "--model", "m", "--name", " "]);
    assert_eq!(wrong.code, 2, "{}", wrong.err);
}

/// A desk whose model does something of its own before the first answer.
fn disturbed(disturb: impl Fn(&str) + Send + Sync + 'static) -> Desk {
    let (place, once) = (Arc::new(Mutex::new(String::new())), AtomicBool::new(true));
    let known = Arc::clone(&place);
    let desk = Desk::new(move |seen, _| {
        if once.swap(false, Ordering::SeqCst) {
            disturb(&known.lock().expect("no one panics"));
        }
        firm(seen)
    });
    desk.import(&FIVE);
    place.lock().expect("no one panics").push_str(&desk.path("store"));
    desk
}

#[test]
fn others_write_while_a_model_is_asked_and_what_they_take_away_is_passed_over() {
    let desk = disturbed(|store| {
        // One that is asked about just now, one that is not yet, and one that comes back with another text.
        assert_eq!(hedgerow(&["rm", store, "a", "d"]).code, 0);
        let file = format!("{store}.jsonl");
        fs::write(&file, json!({"key": "b", "title": "b", "text": "Bruno gave up the firm Buxus"}).to_string())
            .expect("the file can be written");
        assert_eq!(hedgerow(&["import", store, "--documents", &file]).code, 0);
    });
    let told = run(&desk, "keen", &["--batch", "2", "--concurrency", "1"]);
    let counts = ["chunks", "gone", "remaining"].map(|name| told[name].as_u64().unwrap());
    assert_eq!(counts, [2, 3, 0], "{told}");
    assert_eq!((shown(&desk, "entity:Betula"), shown(&desk, "entity:Arbor")), (Value::Null, Value::Null));
    assert_eq!(shown(&desk, "b#0")["extractions"], json!([]));
    assert_eq!(run(&desk, "keen", &[])["chunks"], 1);
    assert_eq!(shown(&desk, "entity:Buxus")["kind"], "firm");
    assert_eq!(hedgerow(&["verify", &desk.path("store")]).code, 0);
}

#[test]
fn a_writer_that_holds_the_store_is_waited_for() {
    let held = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&held);
    let desk = disturbed(move |store| {
        let (store, held) = (Store::open(store).expect("no one holds it"), Arc::clone(&counted));
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(700));
            held.fetch_add(1, Ordering::SeqCst);
            drop(store);
        });
    });
    assert_eq!(run(&desk, "keen", &["--batch", "5"])["chunks"], 5);
    assert_eq!(held.load(Ordering::SeqCst), 1);
}

#[test]
fn two_runs_at_once_ask_about_no_batch_twice_once_it_is_durable() {
    let desk = Desk::new(|seen, _| founded(seen));
    desk.import(&FIVE);
    let (url, store) = (desk.stub.url(), desk.path("store"));
    let inner = Arc::new(Mutex::new(Some((url, store))));
    // The other run reads all while this one waits for its first answer.
    let outer = Stub::new(move |seen, _| {
        if let Some((url, store)) = inner.lock().expect("no one panics").take() {
            assert_eq!(hedgerow(&["extract", &store, "--llm", &url, "--model", "toy"]).code, 0);
        }
        founded(seen)
    });
    let (url, store) = (outer.url(), desk.path("store"));
    let told = hedgerow(&["extract", &store, "--llm", &url, "--model", "toy", "--batch", "1"]).json();
    assert_eq!((&told["chunks"], &told["known"], &told["remaining"]), (&json!(1), &json!(4), &json!(0)), "{told}");
    assert_eq!((outer.seen().len(), desk.stub.seen().len()), (1, 5));
}

#[test]
fn an_answer_may_have_as_many_tokens_as_are_said() {
    let cut = json!({"choices": [{"message": {"content": "{\"entities\": [{\"na"}, "finish_reason": "length"}]});
    let desk = Desk::new(move |_, _| Reply::Json(cut.clone()));
    desk.import(&FIVE[..1]);
    let run = desk.extract(&["--answer-tokens", "77"]);
    assert_eq!((run.code, &run.json()["failed"][0]["kind"]), (1, &json!("content")), "{}", run.err);
    assert!(run.err.contains("cut off at 77 tokens"), "{}", run.err);
    assert_eq!((&desk.stub.seen()[0].body["max_tokens"], desk.stub.seen().len()), (&json!(77), 1));
}
