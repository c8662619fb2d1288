//! All that edges follow from: how many pairs have which similarity near the threshold, and the best partners of each row.

use crate::error::StorageError;
use crate::index::edges::choose::{Choices, capped, passing};
use crate::index::edges::image::{image, score};
use crate::index::edges::lists::Lists;
use crate::index::edges::scan::{Tally, bar, entry, parts};
use crate::index::edges::set::{EdgeReport, EdgeSet};
use crate::index::edges::{Pruning, Reserve};
use rayon::prelude::*;

/// Partners that a row remembers beyond those that it may choose, for when it loses some.
const SPARE: usize = 8;

/// Counts that any reserve may have.
const COUNTS_MIN: usize = 1 << 13;

/// The state of the rows in the order of their keys.
pub struct State {
    /// The lowest image that is counted and remembered.
    pub low: u32,
    /// What all pairs are like, in bins of one image.
    pub tally: Tally,
    /// Entries of a row that count.
    pub width: usize,
    /// The entries of every row, worst first; see [`entry`] and [`bar`].
    pub lists: Lists,
    /// Pairs in all.
    pub pairs: u64,
}

impl State {
    /// The image of the threshold and how many pairs lie below it; none if it is not among those that are counted.
    pub fn threshold(&self, rules: Pruning) -> Option<(u32, u64)> {
        let target = order_statistic(self.pairs, rules.percentile);
        self.tally.bin_of(target).ok().map(|(bin, before)| (self.low + bin, before))
    }

    /// The rows that may have partners at or above the threshold that they don't know and would choose.
    ///
    /// # Errors
    /// Where lists lie elsewhere and can't be read.
    pub fn incomplete(&self, threshold: u32, rules: Pruning) -> Result<Vec<u32>, StorageError> {
        let wanted = self.width.min(rules.top_m as usize);
        let lacks = |_: usize, list: &[u64]| {
            let known = list.iter().filter(|entry| is_partner(**entry, threshold)).count();
            known < wanted && floor(list, self.low) > threshold
        };
        let lacking = self.lists.map(lacks)?;
        Ok((0..).zip(lacking).filter(|(_, lacks)| *lacks).map(|(place, _)| place).collect())
    }

    /// Keeps no more counts than there are pairs, those around the threshold: what is kept shall not outweigh the rows.
    fn trim(&mut self, threshold: u32) {
        let most = usize::try_from(self.pairs).unwrap_or(usize::MAX).max(COUNTS_MIN);
        let at = (threshold - self.low) as usize;
        let start = at.saturating_sub(most / 2);
        self.tally.counts.truncate(start.saturating_add(most));
        self.tally.below += self.tally.counts.drain(..start).sum::<u64>();
        self.low += u32::try_from(start).unwrap_or(0);
    }

    /// The edges, and what a later build needs; `order` says which row has which place.
    ///
    /// # Errors
    /// Where lists lie elsewhere and can't be read.
    pub fn edges(
        mut self,
        order: &[u32],
        rules: Pruning,
        (threshold, before): (u32, u64),
    ) -> Result<(EdgeSet, Reserve), StorageError> {
        self.trim(threshold);
        let bar = threshold.max(rules.least);
        let report = EdgeReport {
            rows: u32::try_from(order.len()).unwrap_or(u32::MAX),
            pairs: self.pairs,
            threshold: Some(score(threshold)),
            passed: self.pairs.saturating_sub(before),
            ..EdgeReport::default()
        };
        let set = || {
            let pairs = capped(&Choices::of(&self.lists, bar, rules)?, order, rules.cap)?;
            Ok(EdgeSet::of(|| pairs.iter(), report))
        };
        // The first of a list are choices, which the edges tell where they hold all choices.
        let told = |list: &[u64]| if rules.apart { 0 } else { passing(list, bar, rules.top_m as usize).count() };
        let (set, reserve) = rayon::join(set, || self.reserve(order, told));
        Ok((set?, reserve?))
    }

    /// What is kept beside the edges, which tell so many of the first partners of a list.
    fn reserve(&self, order: &[u32], told: impl Fn(&[u64]) -> usize + Sync) -> Result<Reserve, StorageError> {
        let spares = |list: &[u64]| -> Vec<(u32, u32)> {
            let known = list.iter().rev().map(|entry| parts(*entry));
            let known = known.filter_map(|(image, partner)| Some((*order.get(partner? as usize)?, image)));
            known.skip(told(list)).collect()
        };
        let sizes = self.lists.map(|_, list| (floor(list, self.low), spares(list).len()))?;
        let mut reserve = Reserve {
            low: self.low,
            below: self.tally.below,
            counts: self.tally.counts.clone(),
            ranks: vec![0; order.len()],
            offsets: Vec::with_capacity(order.len() + 1),
            floors: Vec::with_capacity(order.len()),
            ..Reserve::default()
        };
        for (place, row) in (0..).zip(order) {
            reserve.ranks[*row as usize] = place;
        }
        let mut end = 0;
        for (floor, size) in reserve.ranks.iter().map(|place| sizes[*place as usize]) {
            reserve.floors.push(floor);
            reserve.offsets.push(end as u64);
            end += size;
        }
        reserve.offsets.push(end as u64);
        (reserve.partners, reserve.similarities) = (vec![0; end], vec![0.0; end]);
        self.lists.for_each(|place, list| {
            let start = reserve.offsets[order[place] as usize];
            for (at, (partner, image)) in (usize::try_from(start).unwrap_or(usize::MAX)..).zip(spares(list)) {
                (reserve.partners[at], reserve.similarities[at]) = (partner, score(image));
            }
        })?;
        Ok(reserve)
    }

