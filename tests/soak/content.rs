//! What a store holds at a stamp: a function of the stamp alone, so that a mixture of two stamps is seen.

use hedgerow::{DocumentView, Listing, Snapshot};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Every so many stamps a document comes that stays.
const STONE_EVERY: u64 = 5;
/// So many stamps it stays.
const STONE_STAYS: u64 = 40;
/// The document that closes all others, and says what the stamp is.
const SEAL: &str = "seal";

/// A word that stands in the pages and the seal of a stamp, and nowhere else.
pub fn word(stamp: u64) -> String {
    format!("stamp{stamp:07}")
}

/// Pages that a stamp has: all of them are written anew at every stamp.
pub fn pages(stamp: u64) -> u64 {
    3 + stamp * 7 % 6
}

/// Documents that came at an earlier stamp, and are still there.
pub fn stones(stamp: u64) -> impl Iterator<Item = u64> {
    (1..=stamp / STONE_EVERY).map(|stone| stone * STONE_EVERY).filter(move |stone| stamp < stone + STONE_STAYS)
}

/// Key and text of every document at a stamp. There is none at stamp 0.
pub fn content(stamp: u64) -> BTreeMap<String, String> {
    let mut documents = BTreeMap::new();
    if stamp == 0 {
        return documents;
    }
    for page in 0..pages(stamp) {
        let filler = "Bridges lead over rivers. ".repeat(usize::try_from((stamp + 3 * page) % 5).unwrap_or_default());
        let text = format!("Keeper owns Gate{stamp}. {filler}Page{page} is of {}.", word(stamp));
        documents.insert(format!("page {page}"), text);
    }
    for stone in stones(stamp) {
        documents.insert(format!("stone {stone}"), format!("Stone{stone} owns Moss{stone}, and stays for a while."));
    }
    let sum = sum(&documents);
    let seal = format!("Seal of {}: it closes {} documents, whose sum is {sum:016x}.", word(stamp), documents.len());
    documents.insert(SEAL.to_owned(), seal);
    documents
}

/// The title of the document with this key.
pub fn title(key: &str) -> String {
    format!("The {key}")
}

/// Relations at a stamp, as `subject predicate object weight [evidence]`.
pub fn relations(stamp: u64) -> Vec<String> {
    let pages: Vec<String> = (0..pages(stamp)).map(|page| format!("page {page}#0")).collect();
    let mut relations = vec![format!("Keeper owns Gate{stamp} {} {pages:?}", pages.len())];
    let stones = stones(stamp);
    relations.extend(stones.map(|stone| format!("Stone{stone} owns Moss{stone} 1 {:?}", [format!("stone {stone}#0")])));
    relations.sort();
    relations
}

/// The stamp that the seal of a snapshot names; 0 where nothing was committed.
pub fn stamp_of(snapshot: &Snapshot) -> Result<u64, String> {
    let seal = snapshot.find_document(SEAL).map_err(|error| error.to_string())?;
    let Some(seal) = seal.as_ref().map(DocumentView::text).transpose().map_err(|error| error.to_string())? else {
        return Ok(0);
    };
    let digits = seal.split("stamp").nth(1).and_then(|rest| rest.get(..7));
    digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| format!("the seal says {seal:?}"))
}

/// Key and text of every document of a snapshot.
pub fn texts(snapshot: &Snapshot) -> Result<BTreeMap<String, String>, String> {
    let listing = snapshot.list_documents(usize::MAX).map_err(|error| error.to_string())?;
    let Listing::Documents(lines) = listing else { return Err("documents are listed as something else".into()) };
    let mut texts = BTreeMap::new();
    for line in lines {
        let found = snapshot.find_document(&line.key).map_err(|error| error.to_string())?;
        let found = found.ok_or_else(|| format!("{} is listed and cannot be found", line.key))?;
        texts.insert(line.key, found.text().map_err(|error| error.to_string())?);
    }
    Ok(texts)
}

/// How what is there differs from what must be.
pub fn difference(stamp: u64, found: &BTreeMap<String, String>) -> Option<String> {
    let expected = content(stamp);
    let mut difference = String::new();
    for key in expected.keys().chain(found.keys().filter(|key| !expected.contains_key(*key))) {
        let (must, is) = (expected.get(key), found.get(key));
        if must != is {
            write!(difference, "{key} must be {must:?} and is {is:?}; ").ok()?;
        }
    }
    (!difference.is_empty()).then_some(difference)
}

/// FNV-1a over all keys and texts.
fn sum(documents: &BTreeMap<String, String>) -> u64 {
    let bytes = documents.iter().flat_map(|(key, text)| key.bytes().chain([0]).chain(text.bytes()).chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
