//! Whatever happens to a store's files, it answers as before, says what is missing, or says what is wrong; it never panics.

use crate::stores::{MODELS, Place, change, document, files, put, texts};
use hedgerow::{
    CommunityRules, Context, EdgeKind, EdgeRules, Env, ExpandOptions, Expansion, Extractive, OpenError, Question,
    Quiet, Snapshot, Store, Strategy, verify,
};
use hedgerow_format::checksum::crc32c;
use std::fs;
use std::path::{Path, PathBuf};

/// A store with two segments, a tombstone, links and edges; and what it answers.
pub fn sound() -> (Place, Answers) {
    let place = Place::new();
    fill(&place, "Bridge");
    let answers = answers(&place.path()).expect("a sound store answers");
    assert!(!answers.is_incomplete());
    assert_eq!(problems(&place.path()), Vec::<String>::new());
    (place, answers)
}

fn fill(place: &Place, thing: &str) {
    let store = place.open();
    let text = |row: usize| format!("Alice{row} owns {thing}. The old {thing} of Dover is number {row}.");
    let first: Vec<(String, String)> = (0..12).map(|row| (format!("d{row}"), text(row))).collect();
    let first: Vec<(&str, &str)> = first.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect();
    put(&store, &first);
    change(&store, vec![document("new", &format!("Carol met Alice3 on the {thing}."))], &["d1"]);
    store.build_edges("letters", &EdgeRules::new(50_000, 4), &Quiet).expect("edges can be built");
    let rules = CommunityRules { members_max: 4, ..CommunityRules::default() };
    store.build_communities(&rules, &Extractive, None, &Quiet).expect("communities can be found");
    drop(store);
    // Opening sweeps the files that no generation names any more.
    drop(place.open());
}

#[derive(Debug, PartialEq)]
pub struct Answers {
    asked: Vec<Context>,
    expanded: [Expansion; 2],
    pub texts: Vec<(String, String)>,
}

impl Answers {
    pub fn is_incomplete(&self) -> bool {
        self.asked.iter().any(|context| !context.incomplete.is_empty())
    }
}

fn answers(path: &Path) -> Result<Answers, String> {
    answers_of(&Snapshot::open(path).map_err(|error| error.to_string())?)
}

pub fn answers_of(snapshot: &Snapshot) -> Result<Answers, String> {
    let mut asked = Vec::new();
    for question in ["Who owns the old Bridge?", "Carol and Alice3"] {
        for strategy in Strategy::ALL {
            let question = Question { strategy, ..Question::new(question) };
            asked.push(snapshot.ask(&question, MODELS).map_err(|error| error.to_string())?);
        }
    }
    let expand = |from: &str, options: ExpandOptions| {
        let from = snapshot.find(from).map_err(|error| error.to_string())?;
        snapshot.expand(&[from], &options).map_err(|error| error.to_string())
    };
    let similar = ExpandOptions { edges: vec![EdgeKind::Similar], ..ExpandOptions::default() };
    let expanded = [
        expand("entity:Alice3", ExpandOptions { hops: 2, ..ExpandOptions::default() })?,
        expand("chunk:d3#0", similar)?,
    ];
    let mut texts = Vec::new();
    for id in snapshot.document_ids() {
        let document = snapshot.document(id).map_err(|error| error.to_string())?;
        let key = document.key().map_err(|error| error.to_string())?.to_owned();
        texts.push((key, document.text().map_err(|error| error.to_string())?));
    }
    Ok(Answers { asked, expanded, texts })
}

/// What `verify` finds, or why it could not look.
fn problems(path: &Path) -> Vec<String> {
    let env = Env::folder(path).expect("it is a folder");
    verify(&env, &Quiet).map_or_else(|error| vec![error.to_string()], |verified| verified.problems)
}

/// The store's files but the catalog and the lock.
fn published(store: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let all = files(store).into_iter();
    all.filter(|(name, _)| name != Path::new("catalog.redb") && name != Path::new("LOCK")).collect()
}

