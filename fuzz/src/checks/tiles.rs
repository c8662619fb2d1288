//! Parts of builds of edges that come from elsewhere: of any bytes, and of any bytes with the right hash.

use crate::checks::image::environment;
use hedgerow::{
    Batch, EdgeRules, EdgeShare, Env, Quiet, StagedChunk, StagedDocument, StagedVector, Store, UnfinishedEdges, verify,
};
use hedgerow_durability::Disk;

/// Documents of the store.
const ROWS: u8 = 12;

/// Bytes of the hash that a part ends with.
const HASH: usize = 32;

/// What is read is no part or a sound one; edges that are joined from it are sound, whatever it says.
pub fn check(bytes: &[u8]) {
    drop(UnfinishedEdges::new(bytes, &|_| ()));
    let sealed = [bytes, blake3::hash(bytes).as_bytes().as_slice()].concat();
    let (store, env) = store();
    if store.join_edges("v", &rules(), &[sealed], &Quiet).is_ok() {
        let verified = verify(&env, &Quiet).expect("the disk is sound");
        assert_eq!(verified.problems, Vec::<String>::new());
    }
}

fn rules() -> EdgeRules {
    EdgeRules::new(80_000, 3)
}

fn store() -> (Store, Env) {
    let disk = Disk::default();
    let store = Store::open_or_create_in(environment(&disk, 5)).expect("the disk is sound");
    let mut batch = Batch::default();
    for row in 0..ROWS {
        let components = vec![f32::from(row % 5) - 2.2, f32::from(row % 3) - 0.7];
        let norm = components.iter().map(|x| x * x).sum::<f32>().sqrt();
        let components = components.into_iter().map(|x| x / norm).collect();
        let vectors = vec![StagedVector { space: "v".into(), model: "m".into(), components }];
        let chunks = vec![StagedChunk { range: 0..1, vectors, ..StagedChunk::default() }];
        batch.put(StagedDocument { name: row.to_string(), text: "x".into(), chunks, ..StagedDocument::default() });
    }
    store.commit(batch).expect("the batch is sound");
    (store, environment(&disk, 6))
}

/// The whole build, and a share of it, without their hashes.
pub fn seeds() -> Vec<Vec<u8>> {
    let (store, _) = store();
    let share = |of: u32| {
        let share =
            store.edge_share("v", &rules(), EdgeShare { number: 1, of }, &[], &Quiet).expect("it can be computed");
        share[..share.len() - HASH].to_vec()
    };
    vec![share(1), share(2)]
}
