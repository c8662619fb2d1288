//! What people import, of any bytes: text of any encoding, Markdown, JSON lines, triples, edges, matrices.

use hedgerow_cli::command::text_document;
use hedgerow_cli::read::document::Format;
use hedgerow_cli::read::edges::{Columns, edge_from_line};
use hedgerow_cli::read::folder::FileKind;
use hedgerow_cli::read::lines::{Lines, document_from_json, triple_from_json};
use hedgerow_cli::read::npy::{Matrix, Pairs};
use hedgerow_cli::read::text;
use std::path::Path;

/// Every reader answers or says why not, and takes no more memory than the bytes bear out.
pub fn check(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    match kind % 6 {
        0 => documents(bytes),
        1 => triples(bytes),
        2 => matrix(bytes),
        3 => file(bytes),
        4 => edges(bytes),
        _ => pairs(bytes),
    }
}

fn documents(bytes: &[u8]) {
    let mut number = 0;
    for line in Lines::new(bytes) {
        let Ok(line) = line else { continue };
        assert!(line.number > number && !line.text.trim().is_empty(), "lines follow each other, and have text");
        number = line.number;
        match document_from_json(&line.text) {
            Ok(record) => {
                assert!(!record.key.trim().is_empty(), "a document has a key");
                assert!(record.chunks.is_none_or(|chunks| !chunks.is_empty()), "no chunks are none");
            }
            Err(reason) => assert!(!reason.is_empty(), "an error says what is wrong"),
        }
    }
}

fn triples(bytes: &[u8]) {
    for line in Lines::new(bytes).flatten() {
        if let Ok(record) = triple_from_json(&line.text) {
            assert!(record.weight.is_finite() && record.weight > 0.0, "a weight is above zero");
            assert!(!record.subject.is_empty() && !record.object.is_empty() && !record.predicate.is_empty());
            let (subject, object) =
                ((&*record.subject, &*record.subject_type), (&*record.object, &*record.object_type));
            if let Ok(relation) = hedgerow::triple(subject, &record.predicate, object, record.weight) {
                relation.check().expect("what the engine makes of a triple, it takes");
            }
        }
    }
}

fn matrix(bytes: &[u8]) {
    let Ok(matrix) = Matrix::read(Path::new("x.npy"), bytes, bytes.len() as u64) else { return };
    let (rows, columns) = (matrix.row_count(), matrix.columns());
    let found: Vec<Vec<f32>> = matrix.rows().collect::<Result<_, _>>().expect("the length was checked");
    assert_eq!(found.len() as u64, rows, "as many rows as the header says");
    assert!(found.iter().all(|row| row.len() == columns), "as many columns as the header says");
}

fn edges(bytes: &[u8]) {
    for line in Lines::new(bytes).flatten() {
        for columns in [Columns::So, Columns::Sow, Columns::Spo, Columns::Spow] {
            let Ok(record) = edge_from_line(&line.text, columns) else { continue };
            assert!(record.weight.is_finite() && record.weight > 0.0, "a weight is above zero");
            assert!(!record.subject.is_empty() && !record.object.is_empty(), "an edge has two ends");
            assert_eq!(record.predicate.is_some(), columns.has_predicate(), "a label stands where there is a column");
            assert!(Columns::of(&line.text, !columns.has_predicate()).is_some(), "what is read has columns");
        }
    }
}

fn pairs(bytes: &[u8]) {
    let Ok(pairs) = Pairs::read(Path::new("x.npy"), bytes, bytes.len() as u64) else { return };
    let rows = pairs.row_count();
    let found: Vec<[i128; 2]> = pairs.collect::<Result<_, _>>().expect("the length was checked");
    assert_eq!(found.len() as u64, rows, "as many rows as the header says");
}

fn file(bytes: &[u8]) {
    let Ok(text) = text::decode(bytes) else { return };
    assert!(!text.trim().is_empty(), "what is read is text");
    for kind in [FileKind::Document(Format::Markdown), FileKind::Text] {
        let document = text_document(kind, "folder/a.md", "a.md", &text);
        assert!(!document.text.trim().is_empty(), "a document that is read has text");
        // Tables of Markdown repeat their header.
        let is_made_up = kind == FileKind::Text && document.text.len() > text.len() + document.title.len();
        assert!(!is_made_up, "nothing is made up");
    }
}

/// One of every kind.
pub fn seeds() -> Vec<Vec<u8>> {
    let npy = |descr: &str, shape: &str, data: &[u8]| {
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}\n");
        let length = u8::try_from(header.len()).expect("it is short");
        [&b"\x02\x93NUMPY\x01\0"[..], &[length, 0], header.as_bytes(), data].concat()
    };
    vec![
        b"\0{\"id\": \"a\", \"title\": \"A\", \"text\": \"T\", \"year\": 1}\n\n{\"key\": \"b\", \"chunks\": [{\"text\": \"x\"}]}".to_vec(),
        b"\x01{\"subject\": \"A\", \"predicate\": \"p\", \"object\": \"B\", \"weight\": 0.5, \"chunk\": \"a#0\"}\n".to_vec(),
        npy("<f4", "1, 2", &[0; 8]),
        npy("<f2", "2, 1", &[0, 60, 0, 60]),
        b"\x03---\ntitle: \"The Wall\"\nyear: 1979\n---\n\n# Side one\nIn the flesh".to_vec(),
        b"\x03Title\n=====\n\ntext\n```\n# code\n```\n# Late #\nmore".to_vec(),
        b"\x03\xff\xfea\0b\0".to_vec(),
        b"\x03caf\xe9 \x93quoted\x94".to_vec(),
        b"\x04# a comment\nAda\tknows\tBob\t0.5\nAda\tBob\t2\nAda\tBob\n".to_vec(),
        [b"\x05", &npy("<u4", "1, 2", &[1, 0, 0, 0, 2, 0, 0, 0])[1..]].concat(),
        [b"\x05", &npy("<i8", "1, 2", &[255; 16])[1..]].concat(),
    ]
}
