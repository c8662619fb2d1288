//! Reports of communities that a model wrote are saved where nothing is lost that they are made of, word for word.

use crate::salvage::{Saved, salvaged, segments};
use crate::stores::{Place, change, document};
use hedgerow::{
    CommunityContent, CommunityRules, Embed, FormerCommunities, Listing, ModelError, Quiet, Snapshot, Summarize,
    Summary,
};
use hedgerow_format::checksum::BLOCK_BYTES;
use hedgerow_format::file::{FileKind, Layout};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// Writes long reports, so that they lie in several blocks.
struct Writer;

impl Summarize for Writer {
    fn model(&self) -> &'static str {
        "writer-1"
    }

    fn summarize(&self, community: &CommunityContent) -> Result<Summary, ModelError> {
        let names: Vec<&str> = community.entities.iter().map(|entity| entity.name.as_str()).collect();
        Ok(Summary { title: names.join(", "), text: names.join(" and ").repeat(200) })
    }
}

/// Vectors of so many components that they lie in blocks of their own.
struct Wide;

impl Embed for Wide {
    fn space(&self) -> &'static str {
        "wide"
    }

    fn model(&self) -> &'static str {
        "wide-1"
    }

    fn dimensions(&self) -> usize {
        1500
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, ModelError> {
        let component = |text: &&str, place: usize| f32::from(text.as_bytes()[place % text.len()]);
        let vector = |text| (0..self.dimensions()).map(|place| component(text, place)).collect();
        Ok(texts.iter().map(|text| Some(vector(text))).collect())
    }
}

/// Thirty circles of three who meet.
fn grouped() -> Place {
    let place = Place::new();
    let store = place.open_unmerged();
    for part in 0..3 {
        let mut documents = Vec::new();
        for circle in part * 10..part * 10 + 10 {
            for (one, other) in [("Alice", "Bertha"), ("Bertha", "Carol"), ("Carol", "Alice")] {
                let text = format!("{one}{circle} met {other}{circle} there. {}", "They spoke of this. ".repeat(90));
                documents.push(document(&format!("{one} {circle}"), &text));
            }
        }
        change(&store, documents, &[]);
    }
    let built = store.build_communities(&CommunityRules::default(), &Writer, Some(&Wide), &Quiet);
    assert!(built.expect("communities can be found").by_models >= 30);
    drop(store);
    // Opening sweeps what no generation names any more.
    drop(place.open_unmerged());
    place
}

/// The text of every report by its title, and whether a model wrote it.
fn reports(snapshot: &Snapshot) -> BTreeMap<String, (String, bool)> {
    let Listing::Communities(lines) = snapshot.list_communities(None, usize::MAX).expect("they can be listed") else {
        panic!("communities are listed as communities");
    };
    let text = |id: &str| {
        let node = snapshot.find(&format!("community:{id}")).expect("it is there");
        match snapshot.describe(node, 50).expect("it can be described") {
            hedgerow::Description::Community(community) => community.text,
            other => panic!("a community is described as {other:?}"),
        }
    };
    lines.iter().map(|line| (line.title.clone(), (text(&line.id), line.model == "writer-1"))).collect()
}

fn by_models(saved: &Saved, before: &BTreeMap<String, (String, bool)>, what: &str) -> usize {
    let after = reports(&saved.place.read());
    let kept: Vec<_> = after.iter().filter(|(_, (_, by_model))| *by_model).collect();
    for (title, report) in &kept {
        assert!(before.get(*title) == Some(report), "{what}: the report of {title} is another");
    }
    kept.len()
}

fn file(place: &Place) -> PathBuf {
    let folder = fs::read_dir(place.path().join("projections")).expect("there is the folder");
    let mut files = folder.map(|entry| entry.expect("it is read").path());
    files.find(|path| path.to_string_lossy().ends_with(".communities.prj")).expect("there is one")
}

#[test]
fn all_reports_by_a_model_are_saved_of_a_store_whose_facts_and_communities_are_sound() {
    let place = grouped();
    let before = reports(&place.read());
    let bytes = fs::read(file(&place)).expect("the file is there");
    let saved = salvaged(&place.path(), "a sound store");
    assert_eq!(saved.found.lost, []);
    assert_eq!(reports(&saved.place.read()), before);
    // Vectors too: the file is the same behind its header, which names it.
    let again = fs::read(file(&saved.place)).expect("the file is there");
    assert!(bytes[256..] == again[256..], "the bytes differ");
    fs::remove_file(place.path().join("HEAD")).expect("the file is there");
    fs::remove_file(place.path().join("catalog.redb")).expect("the file is there");
    fs::remove_dir_all(place.path().join("manifests")).expect("the folder is there");
    let saved = salvaged(&place.path(), "no manifest");
    assert_eq!(reports(&saved.place.read()), before);
}

#[test]
fn a_damaged_block_of_communities_loses_only_reports_that_lie_in_it_and_that_is_told() {
    let place = grouped();
    let before = reports(&place.read());
    let path = file(&place);
    let bytes = fs::read(&path).expect("the file is there");
    let block_bytes = usize::try_from(BLOCK_BYTES).expect("it fits");
    let count = Layout::parse(FileKind::Communities, &bytes).expect("it is sound").block_count();
    let (mut partly, mut without_vector) = (0, 0);
    for block in 0..count {
        let mut changed = bytes.clone();
        let range = (block * block_bytes).max(256)..((block + 1) * block_bytes).min(bytes.len());
        changed[range].iter_mut().step_by(97).for_each(|byte| *byte = byte.wrapping_add(1));
        fs::write(&path, &changed).expect("the file can be written");
        let what = format!("block {block}");
        let saved = salvaged(&place.path(), &what);
        let kept = by_models(&saved, &before, &what);
        let told = saved.found.lost.iter().filter(|lost| lost.what == "reports");
        assert!(told.count() > 0, "{what}: nothing says that something is lost");
        partly += usize::from(0 < kept && kept < before.len());
        let vectors = saved.found.lost.iter().any(|lost| lost.reason.contains("vectors"));
        without_vector += usize::from(vectors && kept == before.len());
        let readable = saved.found.communities.as_ref().map_or(0, FormerCommunities::by_models);
        assert_eq!(kept as u64, readable, "{what}: what was read is not kept");
    }
    assert!(partly > 0 && without_vector > 0, "of {count} blocks {partly} had reports, {without_vector} vectors");
    for gone in [true, false] {
        if gone {
            fs::remove_file(&path).expect("the file is there");
        } else {
            fs::write(&path, &bytes[..bytes.len() / 2]).expect("the file can be written");
        }
        let saved = salvaged(&place.path(), "a file that is gone or cut");
        assert_eq!(by_models(&saved, &before, "a file that is gone or cut"), 0);
        assert!(saved.found.lost.iter().any(|lost| lost.what == "reports"), "{:?}", saved.found.lost);
        assert_eq!(reports(&saved.place.read()).len(), before.len());
    }
}

#[test]
fn reports_about_documents_that_are_lost_go_and_the_others_stay() {
    let place = grouped();
    let before = reports(&place.read());
    let path = place.path().join(segments(&place.path()).remove(0));
    fs::write(&path, b"").expect("the file can be written");
    let saved = salvaged(&place.path(), "an empty segment");
    assert_eq!(by_models(&saved, &before, "an empty segment"), before.len() * 2 / 3);
    let former = saved.found.communities.expect("there were communities");
    assert_eq!(former.by_models(), before.len() as u64);
}
