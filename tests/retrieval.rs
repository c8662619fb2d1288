//! What the graph adds to terms and vectors, measured on the small multi-hop set with the models that come with the program.

use crate::corpus;
use crate::stores::{Numbers, Place, said};
use hedgerow::{
    Batch, Context, Document, Embed, ExpandOptions, Filter, GivenChunk, Listing, Models, Passage, Pipeline, Question,
    Quiet, Recipe, Snapshot, Strategy, VectorSearch,
};
use hedgerow_cli::embed::StaticTable;
use hedgerow_cli::extract::Patterns;
use std::collections::BTreeSet;
use std::sync::LazyLock;

static TABLE: LazyLock<StaticTable> = LazyLock::new(StaticTable::default);

fn models() -> Models<'static> {
    Models { embedder: Some(&*TABLE), extractor: Some(&Patterns) }
}

/// A store of these documents, committed in batches of a size.
fn built(place: &Place, documents: &[Document], batch_size: usize) {
    let store = place.open();
    let pipeline = Pipeline { chunking: None, embedder: Some(&*TABLE), extractor: Some(&Patterns) };
    for part in documents.chunks(batch_size) {
        let mut batch = Batch::default();
        let staged = pipeline.stage(&store.snapshot(), part.to_vec(), &mut batch, &Quiet).expect("no one cancels");
        assert_eq!(staged.rejected, []);
        store.commit(batch).expect("the batch is sound");
    }
    store.refresh(&Quiet).expect("the store can be brought in step");
}

/// The set in one batch, made once for all tests of this file.
static WHOLE: LazyLock<Place> = LazyLock::new(|| {
    let place = Place::new();
    built(&place, &corpus::documents(), 1000);
    place
});

fn answer(snapshot: &Snapshot, question: &str, strategy: Strategy) -> Context {
    let question = Question { strategy, seeds: 10, neighbours: 10, tokens_max: usize::MAX, ..Question::new(question) };
    snapshot.ask(&question, models()).expect("the question has an answer")
}

/// Mean share of gold among the first five, and share of questions whose gold is all among the first ten.
#[derive(Debug)]
struct Measured {
    recall_at_5: f64,
    all_at_10: f64,
}

fn measured(snapshot: &Snapshot, strategy: Strategy) -> Measured {
    let (mut recall, mut all, mut asked_count) = (0.0, 0.0, 0.0);
    for asked in corpus::questions() {
        let context = answer(snapshot, &asked.question, strategy);
        let documents: Vec<&str> = context.passages.iter().map(|passage| passage.document.as_str()).collect();
        let among = |count: usize| {
            let first: BTreeSet<&str> = documents.iter().take(count).copied().collect();
            asked.gold.iter().filter(|gold| first.contains(gold.as_str())).count()
        };
        let part = |count: usize| f64::from(u32::try_from(count).expect("it is small"));
        recall += part(among(5)) / part(asked.gold.len());
        all += part(usize::from(among(10) == asked.gold.len()));
        asked_count += 1.0;
    }
    Measured { recall_at_5: recall / asked_count, all_at_10: all / asked_count }
}

#[test]
fn the_graph_finds_more_of_what_a_question_needs_than_flat_search() {
    let snapshot = WHOLE.read();
    let [flat, graph] = [Strategy::Flat, Strategy::Graph].map(|strategy| measured(&snapshot, strategy));
    println!("flat {flat:?}, graph {graph:?}");
    assert!(graph.recall_at_5 >= flat.recall_at_5 + 0.08, "{graph:?} {flat:?}");
    assert!(graph.all_at_10 >= flat.all_at_10 + 0.2, "{graph:?} {flat:?}");
}

/// The set in another order, in many batches.
static SHUFFLED: LazyLock<Place> = LazyLock::new(|| {
    let mut documents = corpus::documents();
    let mut numbers = Numbers(11);
    for last in (1..documents.len()).rev() {
        documents.swap(last, numbers.below(last + 1));
    }
    let place = Place::new();
    built(&place, &documents, 97);
    place
});

