//! A sentence encoder of the BERT family, such as all-MiniLM-L6-v2, run from its folder: tokens, layers, mean, length one.

mod config;
mod forward;
mod weights;

use std::path::Path;

use hedgerow::{Embed, ModelError};

use crate::embed::bert::config::{Config, Files, config};
use crate::embed::bert::forward::Encoder;
use crate::embed::bert::weights::Weights;
use crate::embed::wordpiece::Vocabulary;

/// Why a model cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the model in {folder} cannot be used: {reason}")]
pub struct FolderError {
    folder: String,
    reason: String,
}

/// Embeds with the weights of a folder: `config.json`, `model.safetensors`, and `vocab.txt` or `tokenizer.json`.
///
/// A text is cut at the number of tokens that `sentence_bert_config.json` names, or at 256. Texts that are embedded together
/// give the same vectors as each alone, but for the last bits; those may also differ between processors.
#[derive(Debug)]
pub struct FolderModel {
    encoder: Encoder,
    vocabulary: String,
    tokens_max: usize,
    identity: String,
}

impl FolderModel {
    /// Reads a folder: all of it, about 90 MB for all-MiniLM-L6-v2.
    ///
    /// # Errors
    /// [`FolderError`].
    pub fn open(folder: &Path) -> Result<Self, FolderError> {
        let fault = |reason: String| FolderError { folder: folder.display().to_string(), reason };
        Self::read(&Files::read(folder).map_err(fault)?).map_err(fault)
    }

    fn read(files: &Files) -> Result<Self, String> {
        let config: Config = config(files)?;
        let weights = Weights::parse(&files.weights)?;
        let vocabulary = config::vocabulary(files)?;
        let encoder = Encoder::of(&weights, &config, vocabulary.lines().count())?;
        let mut hasher = blake3::Hasher::new();
        for part in [files.weights.as_slice(), vocabulary.as_bytes(), &config.tokens_max.to_le_bytes()] {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        let hash = hasher.finalize().to_hex();
        let identity = format!("minilm-{}", hash.get(..12).unwrap_or_default());
        Ok(FolderModel { encoder, vocabulary, tokens_max: config.tokens_max, identity })
    }

    /// Ids of a text's tokens with those that begin and end it; none for a text without tokens.
    fn ids(&self, vocabulary: &Vocabulary<'_>, text: &str) -> Option<Vec<u16>> {
        let mut ids = vec![FIRST];
        vocabulary.encode(text, &mut ids);
        ids.truncate(self.tokens_max - 1);
        (ids.len() > 1).then(|| {
            ids.push(LAST);
            ids
        })
    }
}

/// `[CLS]` and `[SEP]` of every vocabulary of the family; that they stand there is checked.
const FIRST: u16 = 101;
const LAST: u16 = 102;
/// Tokens that go through the layers together, unless one text has more: enough for the products to be fast, few enough for
/// the cache.
const TOKENS_TOGETHER: usize = 512;

impl Embed for FolderModel {
    fn space(&self) -> &'static str {
        "minilm"
    }

    fn model(&self) -> &str {
        &self.identity
    }

    fn dimensions(&self) -> usize {
        self.encoder.dimensions()
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, ModelError> {
        // A millisecond, beside about ten for a passage.
        let vocabulary = Vocabulary::new(&self.vocabulary);
        let ids: Vec<Option<Vec<u16>>> = texts.iter().map(|text| self.ids(&vocabulary, text)).collect();
        let spoken: Vec<&[u16]> = ids.iter().flatten().map(Vec::as_slice).collect();
        let mut vectors = Vec::with_capacity(spoken.len());
        let mut rest = spoken.as_slice();
        while !rest.is_empty() {
            let mut tokens = 0;
            let fitting = rest.iter().take_while(|ids| {
                tokens += ids.len();
                tokens <= TOKENS_TOGETHER
            });
            let (together, later) = rest.split_at(fitting.count().max(1));
            vectors.extend(self.encoder.encode(together));
            rest = later;
        }
        let mut vectors = vectors.into_iter();
        Ok(ids.iter().map(|ids| ids.as_ref().and_then(|_| vectors.next())).collect())
    }
}

#[cfg(test)]
mod tests;
