//! Where a model's external data comes from: the files beside `model.onnx` in its version's folder, or files uploaded with
//! it. A location is a relative path that stays inside; links and anything but plain files are refused, and what is refused
//! is never described by its contents or its path on the host. The tensor reader calls it.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use bytes::Bytes;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::error::{LoadError, LoadErrorKind, LoadResult};

/// The longest location.
const MAX_LOCATION: usize = 1024;

/// Files that hold a model's external data.
pub trait ExternalData: fmt::Debug {
    /// `length` bytes at `offset` of the file at `location`. Fails when the location is not that of a plain file inside, or the
    /// file is shorter. Never allocates more than the file holds.
    fn read(&self, location: &str, offset: u64, length: usize) -> LoadResult<Vec<u8>>;
}

/// A model without external data.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoExternalData;

impl ExternalData for NoExternalData {
    fn read(&self, _location: &str, _offset: u64, _length: usize) -> LoadResult<Vec<u8>> {
        Err(refused("the model came as a single file, without the file that holds this data"))
    }
}

/// Files uploaded with a model, by their path inside its version's folder.
#[derive(Debug, Clone, Default)]
pub struct UploadedData {
    files: BTreeMap<String, Bytes>,
}

impl UploadedData {
    /// The files by path.
    pub fn new(files: BTreeMap<String, Bytes>) -> UploadedData {
        UploadedData { files }
    }
}

impl ExternalData for UploadedData {
    fn read(&self, location: &str, offset: u64, length: usize) -> LoadResult<Vec<u8>> {
        components(location)?;
        let file = self.files.get(location).ok_or_else(|| refused("its file was not uploaded with the model"))?;
        let start = check_range(offset, length, file.len() as u64)?;
        let start = usize::try_from(start).map_err(|_| refused("its offset is beyond the end of its file"))?;
        Ok(file[start..start + length].to_vec())
    }
}

/// The folder of a version, open: what is read later is in it even if its path is moved.
#[derive(Debug)]
pub struct VersionFolder {
    folder: File,
}

impl VersionFolder {
    /// Opens the folder at `path`.
    pub fn open(path: &Path) -> std::io::Result<VersionFolder> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(VersionFolder { folder: File::from(rustix::fs::open(path, flags, Mode::empty())?) })
    }

    /// Opens the plain file at `location`, following no link on the way.
    fn file(&self, location: &str) -> LoadResult<File> {
        let parts = components(location)?;
        let (name, folders) = parts.split_last().ok_or_else(|| refused("its location is empty"))?;
        let mut open: Option<File> = None;
        for folder in folders {
            let at = open.as_ref().unwrap_or(&self.folder);
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            open = Some(File::from(rustix::fs::openat(at, *folder, flags, Mode::empty()).map_err(not_opened)?));
        }
        let at = open.as_ref().unwrap_or(&self.folder);
        // NONBLOCK: opening a pipe or a device must not wait; it is refused below
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(at, *name, flags, Mode::empty()).map_err(not_opened)?);
        let about = file.metadata().map_err(|error| LoadError::storage("look at a file of external data", &error))?;
        match about.is_file() {
            true => Ok(file),
            false => Err(refused("its location is not that of a plain file")),
        }
    }
}

impl ExternalData for VersionFolder {
    fn read(&self, location: &str, offset: u64, length: usize) -> LoadResult<Vec<u8>> {
        let file = self.file(location)?;
        let failed = |error: std::io::Error| LoadError::storage("read a file of external data", &error);
        let start = check_range(offset, length, file.metadata().map_err(failed)?.len())?;
        let mut bytes = vec![0u8; length];
        file.read_exact_at(&mut bytes, start).map_err(failed)?;
        Ok(bytes)
    }
}

/// The components of a location. Fails when it is not a relative path that stays inside.
pub(crate) fn components(location: &str) -> LoadResult<Vec<&str>> {
    if location.is_empty() || location.len() > MAX_LOCATION {
        return Err(refused(&format!("its location must have 1 to {MAX_LOCATION} bytes, it has {}", location.len())));
    }
    let parts: Vec<&str> = location.split('/').collect();
    let plain = |part: &&str| !part.is_empty() && *part != "." && *part != ".." && !part.contains(['\\', '\0']);
    if !parts.iter().all(plain) {
        return Err(refused(
            "its location must be a relative path inside the version's folder: names joined by `/`, without `..`, `.`, empty names or backslashes",
        ));
    }
    Ok(parts)
}

fn check_range(offset: u64, length: usize, size: u64) -> LoadResult<u64> {
    let end = offset.checked_add(length as u64);
    match end.is_some_and(|end| end <= size) {
        true => Ok(offset),
        false => Err(refused(&format!("its {length} bytes at offset {offset} reach beyond the end of its file"))),
    }
}

fn not_opened(errno: Errno) -> LoadError {
    match errno {
        Errno::LOOP | Errno::MLINK => refused("its location is or leads through a link"),
        // O_DIRECTORY | O_NOFOLLOW on a link answers ENOTDIR
        Errno::NOTDIR => refused("its location leads through a link or something that is not a folder"),
        Errno::NOENT => refused("the version's folder has no file at its location"),
        Errno::NXIO | Errno::NODEV => refused("its location is not that of a plain file"),
        Errno::ACCESS | Errno::NAMETOOLONG | Errno::INVAL => refused("its location cannot be opened"),
        other => LoadError::storage("open a file of external data", &other),
    }
}

fn refused(why: &str) -> LoadError {
    LoadError::new(LoadErrorKind::ExternalData, format!("external data: {why}"))
}

#[cfg(test)]
mod tests;
