//! One change at a time: what readers, the writer and `verify` make of it.

use crate::flips::battery::{Answers, Reading};
use crate::flips::change::{After, Before, Origin, Other, Sort, flip};
use crate::flips::stores::{Fault, Kind, Made, add, make};
use crate::image::Image;
use hedgerow::{Env, FileName, OpenError, PackDisk, Quiet, Snapshot, Store, Vfs, verify};
use hedgerow_format::FormatError;
use hedgerow_format::file::{FileKind, Layout, Section};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::ops::Range;
use std::sync::Arc;

/// A store, every file of which is changed in turn.
#[derive(Debug)]
pub struct Subject {
    kind: Kind,
    image: Image,
    /// The files that are changed.
    pub files: Vec<(FileName, Before)>,
    answers: Answers,
    older: Answers,
    /// What is answered without the projections that a file is or has.
    without: BTreeMap<FileName, Vec<Answers>>,
    /// What a file consists of.
    parts: BTreeMap<FileName, Vec<Part>>,
}

/// A file of the store: alone, or in a pack.
#[derive(Debug)]
struct Part {
    name: FileName,
    /// Its bytes, in the file that is changed.
    range: Range<usize>,
    /// Its sections, likewise.
    sections: Vec<(&'static str, Range<usize>)>,
}

/// What became of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing changed: the same bytes were there.
    Void,
    /// Someone said so.
    Detected,
    /// Everyone answers as before.
    Harmless,
}

/// How thoroughly one change is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Depth {
    /// Whether the store is opened for writing although the changed file is not the writer's alone.
    pub write: bool,
    /// Whether the writer then commits something.
    pub commit: bool,
}

impl Subject {
    /// Makes the store of a kind and asks it everything.
    ///
    /// # Errors
    /// What is wrong with the sound store.
    pub fn new(kind: Kind, seed: u64) -> Result<Self, String> {
        let fail = |error: Fault| format!("{kind}: {error}");
        let Made { image, older } = make(kind, seed).map_err(fail)?;
        let twin = make(kind, seed ^ 0x5ee_d0f2).map_err(fail)?.image;
        let answers = ask(kind, &image)?;
        if let Some(question) = answers.unanswered() {
            return Err(format!("{kind}: the sound store does not answer: {question}"));
        }
        if let Some(problem) = problems(kind, &image).first() {
            return Err(format!("{kind}: the sound store does not verify: {problem}"));
        }
        let mut subject = Self {
            kind,
            older: ask(kind, &older)?,
            answers,
            files: Vec::new(),
            without: BTreeMap::new(),
            parts: BTreeMap::new(),
            image,
        };
        for name in subject.image.names().into_iter().filter(|name| *name != FileName::Lock) {
            subject.add(name, &older, &twin)?;
        }
        Ok(subject)
    }

    fn add(&mut self, name: FileName, older: &Image, twin: &Image) -> Result<(), String> {
        let Some(bytes) = self.image.bytes(&name) else { return Ok(()) };
        let parts = parts(name, &bytes).map_err(|error| format!("{name}: {error}"))?;
        let projections = parts.iter().filter(|part| is_projection(&part.name)).map(|part| part.range.start);
        let projections: Vec<usize> = projections.collect();
        // Bytes that change places lie in any two of them.
        for chosen in 1..1_u32 << projections.len() {
            let set = projections.iter().zip(0..).filter(|(_, bit)| chosen >> bit & 1 == 1).map(|(start, _)| start);
            let image = self.image.fork();
            // The first byte of the magic number.
            for start in set {
                image.edit(&name, |bytes| flip(bytes, start * 8));
            }
            self.without.entry(name).or_default().push(ask(self.kind, &image)?);
        }
        self.parts.insert(name, parts);
        let mut others = vec![Other { origin: Origin::Nowhere, bytes: None }];
        // Another pack is a whole store of its own: nothing can tell that it is not the one that was meant.
        let stores = [(Origin::Own, &self.image), (Origin::Older, older), (Origin::Twin, twin)];
        for (origin, image) in stores.into_iter().filter(|_| self.kind != Kind::Pack) {
            let files = image.names().into_iter().filter(|other| *other != FileName::Lock);
            // Of other stores the files of the same kind, of the same store all.
            let files = files.filter(|other| origin != Origin::Twin || ending(other) == ending(&name));
            others.extend(files.map(|other| Other { origin, bytes: image.bytes(&other) }));
        }
        self.files.push((name, Before { bytes, others }));
        Ok(())
    }