/// The only file in a folder of the store with this ending that the published generation names.
fn named(store: &Path, ending: &str) -> Vec<PathBuf> {
    let names = published(store).into_iter().map(|(name, _)| store.join(name));
    names.filter(|name| name.to_string_lossy().ends_with(ending)).collect()
}

/// With this file's bytes changed: an error or the same answer, or one that says that it is incomplete; `verify` sees it.
#[track_caller]
fn check_changed(place: &Place, name: &Path, bytes: &[u8], answers_before: &Answers, what: &str) {
    let path = place.path().join(name);
    let kept = fs::read(&path).expect("the file is there");
    fs::write(&path, bytes).expect("the file can be written");
    let (found, problems) = (answers(&place.path()), problems(&place.path()));
    fs::write(&path, kept).expect("the file can be written");
    assert!(!problems.is_empty(), "verify does not see {what} of {}", name.display());
    let honest = match &found {
        Err(reason) => !reason.is_empty(),
        Ok(found) => found == answers_before || (found.is_incomplete() && found.texts == answers_before.texts),
    };
    assert!(honest, "another answer after {what} of {}: {found:#?}", name.display());
}

#[test]
fn a_newer_format_and_another_magic_are_refused_in_words() {
    let (place, before) = sound();
    for (name, bytes) in published(&place.path()) {
        let is_head = name == Path::new("HEAD");
        let mut newer = bytes.clone();
        newer[8..10].copy_from_slice(&3_u16.to_le_bytes());
        if is_head {
            newer[12..16].fill(0);
        }
        let (place_of_sum, sum) = if is_head { (12, crc32c(&newer)) } else { (252, crc32c(&newer[..252])) };
        newer[place_of_sum..place_of_sum + 4].copy_from_slice(&sum.to_le_bytes());
        check_changed(&place, &name, &newer, &before, "a newer format");
        let mut foreign = bytes.clone();
        foreign[..8].copy_from_slice(b"SQLite f");
        check_changed(&place, &name, &foreign, &before, "another magic");
        let path = place.path().join(&name);
        for (changed, said) in [(newer, "format 3"), (foreign, "not a Hedgerow")] {
            fs::write(&path, changed).expect("the file can be written");
            let found = problems(&place.path());
            assert!(found.iter().any(|problem| problem.contains(said)), "{}: {found:?}", name.display());
            if !name.starts_with("projections") {
                let error = Snapshot::open(place.path()).expect_err("it must not open");
                assert!(error.to_string().contains(said), "{}: {error}", name.display());
            }
        }
        fs::write(&path, bytes).expect("the file can be written");
    }
}

#[test]
fn a_missing_segment_or_manifest_is_an_error_that_names_it() {
    for ending in [".seg", ".man"] {
        let (place, _) = sound();
        let gone = named(&place.path(), ending).remove(0);
        fs::remove_file(&gone).expect("the file is there");
        let name = gone.file_name().expect("it has a name").to_string_lossy().into_owned();
        for error in [Snapshot::open(place.path()).err(), Store::open(place.path()).err()] {
            let error = error.expect("it must not open").to_string();
            assert!(error.contains(&name), "{error}");
        }
        assert!(problems(&place.path()).iter().any(|problem| problem.contains(&name)));
    }
}

