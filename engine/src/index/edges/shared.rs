//! Edges between rows that mention the same rare entities, whatever their similarity.

use crate::index::control::{Cancelled, Control};
use crate::index::edges::Population;
use crate::index::edges::image::image;
use rayon::prelude::*;
use std::cmp::Reverse;

/// The rare entities in each row.
#[derive(Debug, Default)]
pub struct Mentions {
    /// Numbers of the entities in each row, ascending.
    pub of_rows: Vec<Vec<u32>>,
    /// What each entity weighs.
    pub weights: Vec<f64>,
}

/// The pairs of rows that share entities, as far as either end chooses the other, each once and sorted: the lower row, the
/// higher one, the image of their similarity. Each row chooses `top_m` partners: those with the most weight of entities in
/// common, the weights added in the order of their numbers; among equals the most similar, then the first by rank. The
/// similarity has the same bits whichever row comes first, and key ranks count from zero without gaps where pairs join two
/// sides.
///
/// Time and memory of a row are those of the rows that mention its entities.
///
/// # Errors
/// When `control` says so.
pub fn shared(
    similarity: &(dyn Fn(u32, u32) -> f32 + Sync),
    key_ranks: &[u32],
    pairs: Population,
    (mentions, top_m): (&Mentions, u32),
    control: &dyn Control,
) -> Result<Vec<(u32, u32, u32)>, Cancelled> {
    let mut mentioning = vec![Vec::new(); mentions.weights.len()];
    for (row, entities) in (0_u32..).zip(&mentions.of_rows) {
        for entity in entities {
            if let Some(rows) = mentioning.get_mut(*entity as usize) {
                rows.push(row);
            }
        }
    }
    let finder = Finder { similarity, key_ranks, pairs, mentions, mentioning };
    let chosen: Result<Vec<_>, Cancelled> = (0..mentions.of_rows.len())
        .into_par_iter()
        .map(|row| if control.cancelled() { Err(Cancelled) } else { Ok(finder.chosen(row, top_m as usize)) })
        .collect();
    let mut chosen = chosen?.concat();
    chosen.par_sort_unstable();
    chosen.dedup();
    Ok(chosen)
}

struct Finder<'f> {
    similarity: &'f (dyn Fn(u32, u32) -> f32 + Sync),
    key_ranks: &'f [u32],
    pairs: Population,
    mentions: &'f Mentions,
    /// The rows that mention each entity, ascending.
    mentioning: Vec<Vec<u32>>,
}