    /// A disk of its own for a thread that changes files.
    #[must_use]
    pub fn fork(&self) -> Image {
        self.image.fork()
    }

    /// Changes a file of `image`, looks, and puts it back.
    ///
    /// # Errors
    /// What went wrong without being told.
    pub fn check(&self, image: &Image, file: usize, sort: Sort, place: usize, depth: Depth) -> Result<Outcome, String> {
        let Some((name, before)) = self.files.get(file) else { return Ok(Outcome::Void) };
        if sort == Sort::Bit {
            image.edit(name, |bytes| flip(bytes, place));
        } else {
            match before.after(sort, place) {
                After::Same => return Ok(Outcome::Void),
                After::Gone => drop(image.remove(name)),
                After::Bytes(bytes) => image.put(*name, Arc::new(bytes)),
            }
        }
        self.look(image, file, sort, place, depth)
    }

    /// Puts a file of `image` back, whatever a check left.
    pub fn put_back(&self, image: &Image, file: usize, sort: Sort, place: usize) {
        if let Some((name, before)) = self.files.get(file) {
            if sort == Sort::Bit {
                image.edit(name, |bytes| flip(bytes, place));
            } else {
                image.put(*name, Arc::clone(&before.bytes));
            }
        }
    }

    fn look(&self, image: &Image, file: usize, sort: Sort, place: usize, depth: Depth) -> Result<Outcome, String> {
        let Some((name, before)) = self.files.get(file) else { return Ok(Outcome::Void) };
        let stale = sort == Sort::Exchange
            && *name == FileName::Head
            && before.others.get(place).is_some_and(|other| other.origin == Origin::Older);
        let mut told = false;
        if *name != FileName::Catalog || depth.write {
            told |= self.read(image, name, stale)? == Reading::Told;
        }
        let problems = problems(self.kind, image);
        told |= !problems.is_empty();
        let mut written = Reading::Same;
        let writers = matches!(name, FileName::Head | FileName::Catalog) || is_manifest(name);
        if self.kind != Kind::Pack && (depth.write || writers) {
            written = self.write(image, name, depth)?;
            told |= written == Reading::Told;
        }
        if *name == FileName::Catalog {
            if written == Reading::Told && problems.is_empty() {
                return Err("the writer refuses the catalog, and verify finds nothing".into());
            }
        } else if !stale && (*name != FileName::Head || sort != Sort::Exchange || problems.is_empty()) {
            self.place(name, sort, place, &problems)?;
        }
        Ok(if told { Outcome::Detected } else { Outcome::Harmless })
    }

    fn read(&self, image: &Image, name: &FileName, stale: bool) -> Result<Reading, String> {
        let snapshot = match open(self.kind, image) {
            Ok(snapshot) => snapshot,
            Err(error) => return refused(&error),
        };
        let found = Answers::of(&snapshot);
        if stale {
            return found
                .judge(&self.older, &[])
                .map(|_| Reading::Told)
                .map_err(|error| format!("a stale HEAD: {error}"));
        }
        found.judge(&self.answers, self.without(name))
    }

    fn write(&self, image: &Image, name: &FileName, depth: Depth) -> Result<Reading, String> {
        let image = image.fork();
        let store = match Store::open_in(env(&image)) {
            Ok(store) => store,
            Err(error) => return refused(&error),
        };
        let reading = Answers::of(&store.snapshot()).judge(&self.answers, self.without(name));
        let reading = reading.map_err(|error| format!("in the writer: {error}"))?;
        let head = |image: &Image| image.bytes(&FileName::Head);
        if head(&image) != head(&self.image) {
            return Err("the writer publishes another HEAD".into());
        }
        if depth.commit && matches!(name, FileName::Head | FileName::Catalog) {
            add(self.kind, &store).map_err(|error| format!("the writer does not write on: {error}"))?;
            drop(store);
            if let Some(problem) = problems(self.kind, &image).first() {
                return Err(format!("after a commit: {problem}"));
            }
            let snapshot = Snapshot::open_in(&image).map_err(|error| format!("after a commit: {error}"))?;
            if !matches!(snapshot.find_document("d99"), Ok(Some(_))) {
                return Err("what was committed is not there".into());
            }
        }
        Ok(reading)
    }

