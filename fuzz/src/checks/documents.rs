//! Documents of every format but PDF, which has a target of its own. Of archives the part with the text is
//! made of the input, so that changes of it reach what reads it.

use hedgerow_cli::read::document::{Format, Parsed};
use std::io::{Cursor, Write};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// How an input becomes a file of a format.
type Made = fn(&[u8]) -> Vec<u8>;

const FORMATS: [(Format, Made); 15] = [
    (Format::Markdown, as_it_is),
    (Format::Rst, as_it_is),
    (Format::Org, as_it_is),
    (Format::Csv, as_it_is),
    (Format::Tsv, as_it_is),
    (Format::Html, as_it_is),
    (Format::Mail, as_it_is),
    (Format::Rtf, as_it_is),
    (Format::Docx, |bytes| archive(&[("word/document.xml", bytes)])),
    (Format::Odt, |bytes| archive(&[("content.xml", bytes)])),
    (Format::Pptx, |bytes| archive(&[("ppt/slides/slide1.xml", bytes)])),
    (Format::Epub, book),
    (Format::Docx, as_it_is),
    (Format::Odt, as_it_is),
    (Format::Epub, as_it_is),
];

/// Every reader answers or says why not; what it answers is text in parts that fit it.
pub fn check(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    let (format, make) = FORMATS[usize::from(*kind) % FORMATS.len()];
    match format.read(&make(bytes), "a", None) {
        Ok(parsed) => validate(&parsed),
        Err(refusal) => assert!(!refusal.to_string().is_empty(), "an error says what is wrong"),
    }
}

/// What is read is text in parts that fit it.
pub fn validate(parsed: &Parsed) {
    assert!(!parsed.text.trim().is_empty(), "a document that is read has text");
    assert!(parsed.text.len() <= hedgerow_format::limits::DOCUMENT_BYTES, "no more than a document may have");
    let mut end = 0;
    for part in &parsed.parts {
        assert!(part.range.start >= end, "parts follow each other");
        assert!(parsed.text.get(part.range.clone()).is_some(), "parts are whole characters of the text");
        end = part.range.end;
    }
}

fn as_it_is(bytes: &[u8]) -> Vec<u8> {
    bytes.to_vec()
}

/// A zip archive of these files.
pub fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        zip.start_file(*name, SimpleFileOptions::default()).expect("the name is right");
        zip.write_all(bytes).expect("there is room");
    }
    zip.finish().expect("there is room").into_inner()
}

/// A book of one chapter.
fn book(chapter: &[u8]) -> Vec<u8> {
    let container = br#"<container><rootfiles><rootfile full-path="b.opf"/></rootfiles></container>"#;
    let package = br#"<package><metadata><title>B</title></metadata><manifest><item id="c" href="c.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="c"/></spine></package>"#;
    archive(&[("META-INF/container.xml", container), ("b.opf", package), ("c.xhtml", chapter)])
}

/// One of every kind.
pub fn seeds() -> Vec<Vec<u8>> {
    let word = r#"<w:document xmlns:w="w"><w:body><w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>Gates</w:t></w:r></w:p><w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc></w:tr></w:tbl></w:body></w:document>"#;
    let office = r#"<office:document-content><office:body><office:text><text:h text:outline-level="1">Gates</text:h><text:p>Open at <text:s text:c="2"/>dawn.</text:p><table:table><table:table-row><table:table-cell table:number-columns-repeated="2"><text:p>a</text:p></table:table-cell></table:table-row></table:table></office:text></office:body></office:document-content>"#;
    let slide = r"<p:sld><p:cSld><p:spTree><p:sp><p:txBody><a:p><a:r><a:t>Gates</a:t></a:r></a:p></p:txBody></p:sp></p:spTree></p:cSld></p:sld>";
    let page = "<html><head><title>T</title></head><body><nav>no</nav><h1>Gates</h1><p>Open &amp; shut.</p><table><tr><th>a</th><th colspan=2>b</th></tr><tr><td>1</td><td>2</td><td>3</td></tr></table><ul><li>one</ul></body></html>";
    let texts = [
        "# Gates\n\nText\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```\n# code\n```\n",
        "Gates\n=====\n\nText\n\n.. note:: x\n\n====  ====\na     b\n====  ====\n1     2\n====  ====\n",
        "#+TITLE: T\n* Gates\nText\n| a | b |\n|---+---|\n| 1 | 2 |\n",
        "a,b\n1,\"x,y\"\n2,z\n",
        "a\tb\n1\t2\n",
        page,
        "From: a@b.c\nSubject: =?utf-8?q?Gates?=\nContent-Type: text/html\n\n<p>Open.</p>\n",
        r"{\rtf1\ansi{\fonttbl\f0 A;}Gates \'e9 \u233? open.\par\trowd a\cell b\cell\row}",
        word,
        office,
        slide,
        page,
    ];
    (0..).zip(texts).map(|(kind, text)| [&[kind], text.as_bytes()].concat()).collect()
}
