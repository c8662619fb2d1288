//! What extractors find in chunks that are already there: it counts, is replaced as a whole, and goes with its document.

use crate::stores::{Place, change, document, entities, put, relations};
use hedgerow::{
    Batch, CommitError, Description, Env, ExtractionView, Quiet, Snapshot, StagedEntity, StagedExtraction, Store,
    Target, salvage, triple, verify,
};

/// An extraction by `reader` of entities, each with its description, and of whom Alice knows.
fn found(model: &str, names: &[(&str, &str)], known: &[&str]) -> StagedExtraction {
    let entity = |(name, description): &(&str, &str)| {
        let entity = StagedEntity::new(name, "thing").expect("it is a name");
        StagedEntity { description: (*description).to_owned(), ..entity }
    };
    StagedExtraction {
        extractor: "reader".into(),
        model: model.into(),
        entities: names.iter().map(entity).collect(),
        relations: known
            .iter()
            .map(|name| triple(("Alice", ""), "knows", (name, ""), 1.0).expect("it is sound"))
            .collect(),
    }
}

fn set(store: &Store, chunk: &str, extraction: StagedExtraction) -> Result<u64, CommitError> {
    let mut batch = Batch::default();
    batch.set_extraction(Target { document: chunk.into(), chunk: Some(0) }, extraction);
    let committed = store.commit(batch)?;
    store.refresh(&Quiet).expect("the store can be brought in step");
    Ok(committed.extractions)
}

fn has(snapshot: &Snapshot, name: &str) -> bool {
    entities(snapshot).iter().any(|found| found == name)
}

fn describe(snapshot: &Snapshot, key: &str) -> Description {
    snapshot.describe(snapshot.find(key).expect("it is there"), 20).expect("it can be described")
}

fn models(snapshot: &Snapshot) -> Vec<String> {
    let ids: Vec<_> = snapshot.chunk_ids().collect();
    let views = ids.into_iter().flat_map(|id| snapshot.extractions(id).expect("it can be read"));
    let mut models: Vec<String> =
        views.map(|ExtractionView { extractor, model, .. }| format!("{extractor} {model}")).collect();
    models.sort();
    models
}

#[track_caller]
fn is_sound(place: &Place) {
    let verified = verify(&Env::folder(&place.path()).expect("it is a folder"), &Quiet);
    assert_eq!(verified.expect("the store can be checked").problems, Vec::<String>::new());
}

#[test]
fn entities_of_an_extraction_are_mentions_with_a_place_and_a_description() {
    let place = Place::new();
    let store = place.open();
    put(&store, &[("a", "the quay is old."), ("quay", "A page of its own.")]);
    let mut extraction = found("m", &[("Page quay", "a landing"), ("the quay", "old")], &[]);
    extraction.entities[1].range = 4..8;
    assert_eq!(set(&store, "a", extraction).ok(), Some(1));
    let snapshot = place.read();
    let Description::Entity { entity, descriptions, edges } = describe(&snapshot, "entity:quay") else { panic!() };
    assert_eq!((entity.kind.as_str(), edges.mentioned_in.as_slice()), ("thing", ["a#0".to_owned()].as_slice()));
    let told: Vec<_> = descriptions.iter().map(|told| (&*told.chunk, &*told.extractor, &*told.text)).collect();
    assert_eq!(told, [("a#0", "reader", "old")]);
    // The other document's title is the name of the other entity, so that links lead from the chunk to it.
    let Description::Entity { edges, .. } = describe(&snapshot, "entity:Page quay") else { panic!() };
    assert_eq!((edges.defined_by, edges.mentioned_in), (vec!["quay#0".to_owned()], vec!["a#0".to_owned()]));
    let Description::Chunk { mentions, extractions, .. } = describe(&snapshot, "a#0") else { panic!() };
    assert!(mentions.iter().any(|line| line.entity == "the quay" && line.ranges == [(4, 8)]), "{mentions:?}");
    assert_eq!((extractions[0].extractor.as_str(), extractions[0].model.as_str()), ("reader", "m"));
    is_sound(&place);
}