#[test]
fn passages_and_scores_are_the_same_whatever_the_batches_and_the_order_of_documents() {
    let (one, other) = (WHOLE.read(), SHUFFLED.read());
    let told = |context: Context| -> Vec<(String, u32, hedgerow::Role)> {
        let passages = context.passages.into_iter();
        passages.map(|passage| (passage.key, passage.score.to_bits(), passage.role)).collect()
    };
    for asked in corpus::questions() {
        for strategy in Strategy::ALL {
            let [one, other] = [&one, &other].map(|snapshot| told(answer(snapshot, &asked.question, strategy)));
            assert_eq!(one, other, "{}", asked.question);
        }
    }
}

#[test]
fn paths_and_traces_are_the_same_whatever_the_batches_and_the_order_of_documents() {
    let (one, other) = (WHOLE.read(), SHUFFLED.read());
    let mut differ = Vec::new();
    for asked in corpus::questions() {
        for strategy in Strategy::ALL {
            let [one, other] = [&one, &other].map(|snapshot| said(answer(snapshot, &asked.question, strategy)));
            for (one, other) in one.passages.iter().zip(&other.passages).filter(|(one, other)| one != other) {
                differ.push(format!("{}: {:?} and {:?}", asked.question, one.path, other.path));
            }
            if one.trace != other.trace {
                differ.push(format!("{}: {:?} and {:?}", asked.question, one.trace, other.trace));
            }
        }
    }
    assert!(differ.is_empty(), "{} differ; the first: {}", differ.len(), differ[0]);
}

#[test]
fn a_filter_gives_as_many_passages_as_match_up_to_the_number_asked_for() {
    let place = Place::new();
    let documents = corpus::documents().into_iter().enumerate().map(|(row, mut document)| {
        document.metadata.insert("rare".into(), (row % 100 == 0).into());
        document
    });
    built(&place, &documents.collect::<Vec<_>>(), 1000);
    let snapshot = place.read();
    let rare: BTreeSet<String> = corpus::documents().into_iter().step_by(100).map(|document| document.key).collect();
    assert_eq!(rare.len(), 7);
    let filter = Some(Filter::parse("metadata.rare = true").expect("it is a filter"));
    for asked in corpus::questions() {
        for strategy in Strategy::ALL {
            for (wanted, expected) in [(3, 5), (10, 7)] {
                let question = Question {
                    strategy,
                    seeds: wanted,
                    neighbours: 2,
                    filter: filter.clone(),
                    ..Question::new(&*asked.question)
                };
                let context = snapshot.ask(&question, models()).expect("the question has an answer");
                // With vectors every passage has some similarity, but it may be below zero.
                assert!(
                    context.passages.len() == expected,
                    "{} of {expected}: {}",
                    context.passages.len(),
                    asked.question
                );
                assert!(context.passages.iter().all(|passage| rare.contains(&passage.document)));
                assert_eq!(context.trace.chunks, 7);
            }
        }
    }
}

