//! Documents of every format that `ingest` reads, as a process: what they become, and what harm a hostile one does not do.

use crate::checks::documents::archive;
use crate::checks::pdf::of_pages;
use crate::command::{Folder, command, told};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// Files of real programs.
fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/documents")
}

/// Ingests a path and returns what `--json` says, with the exit code.
fn ingest(store: &str, path: &str, more: &[&str]) -> (Value, i32) {
    let output = command().args(["ingest", store, path, "--json"]).args(more).output().expect("the command starts");
    let out = String::from_utf8(output.stdout).expect("it is text");
    let last = out.lines().next_back().unwrap_or_default();
    let error = String::from_utf8_lossy(&output.stderr);
    let told = serde_json::from_str(last).unwrap_or_else(|_| panic!("{out}{error}"));
    (told, output.status.code().expect("it was not killed"))
}

/// The reason why a file of this name was rejected.
#[track_caller]
fn reason<'t>(told: &'t Value, name: &str) -> &'t str {
    let rejected = told["rejected"].as_array().expect("it is a list");
    let found = rejected.iter().find(|record| record["file"].as_str().is_some_and(|file| file.ends_with(name)));
    found.and_then(|record| record["reason"].as_str()).unwrap_or_else(|| panic!("{name} was not rejected: {told}"))
}

/// The chunks of a document: heading, page, text.
fn chunks(store: &str, key: &str) -> Vec<(String, Value, String)> {
    let document = told(&["show", store, key]);
    let keys = document["chunks"].as_array().expect("it is a list").iter();
    let chunk = |key: &Value| {
        let chunk = told(&["show", store, key.as_str().expect("it is text")]);
        let text = |field: &str| chunk[field].as_str().expect("it is text").to_owned();
        (text("heading"), chunk["metadata"]["page"].clone(), text("text"))
    };
    keys.map(chunk).collect()
}

/// A document of these paragraphs: style and text.
fn docx(paragraphs: &[(&str, &str)]) -> Vec<u8> {
    let body: Vec<String> = paragraphs
        .iter()
        .map(|(style, text)| {
            let style = format!("<w:pPr><w:pStyle w:val=\"{style}\"/></w:pPr>");
            format!("<w:p>{style}<w:r><w:t>{text}</w:t></w:r></w:p>")
        })
        .collect();
    let document = format!("<w:document xmlns:w=\"w\"><w:body>{}</w:body></w:document>", body.concat());
    let styles = "<w:styles xmlns:w=\"w\"><w:style w:styleId=\"H1\"><w:name w:val=\"heading 1\"/></w:style>\
         <w:style w:styleId=\"H2\"><w:name w:val=\"heading 2\"/></w:style><w:style w:styleId=\"T\"><w:name w:val=\"Title\"/></w:style></w:styles>";
    archive(&[("word/document.xml", document.as_bytes()), ("word/styles.xml", styles.as_bytes())])
}

/// Two columns under a title, whose lines stand side by side.
fn columns() -> Vec<u8> {
    const WORDS: [&str; 6] = ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot"];
    let line =
        |side: &str, row: usize| format!("{side}{row} {} {} in this column", WORDS[row % 6], WORDS[(row + 1) % 6]);
    let rows: Vec<(String, String)> = (0..12).map(|row| (line("left", row), line("right", row))).collect();
    let mut lines = vec![(24, 72, 720, "The Gate Scheduler")];
    for (y, (left, right)) in (0..).map(|row| 660 - 14 * row).zip(&rows) {
        lines.push((10, 72, y, left.as_str()));
        lines.push((10, 320, y, right.as_str()));
    }
    let told: Vec<String> =
        (0..40).map(|row| format!("Rule {row}: stands go to flights in the order of arrival.")).collect();
    let mut second = vec![(16, 72, 760, "Second part")];
    second.extend((0..).map(|row| 730 - 14 * row).zip(&told).map(|(y, line)| (10, 72, y, line.as_str())));
    of_pages(&[&lines, &second], "", &[])
}

