//! A folder of models on disk: `<name>/model.toml` (optional) and `<name>/<version>/model.onnx` with its external data beside it.
//! It lists and loads; it keeps nothing and writes nothing. Both the shared catalog and each tenant's private models are one.

use std::collections::HashSet;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use bytes::Bytes;
use insula_core::{ModelName, Version};

use crate::error::{LoadError, LoadErrorKind, LoadResult, quoted};
use crate::external_data::VersionFolder;
use crate::model::LoadOptions;
use crate::model_file::ModelFile;
use crate::settings::ModelSettings;

/// The file in a version's folder that holds the graph.
pub const MODEL_FILE: &str = "model.onnx";
/// The file beside the versions that holds the settings.
pub const SETTINGS_FILE: &str = "model.toml";
/// The largest `model.onnx`: protobuf's own limit. Larger models keep their constants in external data.
pub const MAX_MODEL_BYTES: u64 = (2 << 30) - 1;
const MAX_SETTINGS_BYTES: u64 = 4 << 20;
const MAX_WARNINGS: usize = 1000;

/// The most files that a fingerprint tells of.
const MAX_FINGERPRINT_FILES: usize = 10_000;

/// The files of a version as they lay on disk.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VersionFingerprint(Vec<FileMark>);

/// A file's path, device, inode and size, and when its contents and its place were last changed (seconds, nanoseconds).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct FileMark {
    path: PathBuf,
    place: [u64; 3],
    modified: [i64; 2],
    changed: [i64; 2],
}

/// A folder of models.
#[derive(Debug)]
pub struct Repository {
    root: PathBuf,
    /// Entries that have been warned of, so that a repository that is looked at often says it once.
    warned: Mutex<HashSet<PathBuf>>,
}

impl Repository {
    /// The repository in the folder `root`, which need not exist yet.
    pub fn new(root: impl Into<PathBuf>) -> Repository {
        Repository { root: root.into(), warned: Mutex::default() }
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The models, by name. Entries whose names cannot be models' are ignored with a warning. Empty when there is no folder.
    pub fn names(&self) -> LoadResult<Vec<ModelName>> {
        let mut names = Vec::new();
        for entry in self.folders(&self.root)?.unwrap_or_default() {
            match ModelName::new(&entry) {
                Ok(name) => names.push(name),
                Err(_) => self.warn_ignored(&self.root.join(&entry), "its name is not a model's"),
            }
        }
        names.sort();
        Ok(names)
    }

    /// The versions of model `name`, ascending. Folders whose names are not versions are ignored with a warning. Fails when there
    /// is no such model.
    pub fn versions(&self, name: &ModelName) -> LoadResult<Vec<Version>> {
        let folder = self.model_folder(name);
        let entries = self.folders(&folder)?;
        let entries =
            entries.ok_or_else(|| LoadError::new(LoadErrorKind::Missing, format!("there is no model `{name}`")))?;
        let mut versions = Vec::new();
        for entry in entries {
            match entry.parse::<Version>() {
                Ok(version) => versions.push(version),
                Err(_) => self.warn_ignored(
                    &folder.join(&entry),
                    "its name is not a version, a whole number from 1 to 2147483647",
                ),
            }
        }
        versions.sort_unstable();
        Ok(versions)
    }

    /// What the `model.toml` of model `name` says; defaults when there is none.
    pub fn settings(&self, name: &ModelName) -> LoadResult<ModelSettings> {
        let about = |error: LoadError| error.context(format_args!("model `{name}`, {SETTINGS_FILE}"));
        let bytes = read_file(&self.model_folder(name).join(SETTINGS_FILE), MAX_SETTINGS_BYTES).map_err(about)?;
        let Some(bytes) = bytes else { return Ok(ModelSettings::default()) };
        let text = std::str::from_utf8(&bytes)
            .map_err(|_| about(LoadError::new(LoadErrorKind::Settings, "it is not text")))?;
        ModelSettings::parse(text).map_err(about)
    }

    /// Loads `version` of model `name` with `options` as they are (see [`ModelSettings::apply`]). Fails the same way each time.
    pub fn load(&self, name: &ModelName, version: Version, options: &LoadOptions<'_>) -> LoadResult<ModelFile> {
        self.load_file(name, version, options)
            .map_err(|error| error.context(format_args!("model `{name}` version {}", version.number())))
    }

    /// What tells whether the files of a version are still those that were loaded: names, sizes, places on disk and times of the
    /// last change. `None` when they cannot be listed or are too many: then only loading tells.
    pub fn fingerprint(&self, name: &ModelName, version: Version) -> Option<VersionFingerprint> {
        let (mut files, mut open) = (Vec::new(), vec![self.version_folder(name, version)]);
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(folder).ok()? {
                let path = entry.ok()?.path();
                let about = std::fs::symlink_metadata(&path).ok()?;
                match about.is_dir() {
                    true => open.push(path),
                    false => files.push(FileMark {
                        path,
                        place: [about.dev(), about.ino(), about.len()],
                        modified: [about.mtime(), about.mtime_nsec()],
                        changed: [about.ctime(), about.ctime_nsec()],
                    }),
                }
                if files.len() + open.len() > MAX_FINGERPRINT_FILES {
                    return None;
                }
            }
        }
        files.sort();
        Some(VersionFingerprint(files))
    }

