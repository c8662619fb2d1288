//! A hash over the live content, whatever history led to it.

use crate::error::Damage;
use crate::segment::{StagedChunk, StagedDocument, StagedEdgeList, StagedEnd, StagedExtraction, StagedRelation};
use crate::snapshot::Snapshot;
use hedgerow_format::Key;
use rayon::prelude::*;
use std::ops::Range;

impl Snapshot {
    /// A hash over every live document with its chunks, mentions, relations, terms and vectors: the same for the same
    /// content, whatever batches, replacements, deletions and compactions led to it. Projections are not in it, since they
    /// follow from the content and their settings. Reads everything, a segment at a time.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn fingerprint(&self) -> Result<Key, Damage> {
        self.fingerprint_while(&|| Ok(()))
    }

    /// Likewise; asks before every document whether to go on.
    pub(crate) fn fingerprint_while<E>(&self, go_on: &dyn Fn() -> Result<(), E>) -> Result<Key, E>
    where
        E: From<Damage>,
    {
        let restage = self.restage(0..self.segments().len())?;
        let mut hashes: Vec<(Key, [u8; 32])> = Vec::new();
        for position in 0..self.segments().len() {
            // Once it says no, what is left is passed over.
            let documents = restage.chosen(position, |_| go_on().is_ok())?;
            go_on()?;
            let hash = |document: &StagedDocument| (Key::of_document(&document.name), hash(document));
            hashes.extend(documents.par_iter().map(|numbered| hash(&numbered.document)).collect::<Vec<_>>());
        }
        hashes.sort_unstable();
        let mut all = Hasher::default();
        for (_, hash) in &hashes {
            all.bytes(hash);
        }
        Ok(Key(all.0.finalize().as_bytes().first_chunk().copied().unwrap_or_default()))
    }
}

/// Fields one after another, each with its length, so that no two contents give the same bytes.
#[derive(Default)]
struct Hasher(blake3::Hasher);

impl Hasher {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    fn texts(&mut self, texts: &[&str]) {
        for text in texts {
            self.bytes(text.as_bytes());
        }
    }

    fn numbers(&mut self, numbers: &[u32]) {
        for number in numbers {
            self.0.update(&number.to_le_bytes());
        }
    }

    fn count(&mut self, rows: usize) {
        self.0.update(&(rows as u64).to_le_bytes());
    }

    fn range(&mut self, range: &Range<u32>) {
        self.numbers(&[range.start, range.end]);
    }

    fn chunk(&mut self, chunk: &StagedChunk) {
        self.range(&chunk.range);
        self.numbers(&[chunk.kind, chunk.length]);
        self.texts(&[&chunk.heading, &chunk.metadata]);
        let mut mentions: Vec<_> = chunk.mentions.iter().collect();
        mentions.sort_by_key(|mention| mention.key);
        self.count(mentions.len());
        for mention in mentions {
            self.texts(&[&mention.name, &mention.kind]);
            self.numbers(&[u32::from(mention.flags)]);
            self.count(mention.ranges.len());
            for range in &mention.ranges {
                self.range(range);
            }
        }
        let mut terms: Vec<_> = chunk.terms.iter().collect();
        terms.sort_unstable();
        self.count(terms.len());
        for (term, frequency) in terms {
            self.bytes(term.as_bytes());
            self.numbers(&[u32::from(*frequency)]);
        }
        let mut vectors: Vec<_> = chunk.vectors.iter().collect();
        vectors.sort_by_key(|vector| &vector.space);
        self.count(vectors.len());
        for vector in vectors {
            self.texts(&[&vector.space, &vector.model]);
            self.count(vector.components.len());
            for component in &vector.components {
                self.numbers(&[component.to_bits()]);
            }
        }
        self.relations(&chunk.relations);
        let mut extractions: Vec<_> = chunk.extractions.iter().collect();
        extractions.sort_by_key(|extraction| &extraction.extractor);
        self.count(extractions.len());
        for extraction in extractions {
            self.extraction(extraction);
        }
    }

    fn extraction(&mut self, extraction: &StagedExtraction) {
        self.texts(&[&extraction.extractor, &extraction.model]);
        let mut entities: Vec<_> = extraction.entities.iter().collect();
        entities.sort_by_key(|entity| entity.key);
        self.count(entities.len());
        for entity in entities {
            self.texts(&[&entity.name, &entity.kind, &entity.description]);
            self.range(&entity.range);
        }
        self.relations(&extraction.relations);
    }

    fn relations(&mut self, relations: &[StagedRelation]) {
        let end = |end: &StagedEnd| [end.name.clone(), end.kind.clone()];
        let mut rows: Vec<_> = relations
            .iter()
            .map(|relation| {
                let StagedRelation { subject, predicate, object, weight, range } = relation;
                (end(subject), predicate, end(object), [weight.to_bits(), range.start, range.end])
            })
            .collect();
        rows.sort_unstable();
        self.count(rows.len());
        for (subject, predicate, object, numbers) in rows {
            self.texts(&[&subject[0], &subject[1], predicate, &object[0], &object[1]]);
            self.numbers(&numbers);
        }
    }

    fn edge_lists(&mut self, lists: &[StagedEdgeList]) {
        let mut lists: Vec<_> = lists.iter().collect();
        lists.sort_by_key(|list| &list.predicate);
        self.count(lists.len());
        for list in lists {
            self.texts(&[&list.predicate]);
            self.count(list.nodes.len());
            for StagedEnd { name, kind, .. } in &list.nodes {
                self.texts(&[name, kind]);
            }
            self.numbers(&list.offsets);
            self.numbers(&list.targets);
            self.count(list.weights.len());
            for weight in &list.weights {
                self.numbers(&[weight.to_bits()]);
            }
        }
    }
}

fn hash(document: &StagedDocument) -> [u8; 32] {
    let StagedDocument { name, fingerprint, title, source, media_type, metadata, text, chunks, relations, edge_lists } =
        document;
    let mut hasher = Hasher::default();
    hasher.texts(&[name, title, source, media_type, metadata, text]);
    hasher.bytes(fingerprint);
    hasher.count(chunks.len());
    for chunk in chunks {
        hasher.chunk(chunk);
    }
    hasher.relations(relations);
    hasher.edge_lists(edge_lists);
    *hasher.0.finalize().as_bytes()
}