#[test]
fn a_new_extraction_takes_the_place_of_the_one_before_and_of_no_other() {
    let place = Place::new();
    let store = place.open_unmerged();
    put(&store, &[("a", "One."), ("b", "Two.")]);
    let mut batch = Batch::default();
    batch.relate(Target { document: "a".into(), chunk: Some(0) }, found("", &[], &["Zoe"]).relations.remove(0));
    store.commit(batch).expect("the batch is sound");
    assert_eq!(set(&store, "a", found("old", &[("Quay", "x")], &["Bob", "Carol"])).ok(), Some(1));
    assert_eq!(set(&store, "b", found("old", &[("Quay", "y")], &["Bob"])).ok(), Some(1));
    let other = StagedExtraction { extractor: "other".into(), ..found("old", &[("Mill", "")], &[]) };
    assert_eq!(set(&store, "a", other).ok(), Some(1));
    let generation = store.snapshot().generation();
    // The same in another order changes nothing.
    assert_eq!(set(&store, "a", found("old", &[("Quay", "x")], &["Carol", "Bob"])).ok(), Some(0));
    assert_eq!(store.snapshot().generation(), generation);
    assert_eq!(set(&store, "a", found("new", &[("Weir", "z")], &["Bob"])).ok(), Some(1));
    for compacted in [false, true] {
        let snapshot = place.read();
        assert_eq!(
            relations(&snapshot),
            ["Alice knows Bob 2 [\"a#0\", \"b#0\"]", "Alice knows Zoe 1 [\"a#0\"]"].map(str::to_owned)
        );
        assert_eq!(["Quay", "Weir", "Mill", "Carol"].map(|name| has(&snapshot, name)), [true, true, true, false]);
        let Description::Entity { descriptions, .. } = describe(&snapshot, "entity:Quay") else { panic!() };
        assert_eq!(descriptions.len(), 1);
        assert_eq!(models(&snapshot), ["other old", "reader new", "reader old"]);
        is_sound(&place);
        if !compacted {
            let before = snapshot.fingerprint();
            store.compact(&Quiet).expect("it can be compacted");
            store.refresh(&Quiet).expect("the store can be brought in step");
            assert_eq!(place.read().fingerprint(), before);
        }
    }
}

#[test]
fn an_extraction_goes_with_its_chunk() {
    let place = Place::new();
    let store = place.open_unmerged();
    put(&store, &[("a", "One."), ("b", "Two.")]);
    for key in ["a", "b"] {
        set(&store, key, found("m", &[(&format!("Quay {key}"), "")], &["Bob"])).expect("the batch is sound");
    }
    change(&store, vec![document("a", "Another one.")], &["b"]);
    store.refresh(&Quiet).expect("the store can be brought in step");
    let snapshot = place.read();
    assert_eq!((models(&snapshot), relations(&snapshot)), (Vec::new(), Vec::new()));
    assert!(!has(&snapshot, "Quay a") && !has(&snapshot, "Quay b"));
    is_sound(&place);
}

#[test]
fn what_cannot_be_is_refused_and_nothing_is_lost() {
    let place = Place::new();
    let store = place.open();
    put(&store, &[("a", "One.")]);
    let sound = || found("m", &[("Quay", "")], &[]);
    let long = "x".repeat(4097);
    let mut wrong = vec![
        StagedExtraction { extractor: String::new(), ..sound() },
        StagedExtraction { extractor: long.clone(), ..sound() },
        found("m", &[("Quay", ""), ("the quay", "")], &[]),
        found("m", &[("Quay", &long)], &[]),
    ];
    let mut misnamed = sound();
    misnamed.entities[0].name = "Mill".into();
    wrong.push(misnamed);
    for wrong in wrong {
        let refused = set(&store, "a", wrong);
        assert!(matches!(refused, Err(CommitError::Malformed { .. })), "{refused:?}");
    }
    assert!(matches!(set(&store, "nowhere", sound()), Err(CommitError::UnknownKey { .. })));
    assert!(StagedEntity::new("the", "").is_err());
    assert_eq!(models(&place.read()), Vec::<String>::new());
}

#[test]
fn an_extraction_of_a_document_of_the_same_batch_is_part_of_it() {
    let (place, later) = (Place::new(), Place::new());
    let store = place.open();
    let mut batch = Batch::default();
    crate::stores::PIPELINE
        .stage(&store.snapshot(), vec![document("a", "One.")], &mut batch, &Quiet)
        .expect("no one cancels");
    for model in ["old", "new"] {
        batch.set_extraction(Target { document: "a".into(), chunk: None }, found(model, &[("Quay", "")], &["Bob"]));
    }
    store.commit(batch).expect("the batch is sound");
    let other = later.open();
    put(&other, &[("a", "One.")]);
    set(&other, "a", found("new", &[("Quay", "")], &["Bob"])).expect("the batch is sound");
    assert_eq!(place.read().fingerprint(), later.read().fingerprint());
    assert_eq!(models(&place.read()), ["reader new"]);
}

#[test]
fn a_salvaged_store_has_the_newest_extractions() {
    let (place, saved) = (Place::new(), Place::new());
    let store = place.open_unmerged();
    put(&store, &[("a", "One."), ("b", "Two.")]);
    for model in ["old", "new"] {
        set(&store, "a", found(model, &[(&format!("Quay {model}"), "x")], &["Bob"])).expect("the batch is sound");
    }
    set(&store, "b", found("old", &[], &[])).expect("the batch is sound");
    let before = store.snapshot().fingerprint();
    drop(store);
    let [from, to] = [&place, &saved].map(|place| Env::folder(&place.path()).expect("it is a folder"));
    let (store, lost) = salvage(&from, to, &Quiet).expect("there is something to save");
    assert_eq!(lost.lost, []);
    assert_eq!(store.snapshot().fingerprint(), before);
    assert_eq!(models(&store.snapshot()), ["reader new", "reader old"]);
}
