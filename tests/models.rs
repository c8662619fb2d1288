//! Models so simple that a reader can tell what they find.

use hedgerow::{Certainty, Embed, Extract, Extraction, FoundMention, FoundRelation, ModelError, Models, Pipeline};
use std::iter;

/// Sixteen components, counted from the letters of a text.
pub struct Letters;

impl Embed for Letters {
    fn space(&self) -> &'static str {
        "letters"
    }

    fn model(&self) -> &'static str {
        "letters-16"
    }

    fn dimensions(&self) -> usize {
        16
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, ModelError> {
        let vector = |text: &&str| {
            let mut counts = vec![0.25_f32; 16];
            text.bytes().for_each(|byte| counts[usize::from(byte % 16)] += f32::from(byte % 7));
            Some(counts)
        };
        Ok(texts.iter().map(vector).collect())
    }
}

/// Takes every capitalised word for a name, and `A owns B` for a relation.
pub struct Capitals;

impl Extract for Capitals {
    fn model(&self) -> &'static str {
        "capitals-1"
    }

    fn extract(&self, _title: &str, text: &str) -> Result<Extraction, ModelError> {
        let mut found = Extraction::default();
        let mut at = 0;
        let words: Vec<(usize, &str)> = iter::from_fn(|| {
            let rest = text.get(at..)?;
            let start = at + rest.find(char::is_alphabetic)?;
            let length = text[start..].find(|letter: char| !letter.is_alphanumeric()).unwrap_or(text.len() - start);
            at = start + length;
            Some((start, &text[start..at]))
        })
        .collect();
        for (start, word) in words.iter().filter(|(_, word)| is_name(word)) {
            found.mentions.push(FoundMention {
                name: (*word).to_owned(),
                kind: "name".into(),
                range: *start..start + word.len(),
                certainty: Certainty::Certain,
            });
        }
        for three in words.windows(3).filter(|three| three[1].1 == "owns" && is_name(three[0].1) && is_name(three[2].1))
        {
            found.relations.push(FoundRelation {
                subject: three[0].1.to_owned(),
                predicate: "owns".into(),
                object: three[2].1.to_owned(),
                weight: 1.0,
                range: three[0].0..three[2].0 + three[2].1.len(),
            });
        }
        Ok(found)
    }
}

fn is_name(word: &str) -> bool {
    word.len() > 1 && word.starts_with(char::is_uppercase)
}

/// Both simple models, one chunk a document.
pub const PIPELINE: Pipeline<'static> =
    Pipeline { chunking: None, embedder: Some(&Letters), extractor: Some(&Capitals) };
/// Both simple models, for questions.
pub const MODELS: Models<'static> = Models { embedder: Some(&Letters), extractor: Some(&Capitals) };
