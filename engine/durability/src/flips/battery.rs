//! A fixed set of questions, and whether what a store answers is what it must.

use crate::flips::stores::Fault;
use crate::pipeline::{MODELS, unit_vector};
use hedgerow::{
    Context, Description, EdgeKind, ExpandOptions, Expansion, Found, Listing, Question, Snapshot, Stats, Strategy,
    VectorSearch,
};

/// What a question got.
#[derive(Clone, Debug, PartialEq)]
enum Answer {
    Context(Box<Context>),
    Found(Vec<Found>),
    Expansion(Expansion),
    Description(Box<Description>),
    Listing(Listing),
    Stats(Box<Stats>),
    Texts(Vec<String>),
}

impl Answer {
    /// Takes out what it says that it lacks.
    fn take_lacks(&mut self) -> Option<Vec<String>> {
        let lacks = match self {
            Self::Context(context) => &mut context.incomplete,
            Self::Expansion(expansion) => &mut expansion.incomplete,
            Self::Stats(stats) => &mut stats.incomplete,
            Self::Found(_) | Self::Description(_) | Self::Listing(_) | Self::Texts(_) => return None,
        };
        Some(std::mem::take(lacks))
    }
}

type Asked = Result<Answer, Fault>;
type Ask = fn(&Snapshot) -> Asked;

const QUESTIONS: [(&str, Ask); 15] = [
    ("ask by graph", |snapshot| ask(snapshot, Strategy::Graph)),
    ("ask flat", |snapshot| ask(snapshot, Strategy::Flat)),
    ("search terms", |snapshot| Ok(Answer::Found(snapshot.search_terms("the old number of Dover", None, 5)?))),
    ("search vectors", |snapshot| {
        let vector = unit_vector(&[0.5, 0.5, 0.5, 0.5]).components;
        Ok(Answer::Found(snapshot.search_vectors("letters", &vector, &VectorSearch::new(5))?))
    }),
    ("expand two hops", |snapshot| {
        expand(snapshot, "entity:Alice3", &ExpandOptions { hops: 2, ..ExpandOptions::default() })
    }),
    ("expand to similar chunks", |snapshot| {
        expand(snapshot, "chunk:d4#0", &ExpandOptions { edges: vec![EdgeKind::Similar], ..ExpandOptions::default() })
    }),
    ("describe an entity", |snapshot| describe(snapshot, "entity:Bridge")),
    ("describe a chunk", |snapshot| describe(snapshot, "chunk:d5#0")),
    ("describe a document", |snapshot| describe(snapshot, "doc:d3")),
    ("list documents", |snapshot| Ok(Answer::Listing(snapshot.list_documents(usize::MAX)?))),
    ("list entities", |snapshot| Ok(Answer::Listing(snapshot.list_entities(usize::MAX)?))),
    ("list relations", |snapshot| Ok(Answer::Listing(snapshot.list_relations(usize::MAX)?))),
    ("list communities", |snapshot| Ok(Answer::Listing(snapshot.list_communities(None, usize::MAX)?))),
    ("count", |snapshot| Ok(Answer::Stats(Box::new(snapshot.stats()?)))),
    ("read texts", |snapshot| {
        let text = |id| Ok(snapshot.document(id)?.text()?);
        Ok(Answer::Texts(snapshot.document_ids().map(text).collect::<Result<_, Fault>>()?))
    }),
];

fn ask(snapshot: &Snapshot, strategy: Strategy) -> Asked {
    let question = Question { strategy, ..Question::new("Who owns the old Bridge that Carol met Alice3 on?") };
    Ok(Answer::Context(Box::new(snapshot.ask(&question, MODELS)?)))
}

fn expand(snapshot: &Snapshot, from: &str, options: &ExpandOptions) -> Asked {
    Ok(Answer::Expansion(snapshot.expand(&[snapshot.find(from)?], options)?))
}

fn describe(snapshot: &Snapshot, key: &str) -> Asked {
    Ok(Answer::Description(Box::new(snapshot.describe(snapshot.find(key)?, 100)?)))
}

/// What a store answers to every question.
#[derive(Debug)]
pub struct Answers {
    answers: Vec<Asked>,
    /// What the store says that its answers lack.
    lacks: Vec<String>,
}

/// What becomes of a reader after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Every answer is as it was.
    Same,
    /// An error, or an answer that says what it lacks and is right apart from that.
    Told,
}

impl Answers {
    /// Asks every question.
    #[must_use]
    pub fn of(snapshot: &Snapshot) -> Self {
        let answers = QUESTIONS.iter().map(|(_, ask)| ask(snapshot)).collect();
        Self { answers, lacks: snapshot.incomplete() }
    }

    /// The first question without an answer.
    #[must_use]
    pub fn unanswered(&self) -> Option<String> {
        let mut all = QUESTIONS.iter().zip(&self.answers);
        all.find_map(|((name, _), answer)| Some(format!("{name}: {}", answer.as_ref().err()?)))
    }

    /// Compares with what the sound store answers, and with what it answers without the projections that were changed.
    ///
    /// # Errors
    /// The first answer that is another one and does not say so.
    pub fn judge(self, sound: &Self, without: &[Self]) -> Result<Reading, String> {
        let told = self.lacks.len() > sound.lacks.len() || self.lacks.iter().any(|lack| !sound.lacks.contains(lack));
        let mut reading = if told { Reading::Told } else { Reading::Same };
        for (place, found) in self.answers.into_iter().enumerate() {
            let right = |answers: &'_ Self| answers.answers.get(place).and_then(|answer| answer.as_ref().ok()).cloned();
            let Ok(mut found) = found else {
                reading = Reading::Told;
                continue;
            };
            if Some(&found) == right(sound).as_ref() {
                continue;
            }
            let lacks = found.take_lacks();
            let mut incomplete = without.iter().filter_map(right).map(|mut right| {
                right.take_lacks();
                right
            });
            if !told || lacks.is_some_and(|lacks| lacks.is_empty()) || !incomplete.any(|right| right == found) {
                let name = QUESTIONS.get(place).map_or("", |(name, _)| name);
                return Err(format!("another answer to “{name}”: {found:?}"));
            }
        }
        Ok(reading)
    }
}
