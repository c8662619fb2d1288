//! `hedgerow compact` as a process: what was removed is gone from the files.

use crate::stores::{Place, change, files, put};
use std::path::PathBuf;

#[test]
fn what_was_removed_is_in_no_file_after_a_compaction_even_where_links_were_behind() {
    let place = Place::new();
    let store = place.open_unmerged();
    put(&store, &[("a", "Alice owns Bridge."), ("b", "The Zanzibar of Quetzal.")]);
    change(&store, Vec::new(), &["b"]);
    drop(store);
    let holds = |name: &str| {
        let files = files(&place.path());
        let whole = |bytes: &Vec<u8>| bytes.windows(name.len()).any(|part| part == name.as_bytes());
        files.into_iter().filter(|(_, bytes)| whole(bytes)).map(|(path, _)| path).collect::<Vec<PathBuf>>()
    };
    assert!(!holds("Zanzibar").is_empty(), "the test looks for what is there");
    let run = crate::command::command().arg("compact").arg(place.path()).output().expect("the command starts");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert_eq!(holds("Zanzibar"), Vec::<PathBuf>::new());
    assert!(!holds("Bridge").is_empty(), "what is live is still there");
}
