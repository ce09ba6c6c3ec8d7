//! The documents of the model repository extension: the index, and loading with files sent along. Paths of such files are
//! checked here and can only lie inside a version's folder; nothing is written here.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use insula_core::{Error, Result, Version};
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::invalid;

/// The body of `POST /v2/repository/index`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryIndexRequest {
    /// List only models that are ready.
    #[serde(default)]
    pub ready: bool,
}

/// One model in the answer to `POST /v2/repository/index`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryIndexEntry {
    /// The model's name.
    pub name: String,
    /// The version, if there is any.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub version: Option<String>,
    /// Its state.
    pub state: RepositoryState,
    /// Why it is not ready; empty when it is.
    pub reason: String,
}

/// The state of a model in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum RepositoryState {
    /// It takes requests.
    Ready,
    /// It does not; the reason says why.
    Unavailable,
    /// It is being loaded.
    Loading,
    /// It is being unloaded.
    Unloading,
}

/// The body of `POST /v2/repository/models/{name}/unload`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryUnload {
    /// Options of the unloading.
    #[serde(default)]
    pub parameters: UnloadParameters,
}

/// The parameters of an unload.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnloadParameters {
    /// Also unload models that only this one uses.
    #[serde(default)]
    pub unload_dependents: bool,
}

/// What `POST /v2/repository/models/{name}/load` was sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RepositoryLoad {
    /// The parameter `config`: the model's configuration as JSON text.
    pub config: Option<String>,
    /// The parameters `file:<version>/<name>`, in the order they came.
    pub files: Vec<RepositoryFile>,
}

/// A file sent along with a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryFile {
    /// The version in whose folder it belongs.
    pub version: Version,
    /// Its path within that folder, with `/` between components: never empty, absolute or leading outside.
    pub name: String,
    /// Its contents.
    pub bytes: Vec<u8>,
}

impl RepositoryLoad {
    /// Reads a load's body; an empty one asks for the files in the repository. Fails naming the parameter at fault.
    pub fn parse(body: &[u8]) -> Result<RepositoryLoad> {
        if body.is_empty() {
            return Ok(RepositoryLoad::default());
        }
        let document: LoadDocument = serde_json::from_slice(body).map_err(|error| invalid(&error))?;
        document.parameters.map(|parameters| parameters.0).unwrap_or(Ok(RepositoryLoad::default()))
    }
}

#[derive(Deserialize)]
struct LoadDocument {
    #[serde(default)]
    parameters: Option<LoadParameters>,
}

/// The parameters, or what is wrong with them beyond their JSON.
struct LoadParameters(Result<RepositoryLoad>);

impl<'de> Deserialize<'de> for LoadParameters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Parameters;
        impl<'de> Visitor<'de> for Parameters {
            type Value = LoadParameters;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of load parameters, all of them strings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<LoadParameters, A::Error> {
                let mut load = Ok(RepositoryLoad::default());
                while let Some(key) = map.next_key::<String>()? {
                    let value = map.next_value::<String>()?;
                    load = load.and_then(|load| take(load, &key, value));
                }
                Ok(LoadParameters(load))
            }
        }
        deserializer.deserialize_map(Parameters)
    }
}

fn take(mut load: RepositoryLoad, key: &str, value: String) -> Result<RepositoryLoad> {
    let shown: String = key.chars().take(60).collect();
    if key == "config" {
        if load.config.replace(value).is_some() {
            return Err(Error::invalid("the parameter `config` is given twice"));
        }
        return Ok(load);
    }
    let Some(path) = key.strip_prefix("file:") else {
        return Err(Error::invalid(format!(
            "the load parameter {shown:?} is unknown: known are `config` and `file:<version>/<name>`"
        )));
    };
    let (version, name) =
        file_path(path).map_err(|why| Error::invalid(format!("the load parameter {shown:?} {why}")))?;
    if load.files.iter().any(|file| file.version == version && file.name == name) {
        return Err(Error::invalid(format!("the load parameter {shown:?} is given twice")));
    }
    let bytes = STANDARD
        .decode(value)
        .map_err(|error| Error::invalid(format!("the load parameter {shown:?} is not base64: {error}")))?;
    load.files.push(RepositoryFile { version, name: name.to_owned(), bytes });
    Ok(load)
}

