//! The edge table: which crate may depend on which, and the rules for manifests. A dependency that is not in the table is
//! a defect, whatever it is for; dev-dependencies are free.

use std::collections::BTreeMap;
use std::path::Path;

use toml::{Table, Value};

use super::{files, root, shown};

/// What each crate may depend on among our own.
const EDGES: [(&str, &[&str]); 14] = [
    ("insula-core", &[]),
    ("insula-kernels", &[]),
    ("insula-memory", &["insula-core"]),
    ("insula-api", &["insula-core"]),
    ("insula-store", &["insula-core"]),
    ("insula-telemetry", &["insula-core"]),
    ("insula-client", &["insula-api", "insula-core"]),
    ("insula-model", &["insula-core"]),
    ("insula-exec", &["insula-core", "insula-memory", "insula-model", "insula-kernels", "insula-telemetry"]),
    (
        "insula-runtime",
        &["insula-core", "insula-memory", "insula-model", "insula-exec", "insula-store", "insula-telemetry"],
    ),
    ("insula-server", &["insula-api", "insula-runtime", "insula-store", "insula-telemetry", "insula-core"]),
    ("insula-cli", &["insula-server", "insula-client", "insula-api", "insula-store", "insula-core"]),
    ("insula-python", &["insula-runtime", "insula-client", "insula-core"]),
    ("insula-testkit", ANY),
];

/// Crates above everything: they may depend on any, and nothing may depend on them.
const ABOVE: [&str; 3] = ["insula-testkit", "insula-benches", "insula-examples"];
const ANY: &[&str] = &["*"];

/// Outside crates that only one of ours may name.
const SOLE_USERS: [(&str, &str); 2] = [("actix", "insula-runtime"), ("cudarc", "insula-exec")];

/// A parsed manifest.
#[derive(Debug)]
pub struct Manifest {
    /// The package's name.
    pub name: String,
    /// Its path from the root.
    pub path: String,
    table: Table,
}

/// All manifests of the workspace, without fuzz crates (which are workspaces of their own).
pub fn manifests() -> Vec<Manifest> {
    let all = files(&root(), &["toml"]);
    let member = |path: &&std::path::PathBuf| {
        path.file_name().is_some_and(|name| name == "Cargo.toml")
            && !shown(path).contains("/fuzz/")
            && shown(path) != "Cargo.toml"
    };
    all.iter().filter(member).map(|path| read(path)).collect()
}

#[expect(clippy::panic, reason = "a rule that cannot read a manifest must fail its test loudly")]
fn read(path: &Path) -> Manifest {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", shown(path)));
    let table: Table = text.parse().unwrap_or_else(|error| panic!("{}: {error}", shown(path)));
    let name =
        table.get("package").and_then(|package| package.get("name")).and_then(Value::as_str).unwrap_or("").to_string();
    Manifest { name, path: shown(path), table }
}

/// Every dependency of `section`, target-specific ones included.
fn dependencies<'a>(manifest: &'a Manifest, section: &str) -> BTreeMap<&'a str, &'a Value> {
    let mut tables: Vec<&Table> = manifest.table.get(section).and_then(Value::as_table).into_iter().collect();
    for target in
        manifest.table.get("target").and_then(Value::as_table).into_iter().flat_map(|targets| targets.values())
    {
        tables.extend(target.get(section).and_then(Value::as_table));
    }
    tables.into_iter().flatten().map(|(name, value)| (name.as_str(), value)).collect()
}

/// Dependencies that the edge table does not allow.
pub fn forbidden_edges() -> Vec<String> {
    let table: BTreeMap<_, _> = EDGES.into_iter().collect();
    let mut faults = Vec::new();
    for manifest in manifests() {
        let allowed = if ABOVE.contains(&manifest.name.as_str()) {
            ANY
        } else {
            table.get(manifest.name.as_str()).copied().unwrap_or(&[])
        };
        for name in dependencies(&manifest, "dependencies")
            .into_keys()
            .chain(dependencies(&manifest, "build-dependencies").into_keys())
        {
            let above = ABOVE.contains(&name);
            let legal = !name.starts_with("insula-") || (!above && (allowed == ANY || allowed.contains(&name)));
            if !legal {
                faults.push(format!("{}: {} may not depend on {name}", manifest.path, manifest.name));
            }
            for (crate_name, user) in SOLE_USERS {
                if name == crate_name && manifest.name != user {
                    faults.push(format!("{}: only {user} may name {crate_name}", manifest.path));
                }
            }
        }
    }
    faults
}

/// Manifests that do not inherit the workspace's dependencies, lints, edition or licence.
pub fn manifests_apart() -> Vec<String> {
    let mut faults = Vec::new();
    for manifest in manifests() {
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            for (name, value) in dependencies(&manifest, section) {
                let inherited = value.get("workspace").and_then(Value::as_bool) == Some(true);
                if !inherited {
                    faults.push(format!("{}: {name} must come from [workspace.dependencies]", manifest.path));
                }
            }
        }
        let inherits = |table: Option<&Value>, key: &str| {
            table.and_then(|table| table.get(key)).and_then(|value| value.get("workspace")).and_then(Value::as_bool)
                == Some(true)
        };
        for key in ["version", "edition", "license", "rust-version"] {
            if !inherits(manifest.table.get("package"), key) {
                faults.push(format!("{}: package.{key} must be inherited from the workspace", manifest.path));
            }
        }
        if manifest.table.get("lints").and_then(|lints| lints.get("workspace")).and_then(Value::as_bool) != Some(true) {
            faults.push(format!("{}: [lints] workspace = true is missing", manifest.path));
        }
    }
    faults
}

/// Crates that may hold unsafe code; every other library must forbid it.
const UNSAFE_CRATES: [&str; 3] = ["insula-memory", "insula-exec", "insula-kernels"];

/// Libraries that neither may hold unsafe code nor forbid it.
pub fn unsafe_not_forbidden() -> Vec<String> {
    let mut faults = Vec::new();
    for manifest in manifests() {
        let folder = root().join(&manifest.path);
        for file in ["lib.rs", "main.rs"] {
            let path = folder.with_file_name("src").join(file);
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            if !UNSAFE_CRATES.contains(&manifest.name.as_str()) && !text.contains("#![forbid(unsafe_code)]") {
                faults.push(format!("{}: #![forbid(unsafe_code)] is missing", shown(&path)));
            }
        }
    }
    faults
}
