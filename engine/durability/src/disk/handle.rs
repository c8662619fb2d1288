//! Open files and maps of the simulated disk.

use crate::disk::{Call, Disk, FaultKind, File, State, Write};
use hedgerow::{Mapping, VFile};
use std::io::{self, ErrorKind};
use std::sync::{Arc, MutexGuard};

#[derive(Debug)]
pub(super) struct Handle {
    pub disk: Disk,
    pub file: usize,
    pub _open: Arc<()>,
}

/// A map: its bytes don't change any more, and a system may refuse to remove its file.
#[derive(Debug)]
struct Map {
    bytes: Arc<Vec<u8>>,
    _open: Arc<()>,
}

impl AsRef<[u8]> for Map {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Handle {
    /// Writes as a program does that asks the system again when it was interrupted or did a part.
    fn write(&self, offset: usize, bytes: &[u8]) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            let (mut state, fault) = self.disk.call(Call::Change);
            let rest = &bytes[done..];
            let part = match fault {
                Some(FaultKind::Io) => return Err(io::Error::other("the disk failed")),
                Some(FaultKind::Interrupted) => continue,
                Some(FaultKind::Full) => &rest[..rest.len() / 2],
                Some(FaultKind::ShortWrite) => &rest[..rest.len().div_ceil(2)],
                Some(FaultKind::TooManyFiles | FaultKind::Sync) | None => rest,
            };
            state.files[self.file].write(Write::At(offset + done, part.into()));
            done += part.len();
            if fault == Some(FaultKind::Full) {
                return Err(ErrorKind::StorageFull.into());
            }
        }
        Ok(())
    }

    fn read(&self) -> io::Result<MutexGuard<'_, State>> {
        loop {
            return match self.disk.call(Call::Read) {
                (_, Some(FaultKind::Io)) => Err(io::Error::other("the disk failed")),
                (_, Some(FaultKind::Interrupted)) => continue,
                (state, _) => Ok(state),
            };
        }
    }
}

impl File {
    fn write(&mut self, write: Write) {
        write.apply(Arc::make_mut(&mut self.live));
        self.pending.push(write);
    }
}

fn place(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

impl VFile for Handle {
    fn len(&self) -> io::Result<u64> {
        Ok(self.read()?.files[self.file].live.len() as u64)
    }

    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        let state = self.read()?;
        let start = place(offset);
        let end = start.saturating_add(out.len());
        out.copy_from_slice(state.files[self.file].live.get(start..end).ok_or(ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write(place(offset), bytes)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let (mut state, fault) = self.disk.call(Call::Change);
        let file = &mut state.files[self.file];
        match fault {
            Some(FaultKind::Io) => Err(io::Error::other("the disk failed")),
            Some(FaultKind::Full) if place(length) > file.live.len() => Err(ErrorKind::StorageFull.into()),
            _ => {
                file.write(Write::Length(place(length)));
                Ok(())
            }
        }
    }

    fn sync(&self) -> io::Result<()> {
        let (mut state, fault) = self.disk.call(Call::Sync);
        let pending = std::mem::take(&mut state.files[self.file].pending);
        if matches!(fault, Some(FaultKind::Io | FaultKind::Full | FaultKind::Sync)) {
            state.failed_a_sync = true;
            // The pages are clean now, and their bytes are on no disk: the next sync has nothing to do for them.
            return Err(io::Error::other("the sync failed"));
        }
        let durable = Arc::make_mut(&mut state.files[self.file].durable);
        for write in &pending {
            write.apply(durable);
        }
        Ok(())
    }

    fn map(&self) -> io::Result<Mapping> {
        let state = self.read()?;
        let File { live, open, .. } = &state.files[self.file];
        Ok(Mapping::Shared(Box::new(Map { bytes: Arc::clone(live), _open: Arc::clone(open) })))
    }
}
