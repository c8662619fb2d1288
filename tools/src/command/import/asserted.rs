//! Documents without text that stand for an imported file, named by the hash of its bytes.

use std::cell::RefCell;
use std::io::{self, Read};
use std::rc::Rc;

use hedgerow::StagedDocument;

/// The document that stands for a file. Its name and fingerprint are halves of one hash: other bytes are another document.
pub(super) fn file_document(hash: &blake3::Hash) -> StagedDocument {
    let fingerprint = hash.as_bytes().last_chunk().copied().unwrap_or_default();
    StagedDocument::textless(format!("import:{}", hash.to_hex().get(..32).unwrap_or_default()), fingerprint)
}

/// Hashes what is read, so that a pipe can be read as well as a file.
#[derive(Debug)]
pub(super) struct Hashed<R> {
    pub source: R,
    pub hasher: Rc<RefCell<blake3::Hasher>>,
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.hasher.borrow_mut().update(buffer.get(..count).unwrap_or_default());
        Ok(count)
    }
}
