//! The files below a path, in the order of their keys.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::read::document::{ENDINGS_READ, Format, unread_kind};

/// What a file is read as, told by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// `.txt`
    Text,
    /// `.jsonl`, `.ndjson`: one document a line.
    JsonLines,
    /// Anything else that is read.
    Document(Format),
}

impl FileKind {
    /// The kind of a file of this name; `None` for a name that is not read.
    #[must_use]
    pub fn of(path: &Path) -> Option<FileKind> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "txt" => Some(FileKind::Text),
            "jsonl" | "ndjson" => Some(FileKind::JsonLines),
            ending => Format::of_ending(ending).map(FileKind::Document),
        }
    }
}

/// A file to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its document key: the path relative to the parent of the path that was named, with `/`.
    pub key: String,
    /// What it is read as.
    pub kind: FileKind,
}

/// An entry that cannot be read, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedEntry {
    /// Where it is.
    pub path: PathBuf,
    /// What was found and what to do.
    pub reason: String,
}

/// What lies below a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The files to read, in the order of their keys.
    pub files: Vec<FoundFile>,
    /// Entries that could not be read, in the order of their paths.
    pub rejected: Vec<RejectedEntry>,
    /// How many files of other kinds, and hidden files and folders, were passed over.
    pub skipped: usize,
}

/// Lists a file, or the files of a folder and of all folders in it. Links to folders are rejected, so no loop is possible;
/// what begins with `.` is passed over, unless it is the path itself.
///
/// # Errors
/// When the path itself cannot be looked at; what lies below it is rejected one by one.
pub fn files(path: &Path) -> io::Result<Listing> {
    let mut listing = Listing::default();
    let key = base_key(path)?;
    if fs::metadata(path)?.is_dir() {
        let mut folders = vec![(path.to_owned(), key)];
        while let Some((folder, key)) = folders.pop() {
            listing.read_folder(&folder, &key, &mut folders);
        }
    } else {
        let start = first_bytes(path);
        match FileKind::of(path).or_else(|| Format::of_bytes(&start).map(FileKind::Document)) {
            Some(kind) => listing.files.push(FoundFile { path: path.to_owned(), key, kind }),
            None => listing.reject(path, &reason(path, &start)),
        }
    }
    listing.files.sort_by(|a, b| a.key.cmp(&b.key));
    listing.rejected.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(listing)
}

/// Bytes that tell what a file is whose name does not; none where it cannot be read, which its reader will say.
fn first_bytes(path: &Path) -> Vec<u8> {
    let mut start = Vec::new();
    if path.is_file() {
        File::open(path).and_then(|file| file.take(1024).read_to_end(&mut start)).ok();
    }
    start
}

/// Why a file that was named is not read.
fn reason(path: &Path, start: &[u8]) -> String {
    let known = unread_kind(path, start).map(|refusal| refusal.to_string());
    known.unwrap_or_else(|| format!("its name does not end in {ENDINGS_READ}; rename it if it is text"))
}

impl Listing {
    fn read_folder(&mut self, folder: &Path, key: &str, folders: &mut Vec<(PathBuf, String)>) {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => {
                return self.reject(folder, &format!("the folder cannot be listed: {error}"));
            }
        };
        for entry in entries {
            match entry {
                Ok(entry) => self.read_entry(&entry, key, folders),
                Err(error) => self.reject(folder, &format!("an entry of the folder cannot be read: {error}")),
            }
        }
    }

    fn read_entry(&mut self, entry: &fs::DirEntry, folder_key: &str, folders: &mut Vec<(PathBuf, String)>) {
        let path = entry.path();
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            self.skipped += 1;
            return;
        }
        // Of the entry itself, not of what a link leads to.
        let kind = match entry.file_type() {
            Ok(kind) => kind,
            Err(error) => {
                return self.reject(&path, &format!("the entry cannot be looked at: {error}"));
            }
        };
        if kind.is_symlink() && path.is_dir() {
            let reason = "it is a link to a folder, and those are not followed; name the folder itself";
            return self.reject(&path, reason);
        }
        let file_kind = FileKind::of(&path).filter(|_| kind.is_file() || kind.is_symlink());
        if !kind.is_dir() && file_kind.is_none() {
            self.skipped += 1;
            return;
        }
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else {
            return self.reject(&path, "its name is not UTF-8, so it has no key; rename it");
        };
        let key = joined(folder_key, &name);
        match file_kind {
            Some(kind) => self.files.push(FoundFile { path, key, kind }),
            None => folders.push((path, key)),
        }
    }

    fn reject(&mut self, path: &Path, reason: &str) {
        self.rejected.push(RejectedEntry { path: path.to_owned(), reason: reason.to_owned() });
    }
}