    fn load_file(&self, name: &ModelName, version: Version, options: &LoadOptions<'_>) -> LoadResult<ModelFile> {
        let path = self.version_folder(name, version);
        let missing = || LoadError::new(LoadErrorKind::Missing, "there is no such version");
        let folder = VersionFolder::open(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => missing(),
            _ => LoadError::storage("open the version's folder", &error),
        })?;
        let bytes = read_file(&path.join(MODEL_FILE), MAX_MODEL_BYTES)?;
        let bytes =
            bytes.ok_or_else(|| LoadError::new(LoadErrorKind::Missing, format!("its folder has no {MODEL_FILE}")))?;
        ModelFile::load(Bytes::from(bytes), &folder, options)
    }

    pub(crate) fn model_folder(&self, name: &ModelName) -> PathBuf {
        self.root.join(name.as_str())
    }

    pub(crate) fn version_folder(&self, name: &ModelName, version: Version) -> PathBuf {
        self.model_folder(name).join(version.number().to_string())
    }

    /// The names of the folders in `folder`, hidden ones left out; `None` when it is not there.
    fn folders(&self, folder: &Path) -> LoadResult<Option<Vec<String>>> {
        let failed = |error: &std::io::Error| LoadError::storage("list a folder of models", error);
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
            Err(error) => return Err(failed(&error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| failed(&error))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if !name.starts_with('.') && entry.path().is_dir() {
                names.push(name);
            }
        }
        Ok(Some(names))
    }

    fn warn_ignored(&self, path: &Path, why: &str) {
        let Ok(mut warned) = self.warned.lock() else { return };
        if warned.len() < MAX_WARNINGS && warned.insert(path.to_path_buf()) {
            tracing::warn!(path = %path.display(), "ignored a folder among the models: {why}");
        }
    }
}

/// The bytes of the plain file at `path`; `None` when there is none. Refuses more than `limit` bytes before reading them.
fn read_file(path: &Path, limit: u64) -> LoadResult<Option<Vec<u8>>> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let failed = |error: std::io::Error| LoadError::storage("read a model's file", &error);
    let about = match std::fs::metadata(path) {
        Ok(about) => about,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    if !about.is_file() {
        return Err(LoadError::malformed(format!("{} is not a plain file", quoted(&name))));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(about.len().min(limit)).unwrap_or(0));
    File::open(path).and_then(|file| file.take(limit + 1).read_to_end(&mut bytes)).map_err(failed)?;
    match bytes.len() as u64 > limit {
        true => Err(LoadError::limit(format!("{} is larger than {limit} bytes, the limit", quoted(&name)))),
        false => Ok(Some(bytes)),
    }
}
