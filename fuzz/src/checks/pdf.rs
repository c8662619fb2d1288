//! PDF: whole files, and small ones whose page, outline or encryption is made of the input. The library that parses them
//! may panic, as the process that reads documents catches that; our own code may not.

use hedgerow_cli::read::document::Format;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

/// A line of a page: its size, its place from the lower left corner, its words.
pub type Line<'l> = (u32, u32, u32, &'l str);

/// The object of a page, from 0.
pub fn object_of_page(page: usize) -> usize {
    4 + 2 * page
}

/// A PDF of these pages. `more` are objects after theirs, and `catalog` is what the catalog says beside them.
pub fn of_pages(pages: &[&[Line<'_>]], catalog: &str, more: &[Vec<u8>]) -> Vec<u8> {
    let shown = |(size, x, y, text): &Line<'_>| format!("BT /F {size} Tf {x} {y} Td ({text}) Tj ET");
    let contents: Vec<Vec<u8>> =
        pages.iter().map(|lines| lines.iter().map(shown).collect::<Vec<_>>().join("\n").into_bytes()).collect();
    of_contents(&contents, catalog, more, "")
}

/// A PDF of these pages' contents, with what the catalog and the trailer say beside them.
pub fn of_contents(contents: &[Vec<u8>], catalog: &str, more: &[Vec<u8>], trailer: &str) -> Vec<u8> {
    let kids: Vec<String> = (0..contents.len()).map(|page| format!("{} 0 R", object_of_page(page))).collect();
    let mut objects = vec![
        format!("<</Type/Catalog/Pages 2 0 R{catalog}>>").into_bytes(),
        format!("<</Type/Pages/Count {}/Kids[{}]>>", contents.len(), kids.join(" ")).into_bytes(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>".to_vec(),
    ];
    for (page, content) in contents.iter().enumerate() {
        let resources = "/Resources<</Font<</F 3 0 R>>>>/MediaBox[0 0 612 792]";
        let place = object_of_page(page) + 1;
        objects.push(format!("<</Type/Page/Parent 2 0 R{resources}/Contents {place} 0 R>>").into_bytes());
        let head = format!("<</Length {}>>stream\n", content.len());
        objects.push([head.as_bytes(), content, b"\nendstream"].concat());
    }
    objects.extend_from_slice(more);
    let mut file = b"%PDF-1.4\n".to_vec();
    let mut places = Vec::new();
    for (number, object) in (1..).zip(&objects) {
        places.push(format!("{:010} 00000 n \n", file.len()));
        file.extend_from_slice(format!("{number} 0 obj\n").as_bytes());
        file.extend_from_slice(object);
        file.extend_from_slice(b"\nendobj\n");
    }
    let (count, start, places) = (objects.len() + 1, file.len(), places.concat());
    let end = format!(
        "xref\n0 {count}\n0000000000 65535 f \n{places}trailer<</Size {count}/Root 1 0 R{trailer}>>\nstartxref\n{start}\n%%EOF\n"
    );
    file.extend_from_slice(end.as_bytes());
    file
}

/// A file is read, or it is said why not; what is read is text in parts that fit it.
pub fn check(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    let (file, password) = match kind % 4 {
        0 => (bytes.to_vec(), None),
        1 => (of_contents(&[bytes.to_vec()], "", &[], ""), None),
        2 => (of_outline(bytes), None),
        _ => (of_encryption(bytes), Some("keeper")),
    };
    let is_ours = watched();
    is_ours.store(false, Ordering::SeqCst);
    match catch_unwind(AssertUnwindSafe(|| Format::Pdf.read(&file, "a", password))) {
        Ok(Ok(parsed)) => super::documents::validate(&parsed),
        Ok(Err(refusal)) => assert!(!refusal.to_string().is_empty(), "an error says what is wrong"),
        Err(_) => assert!(!is_ours.load(Ordering::SeqCst), "our own reader panicked"),
    }
}

/// Whether the last panic of a PDF's reader was in our own code; those of libraries are passed over, where the fuzzer
/// would end with them.
fn watched() -> &'static AtomicBool {
    static IS_OURS: AtomicBool = AtomicBool::new(false);
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if panic.location().is_some_and(|place| place.file().contains("/registry/src/")) {
                return;
            }
            if panic.location().is_some_and(|place| place.file().contains("read/pdf")) {
                IS_OURS.store(true, Ordering::SeqCst);
            }
            before(panic);
        }));
    });
    &IS_OURS
}