impl Finder<'_> {
    /// The pairs that a row chooses.
    fn chosen(&self, row: usize, top_m: usize) -> Vec<(u32, u32, u32)> {
        let mut partners = self.partners(row);
        partners.sort_by(|a, b| b.1.total_cmp(&a.1));
        let Some((_, least)) = top_m.checked_sub(1).and_then(|last| partners.get(last).or(partners.last())) else {
            return Vec::new();
        };
        let least = *least;
        // Only among those that weigh as much as the last one does the similarity decide.
        partners.retain(|(_, weight)| *weight >= least);
        let row = u32::try_from(row).unwrap_or(u32::MAX);
        let mut scored: Vec<_> = partners
            .into_iter()
            .map(|(partner, weight)| (weight, image((self.similarity)(row, partner)), partner))
            .collect();
        scored.sort_by(|a, b| {
            b.0.total_cmp(&a.0).then_with(|| (Reverse(a.1), self.rank(a.2)).cmp(&(Reverse(b.1), self.rank(b.2))))
        });
        scored.truncate(top_m);
        scored.into_iter().map(|(_, image, partner)| (row.min(partner), row.max(partner), image)).collect()
    }

    /// Partners of a row with the weight of what they share.
    fn partners(&self, row: usize) -> Vec<(u32, f64)> {
        let side = self.is_first(u32::try_from(row).unwrap_or(u32::MAX));
        let joins = |other: u32| match self.pairs {
            Population::All => other as usize != row,
            Population::Across(_) => self.is_first(other) != side,
        };
        let mut found: Vec<(u32, f64)> = Vec::new();
        for entity in self.mentions.of_rows.get(row).into_iter().flatten().map(|entity| *entity as usize) {
            let weight = self.mentions.weights.get(entity).copied().unwrap_or_default();
            let rows = self.mentioning.get(entity).into_iter().flatten();
            found.extend(rows.filter(|other| joins(**other)).map(|other| (*other, weight)));
        }
        // A stable sort: the weights of a partner stay in the order of entities.
        found.sort_by_key(|found| found.0);
        found
            .chunk_by(|a, b| a.0 == b.0)
            .filter_map(|same| Some((same.first()?.0, same.iter().map(|x| x.1).sum())))
            .collect()
    }

    fn is_first(&self, row: u32) -> bool {
        matches!(self.pairs, Population::Across(firsts) if (self.rank(row) as usize) < firsts)
    }

    fn rank(&self, row: u32) -> u32 {
        self.key_ranks.get(row as usize).copied().unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distance::dot;
    use crate::index::control::Quiet;

    fn check(pairs: Population, top_m: u32, expected: &[(u32, u32)]) {
        // Rows 0 to 4; entity 0 weighs most.
        let of_rows = vec![vec![0, 1], vec![0], vec![1, 2], vec![1, 2], vec![]];
        let mentions = Mentions { of_rows, weights: vec![3.0, 1.0, 0.5] };
        let matrix = [1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0];
        let vector = |row: u32| &matrix[row as usize * 2..][..2];
        let similarity = |row, other| dot(vector(row), vector(other));
        let found = shared(&similarity, &[4, 3, 2, 1, 0], pairs, (&mentions, top_m), &Quiet).unwrap();
        let expected: Vec<_> = expected.iter().map(|(a, b)| (*a, *b, image(similarity(*a, *b)))).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn each_row_chooses_by_weight_then_similarity_then_rank() {
        check(Population::All, 0, &[]);
        // 0 chooses 1, and 2 and 3 each other; no one chooses 0 for the entity that three rows mention.
        check(Population::All, 1, &[(0, 1), (2, 3)]);
        // Then 0 prefers 3, which is as it is, to 2; but 2 has room for 0.
        check(Population::All, 2, &[(0, 1), (0, 2), (0, 3), (2, 3)]);
        check(Population::All, 9, &[(0, 1), (0, 2), (0, 3), (2, 3)]);
    }

    #[test]
    fn among_equal_weights_the_more_similar_comes_first_and_then_the_first_by_rank() {
        let mentions = Mentions { of_rows: vec![vec![0]; 3], weights: vec![1.0] };
        let matrix = [1.0, 0.0, 0.0, 1.0, 1.0, 0.0];
        let vector = |row: u32| &matrix[row as usize * 2..][..2];
        let similarity = |row, other| dot(vector(row), vector(other));
        let found = shared(&similarity, &[2, 0, 1], Population::All, (&mentions, 1), &Quiet).unwrap();
        // Row 0 and row 2 are alike; row 1 is as near to both, and row 2 comes before row 0.
        assert_eq!(found, [(0, 2, image(1.0)), (1, 2, image(0.0))]);
    }

    #[test]
    fn between_two_sides_only_rows_of_the_other_are_chosen() {
        // By rank the first two are rows 4 and 3.
        check(Population::Across(2), 1, &[(0, 3), (2, 3)]);
        check(Population::Across(0), 9, &[]);
    }

    #[test]
    fn a_cancelled_search_says_so() {
        struct Stop;
        impl Control for Stop {
            fn advance(&self, _: u64, _: u64) {}
            fn cancelled(&self) -> bool {
                true
            }
        }
        let mentions = Mentions { of_rows: vec![vec![]], weights: vec![] };
        assert_eq!(shared(&|_, _| 1.0, &[0], Population::All, (&mentions, 1), &Stop), Err(Cancelled));
    }
}
