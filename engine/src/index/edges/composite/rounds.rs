//! Passes over all pairs that can be interrupted, gone on with, and shared: each is a sum over blocks of pairs.

use crate::index::control::Control;
use crate::index::edges::bracket::Bracket;
use crate::index::edges::composite::partners::Partners;
use crate::index::edges::composite::pass::{Lines, Pass};
use crate::index::edges::composite::{Combination, Voice};
use crate::index::edges::image::image;
use crate::index::edges::lists::Stopped;
use crate::index::edges::scan::parts;
use crate::index::edges::{EdgeShare, Identity, Memory, Part, Unfinished};
use rayon::prelude::*;
use std::ops::Range;

/// How much of a build is to be done, and with what.
#[derive(Clone, Copy)]
pub struct Course<'c> {
    /// Where it is kept while it is not finished, and what was done of it before.
    pub unfinished: &'c dyn Unfinished,
    /// The share of the first pass that was not done before; none for the whole build.
    pub share: Option<EdgeShare>,
    /// What may be in memory beside the signals, which are taken.
    pub memory: Memory<'c>,
    /// Told and asked once a block.
    pub control: &'c dyn Control,
}

/// How far a build came.
pub enum Reached<T> {
    /// All pairs were compared.
    All(T),
    /// A share of them, which saw this.
    Share(Vec<Part>),
}

/// Counts pairs that reach something, and nothing else.
pub const SINGLE: Bracket = Bracket { low: 0, shift: 0, bins: 1 };

/// What passes of a build have in common.
pub struct Rounds<'r> {
    /// The pairs.
    pub pass: &'r Pass<'r>,
    /// How much is to be done.
    pub course: Course<'r>,
}

/// What threads do in a pass.
pub struct Visits<I, V, A> {
    /// The state that a thread begins with.
    pub start: I,
    /// Reads a row with a range of others, and offers partners.
    pub visit: V,
    /// Adds the state of a thread to the parts.
    pub add: A,
}

impl Rounds<'_> {
    /// A part of a pass of which nothing is done.
    pub fn part(&self, identity: Identity, bracket: Bracket, width: usize) -> Part {
        Part::new(identity, bracket, self.pass.blocks(), self.pass.rows as usize, width)
    }

    /// Does what was not done before of a pass, or a share of it where nothing was. The first of its parts is that of the partners
    /// that rows choose, the others count; `chosen` says by what partners are compared.
    pub fn run<S: Send>(
        &self,
        mut parts: Vec<Part>,
        (is_first, chosen): (bool, &Chosen<'_>),
        visits: &Visits<
            impl Fn() -> S + Sync,
            impl Fn(&mut S, &Partners<'_>, u32, Range<u32>) + Sync,
            impl Fn(&S, &mut [Part]) + Sync,
        >,
    ) -> Result<Reached<Vec<Part>>, Stopped> {
        let Course { unfinished, share, .. } = self.course;
        let mut share = share;
        if let Some(kept) = self.kept(&parts, is_first, chosen)? {
            parts = kept;
            share = share.filter(|_| !parts.iter().all(Part::is_whole));
        }
        let done = |parts: &[Part], block: usize| parts.iter().all(|part| part.done[block]);
        let wanted = |block: usize| share.is_none_or(|share| share.has(block));
        let open = (0..self.pass.blocks()).filter(|block| !done(&parts, *block) && wanted(*block));
        let (open, slice) = (open.collect::<Vec<usize>>(), self.pass.slice());
        self.pass.begin(parts.first().map_or(0, |part| part.pairs));
        for blocks in open.chunks(slice) {
            let Some(first) = parts.first_mut() else { break };
            let partners = Partners::of(first);
            let visited =
                self.pass.run(blocks, &visits.start, |state, row, range| (visits.visit)(state, &partners, row, range));
            drop(partners);
            visited.states.iter().for_each(|state| (visits.add)(state, &mut parts));
            for part in &mut parts {
                part.pairs = part.pairs.saturating_add(visited.pairs);
                visited.done.iter().for_each(|block| part.done[*block] = true);
            }
            let cancelled = visited.done.len() < blocks.len();
            // What follows a pass may be cancelled, too.
            if cancelled || blocks.len() == slice || parts.iter().all(Part::is_whole) {
                parts.iter().skip(1).for_each(|part| unfinished.note(part));
                parts.first().inspect(|part| unfinished.keep(part));
            }
            if cancelled {
                return Err(Stopped::Cancelled);
            }
        }
        for part in &parts {
            unfinished.note(part);
        }
        Ok(if share.is_some() { Reached::Share(parts) } else { Reached::All(parts) })
    }

    /// What was kept of a pass, if all of it fits together.
    fn kept(&self, parts: &[Part], is_first: bool, chosen: &Chosen<'_>) -> Result<Option<Vec<Part>>, Stopped> {
        let unfinished = self.course.unfinished;
        let mut kept: Vec<Part> = Vec::with_capacity(parts.len());
        for Part { identity, .. } in parts {
            kept.extend(if is_first { unfinished.last(identity) } else { unfinished.later(identity) }?);
        }
        let Some(first) = kept.first().filter(|_| kept.len() == parts.len()) else { return Ok(None) };
        let fits = |(kept, part): (&Part, &Part)| {
            let Part { identity, bracket, done, pairs, tally, width, entries } = kept;
            let same = (*identity, *bracket, *width) == (part.identity, part.bracket, part.width);
            let lengths = |part: &Part| (part.done.len(), part.entries.len(), part.tally.counts.len());
            let same = same && (done.len(), entries.len(), tally.counts.len()) == lengths(part);
            same && (done, *pairs) == (&first.done, first.pairs) && chosen.is_sound(self.pass, kept)
        };
        let fit = kept.iter().zip(parts).all(fits);
        Ok(fit.then_some(kept))
    }
}

/// By what rows choose partners.
pub struct Chosen<'c> {
    /// The signals.
    pub voices: &'c [Voice<'c>],
    /// How they decide together.
    pub combination: Combination,
    /// Whether the first signal alone tells, or what decides first.
    pub by_first: bool,
}

impl Chosen<'_> {
    /// What a row is compared by with the rows that were read.
    pub fn line<'l>(&self, lines: &'l Lines<'_>) -> &'l [f32] {
        if self.by_first { lines.first() } else { lines.measure(0) }
    }

    /// Whether the partners that a part knows are pairs that are as similar as it says. It may come from elsewhere.
    fn is_sound(&self, pass: &Pass<'_>, part: &Part) -> bool {
        let lists = part.entries.par_chunks_exact(part.width.max(1)).enumerate();
        lists.all(|(row, list)| {
            let row = u32::try_from(row).unwrap_or(u32::MAX);
            let known = list.get(list.partition_point(|entry| *entry == 0)..).unwrap_or_default();
            let partners: Vec<u32> = known.iter().filter_map(|entry| parts(*entry).1).collect();
            if partners.len() < known.len() || !known.is_sorted_by(|a, b| a < b) {
                return false;
            }
            if !partners.iter().all(|other| *other != row && pass.is_pair(row, *other)) {
                return false;
            }
            let mut lines = Lines::new(self.voices, self.combination);
            lines.read_some(row, &partners);
            let images = self.line(&lines).iter().map(|similarity| image(*similarity));
            images.eq(known.iter().map(|entry| parts(*entry).0))
        })
    }
}
