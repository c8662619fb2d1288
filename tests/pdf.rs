//! PDF files that the tests write: headings by outline and by letters, running heads, tables, pages of a chunk.

use crate::checks::pdf::{Line, object_of_page, of_contents, of_pages};
use crate::command::{Folder, told};
use hedgerow::PartKind;
use hedgerow_cli::read::document::{Format, Parsed};
use serde_json::json;

fn read(file: &[u8]) -> Parsed {
    Format::Pdf.read(file, "a", None).expect("it can be read")
}

/// The parts: page, heading, words.
fn parts(parsed: &Parsed) -> Vec<(u32, &str, &str)> {
    let part = |part: &'_ hedgerow::Part| (part.page.unwrap_or(0), part.range.clone());
    let found = parsed.parts.iter().map(|found| (part(found), found.heading.as_str()));
    found.map(|((page, range), heading)| (page, heading, &parsed.text[range])).collect()
}

/// An outline, flat or nested, as objects from `first` on: its root, then items of level, title and destination.
fn outline(first: usize, items: &[(usize, &str, String)]) -> Vec<Vec<u8>> {
    let object = |item: usize| first + 1 + item;
    let next = |item: usize| {
        let level = items[item].0;
        (item + 1..items.len()).take_while(|other| items[*other].0 >= level).find(|other| items[*other].0 == level)
    };
    let below = |item: usize| items.get(item + 1).filter(|other| other.0 > items[item].0).map(|_| item + 1);
    let mut objects = vec![format!("<</Type/Outlines/First {} 0 R>>", object(0)).into_bytes()];
    for (item, (_, title, place)) in items.iter().enumerate() {
        let link =
            |name: &str, to: Option<usize>| to.map(|to| format!("/{name} {} 0 R", object(to))).unwrap_or_default();
        let links = link("Next", next(item)) + &link("First", below(item));
        objects.push(format!("<</Title({title})/Dest {place}{links}>>").into_bytes());
    }
    objects
}

#[test]
fn headings_are_those_of_the_outline_by_level_and_place() {
    let first: &[Line<'_>] = &[
        (10, 72, 720, "Airport Handbook"),
        (10, 72, 690, "1 Gates"),
        (10, 72, 660, "Gates open at dawn."),
        (10, 72, 600, "1.1 Stands"),
        (10, 72, 570, "Stands are for aircraft."),
    ];
    let second: &[Line<'_>] = &[
        (10, 72, 720, "Stands are numbered."),
        (10, 72, 660, "At night nothing is open."),
        (10, 72, 600, "Index of words"),
    ];
    let page = |page: usize| object_of_page(page);
    let items = [
        (1, "Gates", format!("[{} 0 R/XYZ 72 702 0]", page(0))),
        (2, "Stands", format!("[{} 0 R/FitH 612]", page(0))),
        (2, "Of the night", format!("[{} 0 R/XYZ null 680 null]", page(1))),
        (1, "1 Index of words", format!("[{} 0 R/Fit]", page(1))),
    ];
    let file = of_pages(&[first, second], "/Outlines 8 0 R", &outline(8, &items));
    let parsed = read(&file);
    assert_eq!(
        parts(&parsed),
        [
            (1, "", "Airport Handbook"),
            (1, "1 Gates", "1 Gates\n\nGates open at dawn."),
            (1, "1 Gates > 1.1 Stands", "1.1 Stands\n\nStands are for aircraft."),
            (2, "1 Gates > 1.1 Stands", "Stands are numbered."),
            (2, "1 Gates > Of the night", "At night nothing is open."),
            (2, "1 Index of words", "Index of words"),
        ]
    );
}

