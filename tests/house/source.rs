//! Rust source as the house tests read it: which files there are, and what of them is code.

use std::path::{Path, PathBuf};
use std::{fs, iter};

/// The project's folder.
pub fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("the tests lie in the project's folder").to_owned()
}

/// Every file under a folder, in the order of paths; what is built or belongs to a tool's own store is left out.
pub fn files_under(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for path in entries.map(|entry| entry.expect("the folder can be read").path()) {
            let name = path.file_name().unwrap_or_default();
            if path.is_dir() && name != "target" && name != ".git" {
                folders.push(path);
            } else if path.is_file() {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The Rust files under a folder of the project, by their path in the project.
pub fn rust_files(folder: &str) -> Vec<(String, String)> {
    let root = root();
    let files = files_under(&root.join(folder)).into_iter();
    let rust = files.filter(|path| path.extension().is_some_and(|ending| ending == "rs"));
    rust.map(|path| (inside(&root, &path), fs::read_to_string(&path).expect("a source file is text"))).collect()
}

/// A file's path in the project, with `/`.
pub fn inside(root: &Path, path: &Path) -> String {
    let path = path.strip_prefix(root).unwrap_or(path);
    path.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/")
}

/// The code of a source file: every byte of a comment, of a string and of a character is a space, so that places and
/// lines stay what they are.
pub fn code(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'/' if bytes[at..].starts_with(b"//") => line_end(bytes, at),
            b'/' if bytes[at..].starts_with(b"/*") => comment_end(bytes, at),
            b'"' => string_end(bytes, at),
            b'r' if !follows_word(bytes, at) => raw_string_end(bytes, at).unwrap_or(at),
            b'\'' => character_end(bytes, at).unwrap_or(at),
            _ => at,
        };
        code[at..end].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
        at = end.max(at + 1);
    }
    String::from_utf8(code).expect("literals are blanked whole")
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |length| at + length)
}

fn comment_end(bytes: &[u8], at: usize) -> usize {
    let (mut depth, mut end) = (0, at);
    while end < bytes.len() {
        if bytes[end..].starts_with(b"/*") {
            (depth, end) = (depth + 1, end + 2);
        } else if bytes[end..].starts_with(b"*/") {
            (depth, end) = (depth - 1, end + 2);
        } else {
            end += 1;
        }
        if depth == 0 {
            break;
        }
    }
    end
}

fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while end < bytes.len() && bytes[end] != b'"' {
        end += if bytes[end] == b'\\' { 2 } else { 1 };
    }
    (end + 1).min(bytes.len())
}

fn raw_string_end(bytes: &[u8], at: usize) -> Option<usize> {
    let hashes = bytes[at + 1..].iter().take_while(|byte| **byte == b'#').count();
    let start = at + 1 + hashes;
    if bytes.get(start) != Some(&b'"') {
        return None;
    }
    let closing: Vec<u8> = iter::once(b'"').chain(iter::repeat_n(b'#', hashes)).collect();
    let length = bytes[start + 1..].windows(closing.len()).position(|window| window == closing)?;
    Some(start + 1 + length + closing.len())
}

/// The end of a character literal; none where the quote begins a lifetime.
fn character_end(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at + 1) == Some(&b'\\') {
        let length = bytes[at + 3..].iter().position(|byte| *byte == b'\'')?;
        return Some(at + 3 + length + 1);
    }
    let letter = std::str::from_utf8(&bytes[at + 1..(at + 5).min(bytes.len())]);
    let letter = letter.or_else(|error| std::str::from_utf8(&bytes[at + 1..at + 1 + error.valid_up_to()]));
    let end = at + 1 + letter.ok()?.chars().next()?.len_utf8();
    (bytes.get(end) == Some(&b'\'')).then_some(end + 1)
}

fn follows_word(bytes: &[u8], at: usize) -> bool {
    at > 0 && is_word(bytes[at - 1]) && !(bytes[at - 1] == b'b' && (at < 2 || !is_word(bytes[at - 2])))
}

/// Whether a byte may stand in a name.
pub fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Places of a whole word.
pub fn words<'c>(code: &'c str, word: &'c str) -> impl Iterator<Item = usize> + 'c {
    let bytes = code.as_bytes();
    let places = code.match_indices(word).map(|(at, _)| at);
    places.filter(move |&at| {
        let after = bytes.get(at + word.len()).is_some_and(|byte| is_word(*byte));
        !after && (at == 0 || !is_word(bytes[at - 1]))
    })
}

/// One past the bracket that closes the one at `open`.
pub fn closing(code: &str, open: usize) -> usize {
    let mut depth = 0;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'{' | b'(' | b'[' => depth += 1,
            b'}' | b')' | b']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    code.len()
}

/// The code without its test modules, which become spaces.
pub fn without_tests(code: &str) -> String {
    let mut kept = code.to_owned();
    for (start, _) in code.match_indices("#[cfg(test)]") {
        let Some(open) = code[start..].find(['{', ';']).map(|length| start + length) else { continue };
        if code[start..open].contains("mod ") && code.as_bytes()[open] == b'{' {
            let end = closing(code, open);
            let blank = blanked(&code[start..end]);
            kept.replace_range(start..end, &blank);
        }
    }
    kept
}

fn blanked(text: &str) -> String {
    text.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect()
}

/// The line that a byte lies in, from 1.
pub fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// Fails with one line a finding.
#[track_caller]
pub fn expect_none(broken: &[String]) {
    assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
}

#[test]
fn comments_strings_and_characters_are_no_code() {
    let text = "a // b\n/* c /* d */ */ e \"f\\\" g\" r#\"h \" i\"# 'j' '\\'' '\"' &'k str b\"l\" br\"m\" 'ä' n";
    let words: Vec<String> = code(text).split_whitespace().map(str::to_owned).collect();
    assert_eq!(words, ["a", "e", "&'k", "str", "b", "b", "n"]);
    assert_eq!(code(text).len(), text.len());
}

#[test]
fn test_modules_are_left_out_and_test_imports_are_not() {
    let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() { { } }\n}\n#[cfg(test)]\nuse c;\n";
    let kept = without_tests(text);
    assert!(kept.contains("fn a") && kept.contains("use c") && !kept.contains("fn b"));
    assert_eq!(kept.lines().count(), text.lines().count());
}
