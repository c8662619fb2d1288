//! The embedders that run here: a static table of token vectors, summed, which comes with the program, and a model of a folder.

#[cfg(feature = "transformer")]
mod bert;
mod wordpiece;

use std::sync::OnceLock;

use hedgerow::{Embed, ModelError};

#[cfg(feature = "transformer")]
pub use crate::embed::bert::{FolderError, FolderModel};
use crate::embed::wordpiece::Vocabulary;
use crate::read::npy::f32_from_half;

/// Embeds text with the table of `models/static-minilm-256`, which is part of the program.
///
/// Making one costs nothing; the first text pays about a millisecond for the index of the vocabulary. A text costs one row
/// of 256 bytes a token; the sum goes in the order of the text, so that equal texts have equal vectors to the bit.
#[derive(Debug, Default)]
pub struct StaticTable {
    vocabulary: OnceLock<Vocabulary<'static>>,
}

impl StaticTable {
    /// Ids of the tokens whose rows make up a text's vector, in the order of the text.
    #[must_use]
    pub fn token_ids(&self, text: &str) -> Vec<u16> {
        let mut ids = Vec::new();
        self.vocabulary().encode(text, &mut ids);
        ids
    }

    fn vocabulary(&self) -> &Vocabulary<'static> {
        self.vocabulary.get_or_init(|| Vocabulary::new(VOCABULARY))
    }
}

impl Embed for StaticTable {
    fn space(&self) -> &'static str {
        "static"
    }

    fn model(&self) -> &'static str {
        "static-minilm-256"
    }

    fn dimensions(&self) -> usize {
        DIMENSIONS
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, ModelError> {
        let vocabulary = self.vocabulary();
        let mut ids = Vec::new();
        let vectors = texts.iter().map(|text| {
            ids.clear();
            vocabulary.encode(text, &mut ids);
            unit_vector(&row_sum(&ids))
        });
        Ok(vectors.collect())
    }

    fn weight(&self) -> f32 {
        0.2
    }
}

const DIMENSIONS: usize = 256;
const TOKENS: usize = 30_522;

static VOCABULARY: &str = include_str!("../../models/static-minilm-256/vocab.txt");
static ROWS: &[u8; TOKENS * DIMENSIONS] = include_bytes!("../../models/static-minilm-256/rows.i8");
static SCALES: &[u8; TOKENS * 2] = include_bytes!("../../models/static-minilm-256/scales.f16");

fn row_sum(ids: &[u16]) -> [f32; DIMENSIONS] {
    let (rows, _) = ROWS.as_chunks::<DIMENSIONS>();
    let (scales, _) = SCALES.as_chunks::<2>();
    let mut sum = [0.0; DIMENSIONS];
    for &id in ids {
        let (Some(row), Some(&scale)) = (rows.get(usize::from(id)), scales.get(usize::from(id))) else {
            continue;
        };
        let scale = f32_from_half(u16::from_le_bytes(scale));
        for (total, component) in sum.iter_mut().zip(row) {
            *total += scale * f32::from(component.cast_signed());
        }
    }
    sum
}

#[expect(clippy::cast_possible_truncation, reason = "components are rounded to f32 on purpose")]
fn unit_vector(sum: &[f32; DIMENSIONS]) -> Option<Vec<f32>> {
    let norm = sum.iter().map(|&component| f64::from(component).powi(2)).sum::<f64>().sqrt();
    (norm > 0.0).then(|| sum.iter().map(|&component| (f64::from(component) / norm) as f32).collect())
}

#[cfg(test)]
mod tests {
    use hedgerow::Embed;

    use crate::embed::{DIMENSIONS, StaticTable};

    const REFERENCE: &str = include_str!("../../models/static-minilm-256/reference.json");

    #[test]
    fn the_reference_texts_have_their_ids_and_vectors() {
        let reference: Vec<serde_json::Value> = serde_json::from_str(REFERENCE).unwrap();
        assert_eq!(reference.len(), 10);
        let table = StaticTable::default();
        for entry in &reference {
            let text = entry["text"].as_str().unwrap();
            assert_eq!(serde_json::json!(table.token_ids(text)), entry["ids"], "{text}");
            let vector = table.embed(&[text]).unwrap().remove(0).unwrap();
            let expected = entry["vector"].as_array().unwrap();
            assert_eq!((vector.len(), expected.len()), (DIMENSIONS, DIMENSIONS));
            for (found, expected) in vector.iter().zip(expected) {
                let difference = f64::from(*found) - expected.as_f64().unwrap();
                assert!(difference.abs() <= 2e-5, "{text}");
            }
        }
    }

    #[test]
    fn a_text_without_tokens_has_no_vector() {
        let vectors = StaticTable::default().embed(&["", " \u{0}\t", "a"]).unwrap();
        let has_vector: Vec<bool> = vectors.iter().map(Option::is_some).collect();
        assert_eq!(has_vector, [false, false, true]);
    }
}
