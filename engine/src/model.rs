//! What a caller may bring: an embedder and an extractor; the engine itself never calls a model or a network.

use std::ops::Range;

/// Turns text into vectors of one vector space.
///
/// The engine calls it from several threads at once, with up to a few hundred texts a call, and never retries: an
/// implementation that speaks to a server retries by itself. The same text must always give the same vector.
///
/// ```
/// use hedgerow::{Embed, ModelError};
///
/// /// Counts letters: the smallest embedder that there is.
/// struct Letters;
///
/// impl Embed for Letters {
///     fn space(&self) -> &str {
///         "letters"
///     }
///     fn model(&self) -> &str {
///         "letters-26"
///     }
///     fn dimensions(&self) -> usize {
///         26
///     }
///     fn embed(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, ModelError> {
///         let vector = |text: &&str| {
///             let mut counts = vec![0.0; 26];
///             for letter in text.bytes().filter(u8::is_ascii_alphabetic) {
///                 counts[usize::from(letter.to_ascii_lowercase() - b'a')] += 1.0;
///             }
///             counts.iter().any(|count| *count > 0.0).then_some(counts)
///         };
///         Ok(texts.iter().map(vector).collect())
///     }
/// }
///
/// assert_eq!(Letters.embed(&["Hedge", "?"]).unwrap()[1], None);
/// ```
pub trait Embed: Sync {
    /// Name of the vector space that the vectors belong to, such as `static`.
    fn space(&self) -> &str;
    /// Identity of the model; vectors of different models are never compared.
    fn model(&self) -> &str;
    /// Number of components of every vector.
    fn dimensions(&self) -> usize;
    /// One vector a text, in the order given; `None` for a text that has none (an empty one).
    ///
    /// # Errors
    /// When the model cannot answer; the records of this call are then rejected with the message.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, ModelError>;
    /// How much the cosine counts beside BM25 (0 to 1) when a question names no weight.
    fn weight(&self) -> f32 {
        0.4
    }
}

/// Finds the entities and relations that a passage speaks of.
///
/// Called once a chunk, from several threads at once; the result must depend on the arguments alone. A range outside the
/// text rejects the document. Left out without a word: names that no letter or digit is in, or longer than 4 KiB, and
/// relations without a label, with a weight that is not finite and above zero, or from an entity to itself.
///
/// ```
/// use hedgerow::{Certainty, Extract, Extraction, FoundMention, ModelError};
///
/// /// Takes ticket numbers such as `#2209` for entities.
/// struct Tickets;
///
/// impl Extract for Tickets {
///     fn model(&self) -> &str {
///         "tickets-1"
///     }
///     fn extract(&self, _title: &str, text: &str) -> Result<Extraction, ModelError> {
///         let mut found = Extraction::default();
///         for (start, _) in text.match_indices('#') {
///             let digits = text[start + 1..].bytes().take_while(u8::is_ascii_digit).count();
///             let range = start..start + 1 + digits;
///             let (name, kind) = (text[range.clone()].to_owned(), "ticket".to_owned());
///             found.mentions.push(FoundMention { name, kind, range, certainty: Certainty::Certain });
///         }
///         Ok(found)
///     }
/// }
///
/// assert_eq!(Tickets.extract("", "See #2209.").unwrap().mentions[0].range, 4..9);
/// ```
pub trait Extract: Sync {
    /// Identity of the extractor; a change of it makes documents be read anew.
    fn model(&self) -> &str;
    /// Entities and relations of one chunk.
    ///
    /// # Errors
    /// When the extractor cannot answer; the document is then rejected with the message.
    fn extract(&self, title: &str, text: &str) -> Result<Extraction, ModelError>;
}

/// What an extractor found in one chunk.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extraction {
    /// Occurrences of entities, in any order.
    pub mentions: Vec<FoundMention>,
    /// Relations that the text states.
    pub relations: Vec<FoundRelation>,
}