#[test]
fn an_outline_in_circles_or_with_wrong_places_ends_and_a_named_place_is_found() {
    let page: &[Line<'_>] =
        &[(10, 72, 720, "Gates"), (10, 72, 690, "Open."), (10, 72, 660, "Night"), (10, 72, 630, "Shut.")];
    let objects = [
        "<</First 7 0 R>>",
        "<</Title(Gates)/Dest(a)/Next 8 0 R/First 7 0 R>>",
        "<</Title(Night)/A<</S/GoTo/D/b>>/Next 7 0 R/First 9 0 R>>",
        "<</Title(Nowhere)/Dest[99 0 R/Fit]/Next 8 0 R>>",
        "<</Kids[10 0 R 11 0 R]>>",
        "<</Names[(a)<</D[4 0 R/XYZ 0 735 0]>>(z) 5]>>",
        "<</b[0/XYZ 0 672 0]>>",
    ];
    let objects: Vec<Vec<u8>> = objects.iter().map(|object| object.as_bytes().to_vec()).collect();
    let catalog = "/Outlines 6 0 R/Names<</Dests 10 0 R>>/Dests 12 0 R";
    let parsed = read(&of_pages(&[page], catalog, &objects));
    assert_eq!(parts(&parsed), [(1, "Gates", "Gates\n\nOpen."), (1, "Night", "Night\n\nShut.")]);
}

#[test]
fn an_outline_whose_words_are_nowhere_gives_way_to_headings_in_larger_letters() {
    let text = "Words of the body of this document.";
    let page: &[Line<'_>] = &[
        (16, 72, 720, "Gates"),
        (10, 72, 690, text),
        (13, 72, 660, "Of stands"),
        (10, 72, 630, text),
        (16, 72, 600, "Night"),
        (10, 72, 570, text),
    ];
    let items = [(1, "Slide one", "[4 0 R/Fit]".to_owned()), (1, "Slide two", "[4 0 R/FitH 640]".to_owned())];
    let parsed = read(&of_pages(&[page], "/Outlines 6 0 R", &outline(6, &items)));
    let headings: Vec<&str> = parts(&parsed).iter().map(|part| part.1).collect();
    assert_eq!(headings, ["Gates", "Gates > Of stands", "Night"]);
    assert_eq!(parsed.title, "Gates");
}

#[test]
fn running_heads_and_page_numbers_are_left_out_and_what_a_page_says_by_itself_stays() {
    let numbers: Vec<String> = (1..=6).map(|page| format!("Page {page} of 6")).collect();
    let said =
        ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot"].map(|word| format!("The first word is {word}."));
    let chapters = ["Of gates", "Of gates", "Of gates", "Of stands", "Of stands", "Of stands"];
    let pages: Vec<Vec<Line<'_>>> = (0..6)
        .map(|page| {
            vec![
                (8, 72, 770, "Airport Handbook"),
                (8, 400, 770, chapters[page]),
                (10, 72, 710, said[page].as_str()),
                (10, 72, 400, "Total"),
                (8, 300, 30, numbers[page].as_str()),
            ]
        })
        .collect();
    let pages: Vec<&[Line<'_>]> = pages.iter().map(Vec::as_slice).collect();
    let parsed = read(&of_pages(&pages, "", &[]));
    for gone in ["Airport Handbook", "Page", "Of gates", "Of stands"] {
        assert!(!parsed.text.contains(gone), "{gone}: {}", parsed.text);
    }
    assert!(parsed.text.contains("Total"), "{}", parsed.text);
    assert!(said.iter().all(|words| parsed.text.contains(words)), "{}", parsed.text);
}

#[test]
fn a_sentence_that_goes_on_over_the_page_is_one_paragraph_on_two_pages() {
    let first: &[Line<'_>] = &[(10, 72, 720, "The gates of the south terminal are sche-")];
    let second: &[Line<'_>] = &[
        (10, 72, 720, "duled the day before and"),
        (10, 72, 400, "Another paragraph"),
        (10, 72, 388, "of two lines."),
    ];
    let third: &[Line<'_>] = &[(10, 72, 720, "changed at dawn.")];
    let parsed = read(&of_pages(&[first, second], "", &[]));
    assert_eq!(
        parsed.text,
        "The gates of the south terminal are scheduled the day before and\n\nAnother paragraph of two lines."
    );
    let pages: Vec<(u32, &str)> = parts(&parsed).iter().map(|part| (part.0, part.2)).collect();
    assert_eq!(pages[0], (1, "The gates of the south terminal are sche"));
    let parsed = read(&of_pages(&[first, &second[..1], third], "", &[]));
    assert_eq!(parsed.text, "The gates of the south terminal are scheduled the day before and changed at dawn.");
}

#[test]
fn rows_that_stand_in_columns_are_a_table_and_lists_side_by_side_are_none() {
    let row = |y: u32, cells: [&'static str; 4]| {
        [72, 200, 320, 440].into_iter().zip(cells).map(move |(x, cell)| (10, x, y, cell))
    };
    let mut page: Vec<Line<'_>> =
        vec![(10, 72, 740, "Movements of the summer are counted by gate, and told to the airlines.")];
    page.extend(row(700, ["Gate", "May", "June", "Airline"]));
    page.extend(row(686, ["A1", "10", "12", "Betula"]));
    page.extend(row(672, ["A2", "7", "9", "Salix"]).filter(|line| line.3 != "7"));
    page.extend([(10, 440, 660, "and others")]);
    page.extend(row(646, ["A3", "1", "0", "Corylus"]));
    page.push((10, 72, 600, "The counts of the winter are told in spring, to everyone who asks."));
    let parsed = read(&of_pages(&[&page], "", &[]));
    let table: Vec<&str> = parsed
        .parts
        .iter()
        .filter(|part| part.kind == PartKind::Table)
        .map(|part| &parsed.text[part.range.clone()])
        .collect();
    let rows = "Gate | May | June | Airline\nA1 | 10 | 12 | Betula\nA2 |  | 9 | Salix and others\nA3 | 1 | 0 | Corylus";
    assert_eq!(table, [rows]);
    assert!(parsed.text.starts_with("Movements of") && parsed.text.ends_with("who asks."), "{}", parsed.text);
    let mut lists: Vec<Line<'_>> = row(700, ["Goals", "Means", "Roles", "Risks"]).collect();
    for (y, words) in [(686, "some"), (672, "more"), (658, "most")] {
        lists.extend(row(y, [words; 4]));
    }
    assert!(read(&of_pages(&[&lists], "", &[])).parts.iter().all(|part| part.kind == PartKind::Text));
    // Lines across it make a table of it.
    let ruled = "ET 70 712 500 1 re f 70 696 m 570 696 l S 70 650 500 0.5 re f BT /F 10 Tf 72 600 Td (Below) Tj";
    let shown = |(size, x, y, text): &Line<'_>| format!("BT /F {size} Tf {x} {y} Td ({text}) Tj ET ");
    let content = format!("{} BT {ruled} ET", lists.iter().map(shown).collect::<String>());
    let file = of_contents(&[content.into_bytes()], "", &[], "");
    assert_eq!(read(&file).parts.iter().filter(|part| part.kind == PartKind::Table).count(), 1);
    let contents: Vec<Line<'_>> =
        (0..5).flat_map(|number| row(700 - 14 * number, ["1.1", "Gates ......", "of all", "12"])).collect();
    assert!(read(&of_pages(&[&contents], "", &[])).parts.iter().all(|part| part.kind == PartKind::Text));
}

#[test]
fn a_passage_over_the_border_of_pages_tells_both() {
    let folder = Folder::new();
    let first: &[Line<'_>] = &[(10, 72, 720, "The gates of the south terminal open at dawn.")];
    let second: &[Line<'_>] = &[(10, 72, 720, "Those of the north open later.")];
    folder.write("gates.pdf", of_pages(&[first, second], "", &[]));
    told(&["ingest", &folder.store(), &folder.path("gates.pdf")]);
    let passage = &told(&["ask", &folder.store(), "When do the gates open?"])["passages"][0];
    assert_eq!((&passage["page"], &passage["page_last"]), (&json!(1), &json!(2)), "{passage}");
}