#[test]
fn a_missing_or_empty_catalog_is_never_replaced_by_a_new_one() {
    let (place, before) = sound();
    let catalog = place.path().join("catalog.redb");
    let kept = fs::read(&catalog).expect("the file is there");
    fs::remove_file(&catalog).expect("the file is there");
    for opened in [Store::open(place.path()), Store::open_or_create(place.path())] {
        assert!(matches!(opened, Err(OpenError::MissingCatalog { .. })), "{opened:?}");
    }
    assert!(!catalog.exists() && !problems(&place.path()).is_empty());
    assert_eq!(answers(&place.path()).as_ref(), Ok(&before));
    for bytes in [&[][..], b"redb?", &kept[..kept.len() / 2], &vec![0; kept.len()]] {
        fs::write(&catalog, bytes).expect("the file can be written");
        for opened in [Store::open(place.path()), Store::open_or_create(place.path())] {
            assert!(matches!(opened, Err(OpenError::CatalogDamaged { .. })), "{} bytes: {opened:?}", bytes.len());
        }
        assert!(!problems(&place.path()).is_empty());
        assert_eq!(answers(&place.path()).as_ref(), Ok(&before));
    }
    fs::write(&catalog, kept).expect("the file can be written");
    assert_eq!(Store::open(place.path()).map(|store| texts(&store.snapshot()).len()).ok(), Some(12));
}

#[test]
fn a_head_that_is_missing_torn_or_stale_is_published_again_by_the_writer() {
    let (place, before) = sound();
    let head = place.path().join("HEAD");
    let current = fs::read(&head).expect("the file is there");
    let older = Place::new();
    fill(&older, "Tunnel");
    let foreign = fs::read(older.path().join("HEAD")).expect("the file is there");
    for bytes in [None, Some(&[][..]), Some(&current[..40]), Some(&[0; 96]), Some(&foreign)] {
        match bytes {
            None => fs::remove_file(&head).expect("the file is there"),
            Some(bytes) => fs::write(&head, bytes).expect("the file can be written"),
        }
        assert!(answers(&place.path()).is_err() && !problems(&place.path()).is_empty());
        drop(Store::open(place.path()).expect("the writer knows better"));
        assert_eq!(answers(&place.path()).as_ref(), Ok(&before));
        assert_eq!(problems(&place.path()), Vec::<String>::new());
    }
    // A crash between the commit and the publishing leaves the head of the generation before.
    let store = place.open();
    change(&store, vec![document("later", "Dover.")], &[]);
    drop(store);
    fs::write(&head, &current).expect("the file can be written");
    drop(place.open());
    assert_eq!(texts(&place.read()).get("later").map(String::as_str), Some("Dover."));
}

#[test]
fn a_catalog_that_lost_its_last_commits_is_led_by_the_head_and_writes_on() {
    let place = Place::new();
    let store = place.open();
    put(&store, &[("a", "Alice owns Bridge.")]);
    let catalog = place.path().join("catalog.redb");
    drop(store);
    let old = fs::read(&catalog).expect("the catalog is there");
    put(&place.open(), &[("b", "Ely owns Dover.")]);
    fs::write(&catalog, old).expect("the catalog can be written");
    for (key, text) in [("c", "Carol met Alice in Ely."), ("d", "The old Bridge of Dover.")] {
        let store = place.open();
        put(&store, &[(key, text)]);
        store.refresh(&Quiet).expect("the store can be brought in step");
    }
    assert_eq!(texts(&place.read()).keys().collect::<Vec<_>>(), ["a", "b", "c", "d"]);
    assert_eq!(problems(&place.path()), Vec::<String>::new());
}

#[test]
fn leftovers_of_a_crash_are_swept_and_do_no_harm() {
    let (place, before) = sound();
    let leftovers = [
        "segments/00000000000000ff-00000000000000aa.seg",
        "manifests/00000000000000ff-00000000000000ab.man",
        "projections/00000000000000ff-00000000000000ac.edges.prj",
        "HEAD-00000000000000ad.new",
        "catalog-00000000000000ae.new",
    ];
    for name in leftovers {
        fs::write(place.path().join(name), b"half a file").expect("the file can be written");
    }
    fs::write(place.path().join("segments/notes.txt"), b"not ours").expect("the file can be written");
    assert_eq!(answers(&place.path()).as_ref(), Ok(&before));
    drop(place.open());
    for name in leftovers {
        assert!(!place.path().join(name).exists(), "{name} was not swept");
    }
    assert!(place.path().join("segments/notes.txt").exists(), "a file that is not ours was removed");
    assert_eq!(answers(&place.path()), Ok(before));
}

