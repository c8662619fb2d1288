//! Queries under limits: each gives its answer or the error that names the limit, never another answer.

use crate::stores::{MODELS, Place, document, put, relations, vector};
use hedgerow::{
    Batch, Bounded, Control, Deadline, EdgeRules, ExpandOptions, Filter, Following, Key, NeighbourOptions, Node,
    NodeSet, PathOptions, QueryError, QueryLimits, Question, Quiet, RankingOptions, Store, Target, VectorSearch,
    triple,
};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Says to stop at one of the times that it is asked, and from then on.
struct StopsAt {
    asked: AtomicU64,
    at: u64,
}

impl Control for StopsAt {
    fn advance(&self, _done: u64, _total: u64) {}

    fn cancelled(&self) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed) >= self.at
    }
}

type Query = (&'static str, fn(&Bounded<'_>) -> Result<String, QueryError>);

const QUESTION: &str = "Who owns the Bridge of Dover?";

/// One of each kind of query.
const QUERIES: [Query; 22] = [
    ("ask", |store| Ok(format!("{:?}", store.ask(&Question::new(QUESTION), MODELS)?))),
    ("ask, filtered", |store| {
        let filter = Some(Filter::parse("metadata.row = 3").expect("it is a filter"));
        Ok(format!("{:?}", store.ask(&Question { filter, ..Question::new(QUESTION) }, MODELS)?))
    }),
    ("compare", |store| Ok(format!("{:?}", store.compare(&Question::new(QUESTION), MODELS)?))),
    ("terms", |store| Ok(format!("{:?}", store.search_terms(QUESTION, None, 5)?))),
    ("vectors", |store| Ok(format!("{:?}", store.search_vectors("letters", &[1.0; 16], &VectorSearch::new(5))?))),
    ("expand", |store| {
        let options = ExpandOptions { hops: 3, fan_out: 3, ..ExpandOptions::default() };
        Ok(format!("{:?}", store.expand(&[store.find("entity:Alice")?], &options)?))
    }),
    ("document", |store| Ok(format!("{:?}", store.describe(store.find("doc:d3")?, 9)?))),
    ("chunk", |store| Ok(format!("{:?}", store.describe(store.find("chunk:d3#0")?, 9)?))),
    ("entity", |store| Ok(format!("{:?}", store.describe(store.find("entity:Alice")?, 9)?))),
    ("documents", |store| Ok(format!("{:?}", store.list_documents(9)?))),
    ("entities and relations", |store| Ok(format!("{:?} {:?}", store.list_entities(9)?, store.list_relations(9)?))),
    ("components", |store| Ok(format!("{:?}", store.components(&[], 9, 3)?))),
    ("ranks", |store| Ok(format!("{:?}", store.pagerank(&[], &RankingOptions::default())?))),
    ("ranks from a seed, exact over chunks", |store| {
        let options = RankingOptions { chunks: true, ..RankingOptions::default() };
        Ok(format!("{:?}", store.pagerank(&[store.find("entity:Alice")?], &options)?))
    }),
    ("ranks from a seed, pushed over chunks", |store| {
        let options = RankingOptions { chunks: true, residual_max: Some(1e-4), ..RankingOptions::default() };
        Ok(format!("{:?}", store.pagerank(&[store.find("entity:Alice")?], &options)?))
    }),
    ("paths", |store| {
        let options = PathOptions { count: 3, ..PathOptions::default() };
        Ok(format!("{:?}", store.paths(entity("Alice"), entity("Carol"), &options)?))
    }),
    ("neighbours", |store| {
        let options = NeighbourOptions::default();
        let one = store.neighbours(&[entity("Alice")], &options)?;
        Ok(format!("{one:?} {:?}", store.neighbours(&[entity("Alice"), entity("Carol")], &options)?))
    }),
    ("degrees and betweenness", |store| {
        let following = Following { predicates: vec!["knows".to_owned()], ..Following::default() };
        Ok(format!("{:?} {:?}", store.degrees(&following, 9)?, store.betweenness(&following, 9, 9)?))
    }),
    ("select", |store| {
        let set = NodeSet::parse("(near:2:Alice | with:Dover | component:Ely) \\ Bridge & ?mentions:1").expect("a set");
        Ok(format!("{:?}", store.select(&set, 9)?))
    }),
    ("dump", |store| {
        let mut parts = Vec::new();
        let dumped = store.dump_graph(&["knows".to_owned()], 3, &mut |part| {
            parts.push(format!("{part:?}"));
            ControlFlow::Continue(())
        })?;
        Ok(format!("{dumped:?} {parts:?}"))
    }),
    ("stats", |store| Ok(format!("{:?}", store.stats()?))),
    ("explain", |store| {
        let chunk = |name: &str| match store.find(name)? {
            Node::Chunk(chunk) => Ok(chunk),
            _ => Err(QueryError::Cancelled),
        };
        Ok(format!("{:?}", store.explain([chunk("chunk:d3#0")?, chunk("chunk:d4#0")?], "letters")?))
    }),
];

fn entity(name: &str) -> Key {
    Key::of_entity(&name.to_lowercase())
}