/// Splits `<version>/<name>` and makes sure that it can only mean a file within the version's folder.
fn file_path(path: &str) -> std::result::Result<(Version, &str), &'static str> {
    let Some((version, name)) = path.split_once('/') else { return Err("must be `file:<version>/<name>`") };
    let version = version.parse().map_err(|_| "must begin with a version, a whole number from 1 on")?;
    if name.chars().any(|character| character == '\\' || character == ':' || character.is_control()) {
        return Err("must name its file without backslashes, colons and control characters");
    }
    if name.split('/').any(|component| matches!(component, "" | "." | "..")) {
        return Err("must name a file inside the version's folder, without empty components, `.` and `..`");
    }
    Ok((version, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{SMALL_DOCUMENT_BYTES, small_document};
    use insula_core::Code;

    fn load(parameters: &str) -> Result<RepositoryLoad> {
        RepositoryLoad::parse(format!("{{\"parameters\":{parameters}}}").as_bytes())
    }

    #[test]
    fn files_and_configuration_are_read() {
        let load = load(r#"{"config":"{}","file:1/model.onnx":"AAEC","file:2/sub/w.bin":""}"#).unwrap();
        assert_eq!(load.config.as_deref(), Some("{}"));
        assert_eq!(
            (load.files[0].version.number(), &*load.files[0].name, &*load.files[0].bytes),
            (1, "model.onnx", &[0, 1, 2][..])
        );
        assert_eq!((load.files[1].version.number(), &*load.files[1].name), (2, "sub/w.bin"));
    }

    #[test]
    fn a_body_may_be_empty_or_without_parameters() {
        for body in ["", "{}", "{\"parameters\":{}}", "{\"parameters\":null}"] {
            assert_eq!(RepositoryLoad::parse(body.as_bytes()).unwrap(), RepositoryLoad::default());
        }
    }

    #[test]
    fn no_path_leads_out_of_the_versions_folder() {
        let absolute = "file:1//etc/passwd";
        for key in [
            "file:1/../w",
            "file:1/a/../../w",
            absolute,
            "file:1/a//b",
            "file:1/",
            "file:1/.",
            "file:1/a\\\\b",
            "file:1/c:x",
        ] {
            let error = load(&format!("{{\"{key}\":\"\"}}")).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument);
            assert!(error.message().contains("file:1/"), "{error}");
        }
        for key in ["file:0/m", "file:-1/m", "file:latest/m", "file:m", "file:", "file:01/m"] {
            assert!(load(&format!("{{\"{key}\":\"\"}}")).is_err(), "{key}");
        }
    }

    #[test]
    fn odd_parameters_are_refused_by_name() {
        assert!(load(r#"{"colour":"red"}"#).unwrap_err().message().contains("colour"));
        assert!(load(r#"{"file:1/m":"@@"}"#).unwrap_err().message().contains("base64"));
        assert!(load(r#"{"file:1/m":"AA==","file:1/m":"AA=="}"#).unwrap_err().message().contains("twice"));
        for parameters in ["[]", "7", r#"{"config":1}"#, "{"] {
            assert_eq!(load(parameters).unwrap_err().code(), Code::InvalidArgument, "{parameters}");
        }
    }

    #[test]
    fn small_documents_have_a_limit_and_a_default() {
        assert!(!small_document::<RepositoryIndexRequest>(b"").unwrap().ready);
        assert!(small_document::<RepositoryIndexRequest>(b"{\"ready\":true}").unwrap().ready);
        assert!(
            small_document::<RepositoryUnload>(br#"{"parameters":{"unload_dependents":true}}"#)
                .unwrap()
                .parameters
                .unload_dependents
        );
        assert!(small_document::<RepositoryIndexRequest>(b"{\"ready\":1}").is_err());
        let long = vec![b' '; SMALL_DOCUMENT_BYTES + 1];
        assert_eq!(small_document::<RepositoryIndexRequest>(&long).unwrap_err().code(), Code::PayloadTooLarge);
    }

    #[test]
    fn states_are_written_as_the_protocol_has_them() {
        let entry = RepositoryIndexEntry {
            name: "m".into(),
            version: Some("1".into()),
            state: RepositoryState::Ready,
            reason: String::new(),
        };
        assert_eq!(
            serde_json::to_string(&entry).unwrap(),
            "{\"name\":\"m\",\"version\":\"1\",\"state\":\"READY\",\"reason\":\"\"}"
        );
    }
}
