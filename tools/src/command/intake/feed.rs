//! Gathers documents into batches bounded by count and bytes, and remembers where each one stands.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use crossbeam::channel::Sender;
use hedgerow::{Control, Document};
use serde_json::{Map, Value};

use crate::failure::Failure;
use crate::session::{Progress, RejectedRecord};

/// Where a record stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The file, as it was named.
    pub file: Arc<str>,
    /// The line in it, from 1; none for the file as a whole.
    pub line: Option<u64>,
}

impl Origin {
    /// The record there was not taken.
    #[must_use]
    pub fn rejected(&self, reason: impl Into<String>) -> RejectedRecord {
        RejectedRecord { file: self.file.to_string(), line: self.line, reason: reason.into() }
    }

    fn place(&self) -> String {
        self.line.map_or_else(|| self.file.to_string(), |line| format!("{}:{line}", self.file))
    }
}

/// Takes documents from a reader.
#[derive(Debug)]
pub struct Feed<'p> {
    to: Sender<Incoming>,
    documents_max: usize,
    progress: &'p Progress,
    batch: Incoming,
    places: HashMap<String, usize>,
    bytes: usize,
}

/// A batch of documents as they were read.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    /// The documents, no two with the same key.
    pub documents: Vec<Document>,
    /// By key, where they stand.
    pub origins: HashMap<String, Origin>,
    /// Records that are no documents.
    pub rejected: Vec<RejectedRecord>,
    /// What there is to say of keys that were given twice.
    pub duplicates: Vec<String>,
    /// Bytes of input up to here.
    pub bytes_read: u64,
}

impl<'p> Feed<'p> {
    pub(super) fn new(to: Sender<Incoming>, documents_max: usize, progress: &'p Progress) -> Feed<'p> {
        let batch = Incoming::default();
        Feed { to, documents_max: documents_max.max(1), progress, batch, places: HashMap::new(), bytes: 0 }
    }

    /// Adds a document; of two with the same key in a batch the last one counts.
    ///
    /// # Errors
    /// [`Failure::Interrupted`] when no one takes documents any more.
    pub fn document(&mut self, origin: Origin, document: Document) -> Result<(), Failure> {
        let bytes = bytes_of(&document);
        if self.bytes + bytes > BATCH_BYTES && !self.batch.documents.is_empty() {
            self.flush()?;
        }
        self.bytes += bytes;
        let place = self.batch.documents.len();
        match self.places.entry(document.key.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(place);
                self.batch.origins.insert(document.key.clone(), origin);
                self.batch.documents.push(document);
            }
            Entry::Occupied(entry) => {
                let (key, later) = (entry.key(), origin.place());
                if let Some(before) = self.batch.origins.insert(key.clone(), origin) {
                    let before = before.place();
                    self.batch
                        .duplicates
                        .push(format!("{key} stands at {before} and again at {later}: the last one counts"));
                }
                if let Some(known) = self.batch.documents.get_mut(*entry.get()) {
                    *known = document;
                }
            }
        }
        if self.batch.documents.len() >= self.documents_max { self.flush() } else { self.go_on() }
    }

    /// Adds a record that is no document.
    ///
    /// # Errors
    /// [`Failure::Interrupted`] when no one takes documents any more.
    pub fn reject(&mut self, record: RejectedRecord) -> Result<(), Failure> {
        self.batch.rejected.push(record);
        if self.batch.rejected.len() >= self.documents_max { self.flush() } else { self.go_on() }
    }

    /// Whether the command is to end.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.progress.cancelled()
    }

    /// So many more bytes of the input were read.
    pub fn read(&mut self, bytes: u64) {
        self.batch.bytes_read += bytes;
    }

    /// Hands on what is there.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        let next = Incoming { bytes_read: self.batch.bytes_read, ..Incoming::default() };
        let batch = std::mem::replace(&mut self.batch, next);
        self.places.clear();
        self.bytes = 0;
        self.to.send(batch).map_err(|_| Failure::Interrupted)
    }

    fn go_on(&self) -> Result<(), Failure> {
        if self.progress.cancelled() { Err(Failure::Interrupted) } else { Ok(()) }
    }
}