/// The name of the path itself; that of the folder it leads to when it is written as `.` or `..`; empty for the root.
fn base_key(path: &Path) -> io::Result<String> {
    let resolved;
    let name = if let Some(name) = path.file_name() {
        name
    } else {
        resolved = path.canonicalize()?;
        resolved.file_name().unwrap_or_default()
    };
    let text = name.to_str().ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidFilename, "the name of the path is not UTF-8, so it has no key; rename it")
    });
    text.map(str::to_owned)
}

fn joined(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::{fs, io};

    use crate::read::document::Format;
    use crate::read::folder::{FileKind, Listing, files};

    /// A folder of this test's own, removed when it ends.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("hedgerow-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            for file in ["b.txt", "a/z.MD", "a/b/deep.jsonl", "a/picture.png", "a.b/n.ndjson"] {
                fs::create_dir_all(path.join(file).parent().unwrap()).unwrap();
                fs::write(path.join(file), "x").unwrap();
            }
            Folder(path)
        }

        fn keys(&self, listing: &Listing) -> Vec<String> {
            let base = self.0.file_name().unwrap().to_str().unwrap();
            listing.files.iter().map(|file| file.key.strip_prefix(base).unwrap_or(&file.key).to_owned()).collect()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn files_come_in_the_order_of_their_keys() {
        let folder = Folder::new("order");
        let listing = files(&folder.0).unwrap();
        assert_eq!(folder.keys(&listing), ["/a.b/n.ndjson", "/a/b/deep.jsonl", "/a/z.MD", "/b.txt"]);
        assert_eq!((listing.skipped, listing.rejected.len()), (1, 0));
        let inner = files(&folder.0.join("a/b/..")).unwrap();
        assert_eq!(folder.keys(&inner), ["a/b/deep.jsonl", "a/z.MD"]);
        let single = files(&folder.0.join("a/z.MD")).unwrap();
        assert_eq!(
            (single.files[0].key.as_str(), single.files[0].kind),
            ("z.MD", FileKind::Document(Format::Markdown))
        );
    }

    #[test]
    fn hidden_entries_are_read_only_where_they_are_named() {
        let folder = Folder::new("hidden");
        fs::create_dir(folder.0.join("a/.git")).unwrap();
        for file in ["a/.git/notes.md", "a/.draft.md"] {
            fs::write(folder.0.join(file), "x").unwrap();
        }
        let listing = files(&folder.0.join("a")).unwrap();
        assert_eq!((folder.keys(&listing), listing.skipped), (vec!["a/b/deep.jsonl".into(), "a/z.MD".into()], 3));
        for (named, key) in [("a/.git", ".git/notes.md"), ("a/.draft.md", ".draft.md")] {
            assert_eq!(folder.keys(&files(&folder.0.join(named)).unwrap()), [key]);
        }
    }

    #[test]
    fn other_files_and_missing_paths_are_refused() {
        let folder = Folder::new("refused");
        let listing = files(&folder.0.join("a/picture.png")).unwrap();
        assert!(listing.rejected[0].reason.contains(".txt"));
        assert_eq!(files(&folder.0.join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[cfg(unix)]
    #[test]
    fn links_to_folders_are_rejected_and_links_to_files_are_read() {
        let folder = Folder::new("links");
        std::os::unix::fs::symlink(&folder.0, folder.0.join("a/loop")).unwrap();
        std::os::unix::fs::symlink(folder.0.join("b.txt"), folder.0.join("c.txt")).unwrap();
        let listing = files(&folder.0).unwrap();
        assert_eq!(listing.rejected.len(), 1);
        assert!(listing.rejected[0].reason.contains("link to a folder"));
        assert!(folder.keys(&listing).contains(&"/c.txt".to_owned()));
    }
}