#[test]
fn files_of_real_programs_are_read_or_refused_with_their_reason() {
    let folder = Folder::new();
    let (store, samples) = (folder.store(), samples());
    let (told, code) = ingest(&store, samples.to_str().expect("it is text"), &["--password", "foo"]);
    assert_eq!((&told["added"], &told["rejected_count"], code), (&json!(13), &json!(1), 1), "{told}");
    assert!(reason(&told, "scanned.pdf").contains("no text layer on its 1 pages"));
    let texts = |name: &str| chunks(&store, &format!("documents/{name}"));
    let has = |name: &str, words: &str| texts(name).iter().any(|(_, _, text)| text.contains(words));
    // Its user's password is another one: this is the owner's.
    for name in ["aes-256.pdf", "aes-128.pdf", "rc4-128.pdf", "rc4-40.pdf"] {
        assert!(has(name, "Secret!"), "{name}");
    }
    assert!(has("corrupted.pdf", "Beautiful is better than ugly."));
    assert!(has("tables.docx", "Header Col 1 | Header Col 2\nLorem ipsum | A link example"));
    assert!(has("table.rtf", "Column 1 | Column 2\nRow 1, Cell 1 | Row 1, Cell 2"));
    assert!(has("two-languages.epub", "All human beings are born free and equal"));
    assert!(texts("simple.odt").iter().any(|(heading, _, text)| heading == "Analysis" || text.contains("Analysis")));
    let pages: Vec<Value> = texts("slides.pptx").into_iter().map(|(_, page, _)| page).collect();
    assert_eq!(pages.first(), Some(&json!(1)));
    let message = crate::command::told(&["show", &store, "documents/message.eml"]);
    assert_eq!(message["title"], "Test Email");
    assert_eq!(message["metadata"]["from"], "Matthew Robinson <mrobinson@unstructured.io>");
    let (told, _) = ingest(&store, samples.to_str().expect("it is text"), &["--password", "foo"]);
    assert_eq!((&told["unchanged"], &told["added"], &told["replaced"]), (&json!(13), &json!(0), &json!(0)), "{told}");
}

#[test]
fn a_passage_tells_heading_and_page() {
    let folder = Folder::new();
    let intro = "Gates are planned by the day before. ".repeat(40);
    folder.write(
        "in/plan.docx",
        docx(&[
            ("T", "Plan"),
            ("H1", "Gates"),
            ("", &intro),
            ("H2", "Conflicts"),
            ("", "The stand conflict desk is called Ardlin."),
        ]),
    );
    folder.write("in/scheduler.pdf", columns());
    let (told, code) = ingest(&folder.store(), &folder.path("in"), &[]);
    assert_eq!((&told["added"], code), (&json!(2), 0), "{told}");
    let ask =
        |question: &str| crate::command::told(&["ask", &folder.store(), question, "-k", "1", "--neighbours", "0"]);
    let passage = &ask("In which order do stands go to flights by rule 30?")["passages"][0];
    assert_eq!((&passage["document"], &passage["page"]), (&json!("in/scheduler.pdf"), &json!(2)), "{passage}");
    let plan = chunks(&folder.store(), "in/plan.docx");
    assert!(plan.iter().any(|(heading, _, _)| heading == "Gates"), "{plan:?}");
    let passage = &ask("Gates are planned by the day")["passages"][0];
    assert_eq!((&passage["title"], &passage["heading"]), (&json!("Plan"), &json!("Gates")), "{passage}");
    let output = command()
        .args(["ask", &folder.store(), "In which order do stands go to flights by rule 30?", "-k", "1"])
        .output();
    let out = String::from_utf8(output.expect("the command starts").stdout).expect("it is text");
    assert!(out.contains("page 2"), "{out}");
}

#[test]
fn columns_of_a_page_are_read_one_after_the_other() {
    let folder = Folder::new();
    folder.write("scheduler.pdf", columns());
    ingest(&folder.store(), &folder.path("scheduler.pdf"), &[]);
    let document = crate::command::told(&["show", &folder.store(), "scheduler.pdf"]);
    assert_eq!(document["title"], "The Gate Scheduler");
    let text: String = chunks(&folder.store(), "scheduler.pdf").into_iter().map(|(_, _, text)| text + "\n").collect();
    let place = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words} is missing: {text}"));
    assert!(place("left0 ") < place("left11 ") && place("left11 ") < place("right0 "), "{text}");
    assert!(place("right0 ") < place("right11 ") && place("right11 ") < place("Second part"), "{text}");
}

#[test]
fn text_is_read_in_any_usual_encoding() {
    let folder = Folder::new();
    let text = "Die Straße führt über die Brücke nach Süden.";
    let units = |unit: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(unit).collect::<Vec<u8>>();
    let latin: Vec<u8> = text.chars().map(|letter| u8::try_from(u32::from(letter)).expect("it is Latin")).collect();
    let html = [b"<meta charset=iso-8859-1><p>", latin.as_slice(), b"</p>"].concat();
    let files: [(&str, Vec<u8>); 7] = [
        ("utf8.txt", text.into()),
        ("utf16le.md", units(u16::to_le_bytes)),
        ("utf16be.txt", [b"\xFE\xFF".to_vec(), units(u16::to_be_bytes)].concat()),
        ("utf32.rst", text.chars().flat_map(|letter| u32::from(letter).to_le_bytes()).collect()),
        ("latin.txt", latin.clone()),
        ("latin.html", html),
        ("list.csv", [b"Name;Text\nA;".to_vec(), latin, b"\n".to_vec()].concat()),
    ];
    for (name, bytes) in &files {
        folder.write(&format!("in/{name}"), bytes);
    }
    let (told, code) = ingest(&folder.store(), &folder.path("in"), &[]);
    assert_eq!((&told["added"], code), (&json!(files.len()), 0), "{told}");
    for (name, _) in &files {
        let chunks = chunks(&folder.store(), &format!("in/{name}"));
        assert!(chunks.iter().any(|(_, _, chunk)| chunk.contains(text)), "{name}: {chunks:?}");
    }
}

