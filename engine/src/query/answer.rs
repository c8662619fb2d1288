//! What a question gets: passages, each with its path and scores, and the trace of how they were found.

use serde::Serialize;

/// The answer to a question: passages under a budget of tokens.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Context {
    /// The question.
    pub question: String,
    /// Name of the strategy.
    pub strategy: &'static str,
    /// Reports of communities, best first; of strategies that read them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reports: Vec<ReportPassage>,
    /// Best first.
    pub passages: Vec<Passage>,
    /// Tokens of all reports and passages, ⌈bytes / 4⌉ each.
    pub tokens: usize,
    /// What the answer lacks: projections that are missing or behind, a model that can't be run.
    pub incomplete: Vec<String>,
    /// What each stage read, kept and dropped.
    pub trace: Trace,
}

/// The same question by both strategies with the same number of passages.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The best k + k′ passages by terms and vectors.
    pub flat: Context,
    /// k seeds and k′ neighbours along definition links.
    pub graph: Context,
}

/// The report of a community that the question is about.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReportPassage {
    /// `community:ID`.
    pub key: String,
    /// Its level; 0 is the coarsest.
    pub level: u32,
    /// Its title.
    pub title: String,
    /// Its text.
    pub text: String,
    /// Identity of the model that wrote it; empty where it is drawn from the store without one.
    pub model: String,
    /// ⌈bytes / 4⌉.
    pub tokens: usize,
    /// What it was ranked by.
    pub score: f32,
    /// Whether the store has changed since it was made.
    pub stale: bool,
}

/// A chunk that was chosen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Passage {
    /// Key of the chunk.
    pub key: String,
    /// Key of its document.
    pub document: String,
    /// Title of its document.
    pub title: String,
    /// Where its document came from.
    pub source: String,
    /// The headings that it stands under, from the outermost, joined by ` > `; may be empty.
    pub heading: String,
    /// The page that it begins on, from 1; none where there are no pages.
    pub page: Option<u64>,
    /// The page that it ends on, where that is a later one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_last: Option<u64>,
    /// First byte in the document's text.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
    /// Its text.
    pub text: String,
    /// ⌈bytes / 4⌉.
    pub tokens: usize,
    /// Whether the walk started from it or reached it.
    pub role: Role,
    /// What it was ranked by.
    pub score: f32,
    /// Where the score comes from.
    pub legs: Legs,
    /// How it was reached, from the question on.
    pub path: Vec<Step>,
}

/// What a passage was to the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Found by terms, vector or a name in the question; the walk starts from it.
    Seed,
    /// Found by terms, vector or a name in the question.
    Match,
    /// Reached along a link from a seed.
    Neighbour,
}

/// The parts of a score; they add up to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Legs {
    /// From BM25.
    pub terms: f32,
    /// From the cosine.
    pub vector: f32,
    /// From defining something that the question names.
    pub named: f32,
    /// From the strongest link out of a seed.
    pub link: f32,
    /// From the walk of two steps over entities.
    pub walk: f32,
    /// From what it adds to the passages before it, and what joins it to them.
    pub choice: f32,
    /// From the community that it speaks of.
    pub community: f32,
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// How this node follows from the question or from the node before: `terms and vector`, `terms`, `vector`, `filter`
    /// (nothing but the filter lets it through), `names`, `mentions`, `defined by`, `mentioned in`,
    /// `next to`, `similar to`, `community`, `tells of it`.
    pub by: &'static str,
    /// The node: `chunk:KEY#N` or `entity:NAME`.
    pub node: String,
    /// Weight of the step.
    pub weight: f32,
}

/// What each stage read, kept and dropped.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Trace {
    /// Generation that was read.
    pub generation: u64,
    /// Chunks that could have been chosen.
    pub chunks: u64,
    /// Terms of the question.
    pub terms: Vec<TermTrace>,
    /// The vector leg; none where no vector was used.
    pub vector: Option<VectorTrace>,
    /// Entities that the question names.
    pub names: Vec<NameTrace>,
    /// Keys of the chunks that the walk started from.
    pub seeds: Vec<String>,
    /// Links that were followed and raised a score, strongest first.
    pub links: Vec<LinkTrace>,
    /// Links that were looked at.
    pub links_read: u64,
    /// Chunks that would have come next, and those that did not fit the budget.
    pub dropped: Vec<Dropped>,
}

/// A term of the question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TermTrace {
    /// The term, stemmed.
    pub term: String,
    /// Live chunks that it stands in.
    pub chunks: u64,
}

/// The vector leg.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VectorTrace {
    /// The space.
    pub space: String,
    /// Its model.
    pub model: String,
    /// Weight beside BM25.
    pub weight: f32,
    /// Vectors that were compared: all of them.
    pub compared: u64,
}

/// An entity that the question names.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NameTrace {
    /// Its name.
    pub entity: String,
    /// Live chunks that mention it.
    pub mentions: u64,
    /// Chunks that define it.
    pub definitions: u64,
    /// How much it tells, 0 to 1.
    pub idf: f32,
    /// Whether its definitions were raised; an entity with too many is passed over.
    pub followed: bool,
}

/// A link that was followed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkTrace {
    /// Key of the chunk that mentions the entity.
    pub seed: String,
    /// The entity.
    pub entity: String,
    /// `defined by` or `mentioned in`.
    pub by: &'static str,
    /// Key of the chunk that defines it, or mentions it too.
    pub target: String,
    /// How much the entity tells, 0 to 1.
    pub idf: f32,
    /// What the link is worth to its target, before the bound.
    pub value: f32,
}

/// A chunk that was not chosen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Dropped {
    /// Key of the chunk.
    pub key: String,
    /// What it was ranked by.
    pub score: f32,
    /// Why it is not in the answer.
    pub reason: &'static str,
}
