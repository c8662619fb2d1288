//! How similar pairs are, roughly: counts in a few equal ranges.

/// How many pairs lie in which of equal ranges of similarity, by codes of eight bits, whose errors are far below the width
/// of a range.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Similarities {
    /// Where the first range begins.
    pub low: f32,
    /// Where the last one ends.
    pub high: f32,
    /// Pairs in each range; empty where there is no pair.
    pub counts: Vec<u64>,
    /// Whether all pairs were counted, or a sample in which every chunk occurs equally often.
    pub all: bool,
    /// How often all pairs were compared: more than once where the sample misled about the threshold, or where too many
    /// different similarities lie near it.
    pub passes: u32,
}

/// Ranges that are told apart.
const RANGES: usize = 20;

impl Similarities {
    /// From counts in many narrow ranges, of which the first begins at `first` and each is so wide.
    pub fn of(counts: &[u64], first: f64, width: f64, all: bool) -> Self {
        let is_some = |count: &u64| *count > 0;
        let bounds = counts.iter().position(is_some).zip(counts.iter().rposition(is_some));
        let Some((start, last)) = bounds else { return Self::default() };
        let span = last - start + 1;
        let mut ranges = vec![0_u64; RANGES];
        for (place, count) in counts[start..=last].iter().enumerate() {
            ranges[place * RANGES / span] += count;
        }
        #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "a figure to read")]
        let at = |place: usize| (first + width * place as f64) as f32;
        Self { low: at(start), high: at(last + 1), counts: ranges, all, passes: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_ranges_become_a_few_and_none_is_lost() {
        let mut counts = vec![0; 100];
        (10..90).for_each(|place| counts[place] = place as u64);
        let few = Similarities::of(&counts, -1.0, 0.02, true);
        assert_eq!((few.low, few.high, few.counts.len()), (-0.8, 0.8, 20));
        assert_eq!(few.counts.iter().sum::<u64>(), counts.iter().sum::<u64>());
        assert_eq!((few.counts[0], few.counts[19]), (10 + 11 + 12 + 13, 86 + 87 + 88 + 89));
        // Fewer narrow ranges than wide ones leave some of these empty.
        let one = Similarities::of(&[0, 3, 0], 0.0, 1.0, false);
        assert_eq!((one.low, one.high, one.counts[0], one.counts.iter().sum::<u64>()), (1.0, 2.0, 3, 3));
        assert_eq!(Similarities::of(&[0, 0], 0.0, 1.0, true), Similarities::default());
    }
}
