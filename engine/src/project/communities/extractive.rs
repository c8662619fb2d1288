//! Reports without a model: the foremost members, their strongest relations, and the sentences that name most of them.

use crate::model::{CommunityContent, ModelError, Summarize, Summary};
use hedgerow_format::name::name_key_text;
use unicode_segmentation::UnicodeSegmentation;

/// Members in a title, and in a text.
const TITLED: usize = 3;
const NAMED: usize = 12;
const RELATED: usize = 8;
const SENTENCES: usize = 3;
/// Characters of a sentence.
const SENTENCE_CHARACTERS: usize = 320;

/// Draws a report from names, relations and sentences, word for word.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extractive;

impl Summarize for Extractive {
    fn model(&self) -> &'static str {
        ""
    }

    fn summarize(&self, community: &CommunityContent) -> Result<Summary, ModelError> {
        Ok(self.drawn(community))
    }
}

impl Extractive {
    /// The report of a community.
    #[must_use]
    pub fn drawn(self, community: &CommunityContent) -> Summary {
        let named: Vec<&str> = community.entities.iter().map(|entity| entity.name.as_str()).collect();
        let title = named.iter().take(TITLED).copied().collect::<Vec<_>>().join(", ");
        let entities = community.entities.iter().take(NAMED).map(|entity| match entity.kind.as_str() {
            "" => entity.name.clone(),
            kind => format!("{} ({kind})", entity.name),
        });
        let entities = entities.collect::<Vec<_>>().join(", ");
        let others = community.more || community.entities.len() > NAMED;
        let mut lines = vec![if others { format!("{entities} and others.") } else { format!("{entities}.") }];
        let relations = community.relations.iter().take(RELATED);
        lines.extend(
            relations.map(|relation| format!("{} {} {}.", relation.subject, relation.predicate, relation.object)),
        );
        lines.extend(sentences(community).into_iter().map(|(sentence, key)| format!("{sentence} [{key}]")));
        Summary { title, text: lines.join("\n") }
    }
}

/// The sentences that name most members, each from another chunk, with the chunks' keys.
fn sentences(community: &CommunityContent) -> Vec<(String, &str)> {
    let names: Vec<String> =
        community.entities.iter().map(|entity| format!(" {} ", name_key_text(&entity.name))).collect();
    let mut best: Vec<(usize, usize, String, &str)> = Vec::new();
    for (place, passage) in community.passages.iter().enumerate() {
        let counted = passage.text.unicode_sentences().map(|sentence| {
            let text = format!(" {} ", name_key_text(sentence));
            (names.iter().filter(|name| text.contains(*name)).count(), sentence)
        });
        // The first of those that name as many.
        let most = counted.reduce(|best, next| if next.0 > best.0 { next } else { best });
        let Some((count, sentence)) = most.filter(|(count, _)| *count > 0) else { continue };
        let words = sentence.split_whitespace().collect::<Vec<_>>().join(" ");
        best.push((count, place, words.chars().take(SENTENCE_CHARACTERS).collect(), passage.key.as_str()));
    }
    best.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut told: Vec<(String, &str)> = Vec::new();
    for (_, _, sentence, key) in best {
        // Copies of a passage say nothing new.
        if told.len() < SENTENCES && !told.iter().any(|(known, _)| *known == sentence) {
            told.push((sentence, key));
        }
    }
    told
}
