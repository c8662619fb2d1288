//! Questions of any kind that an input asks of a snapshot.

use crate::checks::input::Input;
use hedgerow::{
    Bounded, Direction, EdgeKind, ExpandOptions, Filter, Following, GraphPart, Key, Listing, NeighbourOptions, Node,
    NodeSet, PathCost, PathOptions, QueryError, QueryLimits, Question, RankedKind, RankingOptions, Recipe, Returned,
    Snapshot, Strategy, VectorSearch,
};
use hedgerow_durability::MODELS;
use std::ops::ControlFlow;

const WORDS: [&str; 12] = [
    "Who owns",
    "Alice",
    "the old Bridge",
    "Dover",
    "Ely",
    "Carol met",
    "Page a",
    "東京",
    "zzz",
    "and",
    "fay",
    "ALICE's",
];
const KEYS: [&str; 10] =
    ["Alice", "a", "a#0", "a#1", "chunk:c#1", "entity:ely", "doc:g", "b#0", "entity:Page a", "h#4294967295"];
const FILTERS: [&str; 8] = [
    "kind = \"text\"",
    "metadata.year = 1979",
    "title = \"Page a\"",
    "key = \"c\" and source = \"c.txt\"",
    "",
    "not (metadata.year < 1979 or title ~ \"B\")",
    "key in [\"a\", \"c\"] or metadata.year exists",
    "metadata.year != 1979 and key >= \"b\"",
];

const SETS: [&str; 6] = [
    "all & ?degree:1 & ?mentions:1",
    "near:2:Alice | in:3:Dover",
    "with:Carol \\ Ely",
    "component:Bridge & type:person",
    "(all & ?label:owns) | community:0",
    "\"out:64:old Bridge\"",
];

/// Bytes that a question may take.
const MEMORY_BYTES: u64 = 64 << 20;

fn limits() -> QueryLimits<'static> {
    QueryLimits { memory_bytes: MEMORY_BYTES, ..QueryLimits::default() }
}

/// Asks what an input says, until it ends or eight questions were asked.
///
/// # Errors
/// The first that is damage; a question that cannot be asked is no error.
pub fn ask(snapshot: &Snapshot, input: &mut Input<'_>) -> Result<(), QueryError> {
    for _ in 0..8 {
        if input.is_empty() {
            break;
        }
        if let Err(error @ QueryError::Damaged(_)) = one(snapshot, input) {
            return Err(error);
        }
    }
    Ok(())
}

fn one(snapshot: &Snapshot, input: &mut Input<'_>) -> Result<(), QueryError> {
    let queries = snapshot.bounded(limits());
    match input.byte() % 9 {
        0 | 1 => {
            let question = question(input);
            if input.byte().is_multiple_of(4) {
                queries.compare(&question, MODELS)?;
                return Ok(());
            }
            let context = queries.ask(&question, MODELS)?;
            assert!(context.tokens <= question.tokens_max, "the budget is kept");
            assert!(context.passages.len() <= question.seeds.saturating_add(question.neighbours), "so is the number");
            serde_json::to_string(&context).expect("an answer can be shown");
        }
        2 => {
            let options = options(input);
            let seeds = [node(input), node(input)];
            let seeds: Vec<_> = seeds.iter().filter_map(|key| queries.find(key).ok()).collect();
            let expansion = queries.expand(&seeds, &options)?;
            assert!(expansion.nodes.len() <= options.limit, "the limit is kept");
        }
        3 => {
            let (count, filter) = (count(input), filter(input));
            let found = queries.search_terms(&text(input), filter.as_ref(), count)?;
            assert!(found.len() <= count, "no more than asked for");
        }
        4 => {
            let (count, filter) = (count(input), filter(input));
            let space = if input.byte().is_multiple_of(4) { "other" } else { "letters" };
            let found = queries.search_vectors(
                space,
                &vector(input),
                &VectorSearch { filter: filter.as_ref(), ..VectorSearch::new(count) },
            )?;
            assert!(found.len() <= count, "no more than asked for");
        }
        5 => drop(queries.describe(queries.find(&node(input))?, count(input))?),
        6 => {
            let count = count(input);
            queries.list_documents(count)?;
            queries.list_entities(count)?;
            queries.list_relations(count)?;
        }
        7 => about_the_graph(&queries, input)?,
        _ => {
            let stats = snapshot.stats()?;
            assert_eq!(stats.incomplete, snapshot.incomplete(), "what is missing is said the same twice");
        }
    }
    Ok(())
}

