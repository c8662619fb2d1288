//! The outline of a PDF: its bookmarks, each with its level and the place that it leads to.

use std::collections::{BTreeMap, HashMap, HashSet};

use hayro_interpret::hayro_syntax::Pdf;
use hayro_interpret::hayro_syntax::object::dict::keys;
use hayro_interpret::hayro_syntax::object::{Array, Dict, MaybeRef, Name, Object, ObjectIdentifier, String as Bytes};
use hayro_interpret::kurbo::{Affine, Point};

use crate::read::composer::one_line;
use crate::read::pdf::text_string;

/// Bookmarks of a document at most; a manual of a thousand pages has some thousands.
const BOOKMARKS_MAX: usize = 1 << 16;

/// Bytes of all titles at most: many bookmarks may share one that is long.
const TITLE_BYTES_MAX: usize = 1 << 24;

/// Named places of a document at most.
const NAMES_MAX: usize = 1 << 18;

/// A bookmark.
#[derive(Clone, Debug, PartialEq)]
pub struct Bookmark {
    /// Its title.
    pub title: String,
    /// Its level, from 1.
    pub level: u8,
    /// The page that it leads to, from 0.
    pub page: usize,
    /// How far down the page; none where it leads to the page as a whole.
    pub y: Option<f64>,
}

/// The bookmarks that lead to a page and have words, in their order.
pub fn bookmarks(pdf: &Pdf) -> Vec<Bookmark> {
    let Some(catalog) = pdf.xref().get::<Dict<'_>>(pdf.xref().root_id()) else { return Vec::new() };
    let Some(first) = catalog.get::<Dict<'_>>(keys::OUTLINES).and_then(|outlines| outlines.get(keys::FIRST)) else {
        return Vec::new();
    };
    let places = Places::of(pdf, &catalog);
    let mut found = Vec::new();
    // Items that were seen: an outline may lead in circles.
    let mut seen: HashSet<ObjectIdentifier> = HashSet::new();
    let mut open: Vec<(Dict<'_>, u8)> = vec![(first, 1)];
    let (mut count, mut bytes) = (0, 0);
    while let Some((item, level)) = open.pop() {
        count += 1;
        if count > BOOKMARKS_MAX || bytes > TITLE_BYTES_MAX || item.obj_id().is_some_and(|id| !seen.insert(id)) {
            continue;
        }
        open.extend(item.get(keys::NEXT).map(|next| (next, level)));
        open.extend(item.get(keys::FIRST).map(|below| (below, level.saturating_add(1))));
        let title = item.get::<Bytes<'_>>(keys::TITLE);
        bytes += title.as_ref().map_or(0, |title| title.as_bytes().len());
        let title = title.map(|title| one_line(&text_string(title.as_bytes())));
        if let (Some(title), Some((page, y))) = (title.filter(|title| is_told(title)), places.of_item(&item)) {
            found.push(Bookmark { title, level, page, y });
        }
    }
    found
}

/// Whether a title is words, and no mark that a program made.
fn is_told(title: &str) -> bool {
    title.chars().any(char::is_alphabetic) && !title.starts_with("_Toc") && !title.starts_with("_Ref")
}

/// Pages by their objects, and places by their names.
struct Places<'p> {
    pdf: &'p Pdf,
    pages: HashMap<ObjectIdentifier, usize>,
    names: BTreeMap<Vec<u8>, Object<'p>>,
}

impl<'p> Places<'p> {
    fn of(pdf: &'p Pdf, catalog: &Dict<'p>) -> Places<'p> {
        let pages = pdf.pages().iter().enumerate();
        let pages = pages.filter_map(|(number, page)| Some((page.raw().obj_id()?, number))).collect();
        let mut names = BTreeMap::new();
        if let Some(old) = catalog.get::<Dict<'_>>(keys::DESTS) {
            let named = old.keys().take(NAMES_MAX).filter_map(|name| Some((name.to_vec(), old.get(&*name)?)));
            names.extend(named.collect::<Vec<_>>());
        }
        if let Some(tree) = catalog.get::<Dict<'_>>(keys::NAMES).and_then(|names| names.get::<Dict<'_>>(keys::DESTS)) {
            read_names(pdf, tree, &mut names);
        }
        Places { pdf, pages, names }
    }

    fn of_item(&self, item: &Dict<'p>) -> Option<(usize, Option<f64>)> {
        let place = item.get::<Object<'_>>(keys::DEST).or_else(|| {
            let action: Dict<'_> = item.get(keys::A)?;
            action.get::<Name<'_>>(keys::S).filter(|kind| kind.as_str() == "GoTo")?;
            action.get(keys::D)
        });
        let named = |name: &[u8]| self.names.get(name).cloned();
        let place = match place? {
            Object::Name(name) => named(&name)?,
            Object::String(name) => named(name.as_bytes())?,
            place => place,
        };
        let place = match place {
            Object::Dict(place) => place.get::<Object<'_>>(keys::D)?,
            place => place,
        };
        self.of_array(&place.into_array()?)
    }

    /// `[page /XYZ left top zoom]` and the like.
    fn of_array(&self, place: &Array<'p>) -> Option<(usize, Option<f64>)> {
        let mut values = place.raw_iter();
        let page = match values.next()? {
            MaybeRef::Ref(page) => *self.pages.get(&page.into())?,
            MaybeRef::NotRef(page) => usize::try_from(page.into_number()?.as_i64()).ok()?,
        };
        let found = self.pdf.pages().get(page)?;
        let Some(MaybeRef::NotRef(Object::Name(kind))) = values.next() else { return Some((page, None)) };
        let mut number = || match values.next() {
            Some(MaybeRef::NotRef(Object::Number(number))) => Some(number.as_f64()),
            _ => None,
        };
        let (left, top) = match kind.as_str() {
            "XYZ" => (number(), number()),
            "FitH" | "FitBH" => (None, number()),
            _ => (None, None),
        };
        let transform = Affine::new(found.initial_transform(true).as_coeffs());
        let y = top.map(|top| (transform * Point::new(left.unwrap_or(0.0), top)).y);
        Some((page, y.filter(|y| y.is_finite())))
    }
}

/// The names of a tree and what they stand for, whatever its shape.
fn read_names<'p>(pdf: &'p Pdf, tree: Dict<'p>, names: &mut BTreeMap<Vec<u8>, Object<'p>>) {
    let mut seen: HashSet<ObjectIdentifier> = HashSet::new();
    let mut open = vec![tree];
    let mut count = 0;
    while let Some(node) = open.pop() {
        count += 1;
        if count > NAMES_MAX || node.obj_id().is_some_and(|id| !seen.insert(id)) {
            continue;
        }
        if let Some(below) = node.get::<Array<'_>>(keys::KIDS) {
            let node = |node: MaybeRef<Object<'p>>| match node {
                MaybeRef::Ref(node) => pdf.xref().get::<Dict<'_>>(node.into()),
                MaybeRef::NotRef(node) => node.into_dict(),
            };
            open.extend(below.raw_iter().take(NAMES_MAX.saturating_sub(open.len())).filter_map(node));
        }
        let Some(pairs) = node.get::<Array<'_>>(keys::NAMES) else { continue };
        let mut values = pairs.flex_iter();
        while let Some(name) = values.next::<Bytes<'_>>() {
            let Some(place) = values.next::<Object<'_>>() else { break };
            if names.len() < NAMES_MAX {
                names.insert(name.as_bytes().to_vec(), place);
            }
        }
    }
}