#[test]
fn a_path_that_is_no_store_is_left_alone_and_said_to_be_none() {
    let place = Place::new();
    let nothing = place.path();
    assert!(matches!(Store::open(&nothing), Err(OpenError::NotFound { .. })));
    assert!(matches!(Snapshot::open(&nothing), Err(OpenError::NotFound { .. })));
    assert!(!nothing.exists(), "looking for a store made one");
    fs::write(&nothing, b"a file").expect("the file can be written");
    for error in [Store::open(&nothing).err(), Store::open_or_create(&nothing).err(), Snapshot::open(&nothing).err()] {
        assert!(matches!(error, Some(OpenError::NotAStore { .. })), "{error:?}");
    }
    fs::remove_file(&nothing).expect("the file is there");
    fs::create_dir(&nothing).expect("a folder can be made");
    fs::write(nothing.join("notes.txt"), b"mine").expect("the file can be written");
    let refused = Store::open_or_create(&nothing);
    assert!(matches!(refused, Err(OpenError::NotAStore { .. })), "{refused:?}");
    assert!(matches!(Store::open(&nothing), Err(OpenError::NotFound { .. } | OpenError::NotAStore { .. })));
    assert!(matches!(Snapshot::open(&nothing), Err(OpenError::NotFound { .. } | OpenError::NotAStore { .. })));
    assert_eq!(files(&nothing).len(), 1, "a folder that is no store was changed");
    fs::remove_file(nothing.join("notes.txt")).expect("the file is there");
    drop(Store::open_or_create(&nothing).expect("an empty folder becomes a store"));
}

#[test]
fn without_a_projection_answers_are_incomplete_until_refresh_makes_it_anew() {
    let mut broken = Vec::new();
    for ending in [".links.prj", ".edges.prj"] {
        for change in ["missing", "header", "body"] {
            let found = check_repair(ending, change).into_iter();
            broken.extend(found.map(|what| format!("{change} {ending}: {what}")));
        }
    }
    assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
}

/// With one projection spoiled: flat answers as before, others say that they are incomplete, and `refresh` repairs it.
fn check_repair(ending: &str, change: &str) -> Vec<String> {
    let (place, before) = sound();
    let file = named(&place.path(), ending).remove(0);
    let mut bytes = fs::read(&file).expect("the file is there");
    if change == "missing" {
        fs::remove_file(&file).expect("the file is there");
    } else {
        bytes[if change == "header" { 20 } else { 300 }] ^= 1;
        fs::write(&file, &bytes).expect("the file can be written");
    }
    let mut broken = Vec::new();
    let mut require = |holds: bool, what: &str| broken.extend((!holds).then(|| what.to_owned()));
    require(!problems(&place.path()).is_empty(), "verify does not see it");
    let flat = Question { strategy: Strategy::Flat, ..Question::new("Who owns the old Bridge?") };
    require(place.read().ask(&flat, MODELS).ok().as_ref() == before.asked.first(), "a flat answer is not what it was");
    match answers(&place.path()) {
        Ok(found) => require(found.is_incomplete(), "the answer does not say that it is incomplete"),
        Err(error) => require(false, &format!("the answer is an error and not an incomplete one: {error}")),
    }
    let store = place.open();
    require(store.refresh(&Quiet).is_ok(), "refresh gives up");
    drop(store);
    match answers(&place.path()) {
        Ok(found) => {
            require(found.expanded == before.expanded, "after refresh, expansion is not what it was");
            require(!found.is_incomplete(), "after refresh, answers are incomplete");
        }
        Err(error) => require(false, &format!("refresh does not repair it: {error}")),
    }
    require(problems(&place.path()).is_empty(), "after refresh, verify finds problems");
    broken
}