/// One occurrence of an entity in the text of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundMention {
    /// The name as it stands in the text.
    pub name: String,
    /// The entity's type, such as `person`; empty where unknown.
    pub kind: String,
    /// Bytes of the chunk's text.
    pub range: Range<usize>,
    /// Whether the occurrence counts on its own.
    pub certainty: Certainty,
}

/// Whether an occurrence is surely a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// It is a name wherever it stands.
    Certain,
    /// One capitalised word at the start of a sentence: a name only if the corpus writes it so elsewhere.
    SentenceStart,
}

/// A relation that the text of a chunk states.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundRelation {
    /// Name of the entity it starts from.
    pub subject: String,
    /// Its label, such as `owned by`.
    pub predicate: String,
    /// Name of the entity it leads to.
    pub object: String,
    /// How strongly the text says so; finite and above zero.
    pub weight: f32,
    /// The bytes of the chunk's text that say it.
    pub range: Range<usize>,
}

/// Says what a community of entities is about.
///
/// Called once a community whose report is to be made, from several threads at once. A report is kept until something changes in
/// what this is given for the community.
///
/// ```
/// use hedgerow::{CommunityContent, ModelError, Summarize, Summary};
///
/// /// Names the entity that has most edges.
/// struct Foremost;
///
/// impl Summarize for Foremost {
///     fn model(&self) -> &str {
///         "foremost-1"
///     }
///     fn summarize(&self, community: &CommunityContent) -> Result<Summary, ModelError> {
///         let title = community.entities.first().map_or_else(String::new, |entity| entity.name.clone());
///         Ok(Summary { text: format!("{title} and others."), title })
///     }
/// }
///
/// assert_eq!(Foremost.summarize(&CommunityContent::default()).unwrap().text, " and others.");
/// ```
pub trait Summarize: Sync {
    /// Identity of what writes the reports; a change of it makes all of them be written anew. Empty only for reports that are drawn
    /// from the store without a model.
    fn model(&self) -> &str;
    /// The report of one community.
    ///
    /// # Errors
    /// When the model cannot answer; the community then gets a report without a model, and the message is told.
    fn summarize(&self, community: &CommunityContent) -> Result<Summary, ModelError>;
}

/// What a report is drawn from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommunityContent {
    /// Its level; 0 is the coarsest.
    pub level: u32,
    /// Whether it has members beside those told here.
    pub more: bool,
    /// Members, those with most edges inside the community first.
    pub entities: Vec<CommunityEntity>,
    /// Relations between members, the heaviest first.
    pub relations: Vec<CommunityRelation>,
    /// Chunks that mention most of it, first.
    pub passages: Vec<CommunityPassage>,
}

/// A member of a community.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommunityEntity {
    /// Its name.
    pub name: String,
    /// Its type; may be empty.
    pub kind: String,
    /// The largest power of two that the weight of its edges inside the community reaches.
    pub weight: f64,
}

/// A relation between members of a community.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommunityRelation {
    /// Name of the entity it starts from.
    pub subject: String,
    /// Its label.
    pub predicate: String,
    /// Name of the entity it leads to.
    pub object: String,
    /// Sum over its sources.
    pub weight: f32,
}

/// A chunk that mentions members of a community.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommunityPassage {
    /// Its key.
    pub key: String,
    /// Its text.
    pub text: String,
}

/// What a community is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// A few words.
    pub title: String,
    /// The report.
    pub text: String,
}

/// A model that could not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the model {model} could not answer: {reason}")]
pub struct ModelError {
    /// Identity of the model.
    pub model: String,
    /// What it said.
    pub reason: String,
}

/// What a question may use.
#[derive(Clone, Copy, Default)]
pub struct Models<'m> {
    /// Turns the question into a vector, if the store has vectors of the same model.
    pub embedder: Option<&'m dyn Embed>,
    /// Finds the names in the question, beside the titles that it holds.
    pub extractor: Option<&'m dyn Extract>,
}

impl std::fmt::Debug for Models<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let embedder = self.embedder.map(Embed::model);
        let extractor = self.extractor.map(Extract::model);
        f.debug_struct("Models").field("embedder", &embedder).field("extractor", &extractor).finish()
    }
}