/// Asks about the graph of relations as a whole.
fn about_the_graph(queries: &Bounded<'_>, input: &mut Input<'_>) -> Result<(), QueryError> {
    let predicates = if input.byte().is_multiple_of(4) { vec!["owns".to_owned()] } else { Vec::new() };
    let direction = [Direction::Both, Direction::In, Direction::Out][usize::from(input.byte() % 3)];
    let (following, limit) = (Following { predicates: predicates.clone(), direction }, count(input));
    let entities: Vec<Key> = (0..2)
        .filter_map(|_| match queries.find(&node(input)) {
            Ok(Node::Entity(entity)) => Some(entity),
            _ => None,
        })
        .collect();
    match input.byte() % 8 {
        0 => {
            let found = queries.components(&predicates, limit, count(input))?;
            assert!(found.largest.len() <= limit && found.alone <= found.components, "no more than asked for");
        }
        1 => {
            let seeds = [node(input), node(input)];
            let seeds: Vec<Node> = seeds.iter().filter_map(|key| queries.find(key).ok()).collect();
            let flags = input.byte();
            let options = RankingOptions {
                following,
                chunks: flags & 1 != 0,
                kind: [RankedKind::All, RankedKind::Entities, RankedKind::Chunks][usize::from(flags >> 4) % 3],
                damping: number(input).into(),
                weighted: flags & 2 != 0,
                residual_max: (flags & 4 != 0).then(|| f64::from(number(input)).max(1e-6)),
                limit,
            };
            let found = queries.pagerank(&seeds, &options)?;
            assert!(found.ranks.len() <= limit, "no more than asked for");
            let all: f64 = found.ranks.iter().map(|line| line.score).sum();
            assert!((0.0..1.000_001).contains(&all), "ranks are shares: {all}");
        }
        2 => {
            let cost = [PathCost::Hops, PathCost::Inverse, PathCost::Weight][usize::from(input.byte() % 3)];
            let options = PathOptions { following, cost, count: limit.min(9), visited_max: 10_000 };
            if let [from, to] = entities.as_slice() {
                assert!(queries.paths(*from, *to, &options)?.paths.len() <= 9, "no more than asked for");
            }
        }
        3 => {
            let options = NeighbourOptions { following, limit, ..NeighbourOptions::default() };
            let found = queries.neighbours(&entities, &options)?;
            assert!(found.neighbours.len() <= limit, "no more than asked for");
        }
        4 => assert!(queries.degrees(&following, limit)?.hubs.len() <= limit, "no more than asked for"),
        5 => drop(queries.betweenness(&following, count(input), limit)?),
        6 => {
            let set = match input.byte() {
                byte if byte < 192 => SETS[usize::from(byte) % SETS.len()].to_owned(),
                _ => input.text(),
            };
            if let Ok(set) = NodeSet::parse(&set) {
                assert!(queries.select(&set, limit)?.entities.len() <= limit, "no more than asked for");
            }
        }
        _ => {
            let mut relations = 0;
            let dumped = queries.dump_graph(&predicates, limit, &mut |part| {
                relations += u64::from(matches!(part, GraphPart::Relation { .. }));
                ControlFlow::Continue(())
            })?;
            assert_eq!(dumped.relations, relations, "what was dumped is counted");
        }
    }
    Ok(())
}

/// Reads everything that can be listed.
///
/// # Errors
/// [`QueryError`], but for too much memory.
pub fn everything(snapshot: &Snapshot) -> Result<(), QueryError> {
    match listed(snapshot) {
        Err(QueryError::Memory { .. }) => Ok(()),
        read => read,
    }
}

fn listed(snapshot: &Snapshot) -> Result<(), QueryError> {
    let queries = snapshot.bounded(limits());
    let Listing::Documents(documents) = queries.list_documents(usize::MAX)? else { return Ok(()) };
    let Listing::Entities(entities) = queries.list_entities(usize::MAX)? else { return Ok(()) };
    queries.list_relations(usize::MAX)?;
    let mut keys: Vec<String> = entities.iter().map(|line| format!("entity:{}", line.name)).collect();
    for line in documents {
        let missing = || QueryError::NotFound { key: line.key.clone() };
        let document = snapshot.find_document(&line.key)?.ok_or_else(missing)?;
        document.text()?;
        keys.extend(document.chunks().enumerate().map(|(ordinal, _)| format!("chunk:{}#{ordinal}", line.key)));
        keys.push(format!("doc:{}", line.key));
    }
    for key in keys {
        let node = queries.find(&key)?;
        queries.describe(node, usize::MAX)?;
        queries.expand(&[node], &ExpandOptions { hops: 3, ..ExpandOptions::default() })?;
    }
    let ranks = RankingOptions { chunks: true, ..RankingOptions::default() };
    queries.pagerank(&[], &ranks)?;
    queries.components(&[], 9, 9)?;
    queries.degrees(&Following::default(), 9)?;
    queries.betweenness(&Following::default(), 9, 9)?;
    queries.dump_graph(&[], usize::MAX, &mut |_| ControlFlow::Continue(()))?;
    for space in snapshot.spaces()? {
        let mut wanted = vec![0.0; space.dimensions];
        wanted.iter_mut().take(1).for_each(|component| *component = 1.0);
        queries.search_vectors(&space.name, &wanted, &VectorSearch::new(usize::MAX))?;
    }
    queries.ask(&Question::new("Who owns the old Bridge of Dover, Alice or Carol?"), MODELS)?;
    snapshot.stats()?;
    Ok(())
}

