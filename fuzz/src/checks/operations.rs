//! Sequences of operations, crashes and faults on a simulated disk, beside a model.

use crate::checks::image::environment;
use crate::checks::input::Input;
use hedgerow::{Quiet, Snapshot, Store, canonical, verify};
use hedgerow_durability::{Change, Disk, Fault, FaultKind, Model, Step, compare, live};
use std::sync::Arc;

/// Operations of one input: enough for several compactions.
const OPERATIONS_MAX: usize = 24;

/// A store beside what it must hold.
struct Beside {
    disk: Disk,
    store: Option<Store>,
    model: Model,
    /// What it may hold as well: a step that was not acknowledged.
    maybe: Option<Model>,
    /// Similarity edges were asked for, so that a refresh makes them again.
    edges: bool,
    communities: bool,
    seed: u64,
}

/// After every operation the store holds what the model says; after every crash it is found as it was before or after the
/// operation, and is sound.
pub fn check(bytes: &[u8]) {
    let mut input = Input(bytes);
    let disk = if input.byte() % 4 == 0 { Disk::windows() } else { Disk::default() };
    let mut beside =
        Beside { disk, store: None, model: Model::new(), maybe: None, edges: false, communities: false, seed: 1 };
    beside.reopen();
    for _ in 0..OPERATIONS_MAX {
        if input.is_empty() {
            break;
        }
        match input.byte() % 16 {
            0..=9 => beside.step(&mut input),
            10 => {
                beside.store = None;
                beside.reopen();
            }
            11 => {
                let left = beside.store.take().expect("it is open");
                left.close().expect("the disk is sound");
                beside.reopen();
            }
            12 => beside.crash(u64::from(input.short())),
            13 => beside.kill(),
            _ => beside.fail(&mut input),
        }
    }
    beside.store = None;
    beside.reopen();
    beside.everything();
}

impl Beside {
    fn step(&mut self, input: &mut Input<'_>) {
        let step = step(input);
        let store = self.store.as_ref().expect("it is open");
        self.edges |= step == Step::Edges && !self.model.is_empty();
        self.communities |= step == Step::Communities;
        self.model = live(store, &self.model, &step).unwrap_or_else(|error| panic!("{step:?}: {error}"));
    }

    /// Does an operation while a call of the disk fails, then goes on as a process that was killed, or lost its power.
    fn fail(&mut self, input: &mut Input<'_>) {
        let (at, kind, end) = (u64::from(input.byte()), input.byte(), input.byte());
        let error = FaultKind::ALL[usize::from(kind) % FaultKind::ALL.len()];
        let step = step(input);
        let store = self.store.as_ref().expect("it is open");
        self.disk.fail(Fault { at, for_ever: kind & 128 != 0, error });
        let model = self.model.clone();
        // Of an operation that failed anything may be true, of a part of it nothing.
        let after = live(store, &model, &step);
        self.disk.mend();
        let edges = self.edges || (step == Step::Edges && !model.is_empty());
        match after {
            Ok(after) => {
                (self.model, self.edges) = (after, edges);
                self.communities |= step == Step::Communities;
            }
            Err(_) => self.maybe = Some(changed(&model, &step)),
        }
        match end % 3 {
            0 => self.crash(u64::from(end)),
            1 => self.kill(),
            _ => {
                self.store = None;
                self.reopen();
            }
        }
    }

    fn crash(&mut self, seed: u64) {
        let state = self.disk.now();
        self.store = None;
        self.disk = state.cut(seed);
        self.reopen();
    }

    fn kill(&mut self) {
        let state = self.disk.now();
        self.store = None;
        self.disk = state.killed();
        self.reopen();
    }

    /// Opens the store and finds which of the states that may be there is there.
    fn reopen(&mut self) {
        self.seed += 1;
        let store = Store::open_or_create_in(environment(&self.disk, self.seed)).expect("opening never fails");
        let problems = verify(&environment(&self.disk, self.seed), &Quiet).expect("there is a store").problems;
        assert!(problems.is_empty(), "{problems:?}");
        if let Some(maybe) = self.maybe.take() {
            // Not all that was said about a chunk shows while projections are behind; of a copy they are in step.
            let copy = canonical(&store.snapshot(), Arc::new(Disk::default()), &Quiet).expect("the disk is sound");
            if holds(&copy.snapshot(), &maybe) {
                self.model = maybe;
            }
        }
        assert!(holds(&store.snapshot(), &self.model), "it holds {:?}", self.model);
        self.store = Some(store);
    }

    /// Compares everything that can be asked, with projections in step.
    fn everything(&self) {
        let store = self.store.as_ref().expect("it is open");
        store.refresh(&Quiet).expect("the disk is sound");
        let read = Snapshot::open_in(&self.disk).expect("what is published can be read");
        assert!(holds(&read, &self.model), "it holds {:?}", self.model);
        if self.model.is_empty() {
            return;
        }
        // A step that failed may have made edges all the same; those that were acknowledged are not forgotten.
        let edges = !read.edge_rules().is_empty();
        assert!(edges || !self.edges, "edges that were made are gone");
        assert!(read.community_rules().is_some() || !self.communities, "communities that were found are gone");
        compare(&read, &self.model, edges).unwrap_or_else(|difference| panic!("{difference}"));
    }
}

fn changed(model: &Model, step: &Step) -> Model {
    match step {
        Step::Commit(changes) => hedgerow_durability::changed(model, changes),
        _ => model.clone(),
    }
}

/// Whether a snapshot holds the documents and what was said about them: projections are not looked at.
fn holds(snapshot: &Snapshot, model: &Model) -> bool {
    if model.is_empty() {
        // How edges are to be made outlives the last vector, which a store made afresh cannot know.
        return snapshot.document_ids().next().is_none() && snapshot.statistics().is_ok_and(|counts| counts.terms == 0);
    }
    // Edges don't count here: they are compared where projections are in step.
    compare(snapshot, model, false).is_ok() || compare(snapshot, model, true).is_ok()
}

fn step(input: &mut Input<'_>) -> Step {
    match input.byte() % 16 {
        0 => Step::Refresh,
        1 => Step::Edges,
        2 => Step::Compact,
        15 => Step::Communities,
        count => Step::Commit((0..=(count % 4)).map(|_| change(input)).collect()),
    }
}

fn change(input: &mut Input<'_>) -> Change {
    let (kind, number, value) = (input.byte(), input.byte() % 6, input.byte());
    match kind % 9 {
        0..=3 => Change::Put(number, value % 5),
        4 | 5 => Change::Delete(number),
        6 => Change::Relate(number, value % 4),
        7 => Change::Extract(number, value % 4),
        _ => Change::Vector(number, value % 4),
    }
}

/// Lives with everything in them.
pub fn seeds() -> Vec<Vec<u8>> {
    vec![
        vec![1, 0, 7, 0, 0, 0, 0, 1, 1, 0, 2, 2, 0, 3, 3, 0, 0, 12, 5, 0, 0, 5, 4, 1, 0, 6, 0, 1, 10, 0, 2, 0, 0],
        vec![0, 0, 4, 0, 0, 0, 0, 1, 3, 0, 1, 14, 9, 0, 1, 4, 7, 0, 1, 13, 0, 2, 11, 0, 0],
        vec![2, 0, 4, 3, 2, 2, 15, 20, 129, 0, 4, 0, 3, 1, 15, 7, 2, 3, 2, 14, 3, 3, 2, 0],
    ]
}