#[test]
fn a_filter_lets_through_what_some_hops_reach_in_terms_vectors_and_walks() {
    let snapshot = WHOLE.read();
    let key = corpus::documents()[3].key.clone();
    let Listing::Entities(entities) = snapshot.list_entities(3).expect("they can be listed") else { unreachable!() };
    let nodes = entities.iter().map(|line| format!("entity:{}", line.name)).chain([format!("doc:{key}")]);
    let question = &corpus::questions()[0].question;
    let vector = TABLE.embed(&[question]).expect("it has a vector").remove(0).expect("it has one");
    let mut narrow = 0;
    for (node, hops) in nodes.flat_map(|node| (0..3).map(move |hops| (node.clone(), hops))) {
        let seeds = [snapshot.find(&node).expect("it is there")];
        let all = ExpandOptions { hops, limit: usize::MAX, fan_out: usize::MAX, ..ExpandOptions::default() };
        let reached = snapshot.expand(&seeds, &all).expect("it can be walked").nodes;
        let near: BTreeSet<String> =
            reached.iter().filter_map(|node| node.key.strip_prefix("chunk:").map(str::to_owned)).collect();
        let filter = Filter::parse(&format!("within {hops} of {node:?}")).expect("it is a filter");
        let others = Filter::parse(&format!("not {filter}")).expect("it is a filter");
        let set = snapshot.chunks_within(&seeds, &all).expect("it can be walked");
        assert_eq!(snapshot.chunks_where(&filter).expect("it can be read"), set);
        assert_eq!((set.len(), set.is_empty()), (near.len() as u64, near.is_empty()));
        let rest = snapshot.chunks_where(&others).expect("it can be read");
        let whole = snapshot.chunks_where(&Filter::default()).expect("it can be read");
        assert!((&set | &rest) == whole && (&whole - &rest) == set && (&set & &rest).is_empty());
        let search = VectorSearch { filter: Some(&filter), ..VectorSearch::new(usize::MAX) };
        let found = snapshot.search_vectors("static", &vector, &search).expect("it is answered");
        assert_eq!(found.into_iter().map(|found| found.key).collect::<BTreeSet<_>>(), near);
        let found = snapshot.search_terms(question, Some(&filter), usize::MAX).expect("it is answered");
        assert!(found.iter().all(|found| near.contains(&found.key)));
        let asked = Question { filter: Some(filter), ..Question::new(&**question) };
        let context = snapshot.ask(&asked, models()).expect("the question has an answer");
        assert!(context.passages.iter().all(|passage| near.contains(&passage.key)));
        narrow += usize::from(!near.is_empty() && near.len() < 600 && !context.passages.is_empty());
    }
    assert!(narrow > 3, "only {narrow} sets of chunks were some and not all");
    let nowhere = Filter::parse("within 1 of \"entity:Nobody At All\"").expect("it is a filter");
    let error = snapshot.search_terms(question, Some(&nowhere), 3).expect_err("there is no such entity");
    assert!(error.to_string().contains("Nobody At All"), "{error}");
}

#[test]
fn every_passage_says_where_it_is_and_why() {
    let snapshot = WHOLE.read();
    let mut neighbours = 0;
    for asked in corpus::questions() {
        let context = answer(&snapshot, &asked.question, Strategy::Graph);
        assert!(context.passages.windows(2).all(|two| two[0].score >= two[1].score), "{}", asked.question);
        for passage in &context.passages {
            let Passage { legs, start, end, .. } = passage;
            let sum = legs.terms + legs.vector + legs.named + legs.link + legs.walk + legs.choice;
            assert!(
                (sum - passage.score).abs() < 1e-5,
                "the parts of {} add up to {sum}, not {}",
                passage.key,
                passage.score
            );
            let document =
                snapshot.find_document(&passage.document).expect("it can be looked for").expect("it is there");
            let text = document.text().expect("it can be read");
            assert_eq!(text.get(*start as usize..*end as usize), Some(passage.text.as_str()));
            let last = passage.path.last().expect("a passage has a path");
            assert_eq!(last.node, format!("chunk:{}", passage.key));
            neighbours += usize::from(passage.role == hedgerow::Role::Neighbour);
        }
    }
    assert!(neighbours > 64, "only {neighbours} passages were reached along links");
}

#[test]
fn a_budget_of_tokens_is_kept_and_what_does_not_fit_is_named() {
    let snapshot = WHOLE.read();
    for asked in corpus::questions().iter().take(16) {
        let question = Question { tokens_max: 300, ..Question::new(&*asked.question) };
        let context = snapshot.ask(&question, models()).expect("the question has an answer");
        let tokens: usize = context.passages.iter().map(|passage| passage.text.len().div_ceil(4)).sum();
        assert!(tokens == context.tokens && tokens <= 300, "{tokens}");
        assert!(context.trace.dropped.iter().any(|dropped| dropped.reason.contains("budget")));
    }
}