    /// Whether `verify` names the file, and where in it the change is.
    fn place(&self, name: &FileName, sort: Sort, place: usize, problems: &[String]) -> Result<(), String> {
        let byte = (sort == Sort::Bit).then_some(place / 8);
        let mut parts = self.parts.get(name).into_iter().flatten();
        let hit = byte.and_then(|byte| parts.find(|part| part.range.contains(&byte)));
        let file = hit.map_or(*name, |part| part.name).to_string();
        // Of other changes of a pack than one bit, any file may be the first that is not as it was.
        let any = hit.is_none() && self.kind == Kind::Pack;
        let Some(problem) = problems.iter().find(|problem| any || problem.contains(&file)) else {
            return Err(format!("verify does not name {file}: {problems:?}"));
        };
        let Some((byte, part)) = byte.zip(hit) else { return Ok(()) };
        if !problem.contains("offset ") {
            return Err(format!("verify names no offset: {problem}"));
        }
        let mut sections = part.sections.iter().filter(|(_, range)| range.contains(&byte));
        match sections.find(|(section, _)| !problem.contains(section)) {
            Some((section, _)) => Err(format!("verify does not name the section {section}: {problem}")),
            None => Ok(()),
        }
    }

    fn without(&self, name: &FileName) -> &[Answers] {
        self.without.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// Kind of the store.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }
}

fn env(image: &Image) -> Env {
    Env::seeded(Arc::new(image.clone()), 99)
}

fn open(kind: Kind, image: &Image) -> Result<Snapshot, OpenError> {
    if kind == Kind::Pack {
        Snapshot::open_in(&PackDisk::open(image, FileName::Pack)?)
    } else {
        Snapshot::open_in(image)
    }
}

fn ask(kind: Kind, image: &Image) -> Result<Answers, String> {
    Ok(Answers::of(&open(kind, image).map_err(|error| format!("{kind}: {error}"))?))
}

/// What `verify` finds, or why it could not look.
fn problems(kind: Kind, image: &Image) -> Vec<String> {
    let disk: Arc<dyn Vfs> = if kind == Kind::Pack {
        match PackDisk::open(image, FileName::Pack).map_err(OpenError::from) {
            Ok(pack) => Arc::new(pack),
            Err(error) => return vec![error.to_string()],
        }
    } else {
        Arc::new(image.clone())
    };
    verify(&Env::seeded(disk, 99), &Quiet).map_or_else(|error| vec![error.to_string()], |verified| verified.problems)
}

/// The files that a file consists of: itself, or those of a pack.
fn parts(name: FileName, bytes: &[u8]) -> Result<Vec<Part>, FormatError> {
    let mut parts = Vec::new();
    if let FileName::Numbered { kind, .. } = name {
        parts.push(part(name, kind, bytes, 0..bytes.len())?);
    } else if name == FileName::Pack {
        for entry in hedgerow_format::pack::Pack::parse(bytes)?.entries() {
            let place = [entry.offset, entry.offset.saturating_add(entry.length)].map(usize::try_from);
            if let (Some(kind), [Ok(start), Ok(end)]) = (FileKind::from_number(entry.kind), place) {
                let name = FileName::Numbered { kind, number: entry.number, random: entry.random };
                parts.push(part(name, kind, bytes, start..end)?);
            }
        }
    }
    Ok(parts)
}

fn part(name: FileName, kind: FileKind, bytes: &[u8], range: Range<usize>) -> Result<Part, FormatError> {
    let layout = Layout::parse(kind, bytes.get(range.clone()).unwrap_or_default())?;
    let place =
        |section: &Section| (section.kind.name(), range.start + section.range.start..range.start + section.range.end);
    let sections = layout.sections().iter().map(place).collect();
    Ok(Part { name, range, sections })
}

fn is_projection(name: &FileName) -> bool {
    matches!(
        name,
        FileName::Numbered { kind: FileKind::Links | FileKind::Edges | FileKind::Communities | FileKind::Vectors, .. }
    )
}

/// A file that ends early is damage; an error that blames the system for it sends people the wrong way.
fn refused(error: &OpenError) -> Result<Reading, String> {
    match error {
        OpenError::Storage(fault) if fault.source.kind() == ErrorKind::UnexpectedEof => {
            Err(format!("an error that does not say that the file is damaged: {error}"))
        }
        _ => Ok(Reading::Told),
    }
}

fn is_manifest(name: &FileName) -> bool {
    matches!(name, FileName::Numbered { kind: FileKind::Manifest, .. })
}

/// How a file's name ends: what sort of file it is.
pub fn ending(name: &FileName) -> String {
    let name = name.name();
    name.split_once('.').map(|(_, ending)| ending.to_owned()).unwrap_or(name)
}