    /// The state that edges and their reserve stand for, for rows that have other places now: for each former row its
    /// place, or none if it is gone. None if they don't fit each other.
    pub fn resumed(
        edges: &EdgeSet,
        reserve: &Reserve,
        rules: Pruning,
        places: &[Option<u32>],
        rows: usize,
    ) -> Option<Self> {
        let width = width(rows, rules);
        let mut entries = vec![0; rows.checked_mul(width)?];
        let fits = [edges.offsets.len(), reserve.offsets.len()].iter().all(|offsets| *offsets == places.len() + 1)
            && [reserve.ranks.len(), reserve.floors.len()].iter().all(|len| *len == places.len());
        if !fits {
            return None;
        }
        let mut rows_of = vec![None; rows];
        for (row, place) in places.iter().enumerate() {
            if let Some(place) = place {
                *rows_of.get_mut(*place as usize)? = Some(row);
            }
        }
        let slots = entries.par_chunks_exact_mut(width.max(1)).zip(&rows_of);
        let sound = slots.map(|(slots, row)| resume(edges, reserve, rules, places, *row, slots).is_some());
        if !sound.reduce(|| true, |one, other| one && other) {
            return None;
        }
        let tally = Tally { below: reserve.below, counts: reserve.counts.clone() };
        let lists = Lists::here(entries, width, width);
        Some(Self { low: reserve.low, tally, width, lists, pairs: rules.pairs.count(rows) })
    }
}

/// Fills the entries of a place from what its former row knew, if it had one; none where the reserve does not fit the edges.
fn resume(
    edges: &EdgeSet,
    reserve: &Reserve,
    rules: Pruning,
    places: &[Option<u32>],
    row: Option<usize>,
    slots: &mut [u64],
) -> Option<()> {
    let Some(row) = row else { return Some(()) };
    let now = |partner: u32| places.get(partner as usize).copied().flatten();
    let mut list = Vec::new();
    if !rules.apart {
        list = partners(&edges.offsets, &edges.targets, &edges.weights, row)?;
        list.sort_unstable_by_key(|(partner, image)| (!image, reserve.ranks.get(*partner as usize).copied(), *partner));
        list.truncate(rules.top_m as usize);
    }
    list.extend(partners(&reserve.offsets, &reserve.partners, &reserve.similarities, row)?);
    let floor = *reserve.floors.get(row)?;
    let lost = list.iter().any(|(partner, _)| now(*partner).is_none());
    // What lies below its floor counts only as long as the list stays full: others may be as similar as that.
    let full = !lost && list.len() >= slots.len();
    list.retain(|(_, image)| *image >= floor || full);
    let known = list.iter().filter_map(|(partner, image)| Some(entry(*image, now(*partner)?)));
    slots.fill(if floor > reserve.low { bar(floor - 1) } else { 0 });
    for (slot, known) in slots.iter_mut().rev().zip(known) {
        *slot = known;
    }
    slots.sort_unstable();
    Some(())
}

/// The partners of a row with their images, as offsets, targets and weights tell them.
fn partners(offsets: &[u64], targets: &[u32], weights: &[f32], row: usize) -> Option<Vec<(u32, u32)>> {
    let place = |row: usize| usize::try_from(*offsets.get(row)?).ok();
    let range = place(row)?..place(row + 1)?;
    let targets = targets.get(range.clone())?.iter().copied();
    Some(targets.zip(weights.get(range)?.iter().map(|weight| image(*weight))).collect())
}

/// Partners that a row remembers.
pub fn width(rows: usize, rules: Pruning) -> usize {
    rows.saturating_sub(1).min(rules.top_m as usize) + SPARE
}

fn is_partner(entry: u64, threshold: u32) -> bool {
    let (image, partner) = parts(entry);
    partner.is_some() && image >= threshold
}

/// The image from which on a list holds every partner.
fn floor(list: &[u64], low: u32) -> u32 {
    match list.first() {
        Some(0) | None => low,
        Some(worst) => parts(*worst).0.saturating_add(1),
    }
}

/// The index of the order statistic at a percentile among at least one pair.
pub fn order_statistic(pairs: u64, percentile: u32) -> u64 {
    let index = u128::from(pairs) * u128::from(percentile) / 100_000;
    u64::try_from(index).unwrap_or(u64::MAX).min(pairs.saturating_sub(1))
}
