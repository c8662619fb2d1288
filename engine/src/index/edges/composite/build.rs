//! The steps of a build by several signals: thresholds, choices, edges.

use crate::distance::rows::Rows;
use crate::index::control::Cancelled;
use crate::index::edges::composite::bins::Bins;
use crate::index::edges::composite::partners::{Partners, pairs, width};
use crate::index::edges::composite::pass::{Lines, Pass};
use crate::index::edges::composite::rounds::{Chosen, Course, Reached, Rounds, SINGLE, Visits};
use crate::index::edges::composite::{Combination, Composite, Composition};
use crate::index::edges::image::{image, score};
use crate::index::edges::scan::Tally;
use crate::index::edges::state::order_statistic;
use crate::index::edges::{Building, Cap, EdgeReport, EdgeSet, Identity, Part, Pruning, Stopped, build};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// A build by several signals.
pub struct Build<'b> {
    /// The signals.
    pub composition: &'b Composition<'b>,
    /// How pairs are pruned.
    pub rules: Pruning,
    /// Its passes over the pairs.
    pub rounds: Rounds<'b>,
    /// What the build is made of.
    pub identity: Identity,
}

/// What is known after the passes that find thresholds.
struct Thresholds {
    images: Vec<u32>,
    /// The partners that were chosen on the way, and how many pairs pass by what decides alone.
    offered: Option<(Part, u64)>,
}

/// The thresholds of vectors, of each measure.
struct OfVectors {
    found: Vec<Option<u32>>,
    /// Those of which a share was compared, and what it saw.
    pending: Vec<usize>,
    shared: Vec<Part>,
}