/// Objects of an outline, parted by a byte of 1, above two pages.
fn of_outline(bytes: &[u8]) -> Vec<u8> {
    let more: Vec<Vec<u8>> = bytes.split(|byte| *byte == 1).map(<[u8]>::to_vec).collect();
    let first: &[Line<'_>] = &[(16, 72, 700, "Gates"), (10, 72, 660, "Open at dawn."), (10, 300, 30, "1")];
    let second: &[Line<'_>] = &[(10, 72, 700, "Night"), (10, 72, 660, "Closed at dusk."), (10, 300, 30, "2")];
    of_pages(&[first, second], "/Outlines 8 0 R/Names<</Dests 9 0 R>>/Dests 10 0 R", &more)
}

fn of_encryption(bytes: &[u8]) -> Vec<u8> {
    let content = b"BT /F 10 Tf 72 700 Td (Gates) Tj ET".to_vec();
    let object = [b"<</Filter/Standard", bytes, b">>"].concat();
    of_contents(&[content], "", &[object], "/Encrypt 6 0 R/ID[(0123456789abcdef)(0123456789abcdef)]")
}

/// One of every kind, and what pages are read by: columns, a table, a running head.
pub fn seeds() -> Vec<Vec<u8>> {
    let cells = ["Gate 10 20 30", "A1 1 2 3", "A2 4 5 6", "A3 7 8 9"];
    let shown = |(row, cells): (usize, &str)| {
        let cell = |(column, cell): (usize, &str)| {
            format!("BT /F 10 Tf {} {} Td ({cell}) Tj ET\n", 72 + 120 * column, 700 - 14 * row)
        };
        cells.split(' ').enumerate().map(cell).collect::<String>()
    };
    let table: String = cells.into_iter().enumerate().map(shown).collect();
    let page = |number: usize| {
        let columns = (0..5).flat_map(|row| [(72, row), (320, row)]);
        let column = |(x, row): (usize, usize)| {
            format!("BT /F 10 Tf {x} {} Td (words of row {row} of a column) Tj ET\n", 700 - 14 * row)
        };
        let head = format!("BT /F 8 Tf 72 770 Td (Plan of gates {number}) Tj ET\n");
        (head + &columns.map(column).collect::<String>()).into_bytes()
    };
    let outline = "<</Type/Outlines/First 11 0 R/Last 12 0 R>>\u{1}<</Names[(n)[6 0 R/FitH 710]]>>\u{1}<</m[4 0 R/Fit]>>\
        \u{1}<</Title(Gates)/Dest[4 0 R/XYZ 72 712 null]/Next 12 0 R/First 13 0 R>>\
        \u{1}<</Title(Night)/A<</S/GoTo/D(n)>>>>\u{1}<</Title<FEFF0048>/Dest/m>>";
    let encryption = "/V 2/R 3/Length 128/P -4\
        /O<acc3abe4f92490020f35f66196b1ae0d2b88f6d2df0bd905fad9b3a7d8dc3c06>\
        /U<0123456789abcdef0123456789abcdef00000000000000000000000000000000>";
    vec![
        [b"\0".as_slice(), &of_contents(&[page(1), page(2), page(3)], "", &[], "")].concat(),
        [b"\x01", table.as_bytes()].concat(),
        [b"\x02", outline.as_bytes()].concat(),
        [b"\x03", encryption.as_bytes()].concat(),
    ]
}