#[test]
fn files_of_other_formats_get_a_reason_when_they_are_named() {
    let folder = Folder::new();
    for (name, bytes, said) in [
        ("sheet.xlsx", &b"PK\x03\x04"[..], "spreadsheets are not read; save each sheet as CSV"),
        ("old.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "office format"),
        ("picture.png", b"\x89PNG\r\n\x1a\n", "pictures (PNG) are not read"),
        ("all.zip", b"PK\x03\x04", "archives are not read"),
        ("notes.xyz", b"words", "does not end in .txt, .md"),
        ("picture.txt", b"\x89PNG\r\n\x1a\n", "pictures (PNG)"),
        ("picture.md", b"\xff\xd8\xff\xe0\0", "pictures (JPEG)"),
        ("locked.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "encrypted"),
        ("empty.pdf", b"", "empty"),
        ("cut.epub", b"PK\x03\x04", "no whole EPUB file"),
        ("words.docx", b"words", "no whole DOCX file"),
    ] {
        let path = folder.write(name, bytes);
        let (told, code) = ingest(&folder.store(), &path, &[]);
        assert!(code == 1 && reason(&told, name).contains(said), "{name}: {told}");
    }
}

#[test]
fn archives_that_burst_or_lie_are_refused_and_the_rest_goes_on() {
    let folder = Folder::new();
    let xml = |body: &str| archive(&[("word/document.xml", body.as_bytes())]);
    let entities = "<!DOCTYPE d [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\">]><d>&b;</d>";
    let deep = format!("<w:document xmlns:w=\"w\">{}", "<w:p>".repeat(200_000));
    let many: Vec<(String, Vec<u8>)> = (0..10_001).map(|number| (format!("f{number}"), Vec::new())).collect();
    let many: Vec<(&str, &[u8])> = many.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    let files = [
        ("in/bomb.docx", xml(&" ".repeat(20 << 20)), "unpacks to more than"),
        ("in/entities.docx", xml(entities), "document type"),
        ("in/many.docx", archive(&many), "10000 are the most"),
        ("in/deep.docx", xml(&deep), "DOCX"),
        ("in/other.odt", archive(&[("a.txt", b"x")]), "without content.xml"),
        (
            "in/nested.epub",
            archive(&[("META-INF/container.xml", b"<c><rootfile full-path='../../x'/></c>")]),
            "without",
        ),
    ];
    for (name, bytes, _) in &files {
        folder.write(name, bytes);
    }
    folder.write("in/good.docx", docx(&[("", "Words that are found.")]));
    let (told, code) = ingest(&folder.store(), &folder.path("in"), &[]);
    assert_eq!((&told["added"], code), (&json!(1), 1), "{told}");
    for (name, _, said) in &files {
        assert!(reason(&told, name).contains(said), "{name}: {}", reason(&told, name));
    }
}

#[test]
fn damaged_files_are_read_or_refused_and_never_break_the_process() {
    let folder = Folder::new();
    let mut originals: Vec<(String, Vec<u8>)> = fs::read_dir(samples())
        .expect("it can be read")
        .map(|entry| entry.expect("it can be read").path())
        .filter(|path| path.extension().is_none_or(|ending| ending != "md"))
        .map(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).expect("it is text").to_owned();
            (name, fs::read(&path).expect("it can be read"))
        })
        .collect();
    originals.push(("columns.pdf".to_owned(), columns()));
    originals.push((
        "page.html".to_owned(),
        b"<title>T</title><table><tr><td rowspan=3>a<td>b<tr><td>c</table><h2>H</h2><pre>x".to_vec(),
    ));
    originals.push(("list.csv".to_owned(), b"Name,Born\n\"Gilmour, David\",1946\nWaters,1943\n".to_vec()));
    originals.sort();
    // A fixed row of numbers: the same files on every run.
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).expect("it is small")
    };
    let mut count = 0;
    for (name, bytes) in &originals {
        for number in 0..16 {
            let mut changed = bytes.clone();
            if number % 2 == 0 {
                changed.truncate(bytes.len() * number / 16);
            } else {
                for _ in 0..(1 << (number / 3)) {
                    let at = random(changed.len());
                    changed[at] = u8::try_from(random(256)).expect("it is a byte");
                }
            }
            count += 1;
            folder.write(&format!("in/{number}-{name}"), changed);
        }
    }
    let (told, code) = ingest(&folder.store(), &folder.path("in"), &["--password", "foo"]);
    let number = |field: &str| told[field].as_u64().expect("it is a number");
    assert!(code <= 1, "{told}");
    assert_eq!(number("added") + number("rejected_count"), count, "{told}");
}
