//! A model that came as files in a request instead of a folder: `file:<version>/<path>`, each with its bytes. It checks names
//! and loads from memory; writing it to disk is the private models' business.

use std::collections::BTreeMap;

use bytes::Bytes;
use insula_core::Version;

use crate::error::{LoadError, LoadErrorKind, LoadResult, quoted};
use crate::external_data::{UploadedData, components};
use crate::model::LoadOptions;
use crate::model_file::ModelFile;
use crate::repository::MODEL_FILE;

/// The most files of one version.
pub const MAX_FILES: usize = 1000;

/// The files of one version of a model, by their path in its folder.
#[derive(Debug, Clone, Default)]
pub struct VersionFiles {
    files: BTreeMap<String, Bytes>,
}

impl VersionFiles {
    /// Adds the file at `path`. Fails when that leaves the folder, is taken, or is one file too many.
    pub fn insert(&mut self, path: &str, bytes: Bytes) -> LoadResult<()> {
        let refused = |why: &str| LoadError::new(LoadErrorKind::Settings, format!("file {}: {why}", quoted(path)));
        let parts = components(path).map_err(|error| refused(error.message()))?;
        let hidden = parts.iter().any(|part| part.starts_with('.') || part.len() > 255);
        if hidden {
            return Err(refused("names may not begin with a dot or be longer than 255 bytes"));
        }
        if self.files.len() >= MAX_FILES {
            return Err(refused(&format!("a version has at most {MAX_FILES} files")));
        }
        let above = |other: &str| path.starts_with(&format!("{other}/")) || other.starts_with(&format!("{path}/"));
        if self.files.contains_key(path) || self.files.keys().any(|other| above(other)) {
            return Err(refused("it is given twice, or is a file and a folder at once"));
        }
        self.files.insert(path.to_string(), bytes);
        Ok(())
    }

    /// The files by path.
    pub fn files(&self) -> &BTreeMap<String, Bytes> {
        &self.files
    }

    /// Loads the model from these files.
    pub fn load(&self, options: &LoadOptions<'_>) -> LoadResult<ModelFile> {
        let missing =
            || LoadError::new(LoadErrorKind::Settings, format!("there is no file {MODEL_FILE} among those uploaded"));
        let onnx = self.files.get(MODEL_FILE).ok_or_else(missing)?.clone();
        ModelFile::load(onnx, &UploadedData::new(self.files.clone()), options)
    }
}

/// Sorts files named `file:<version>/<path>` into versions, ascending. Fails for any other name.
pub fn versions_of_files(
    files: impl IntoIterator<Item = (String, Bytes)>,
) -> LoadResult<BTreeMap<Version, VersionFiles>> {
    let mut versions: BTreeMap<Version, VersionFiles> = BTreeMap::new();
    for (name, bytes) in files {
        let parts = name.strip_prefix("file:").and_then(|rest| rest.split_once('/'));
        let Some((version, path)) = parts else {
            return Err(LoadError::new(
                LoadErrorKind::Settings,
                format!("file {}: expected `file:<version>/<path>`", quoted(&name)),
            ));
        };
        let version: Version = version.parse().map_err(|error: insula_core::Error| {
            LoadError::new(LoadErrorKind::Settings, format!("file {}: {}", quoted(&name), error.message()))
        })?;
        versions.entry(version).or_default().insert(path, bytes)?;
    }
    Ok(versions)
}
