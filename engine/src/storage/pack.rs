//! A pack as a disk that can only be read: `HEAD` and the files of one generation are parts of one file.

use crate::error::Damage;
use crate::storage::{Access, FileFault, FileName, Folder, Mapping, VFile, Vfs, at};
use hedgerow_format::manifest::Manifest;
use hedgerow_format::pack::{PACK_MAGIC, Pack};
use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Where `HEAD` lies in a pack.
const HEAD: Range<usize> = 80..176;

/// An open pack. Everything that would change it is refused.
#[derive(Debug)]
pub struct PackDisk {
    path: String,
    name: FileName,
    pack: Pack,
    bytes: Arc<Mapping>,
}

impl PackDisk {
    /// Opens a pack on another disk, and checks its header and its directory. The other disk is not needed afterwards.
    ///
    /// # Errors
    /// `FileFault`.
    pub fn open(outer: &dyn Vfs, name: FileName) -> Result<Self, FileFault> {
        let open = || -> io::Result<Mapping> { outer.open(&name, Access::Read)?.map() };
        let bytes = Arc::new(open().map_err(at("open", &name)).map_err(FileFault::Storage)?);
        let damage = |source| FileFault::Damage(Damage { file: name.to_string(), source });
        let pack = Pack::parse(&bytes).map_err(damage)?;
        Ok(Self { path: outer.describe(), name, pack, bytes })
    }

    /// Whether a file begins as a pack does.
    ///
    /// # Errors
    /// Those of the system.
    pub fn is_pack(file: &dyn VFile) -> io::Result<bool> {
        let mut found = [0; PACK_MAGIC.len()];
        match file.read_at(&mut found, 0) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            read => read.map(|()| found == PACK_MAGIC),
        }
    }

    /// Checks what opening doesn't: that the files are those that the manifest names, and that padding is zero.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn check_all(&self, manifest: &Manifest) -> Result<(), Damage> {
        let damage = |source| Damage { file: self.name.to_string(), source };
        self.pack.check_all(&self.bytes, manifest).map_err(damage)
    }

    fn find(&self, name: &FileName) -> Option<Range<usize>> {
        match name {
            FileName::Head => Some(HEAD),
            FileName::Numbered { kind, number, random } => self.pack.find(*kind, *number, *random),
            _ => None,
        }
    }
}

impl Vfs for PackDisk {
    fn describe(&self) -> String {
        self.path.clone()
    }

    fn pack(&self) -> Option<&PackDisk> {
        Some(self)
    }

    fn create_new(&self, _name: &FileName) -> io::Result<Box<dyn VFile>> {
        Err(refused())
    }

    fn open(&self, name: &FileName, access: Access) -> io::Result<Box<dyn VFile>> {
        if access == Access::Write {
            return Err(refused());
        }
        let range = self.find(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(Part { whole: Arc::clone(&self.bytes), range }))
    }

    fn remove(&self, _name: &FileName) -> io::Result<()> {
        Err(refused())
    }

    fn rename(&self, _from: &FileName, _to: &FileName) -> io::Result<()> {
        Err(refused())
    }

    fn list(&self, folder: Folder) -> io::Result<Vec<String>> {
        let files = self.pack.entries().iter().filter_map(FileName::of_pack);
        let all = files.chain([FileName::Head]).filter(|name| name.folder() == folder);
        let mut names: Vec<String> = all.map(|name| name.name()).collect();
        names.sort_unstable();
        Ok(names)
    }

    fn make_folder(&self, _folder: Folder) -> io::Result<()> {
        Err(refused())
    }

    fn sync_folder(&self, _folder: Folder) -> io::Result<()> {
        Err(refused())
    }

    fn try_lock(&self, _name: &FileName) -> io::Result<Option<Box<dyn Debug + Send + Sync>>> {
        Err(refused())
    }
}

fn refused() -> io::Error {
    io::Error::new(
        io::ErrorKind::ReadOnlyFilesystem,
        "it is a pack, which never changes: restore it into a folder to write",
    )
}

/// One file of a pack.
#[derive(Clone, Debug)]
struct Part {
    whole: Arc<Mapping>,
    range: Range<usize>,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        self.whole.get(self.range.clone()).unwrap_or_default()
    }
}

impl VFile for Part {
    fn len(&self) -> io::Result<u64> {
        Ok(self.as_ref().len() as u64)
    }

    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        let start = usize::try_from(offset).map_err(|_| io::ErrorKind::UnexpectedEof)?;
        let end = start.checked_add(out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(self.as_ref().get(start..end).ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, _bytes: &[u8], _offset: u64) -> io::Result<()> {
        Err(refused())
    }

    fn set_len(&self, _length: u64) -> io::Result<()> {
        Err(refused())
    }

    fn sync(&self) -> io::Result<()> {
        Err(refused())
    }

    fn map(&self) -> io::Result<Mapping> {
        Ok(Mapping::Shared(Box::new(self.clone())))
    }
}