impl Build<'_> {
    /// Does what was not done before.
    pub fn built(&self) -> Result<Reached<Composite>, Stopped> {
        let Pass { rows, .. } = *self.rounds.pass;
        let all = self.rounds.pass.pairs();
        if all == 0 || self.composition.voices.is_empty() {
            let report = EdgeReport { rows, pairs: all, ..EdgeReport::default() };
            let edges = EdgeSet::of(std::iter::empty, report);
            return Ok(Reached::All(Composite { edges, thresholds: Vec::new() }));
        }
        let Thresholds { images, offered } = match self.thresholds(all)? {
            Reached::All(thresholds) => thresholds,
            Reached::Share(parts) => return Ok(Reached::Share(parts)),
        };
        let floors: Vec<u32> = (0..self.composition.deciding())
            .zip(&images)
            .map(|(at, image)| self.composition.floor(at, *image, self.rules))
            .collect();
        let (chosen, passed) = match offered {
            // What is left takes no pass over the pairs.
            Some(_) if self.rounds.course.share.is_some() => return Ok(Reached::Share(Vec::new())),
            Some((nearest, _)) if self.rules.nearest.is_some() => {
                let mut chosen = self.rounds.part(self.identity, SINGLE, width(rows, self.rules.top_m));
                let passed = self.choose_among(&pairs(&nearest, rows, Cap::Either, 0), &floors, &mut chosen)?;
                (chosen, passed)
            }
            Some(chosen) => chosen,
            None => match self.choose(&floors)? {
                Reached::All(_) if self.rounds.course.share.is_some() => return Ok(Reached::Share(Vec::new())),
                Reached::All(chosen) => chosen,
                Reached::Share(parts) => return Ok(Reached::Share(parts)),
            },
        };
        let mut thresholds: Vec<f32> = images.into_iter().map(score).collect();
        let threshold = thresholds.first().copied();
        let report = EdgeReport { rows, pairs: all, threshold, passed, ..EdgeReport::default() };
        thresholds.drain(..self.composition.scores());
        let kept = pairs(&chosen, rows, self.rules.cap, floors.first().copied().unwrap_or(0));
        Ok(Reached::All(Composite { edges: EdgeSet::of(|| kept.iter().copied(), report), thresholds }))
    }

    fn lines(&self) -> Lines<'_> {
        Lines::new(self.composition.voices, self.composition.combination)
    }

    /// Tells a part of the build from all others by what it is about.
    fn identity(&self, of: &str) -> Identity {
        *blake3::Hasher::new().update(&self.identity).update(of.as_bytes()).finalize().as_bytes()
    }

    /// Finds the thresholds. In the first pass rows choose partners on the way, see [`Build::count`].
    fn thresholds(&self, pairs: u64) -> Result<Reached<Thresholds>, Stopped> {
        let Self { composition, rules, .. } = self;
        let mut bins = self.sampled(pairs);
        let OfVectors { mut found, pending, mut shared } = self.thresholds_of_vectors()?;
        let (mut is_first, mut offered) = (true, None);
        loop {
            let is_open = |at: &usize| found[*at].is_none() && !pending.contains(at);
            let open: Vec<usize> = (0..found.len()).filter(is_open).collect();
            if open.is_empty() {
                break;
            }
            let mut parts = match self.count(&open, &bins, is_first)? {
                Reached::All(parts) => parts.into_iter(),
                Reached::Share(parts) => {
                    shared.extend(parts);
                    break;
                }
            };
            let partners = parts.next().filter(|_| is_first && self.offers());
            offered = offered.or(partners.map(|part| (part, bins[0].bracket().low, u64::MAX)));
            for (at, part) in open.into_iter().zip(parts) {
                match bins[at].counted(part.tally).narrowed(order_statistic(pairs, composition.percentile(at, *rules)))
                {
                    Ok((image, below)) => {
                        found[at] = Some(image);
                        if at == 0 {
                            // What lies below was not offered.
                            offered = offered
                                .filter(|(_, low, _)| rules.nearest.is_some() || image >= *low)
                                .map(|(part, low, _)| (part, low, pairs.saturating_sub(below)));
                        }
                    }
                    Err(narrower) => bins[at] = narrower,
                }
            }
            is_first = false;
        }
        if !shared.is_empty() {
            return Ok(Reached::Share(shared));
        }
        let offered = offered.map(|(part, _, passed)| {
            let passed = passed.min(part.tally.counts.iter().sum());
            (part, passed)
        });
        Ok(Reached::All(Thresholds { images: found.into_iter().flatten().collect(), offered }))
    }

    /// Whether rows choose in the first pass: where only the nearest become edges, or where one number decides.
    fn offers(&self) -> bool {
        self.rules.nearest.is_some() || self.composition.deciding() == 1
    }

    /// Counts the measures that are open in their bins. Offers in the first pass all pairs by their first signal, where only the
    /// nearest become edges, else, where one number decides, those that may pass by it, before its threshold is known.
    fn count(&self, open: &[usize], bins: &[Bins], is_first: bool) -> Result<Reached<Vec<Part>>, Stopped> {
        let Pass { rows, .. } = *self.rounds.pass;
        let Composition { voices, combination } = *self.composition;
        let (offers, nearest) = (is_first && self.offers(), self.rules.nearest);
        let most = if offers { width(rows, nearest.unwrap_or(self.rules.top_m)) } else { 0 };
        let (low, least) = (bins[0].bracket().low, self.composition.floor(0, 0, self.rules));
        let low = if nearest.is_some() { 0 } else { low };
        let about: Vec<String> = open.iter().map(|at| format!("{at} {:?}", bins[*at].bracket())).collect();
        let mut parts = vec![self.rounds.part(self.identity(&format!("partners {about:?}")), SINGLE, most)];
        for (at, about) in open.iter().zip(&about) {
            parts.push(self.rounds.part(self.identity(about), bins[*at].bracket(), 0));
        }
        let chosen = Chosen { voices, combination, by_first: nearest.is_some() };
        let visits = Visits {
            start: || (self.lines(), open.iter().map(|at| bins[*at].clone()).collect::<Vec<_>>(), 0),
            visit: |(lines, bins, reaching): &mut (Lines<'_>, Vec<Bins>, u64),
                    partners: &Partners<'_>,
                    row: u32,
                    range: Range<u32>| {
                lines.read(row, range.clone(), |measure| open.contains(&measure), offers && chosen.by_first);
                for (at, bins) in open.iter().zip(bins) {
                    bins.count(lines.measure(*at));
                }
                if !offers {
                    return;
                }
                for (other, image) in range.zip(chosen.line(lines).iter().map(|similarity| image(*similarity))) {
                    *reaching += u64::from(image >= least);
                    if image >= low {
                        partners.offer_both(row, other, image);
                    }
                }
            },
            add: |(_, bins, reaching): &(Lines<'_>, Vec<Bins>, u64), parts: &mut [Part]| {
                let tally = Tally { below: 0, counts: vec![*reaching] };
                let tallies = std::iter::once(&tally).chain(bins.iter().map(Bins::tally));
                parts.iter_mut().zip(tallies).for_each(|(part, tally)| part.tally.add(tally));
            },
        };
        self.rounds.run(parts, (is_first, &chosen), &visits)
    }

    /// The thresholds of vectors, where nothing but these has to be known of all pairs: by codes of eight bits they are found
    /// several times as fast, and without them only pairs are compared that sparse signals let pass.
    fn thresholds_of_vectors(&self) -> Result<OfVectors, Stopped> {
        let found = vec![None; self.composition.measures()];
        let mut of_vectors = OfVectors { found, pending: Vec::new(), shared: Vec::new() };
        let ranks: Vec<u32> = (0..self.rounds.pass.rows).collect();
        let Course { unfinished, share, memory, control } = self.rounds.course;
        for (at, rules, matrix, dimensions) in self.composition.by_codes(self.rules) {
            let (rows, identity) = (Rows::of_matrix(matrix, dimensions), self.identity(&format!("vectors {at}")));
            if let Some(share) = share {
                let building = Building::of_share(&rows, &ranks, rules, &identity, memory)?;
                let mut work = building.resumed(unfinished)?;
                if !work.part.is_whole() {
                    building.run(&mut work, |block| share.has(block), unfinished, control)?;
                    of_vectors.pending.push(at);
                    of_vectors.shared.push(work.part);
                    continue;
                }
            }
            let built = build(&rows, &ranks, rules, &identity, unfinished, memory, control)?;
            of_vectors.found[at] = built.edges.report.threshold.map(image);
        }
        Ok(of_vectors)
    }

    /// Where a sample says that the thresholds may lie.
    fn sampled(&self, pairs: u64) -> Vec<Bins> {
        let mut lines = self.lines();
        let mut images = vec![Vec::new(); self.composition.measures()];
        for (row, other) in self.rounds.pass.sample() {
            lines.read_some(row, &[other]);
            for (at, images) in images.iter_mut().enumerate() {
                images.extend(lines.measure(at).iter().map(|similarity| image(*similarity)));
            }
        }
        let bins = |(at, images)| Bins::sampled(images, self.composition.percentile(at, self.rules), pairs);
        images.into_iter().enumerate().map(bins).collect()
    }

    /// Offers all pairs that pass, and says how many that were.
    fn choose(&self, floors: &[u32]) -> Result<Reached<(Part, u64)>, Stopped> {
        let most = width(self.rounds.pass.rows, self.rules.top_m);
        let part = self.rounds.part(self.identity(&format!("choose {floors:?}")), SINGLE, most);
        let Composition { voices, combination } = *self.composition;
        let visits = Visits {
            start: || (self.lines(), Vec::new(), 0),
            visit: |(lines, listed, passed): &mut (Lines<'_>, Vec<u32>, u64),
                    partners: &Partners<'_>,
                    row: u32,
                    range: Range<u32>| {
                let first = range.start;
                self.list_passing(lines, row, range, floors, listed);
                for other in &*listed {
                    partners.offer_both(row, *other, image(lines.measure(0)[(other - first) as usize]));
                }
                *passed += listed.len() as u64;
            },
            add: |(_, _, passed): &(Lines<'_>, Vec<u32>, u64), parts: &mut [Part]| {
                for part in parts {
                    part.tally.add(&Tally { below: 0, counts: vec![*passed] });
                }
            },
        };
        let chosen = Chosen { voices, combination, by_first: false };
        Ok(match self.rounds.run(vec![part], (false, &chosen), &visits)? {
            Reached::All(mut parts) => match parts.pop() {
                Some(part) => {
                    let passed = part.tally.counts.iter().sum();
                    Reached::All((part, passed))
                }
                None => Reached::Share(Vec::new()),
            },
            Reached::Share(parts) => Reached::Share(parts),
        })
    }

    /// Lists the rows of a range with which a row makes a pair that passes. What sparse signals say costs little and often
    /// leaves few pairs for the dense ones.
    fn list_passing(&self, lines: &mut Lines<'_>, row: u32, range: Range<u32>, floors: &[u32], listed: &mut Vec<u32>) {
        let Composition { voices, combination } = self.composition;
        let is_late = |at: usize| *combination == Combination::Agree && !voices[at].signal.is_sparse();
        lines.read(row, range.clone(), |at| at < floors.len() && !is_late(at), false);
        listed.clear();
        listed.extend(range.clone());
        for late in [false, true] {
            for (at, floor) in floors.iter().enumerate().filter(|(at, _)| is_late(*at) == late) {
                if late {
                    lines.refine(row, &range, at, listed);
                }
                let measure = lines.measure(at);
                listed.retain(|other| image(measure[(other - range.start) as usize]) >= *floor);
            }
        }
    }

    /// Offers those of some pairs that pass, and says how many that were.
    fn choose_among(&self, pairs: &[(u32, u32, u32)], floors: &[u32], chosen: &mut Part) -> Result<u64, Cancelled> {
        let partners = Partners::of(chosen);
        let rows: Vec<&[(u32, u32, u32)]> = pairs.chunk_by(|a, b| a.0 == b.0).collect();
        let passed = AtomicU64::new(0);
        self.rounds.pass.run_some(
            &rows,
            || self.lines(),
            |lines, pairs| {
                let listed: Vec<u32> = pairs.iter().map(|pair| pair.1).collect();
                let row = pairs.first().map_or(0, |pair| pair.0);
                lines.read_some(row, &listed);
                for (at, other) in listed.iter().enumerate() {
                    let mut measures = floors.iter().enumerate().map(|(measure, _)| image(lines.measure(measure)[at]));
                    if floors.iter().all(|floor| measures.next() >= Some(*floor)) {
                        passed.fetch_add(1, Ordering::Relaxed);
                        partners.offer_both(row, *other, image(lines.measure(0)[at]));
                    }
                }
            },
        )?;
        Ok(passed.into_inner())
    }
}
