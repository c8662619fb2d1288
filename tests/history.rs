//! Whatever was done to a store, it holds what a map would hold, and answers as a store made of that at once.

use crate::stores::{PIPELINE, Place, ask, document, entities, put, relations, said, texts};
use hedgerow::{Batch, Env, Quiet, Strategy as By};
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
enum Step {
    /// Changes that are committed together: the text to put, or none to delete, by key.
    Commit(Vec<(u8, Option<u8>)>),
    Refresh,
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let change = (0..5_u8, prop::option::weighted(0.75, 0..4_u8));
    let step = prop_oneof![
        6 => prop::collection::vec(change, 1..6).prop_map(Step::Commit),
        1 => Just(Step::Refresh),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 1..10)
}

fn key(number: u8) -> String {
    format!("d{number}")
}

fn text(key: u8, number: u8) -> String {
    let texts = ["Alice owns Bridge.", "The old Bridge of Dover.", "Carol met Alice in Ely.", "Ely owns Dover."];
    format!("{} It is number {key}.", texts[usize::from(number)])
}

proptest! {
    #![proptest_config(crate::stores::cases(32))]

    #[test]
    fn a_store_holds_what_a_map_would_hold(steps in steps()) {
        let place = Place::new();
        let mut store = place.open();
        let mut model: BTreeMap<String, String> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Refresh => store.refresh(&Quiet).expect("the store can be brought in step"),
                Step::Reopen => {
                    drop(store);
                    store = place.open();
                }
                Step::Commit(changes) => {
                    let mut batch = Batch::default();
                    for (number, change) in changes {
                        if let Some(change) = change {
                            let given = vec![document(&key(number), &text(number, change))];
                            PIPELINE.stage(&store.snapshot(), given, &mut batch, &Quiet).expect("no one cancels");
                            model.insert(key(number), text(number, change));
                        } else {
                            batch.delete(&key(number));
                            model.remove(&key(number));
                        }
                    }
                    store.commit(batch).expect("the batch is sound");
                }
            }
            prop_assert_eq!(&texts(&store.snapshot()), &model);
        }
        for number in 0..5 {
            let found = store.snapshot().find_document(&key(number)).expect("a document can be looked for").is_some();
            prop_assert_eq!(found, model.contains_key(&key(number)));
        }
        store.refresh(&Quiet).expect("the store can be brought in step");
        let verified = hedgerow::verify(&Env::folder(&place.path()).expect("it is a folder"), &Quiet);
        prop_assert_eq!(verified.expect("the store can be checked").problems, Vec::<String>::new());
        check_against_one_made_at_once(&place, &model)?;
    }
}

fn check_against_one_made_at_once(place: &Place, model: &BTreeMap<String, String>) -> Result<(), TestCaseError> {
    let fresh = Place::new();
    let documents: Vec<(&str, &str)> = model.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect();
    put(&fresh.open(), &documents);
    let (old, new) = (place.read(), fresh.read());
    prop_assert_eq!(entities(&old), entities(&new));
    prop_assert_eq!(relations(&old), relations(&new));
    for question in ["Who owns the old Bridge?", "Alice and Dover", "Carol in Ely"] {
        for strategy in [By::Flat, By::Graph] {
            let [one, other] = [&old, &new].map(|snapshot| said(ask(snapshot, question, strategy)));
            prop_assert_eq!(one, other, "{} {:?}", question, strategy);
        }
    }
    Ok(())
}