/// The documents, and the keys that a question gets by graph, one seed first.
fn reached(documents: &[(&str, &str, &str)], question: &str) -> (Context, Vec<String>) {
    reached_with(documents, question, Recipe::default())
}

fn reached_with(documents: &[(&str, &str, &str)], question: &str, recipe: Recipe) -> (Context, Vec<String>) {
    let place = Place::new();
    let document = |(key, title, text): &(&str, &str, &str)| Document::new(*key).title(*title).text(*text);
    let documents: Vec<Document> = documents.iter().map(document).collect();
    let filler = (0..40).map(|row| Document::new(format!("filler{row}")).text(format!("Plain row {row} of filler.")));
    built(&place, &documents.into_iter().chain(filler).collect::<Vec<_>>(), 1000);
    let question = Question { seeds: 1, neighbours: 2, vector_weight: Some(0.0), recipe, ..Question::new(question) };
    let context = place.read().ask(&question, models()).expect("the question has an answer");
    let keys = context.passages.iter().map(|passage| passage.document.clone()).collect();
    (context, keys)
}

#[test]
fn of_several_that_bear_a_name_the_one_that_speaks_of_the_same_things_comes_first() {
    let documents = [
        ("opera", "Bijou Night", "Bijou Night was sung by Mercury with Brian May and Roger Taylor at Wembley."),
        ("planet", "Mercury (planet)", "Mercury is the smallest planet and circles the Sun in 88 days."),
        ("singer", "Mercury (singer)", "Mercury sang with Brian May and Roger Taylor in the band Queen."),
        ("metal", "Mercury (metal)", "Mercury is a metal that is liquid at room temperature."),
    ];
    let (_, keys) = reached(&documents, "In which band was the singer of Bijou Night at Wembley?");
    assert_eq!(keys[..2], ["opera", "singer"]);
}

#[test]
fn headings_terms_and_symbols_are_defined_where_they_stand() {
    let manual = "The gates of the terminal are planned ahead.\n\n- Ramp Control: the desk that parks aircraft at stands\n- Stand: where an aircraft waits";
    let documents = [
        ("incident", "INC-2209", "Incident INC-2209 was handed to Ramp Control after pin_all() failed twice."),
        ("manual", "Manual", manual),
        ("code", "", "pub fn pin_all(stands: &[Stand]) {\n    stands.iter().for_each(pin);\n}"),
    ];
    let open = Recipe { gate: 0.0, ..Recipe::default() };
    let (context, keys) = reached_with(&documents, "Who mends incident INC-2209?", open);
    assert_eq!(keys[0], "incident");
    assert_eq!(keys[1..].iter().map(String::as_str).collect::<BTreeSet<_>>(), BTreeSet::from(["code", "manual"]));
    let by: Vec<_> =
        context.passages[1..].iter().map(|passage| passage.path.last().expect("there is one").by).collect();
    assert_eq!(by, ["defined by", "defined by"], "{context:?}");
}

#[test]
fn a_passage_that_has_all_of_a_question_needs_no_other() {
    let documents = [
        ("whole", "Ferry", "The ferry to Ely leaves Dover Pier at nine on Sundays."),
        ("pier", "Dover Pier", "Dover Pier was built of oak."),
        ("ely", "Ely", "Ely is a town with a cathedral."),
    ];
    let asked = "When does the ferry to Ely leave Dover Pier on Sundays?";
    let linked = |gate| {
        let (context, keys) = reached_with(&documents, asked, Recipe { gate, ..Recipe::default() });
        assert_eq!(keys[0], "whole");
        context.passages[1..].iter().map(|passage| passage.legs.link + passage.legs.walk).fold(0.0, f32::max)
    };
    let (gated, open) = (linked(Recipe::default().gate), linked(0.0));
    assert!(gated < 0.1 && open > 0.3, "{gated} with the gate, {open} without it");
}

