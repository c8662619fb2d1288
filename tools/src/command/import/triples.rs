//! Triples: relations whose evidence is a chunk, a document, or the file that asserts them.

use std::io::BufReader;
use std::rc::Rc;
use std::sync::Arc;

use hedgerow::{Batch, Control, StagedDocument, StagedRelation, Target, triple};
use hedgerow_format::name::name_key_text;

use crate::command::import::asserted::{Hashed, file_document};
use crate::command::import::overlay::{Filling, Overlay, OverlayTally};
use crate::command::import::{Input, READ_BYTES};
use crate::command::intake::{Origin, Rejections};
use crate::failure::Failure;
use crate::read::lines::{LineError, Lines, TripleRecord, triple_from_json};

/// Imports a file of triples. Those without evidence are held in memory until the end of the file, about 300 bytes each.
///
/// # Errors
/// [`Failure`].
pub(super) fn import(
    overlay: &Overlay<'_>,
    input: Input<'_>,
    rejections: &mut Rejections,
) -> Result<OverlayTally, Failure> {
    let file: Arc<str> = input.path.to_string_lossy().into();
    let (mut filling, mut asserted) = (Filling::default(), Vec::new());
    let mut evidence = Evidence::default();
    let mut bytes_read = 0;
    let hasher = Rc::default();
    let source = Hashed { source: input.file, hasher: Rc::clone(&hasher) };
    for line in Lines::new(BufReader::with_capacity(READ_BYTES, source)) {
        let (number, read) = match line {
            Ok(line) => {
                bytes_read += line.text.len() as u64 + 1;
                (line.number, triple_from_json(&line.text))
            }
            Err(LineError::Io { source, .. }) => return Err(Failure::io("read", input.path)(source)),
            Err(error @ (LineError::TooLong { line } | LineError::NotText { line, .. })) => {
                (line, Err(error.to_string()))
            }
        };
        let placed = match read.and_then(|record| Ok((staged(&record)?, record))) {
            Ok((relation, record)) => evidence.find(overlay, &record)?.map(|target| (target, relation)),
            Err(reason) => Err(reason),
        };
        match placed {
            Ok((Some(target), relation)) => {
                filling.batch.relate(target, relation);
                filling.added(1, &format!("line {number}"));
            }
            Ok((None, relation)) => asserted.push(relation),
            Err(reason) => {
                let origin = Origin { file: file.clone(), line: Some(number) };
                overlay.reject(rejections, origin.rejected(reason));
            }
        }
        overlay.commit_if_full(&mut filling)?;
        overlay.progress.advance(bytes_read, input.bytes);
    }
    overlay.commit(&mut filling)?;
    let hash = hasher.borrow().finalize();
    assert_all(overlay, StagedDocument { source: file.to_string(), ..file_document(&hash) }, asserted, &mut filling)?;
    Ok(filling.into_tally())
}

fn staged(record: &TripleRecord) -> Result<StagedRelation, String> {
    let TripleRecord { subject, predicate, object, weight, subject_type, object_type, .. } = record;
    triple((subject, subject_type), predicate, (object, object_type), *weight)
}

/// Puts the triples without evidence into the document that stands for the file, all at once.
fn assert_all(
    overlay: &Overlay<'_>,
    mut document: StagedDocument,
    mut relations: Vec<StagedRelation>,
    filling: &mut Filling,
) -> Result<(), Failure> {
    let given = relations.len() as u64;
    if given == 0 {
        return Ok(());
    }
    let order = |relation: &StagedRelation| (relation.subject.key, relation.object.key, relation.weight.to_bits());
    relations.sort_by(|a, b| order(a).cmp(&order(b)).then_with(|| a.predicate.cmp(&b.predicate)));
    relations.dedup_by(|a, b| order(a) == order(b) && a.predicate == b.predicate);
    let count = relations.len() as u64;
    let name = document.name.clone();
    document.relations = relations;
    let mut batch = Batch::default();
    batch.put(document);
    let committed = overlay.store.commit(batch)?;
    filling.added(0, &name);
    let added = if committed.unchanged == 0 { count } else { 0 };
    overlay.acknowledge(filling, committed.generation, added, given)
}

/// Finds the chunks that triples refer to. Triples of one document mostly stand together, so its chunks are kept.
#[derive(Debug, Default)]
struct Evidence {
    document: String,
    /// The name key of each chunk's text, with a space at both ends.
    chunks: Vec<String>,
}

impl Evidence {
    /// Where a triple is said; `None` inside where it does not tell, a reason where that is not there.
    fn find(
        &mut self,
        overlay: &Overlay<'_>,
        record: &TripleRecord,
    ) -> Result<Result<Option<Target>, String>, Failure> {
        let snapshot = overlay.store.snapshot();
        if let Some(key) = &record.chunk {
            let parsed = key.rsplit_once('#').and_then(|(document, ordinal)| Some((document, ordinal.parse().ok()?)));
            let Some((document, ordinal)) = parsed else {
                return Ok(Err(format!("\"chunk\": expected KEY#N, found {key:?}")));
            };
            let chunks = snapshot.find_document(document)?.map_or(0, |document| document.chunks().count());
            let is_there = usize::try_from(ordinal).is_ok_and(|ordinal: usize| ordinal < chunks);
            let target = Target { document: document.to_owned(), chunk: Some(ordinal) };
            return Ok(if is_there { Ok(Some(target)) } else { Err(format!("there is no chunk {key}")) });
        }
        let Some(key) = &record.document else { return Ok(Ok(None)) };
        if self.document != *key {
            let Some(document) = snapshot.find_document(key)? else {
                return Ok(Err(format!("there is no document {key}")));
            };
            let chunks: Vec<_> = document.chunks().collect();
            // Of a single chunk nothing needs to be known.
            let texts = chunks.iter().filter(|_| chunks.len() > 1).map(|chunk| snapshot.chunk(*chunk)?.text());
            let texts = texts.collect::<Result<Vec<String>, _>>()?;
            self.chunks = texts.iter().map(|text| searchable(text)).collect();
            self.chunks.resize(chunks.len(), String::new());
            self.document.clone_from(key);
        }
        let names = [searchable(&record.subject), searchable(&record.object)];
        let naming = self.chunks.iter().position(|text| names.iter().all(|name| text.contains(name)));
        let chunk = if self.chunks.is_empty() { None } else { Some(naming.unwrap_or(0)) };
        let chunk = chunk.map(|chunk| u32::try_from(chunk).unwrap_or(u32::MAX));
        Ok(Ok(Some(Target { document: key.clone(), chunk })))
    }
}

/// Text whose words can be found whatever their case and marks.
fn searchable(text: &str) -> String {
    format!(" {} ", name_key_text(text))
}

#[cfg(test)]
mod tests {
    use crate::command::import::triples::searchable;

    #[test]
    fn names_are_found_as_whole_words_whatever_their_case_and_marks() {
        let text = searchable("The Wall is by Röger Waters.");
        for (name, is_found) in [("roger waters", true), ("THE WALL", true), ("Water", false), ("Wall is", true)] {
            assert_eq!(text.contains(&searchable(name)), is_found, "{name}");
        }
    }
}
