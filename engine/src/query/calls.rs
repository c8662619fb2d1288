//! The queries of a snapshot, without limits of the caller's own.

use crate::error::QueryError;
use crate::index::guard::QueryLimits;
use crate::model::Models;
use crate::query::filter::Filter;
use crate::query::{
    Betweenness, ChunkSet, Comparison, Components, Context, Degrees, Description, ExpandOptions, Expansion,
    Explanation, Following, Found, FoundPaths, GraphDumped, GraphPart, Listing, NeighbourOptions, Neighbours, Node,
    NodeSet, PathOptions, Question, Ranking, RankingOptions, Selected, VectorSearch,
};
use crate::snapshot::Snapshot;
use hedgerow_format::{ChunkId, Key};
use std::ops::ControlFlow;

/// Each of them is [`Snapshot::bounded`] with the default limits: no deadline, 4 GiB.
impl Snapshot {
    /// Answers a question. Reads the postings of its terms, all vectors of one space, and the links of a few seeds; the
    /// answer is the same on every machine and for every history that led to the same content. Holds about 32 bytes a
    /// chunk and 40 bytes a vector while it runs.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn ask(&self, question: &Question, models: Models<'_>) -> Result<Context, QueryError> {
        self.bounded(QueryLimits::default()).ask(question, models)
    }

    /// Answers a question by both strategies with the same number of passages.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn compare(&self, question: &Question, models: Models<'_>) -> Result<Comparison, QueryError> {
        self.bounded(QueryLimits::default()).compare(question, models)
    }

    /// Expands from seeds. A document stands for its chunks. Work is bounded by `limit` times `fan_out` edges kept, and
    /// by the edges of the nodes that are visited.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn expand(&self, seeds: &[Node], options: &ExpandOptions) -> Result<Expansion, QueryError> {
        self.bounded(QueryLimits::default()).expand(seeds, options)
    }

    /// The chunks with the highest BM25 scores for the terms of a text, best first; those that hold none of them are not
    /// found. Statistics count live chunks only. Reads the postings of the terms in every segment.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn search_terms(&self, text: &str, filter: Option<&Filter>, count: usize) -> Result<Vec<Found>, QueryError> {
        self.bounded(QueryLimits::default()).search_terms(text, filter, count)
    }

    /// The chunks whose vectors have the highest cosine with a vector, best first, and as many as are wanted whenever as many of
    /// the space are allowed. Where the space has an index, it is walked until so much of the nearest is found as is wanted, or its codes
    /// are compared; vectors that no index covers are all compared. The cosines are exact, and the answer is the same every time.
    ///
    /// # Errors
    /// [`QueryError::UnknownSpace`], [`QueryError::Vector`] for a vector that does not fit or has no direction,
    /// [`QueryError::Damaged`].
    pub fn search_vectors(
        &self,
        space: &str,
        vector: &[f32],
        search: &VectorSearch<'_>,
    ) -> Result<Vec<Found>, QueryError> {
        self.bounded(QueryLimits::default()).search_vectors(space, vector, search)
    }

    /// [`Snapshot::search_vectors`] for each of many vectors, on the threads of the current rayon pool. Exact searches in an
    /// index read each row of codes once for all vectors, and compare them in tiles: at a large part of what the processor can multiply.
    ///
    /// # Errors
    /// As [`Snapshot::search_vectors`].
    pub fn search_vectors_all<V: AsRef<[f32]>>(
        &self,
        space: &str,
        vectors: &[V],
        search: &VectorSearch<'_>,
    ) -> Result<Vec<Vec<Found>>, QueryError> {
        self.bounded(QueryLimits::default()).search_vectors_all(space, vectors, search)
    }

    /// The chunks that a filter lets through. Reads the metadata of all chunks, if the filter does.
    ///
    /// # Errors
    /// [`QueryError::Damaged`].
    pub fn chunks_where(&self, filter: &Filter) -> Result<ChunkSet, QueryError> {
        self.bounded(QueryLimits::default()).chunks_where(filter)
    }

    /// The chunks that [`Snapshot::expand`] reaches; with no hops those of the given chunks and documents. Neither `limit` nor
    /// what is returned matters where options return counts.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn chunks_within(&self, seeds: &[Node], options: &ExpandOptions) -> Result<ChunkSet, QueryError> {
        self.bounded(QueryLimits::default()).chunks_within(seeds, options)
    }

    /// The node that a key as people type it stands for: `doc:KEY`, `chunk:KEY#N`, `entity:NAME`, `community:ID`; a bare key is tried as
    /// document, then as entity, then as chunk.
    ///
    /// # Errors
    /// [`QueryError::NotFound`] where it stands for nothing that is live.
    pub fn find(&self, key: &str) -> Result<Node, QueryError> {
        self.bounded(QueryLimits::default()).find(key)
    }

    /// The key of a node, with its kind before it.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn key_of(&self, node: Node) -> Result<String, QueryError> {
        self.bounded(QueryLimits::default()).key_of(node)
    }

    /// Why there is a similarity edge between two chunks of a space, or none: the similarity, the rank of each among the
    /// partners of the other, and the rule that decided. Compares both with every vector of the space.
    ///
    /// # Errors
    /// [`QueryError::UnknownSpace`], [`QueryError::Damaged`].
    pub fn explain(&self, pair: [ChunkId; 2], space: &str) -> Result<Explanation, QueryError> {
        self.bounded(QueryLimits::default()).explain(pair, space)
    }

    /// A node with its fields, edges and origin; of each list at most `limit`.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn describe(&self, node: Node, limit: usize) -> Result<Description, QueryError> {
        self.bounded(QueryLimits::default()).describe(node, limit)
    }

    /// The first documents by key.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn list_documents(&self, limit: usize) -> Result<Listing, QueryError> {
        self.bounded(QueryLimits::default()).list_documents(limit)
    }

    /// The entities that most chunks mention, then by name.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn list_entities(&self, limit: usize) -> Result<Listing, QueryError> {
        self.bounded(QueryLimits::default()).list_entities(limit)
    }

    /// Communities of all levels or of one, level by level, those of higher rank first.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn list_communities(&self, level: Option<u32>, limit: usize) -> Result<Listing, QueryError> {
        self.bounded(QueryLimits::default()).list_communities(level, limit)
    }

    /// The first relations by subject, predicate and object.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn list_relations(&self, limit: usize) -> Result<Listing, QueryError> {
        self.bounded(QueryLimits::default()).list_relations(limit)
    }

    /// The parts of the graph of relations that hang together, whatever the direction of relations, the `limit` largest with
    /// `named` names each. Only relations with the given labels count, or all where none is given. Reads every relation once;
    /// holds about 40 bytes an entity.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn components(&self, predicates: &[String], limit: usize, named: usize) -> Result<Components, QueryError> {
        self.bounded(QueryLimits::default()).components(predicates, limit, named)
    }

    /// `PageRank` of entities, and of chunks where options say so: of all, or from seeds, each of which has the same share. A
    /// community stands for its members, a document for its chunks; chunks count only where a walk goes there. Over entities
    /// alone ranks are the same for every history that led to the same content; over chunks, whose ids follow from history,
    /// exact ones may differ in their last digits, and pushed ones by as much as `residual` tells.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn pagerank(&self, seeds: &[Node], options: &RankingOptions) -> Result<Ranking, QueryError> {
        self.bounded(QueryLimits::default()).pagerank(seeds, options)
    }

    /// The shortest paths between two entities along relations, no entity twice. One path by number of relations is searched
    /// for from both ends; holds 12 bytes an entity.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn paths(&self, from: Key, to: Key, options: &PathOptions) -> Result<FoundPaths, QueryError> {
        self.bounded(QueryLimits::default()).paths(from, to, options)
    }

    /// What one entity is related to, the heaviest first; or what several have in common, those first that few are related to.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn neighbours(&self, entities: &[Key], options: &NeighbourOptions) -> Result<Neighbours, QueryError> {
        self.bounded(QueryLimits::default()).neighbours(entities, options)
    }

    /// How many relations entities have, and those that have most. Reads every relation once; holds 16 bytes an entity.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn degrees(&self, following: &Following, limit: usize) -> Result<Degrees, QueryError> {
        self.bounded(QueryLimits::default()).degrees(following, limit)
    }

    /// How many of the shortest paths between other entities lead through each, counted from at most `sources_max` of them.
    /// Reads every relation twice for each; holds 520 bytes an entity.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn betweenness(
        &self,
        following: &Following,
        sources_max: usize,
        limit: usize,
    ) -> Result<Betweenness, QueryError> {
        self.bounded(QueryLimits::default()).betweenness(following, sources_max, limit)
    }

    /// The entities of a set that a text composes of others.
    ///
    /// # Errors
    /// [`QueryError::NotFound`] where the text names what is not there.
    pub fn select(&self, set: &NodeSet, limit: usize) -> Result<Selected, QueryError> {
        self.bounded(QueryLimits::default()).select(set, limit)
    }

    /// Visits every entity and then every relation, or those with the given labels, at most `limit` of them, and their ends.
    /// Nothing of the graph is held. The visit ends where the visitor breaks it off.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn dump_graph(
        &self,
        predicates: &[String],
        limit: usize,
        visit: &mut dyn FnMut(GraphPart<'_>) -> ControlFlow<()>,
    ) -> Result<GraphDumped, QueryError> {
        self.bounded(QueryLimits::default()).dump_graph(predicates, limit, visit)
    }
}