fn count(input: &mut Input<'_>) -> usize {
    match input.byte() {
        255 => usize::MAX,
        count => usize::from(count % 16),
    }
}

fn number(input: &mut Input<'_>) -> f32 {
    let numbers = [0.0, 0.4, 1.0, -1.0, f32::NAN, f32::INFINITY, 1e38];
    match input.byte() {
        byte if byte < 128 => numbers[usize::from(byte) % numbers.len()],
        _ => f32::from_bits(input.word()),
    }
}

fn text(input: &mut Input<'_>) -> String {
    let mut text = String::new();
    for _ in 0..input.byte() % 6 {
        match input.byte() {
            byte if byte < 192 => text.push_str(WORDS[usize::from(byte) % WORDS.len()]),
            _ => text.push_str(&input.text()),
        }
        text.push(' ');
    }
    text
}

fn node(input: &mut Input<'_>) -> String {
    match input.byte() {
        byte if byte < 192 => KEYS[usize::from(byte) % KEYS.len()].into(),
        _ => input.text(),
    }
}

fn filter(input: &mut Input<'_>) -> Option<Filter> {
    match input.byte() {
        byte if byte < 128 => None,
        byte if byte < 192 => Filter::parse(FILTERS[usize::from(byte) % FILTERS.len()]).ok(),
        _ => Filter::parse(&input.text()).ok(),
    }
}

fn vector(input: &mut Input<'_>) -> Vec<f32> {
    let length = [16, 16, 16, 1, 0, 17][usize::from(input.byte() % 6)];
    (0..length).map(|_| number(input)).collect()
}

fn question(input: &mut Input<'_>) -> Question {
    let flags = input.byte();
    let mut question = Question::new(text(input));
    question.strategy = Strategy::ALL[usize::from(flags >> 5 & 2 | !flags & 1)];
    if flags & 128 != 0 {
        question.strategy = [Strategy::Reports, Strategy::Subgraph, Strategy::Combined][usize::from(flags % 3)];
    }
    question.filter = filter(input);
    if flags & 2 != 0 {
        (question.seeds, question.neighbours, question.tokens_max) =
            (count(input), count(input), count(input).saturating_mul(8));
    }
    if flags & 4 != 0 {
        question.vector = Some(vector(input));
    }
    if flags & 8 != 0 {
        question.space = Some(if input.byte().is_multiple_of(2) { "other".into() } else { input.text() });
    }
    if flags & 16 != 0 {
        question.vector_weight = Some(number(input));
        question.recipe = Recipe {
            seeds_max: count(input),
            named: number(input),
            definitions_max: count(input),
            link: number(input),
            bound: number(input),
            gate: number(input),
            rivals_vector: number(input),
            rivals_shared: number(input),
            rivals_spread: number(input),
            rivals_named_spread: number(input),
            definition_gain: number(input),
            undefined: number(input),
            undefined_max: count(input),
            gain: number(input),
            mentions_max: count(input),
            walk: number(input),
            walk_named: number(input),
            cover: number(input),
            similar: number(input),
            similar_min: number(input),
            similar_max: count(input),
            adjoining: number(input),
            again_max: count(input),
            adds: number(input),
            joins: number(input),
        };
    }
    question
}

fn options(input: &mut Input<'_>) -> ExpandOptions {
    let edges = input.byte();
    let chosen = EdgeKind::ALL.into_iter().enumerate().filter(|(bit, _)| edges >> bit & 1 == 1 || edges == 0);
    ExpandOptions {
        edges: chosen.map(|(_, kind)| kind).collect(),
        direction: [Direction::Both, Direction::In, Direction::Out][usize::from(input.byte() % 3)],
        hops: count(input),
        fan_out: count(input),
        limit: count(input),
        weight_min: number(input),
        predicates: if input.byte().is_multiple_of(4) { vec!["owns".into()] } else { Vec::new() },
        degree_max: if input.byte().is_multiple_of(2) { usize::MAX } else { count(input) },
        edge_limit: count(input),
        idf: input.byte().is_multiple_of(2),
        returned: [Returned::Nodes, Returned::Subgraph, Returned::Counts][usize::from(input.byte() % 3)],
    }
}
