//! Cuts where the subject changes: between neighbouring sentences whose surroundings have vectors that differ much.

use std::ops::Range;

use crate::distance::dot;
use crate::index::control::Control;
use crate::ingest::PartKind;
use crate::ingest::chunking::recursive;
use crate::ingest::chunking::sections::Section;
use crate::ingest::prepare::{EMBEDDED_TOGETHER, vectors};
use crate::model::Embed;

/// Sentences that a chunk has at least where the size allows it.
const SENTENCES_MIN: usize = 3;

/// The chunks of all sections. A text without a vector is taken to go on with the subject.
pub fn split(
    text: &str,
    sections: &[Section<'_>],
    size: usize,
    embedder: &dyn Embed,
    control: &dyn Control,
) -> Result<Vec<Range<usize>>, String> {
    let mut windows = Vec::new();
    let mut cut: Vec<Vec<Range<usize>>> = Vec::with_capacity(sections.len());
    for section in sections {
        let sentences = match section.kind {
            PartKind::Table => section.split(text, size, 0),
            PartKind::Text => short_sentences(text, section.range.clone(), size),
        };
        if section.kind == PartKind::Text {
            windows.extend((0..sentences.len()).map(|at| window(&sentences, at)));
        }
        cut.push(sentences);
    }
    let distances = distances(text, &windows, embedder, control)?;
    let mut rest = distances.as_slice();
    // The last window of a section and the first of the next are no neighbours.
    let mut within = Vec::with_capacity(cut.len());
    for (section, sentences) in sections.iter().zip(&cut) {
        let count = if section.kind == PartKind::Text { sentences.len() } else { 0 };
        let (own, after) = rest.split_at(count.min(rest.len()));
        within.push(&own[..own.len().min(count.saturating_sub(1))]);
        rest = after;
    }
    let threshold = percentile_80(within.iter().copied().flatten().copied().collect());
    let mut chunks = Vec::new();
    for ((section, sentences), distances) in sections.iter().zip(cut).zip(within) {
        match section.kind {
            PartKind::Table => chunks.extend(sentences),
            PartKind::Text => chunks.extend(join(text, &sentences, distances, threshold, size)),
        }
    }
    Ok(chunks)
}

/// Sentences, those longer than a chunk cut.
fn short_sentences(text: &str, within: Range<usize>, size: usize) -> Vec<Range<usize>> {
    let sentences = recursive::sentences(text, within).into_iter();
    sentences.flat_map(|sentence| recursive::split(text, sentence, size, 0)).collect()
}

/// A sentence with the one before and the one after it.
fn window(sentences: &[Range<usize>], at: usize) -> Range<usize> {
    let last = sentences.len() - 1;
    sentences[at.saturating_sub(1)].start..sentences[(at + 1).min(last)].end
}

/// How far each window is from the next, 0 to 2; one less than there are windows.
fn distances(
    text: &str,
    windows: &[Range<usize>],
    embedder: &dyn Embed,
    control: &dyn Control,
) -> Result<Vec<f32>, String> {
    let mut distances = Vec::with_capacity(windows.len());
    let mut before: Option<Vec<f32>> = None;
    for (position, windows) in windows.chunks(EMBEDDED_TOGETHER).enumerate() {
        if control.cancelled() {
            return Err("cancelled".to_owned());
        }
        let texts: Vec<&str> = windows.iter().map(|window| &text[window.clone()]).collect();
        for (place, vector) in vectors(embedder, &texts).into_iter().enumerate() {
            let vector = vector?.map(|vector| vector.components);
            if position + place > 0 {
                let both = before.as_deref().zip(vector.as_deref());
                distances.push(both.map_or(0.0, |(one, other)| 1.0 - dot(one, other)));
            }
            before = vector.or(before.take());
        }
    }
    Ok(distances)
}

/// The distance that four fifths of all distances do not exceed.
fn percentile_80(mut distances: Vec<f32>) -> f32 {
    let rank = (distances.len() * 4).div_ceil(5);
    let Some(place) = rank.checked_sub(1) else { return f32::INFINITY };
    *distances.select_nth_unstable_by(place, f32::total_cmp).1
}

/// A chunk in the making.
struct Growing {
    range: Range<usize>,
    sentences: usize,
    characters: usize,
}

/// Sentences become chunks: a chunk ends where the distance is above the threshold and no neighbouring one is greater, if
/// it has enough sentences, or where the next sentence does not fit. A last chunk of fewer sentences goes with the one
/// before it if it fits.
fn join(text: &str, sentences: &[Range<usize>], distances: &[f32], threshold: f32, size: usize) -> Vec<Range<usize>> {
    let length = |range: Range<usize>| text[range].chars().count();
    let mut chunks: Vec<Growing> = Vec::new();
    for (at, sentence) in sentences.iter().enumerate() {
        let is_break = at.checked_sub(1).is_some_and(|before| is_peak(distances, before, threshold));
        if let Some(last) = chunks.last_mut() {
            let characters = last.characters + length(last.range.end..sentence.end);
            if characters <= size && !(is_break && last.sentences >= SENTENCES_MIN) {
                last.range.end = sentence.end;
                last.sentences += 1;
                last.characters = characters;
                continue;
            }
        }
        chunks.push(Growing { range: sentence.clone(), sentences: 1, characters: length(sentence.clone()) });
    }
    if let [.., before, last] = chunks.as_mut_slice()
        && last.sentences < SENTENCES_MIN
        && before.characters + length(before.range.end..last.range.start) + last.characters <= size
    {
        before.range.end = last.range.end;
        chunks.pop();
    }
    chunks.into_iter().map(|chunk| chunk.range).collect()
}

/// Whether a distance is above the threshold, above the one before it, and not below the one after it.
fn is_peak(distances: &[f32], at: usize, threshold: f32) -> bool {
    let near = |at: Option<usize>| at.and_then(|at| distances.get(at)).copied().unwrap_or(f32::NEG_INFINITY);
    let own = near(Some(at));
    own > threshold && own > near(at.checked_sub(1)) && own >= near(at.checked_add(1))
}