/// A store of a few documents in two segments; the links projection covers one of them only.
fn filled(place: &Place, count: usize) -> Store {
    let store = place.open();
    let text = |row: usize| {
        let texts = ["Alice owns Bridge.", "The Bridge of Dover.", "Carol met Alice in Ely.", "Dover owns Ely."];
        format!("{} It is number {row}.", texts[row % texts.len()])
    };
    let keyed: Vec<(String, String)> = (0..count).map(|row| (format!("d{row}"), text(row))).collect();
    put(&store, &keyed.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect::<Vec<_>>());
    store.build_edges("letters", &EdgeRules::default(), &Quiet).expect("edges can be built");
    let mut batch = Batch::default();
    for row in 0..4 {
        let relation = triple(("Alice", ""), "knows", ("Carol", ""), 1.0).expect("it is a triple");
        batch.relate(Target { document: format!("d{row}"), chunk: Some(0) }, relation);
        batch.set_vector(Target { document: format!("d{row}"), chunk: None }, vector(&[0.6, 0.8]));
    }
    store.commit(batch).expect("the batch is sound");
    let late = vec![document("late", "Alice owns Ferry.")];
    crate::stores::change(&store, late, &[]);
    store
}

#[test]
fn a_query_that_is_cancelled_at_any_poll_says_so_or_answers_as_ever() {
    let place = Place::new();
    let store = filled(&place, 30);
    let snapshot = store.snapshot();
    assert!(!relations(&snapshot).is_empty());
    for (name, query) in QUERIES {
        let answer = query(&snapshot.bounded(QueryLimits::default())).expect("without limits there is an answer");
        let mut cancelled = 0;
        for at in 0.. {
            let control = StopsAt { asked: AtomicU64::new(0), at };
            match query(&snapshot.bounded(QueryLimits { control: &control, ..QueryLimits::default() })) {
                Err(QueryError::Cancelled) => cancelled += 1,
                Err(other) => panic!("{name}: {other}"),
                Ok(found) => {
                    assert_eq!(found, answer, "{name}, stopped at poll {at}");
                    break;
                }
            }
        }
        assert!(cancelled > 0, "{name} never asks whether to stop");
    }
}

#[test]
fn a_budget_of_memory_gives_the_answer_or_the_error_that_names_it() {
    let place = Place::new();
    let store = filled(&place, 30);
    let snapshot = store.snapshot();
    for (name, query) in QUERIES {
        let answer = query(&snapshot.bounded(QueryLimits::default())).expect("without limits there is an answer");
        let mut least = 0;
        loop {
            match query(&snapshot.bounded(QueryLimits { memory_bytes: least, ..QueryLimits::default() })) {
                Err(QueryError::Memory { needed, budget }) => {
                    assert!(budget == least && needed > least, "{name}: {needed} beyond {budget}");
                    least = needed;
                }
                Err(other) => panic!("{name}: {other}"),
                Ok(found) => {
                    assert_eq!(found, answer, "{name} in {least} bytes");
                    break;
                }
            }
        }
        assert!(least > 0 || name == "document", "{name} counts no memory");
    }
}

#[test]
fn what_a_query_has_counted_is_free_for_the_next_even_after_an_error() {
    let place = Place::new();
    let store = filled(&place, 30);
    let snapshot = store.snapshot();
    let bounded = snapshot.bounded(QueryLimits { memory_bytes: 2 << 20, ..QueryLimits::default() });
    for _ in 0..200 {
        for (name, query) in QUERIES {
            query(&bounded).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        let long = "word ".repeat(100_000);
        assert!(matches!(bounded.search_terms(&long, None, 1), Err(QueryError::Memory { .. })));
    }
}

#[test]
fn a_deadline_in_the_past_is_told_before_anything_is_read() {
    let place = Place::new();
    let store = filled(&place, 30);
    let snapshot = store.snapshot();
    let asked = AtomicU64::new(0);
    let elapsed = || {
        asked.fetch_add(1, Ordering::Relaxed);
        Duration::from_secs(3)
    };
    let deadline = Some(Deadline { elapsed: &elapsed, after: Duration::from_secs(2) });
    for (name, query) in QUERIES {
        asked.store(0, Ordering::Relaxed);
        let found = query(&snapshot.bounded(QueryLimits { deadline, ..QueryLimits::default() }));
        let Err(QueryError::Deadline { after }) = found else { panic!("{name}: {found:?}") };
        assert_eq!((after, asked.load(Ordering::Relaxed)), (Duration::from_secs(2), 1), "{name}");
    }
}

#[test]
fn a_clock_that_runs_out_at_any_moment_gives_the_error_or_the_answer() {
    let place = Place::new();
    let store = filled(&place, 30);
    let snapshot = store.snapshot();
    for (name, query) in QUERIES {
        let answer = query(&snapshot.bounded(QueryLimits::default())).expect("without limits there is an answer");
        for seconds in 1.. {
            let clock = AtomicU64::new(0);
            let elapsed = || Duration::from_secs(clock.fetch_add(1, Ordering::Relaxed));
            let deadline = Some(Deadline { elapsed: &elapsed, after: Duration::from_secs(seconds) });
            match query(&snapshot.bounded(QueryLimits { deadline, ..QueryLimits::default() })) {
                Err(QueryError::Deadline { .. }) => {}
                found => {
                    assert_eq!(found.unwrap_or_else(|error| panic!("{name}: {error}")), answer, "{name}");
                    assert!(seconds > 1, "{name} never looks at the clock");
                    break;
                }
            }
        }
    }
}

#[test]
fn statistics_ask_before_every_document_whether_to_go_on() {
    let place = Place::new();
    let store = filled(&place, 200);
    let never = StopsAt { asked: AtomicU64::new(0), at: u64::MAX };
    let snapshot = store.snapshot();
    let stats = snapshot.bounded(QueryLimits { control: &never, ..QueryLimits::default() }).stats();
    let documents = stats.expect("nothing stops it").documents;
    let asked = never.asked.load(Ordering::Relaxed);
    assert!(asked >= documents && documents >= 200, "asked {asked} times for {documents} documents");
}
