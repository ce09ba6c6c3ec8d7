//! Settings from environment variables: `INSULA_` names of the table of keys. An empty variable counts as not set. A
//! variable with that prefix that is no setting may belong to somebody else (Kubernetes makes `INSULA_SERVICE_HOST` for a
//! service of that name), so it is never a fault; one that looks like a slip of the pen is noted.

use std::ffi::OsString;
use std::path::PathBuf;

use super::fault::Faults;
use super::key::{self, Given, KEYS};

/// The variable that names the settings file.
const CONFIG: &str = "INSULA_CONFIG";

/// Variables that other parts of insula read.
const OTHERS: [&str; 4] = ["INSULA_ADMIN_TOKEN", "INSULA_TOPOLOGY", "INSULA_SERVER", "INSULA_KEY"];

/// How many letters a variable may be away from a known one to be taken for a slip.
const SLIP: usize = 2;

/// What the environment says.
#[derive(Debug, Default)]
pub(super) struct Environment {
    pub(super) config: Option<PathBuf>,
    pub(super) given: Vec<Given>,
    pub(super) notes: Vec<String>,
}

/// Reads `variables`; notes values that are not UTF-8.
pub(super) fn read(variables: impl IntoIterator<Item = (OsString, OsString)>, faults: &mut Faults) -> Environment {
    let mut environment = Environment::default();
    let mut insulas: Vec<(String, OsString)> = variables
        .into_iter()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(name, value)| name.starts_with("INSULA_") && !value.is_empty())
        .collect();
    insulas.sort_by(|one, other| one.0.cmp(&other.0));
    for (name, value) in insulas {
        if name == CONFIG {
            environment.config = Some(value.into());
            continue;
        }
        let Some(key) = key::by_variable(&name) else {
            environment.notes.extend(slip(&name));
            continue;
        };
        match value.into_string() {
            Ok(value) => environment.given.push(Given { key, value, place: name }),
            Err(_) => faults.note(&name, key.path, "the value is not UTF-8"),
        }
    }
    environment
}

fn slip(name: &str) -> Option<String> {
    if OTHERS.contains(&name) {
        return None;
    }
    let known = KEYS.iter().map(|key| key.variable).chain([CONFIG]);
    let (distance, nearest) = known.map(|known| (strsim::osa_distance(name, known), known)).min()?;
    (distance <= SLIP).then(|| format!("{name} is not a setting and is ignored; {nearest} is one"))
}
