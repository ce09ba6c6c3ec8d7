//! A tenant's own models on disk, `<state>/models/<tenant>/<name>/<version>/`: stored and removed whole. A version appears by one
//! rename after everything in it has reached the disk, so a crash leaves all of it or nothing. One process writes here.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use insula_core::{ModelName, TenantId, Version};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::error::{LoadError, LoadErrorKind, LoadResult};
use crate::repository::Repository;
use crate::uploaded_model::VersionFiles;

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// What is being written or removed is under this name, which no listing shows.
const WORK_PREFIX: &str = ".work-";

/// The models of one tenant.
#[derive(Debug)]
pub struct PrivateModels {
    repository: Repository,
    next: AtomicU64,
}

impl PrivateModels {
    /// Those of `tenant` under the state folder. Removes what an interrupted write left.
    pub fn open(state: &Path, tenant: &TenantId) -> LoadResult<PrivateModels> {
        let models = PrivateModels {
            repository: Repository::new(state.join("models").join(tenant.as_str())),
            next: AtomicU64::new(0),
        };
        models.remove_leftovers().map_err(|error| LoadError::storage("clean up a tenant's models", &error))?;
        Ok(models)
    }

    /// To list and load them.
    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    /// Writes `files` as `version` of model `name`, in place of what was there. Readers see the old files or the new ones, whole.
    pub fn store(&self, name: &ModelName, version: Version, files: &VersionFiles) -> LoadResult<()> {
        let target = self.repository.version_folder(name, version);
        let failed = |error: std::io::Error| LoadError::storage("write a model", &error);
        let work = self.work_folder().map_err(failed)?;
        let written = self.write(&work, files).and_then(|()| self.publish(&work, &target));
        if work.exists() {
            // what failed, or what was in its place before; what stays is removed at the next start
            drop(std::fs::remove_dir_all(&work));
        }
        written.map_err(failed)
    }

    /// Removes `version` of model `name`, and the model's folder with its last version. Fails when there is none.
    pub fn remove(&self, name: &ModelName, version: Version) -> LoadResult<()> {
        let failed = |error: std::io::Error| LoadError::storage("remove a model", &error);
        let target = self.repository.version_folder(name, version);
        let work = self.next_work_path();
        match std::fs::rename(&target, &work) {
            Ok(()) => {}
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                let number = version.number();
                return Err(LoadError::new(LoadErrorKind::Missing, format!("model `{name}` has no version {number}")));
            }
            Err(error) => return Err(failed(error)),
        }
        let folder = self.repository.model_folder(name);
        sync(&folder).map_err(failed)?;
        std::fs::remove_dir_all(&work).map_err(failed)?;
        match std::fs::remove_dir(&folder) {
            Err(error) if error.kind() != ErrorKind::DirectoryNotEmpty => return Err(failed(error)),
            _ => {}
        }
        sync(self.repository.root()).map_err(failed)
    }

    fn next_work_path(&self) -> PathBuf {
        self.repository.root().join(format!("{WORK_PREFIX}{}", self.next.fetch_add(1, Ordering::Relaxed)))
    }

    fn work_folder(&self) -> std::io::Result<PathBuf> {
        create_folders(self.repository.root())?;
        let path = self.next_work_path();
        DirBuilder::new().mode(FOLDER_MODE).create(&path)?;
        Ok(path)
    }

    fn write(&self, work: &Path, files: &VersionFiles) -> std::io::Result<()> {
        for (path, bytes) in files.files() {
            let path = work.join(path);
            let folder = path.parent().unwrap_or(work);
            create_folders(folder)?;
            let mut file = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(&path)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            for folder in folder.ancestors().take_while(|folder| folder.starts_with(work)) {
                sync(folder)?;
            }
        }
        sync(work)
    }

    fn publish(&self, work: &Path, target: &Path) -> std::io::Result<()> {
        let folder = target.parent().unwrap_or(self.repository.root());
        create_folders(folder)?;
        take_place(work, target)?;
        sync(folder)?;
        sync(self.repository.root())
    }

    fn remove_leftovers(&self) -> std::io::Result<()> {
        let entries = match std::fs::read_dir(self.repository.root()) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(WORK_PREFIX) {
                std::fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(())
    }
}

/// Moves `work` to `target` in one step; what was there lies at `work` afterwards.
fn take_place(work: &Path, target: &Path) -> std::io::Result<()> {
    match renameat_with(CWD, work, CWD, target, RenameFlags::EXCHANGE) {
        Err(Errno::NOENT) => std::fs::rename(work, target),
        exchanged => Ok(exchanged?),
    }
}

fn create_folders(path: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path)
}

fn sync(folder: &Path) -> std::io::Result<()> {
    File::open(folder)?.sync_all()
}