#[test]
fn the_chunk_beside_a_seed_counts_where_it_adds_to_the_question() {
    let place = Place::new();
    let chunk = |text: &str| GivenChunk { text: text.into(), ..GivenChunk::default() };
    let manual =
        ["The pump of model Zeta is primed by hand.", "Grey valves open at nine bar.", "Nothing else is known."];
    let chunks = Some(manual.map(chunk).to_vec());
    let filler = (0..40).map(|row| Document::new(format!("filler{row}")).text(format!("Valves of plain row {row}.")));
    built(
        &place,
        &[Document { chunks, ..Document::new("manual") }].into_iter().chain(filler).collect::<Vec<_>>(),
        1000,
    );
    let asked = |adjoining| {
        let recipe = Recipe { adjoining, ..Recipe::default() };
        let question = "How is the pump of model Zeta primed, and when do its valves open?";
        let question =
            Question { seeds: 1, neighbours: 1, vector_weight: Some(0.0), recipe, ..Question::new(question) };
        place.read().ask(&question, models()).expect("the question has an answer").passages
    };
    let [found, without] = [1.0, 0.0].map(asked);
    assert_eq!((found[0].key.as_str(), found[1].key.as_str()), ("manual#0", "manual#1"));
    assert_eq!(found[1].path.last().map(|step| step.by), Some("next to"));
    assert!(found[1].score > without[1].score, "{} against {}", found[1].score, without[1].score);
}

#[test]
fn what_a_link_reached_is_followed_once_more_and_the_path_tells_every_step() {
    let documents = [
        ("film", "Night Ferry", "Night Ferry was directed by Ada Hale after the war."),
        ("person", "Ada Hale", "Ada Hale studied under Boris Vane."),
        ("school", "", "A school for sculptors was founded by Boris Vane."),
    ];
    let question = "Which school for sculptors was founded by the teacher of the director of Night Ferry?";
    let (context, keys) = reached(&documents, question);
    assert_eq!(keys.iter().map(String::as_str).collect::<BTreeSet<_>>(), BTreeSet::from(["film", "person", "school"]));
    let again = |again_max| {
        let recipe = Recipe { again_max, walk: 0.0, seeds_max: 1, cover: 0.0, ..Recipe::default() };
        let (context, _) = reached_with(&documents, "Who directed Night Ferry, and which sculptors?", recipe);
        context.passages.into_iter().find(|passage| passage.document == "school").expect("it has a term")
    };
    let [found, without] = [3, 0].map(again);
    assert!(found.score > without.score, "{} against {}", found.score, without.score);
    let by: Vec<&str> = found.path.iter().map(|step| step.by).collect();
    assert_eq!(by, ["terms", "mentions", "defined by", "mentions", "mentioned in"], "{context:?}");
}

#[test]
fn a_passage_that_adds_to_those_before_it_comes_before_one_that_says_the_same_again() {
    let documents = [
        ("dawn", "", "The pump of model Zeta is primed by hand at dawn."),
        ("noon", "", "The pump of model Zeta hums at noon."),
        ("dusk", "", "The pump of model Zeta hums at dusk."),
        ("valve", "", "Its valve opens at nine bar of pressure."),
    ];
    let question = "How is the pump of model Zeta primed, and when does its valve open?";
    let places = |recipe| {
        let (context, keys) = reached_with(&documents, question, recipe);
        let gains: Vec<f32> = context.passages.iter().map(|passage| passage.legs.choice).collect();
        (keys.iter().position(|key| key == "valve"), gains)
    };
    let (place, gains) = places(Recipe::default());
    assert!(place == Some(1) && gains[0] == 0.0 && gains[1] > 0.1, "{place:?}, {gains:?}");
    let (place, gains) = places(Recipe { adds: 0.0, joins: 0.0, ..Recipe::default() });
    assert!(place != Some(1) && gains == [0.0; 3], "{place:?}, {gains:?}");
}