/// A staged document takes several times its text, and two batches are in memory: one staged, one committed.
const BATCH_BYTES: usize = 16 << 20;

/// Bytes of a document in memory, about: keys stand in three places, and JSON takes more than its text.
fn bytes_of(document: &Document) -> usize {
    let chunks = document.chunks.iter().flatten().map(|chunk| chunk.text.len() + fields_bytes(&chunk.metadata));
    let own = document.text.len() + document.title.len() + 3 * document.key.len() + fields_bytes(&document.metadata);
    own + chunks.sum::<usize>() + 256
}

fn fields_bytes(fields: &Map<String, Value>) -> usize {
    fields.iter().map(|(name, value)| name.len() + 64 + value_bytes(value)).sum()
}

fn value_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => 32 + text.len(),
        Value::Array(list) => 32 + list.iter().map(value_bytes).sum::<usize>(),
        Value::Object(fields) => 32 + fields_bytes(fields),
        Value::Null | Value::Bool(_) | Value::Number(_) => 32,
    }
}

#[cfg(test)]
mod tests {
    use crossbeam::channel::unbounded;
    use hedgerow::{Document, GivenChunk};

    use crate::command::intake::feed::{BATCH_BYTES, Feed, Origin};
    use crate::session::Session;

    fn origin(line: u64) -> Origin {
        Origin { file: "f.jsonl".into(), line: Some(line) }
    }

    #[test]
    fn batches_are_bounded_by_count_and_bytes() {
        let (to, from) = unbounded();
        let progress = Session::new(false).progress("test");
        let mut feed = Feed::new(to, 2, &progress);
        for (number, bytes) in [1, 1, BATCH_BYTES - 400, 400, 1].into_iter().enumerate() {
            let document = Document::new(number.to_string()).text("x".repeat(bytes));
            feed.document(origin(number as u64), document).unwrap();
        }
        feed.flush().unwrap();
        drop(feed);
        let counts: Vec<usize> = from.iter().map(|batch| batch.documents.len()).collect();
        assert_eq!(counts, [2, 1, 2, 0]);
    }

    #[test]
    fn metadata_and_keys_count_as_bytes() {
        let half = || "x".repeat(BATCH_BYTES / 2);
        let fields = || [("field".to_owned(), [half()].into())].into_iter().collect();
        let chunk = GivenChunk { text: "x".into(), metadata: fields() };
        for document in [
            Document { metadata: fields(), ..Document::default() },
            Document { chunks: Some(vec![chunk]), ..Document::default() },
            Document { key: "x".repeat(BATCH_BYTES / 6), ..Document::default() },
        ] {
            let (to, from) = unbounded();
            let progress = Session::new(false).progress("test");
            let mut feed = Feed::new(to, 1000, &progress);
            for number in 0..3 {
                let key = format!("{}{number}", document.key);
                feed.document(origin(number), Document { key, ..document.clone() }).unwrap();
            }
            feed.flush().unwrap();
            drop(feed);
            let counts: Vec<usize> = from.iter().map(|batch| batch.documents.len()).collect();
            assert_eq!(counts, [1, 1, 1]);
        }
    }

    #[test]
    fn of_two_documents_with_one_key_the_last_counts_and_it_is_said() {
        let (to, from) = unbounded();
        let progress = Session::new(false).progress("test");
        let mut feed = Feed::new(to, 9, &progress);
        for (line, key, text) in [(1, "a", "old"), (2, "b", "other"), (3, "a", "new")] {
            feed.document(origin(line), Document::new(key).text(text)).unwrap();
        }
        feed.flush().unwrap();
        let batch = from.recv().unwrap();
        let texts: Vec<&str> = batch.documents.iter().map(|document| document.text.as_str()).collect();
        assert_eq!(texts, ["new", "other"]);
        assert_eq!(batch.duplicates, ["a stands at f.jsonl:1 and again at f.jsonl:3: the last one counts"]);
        assert_eq!(batch.origins["a"], origin(3));
    }
}
