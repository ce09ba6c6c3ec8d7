//! Reading a real folder: good documents beside bad ones, documents that contradict each other, files that are no
//! documents, links as Kubernetes makes them, and the project's own example tenants.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::fs;
use std::path::Path;

use insula_store::{TenantsFolder, hash_key, is_demo_key};

fn document(id: &str, extra: &str) -> String {
    format!("version = 1\nid = \"{id}\"\n{extra}")
}

fn key(secret: &str) -> String {
    let hash: String = hash_key(secret).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("[[keys]]\nid = \"k\"\nsha256 = \"{hash}\"\ncreated = 2026-12-01T00:00:00Z\n")
}

fn folder_with(files: &[(&str, String)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn read(folder: &Path) -> (Vec<String>, Vec<String>) {
    let read = TenantsFolder::read(folder).unwrap();
    let ids = read.tenants.iter().map(|(_, tenant)| tenant.id.to_string()).collect();
    let prefix = format!("{}/", folder.display());
    (ids, read.faults.iter().map(|fault| fault.to_string().replace(&prefix, "")).collect())
}

#[test]
fn a_bad_document_does_not_stop_the_others() {
    let folder = folder_with(&[
        ("b.toml", document("beta", "")),
        ("bad.toml", "version = 1\nid = 3\nstat = 2\n".to_owned()),
        ("a.toml", document("named-otherwise", "")),
        ("half.toml", "version = 1\nid = \"ha".to_owned()),
        ("empty.toml", String::new()),
    ]);
    let (ids, faults) = read(folder.path());
    assert_eq!(ids, ["named-otherwise", "beta"]);
    assert_eq!(faults.len(), 3, "{faults:?}");
    assert_eq!(
        faults[0],
        "bad.toml: line 2: id: must be a string, not of type integer\n\
         bad.toml: line 3: stat: unknown key; the nearest known one is `state`"
    );
    assert!(faults[1].starts_with("empty.toml: line 1: version: missing"), "{faults:?}");
    assert!(faults[2].starts_with("half.toml: line 2: not TOML"), "{faults:?}");
}

#[test]
fn two_documents_with_one_id_are_both_named_and_left_out() {
    let folder = folder_with(&[
        ("one.toml", document("acme", "")),
        ("other.toml", document("acme", "")),
        ("third.toml", document("beta", "")),
    ]);
    let (ids, faults) = read(folder.path());
    assert_eq!(ids, ["beta"]);
    assert_eq!(
        faults,
        [
            "one.toml: line 2: id = \"acme\" is also in other.toml; both are left out",
            "other.toml: line 2: id = \"acme\" is also in one.toml; both are left out",
        ]
    );
}

#[test]
fn one_key_never_names_two_tenants() {
    let folder = folder_with(&[
        ("one.toml", document("acme", &key("ins_same"))),
        ("other.toml", document("beta", &format!("state = \"suspended\"\n{}", key("ins_same")))),
        ("third.toml", document("gamma", &key("ins_own"))),
    ]);
    let (ids, faults) = read(folder.path());
    assert_eq!(ids, ["gamma"]);
    assert_eq!(faults[0], "one.toml: line 5: keys: the key on this line is also in other.toml; both are left out");
    assert_eq!(faults[1], "other.toml: line 6: keys: the key on this line is also in one.toml; both are left out");
}

#[test]
fn one_uuid_never_names_two_tenants() {
    let uuid = "uuid = \"01a22ee6-b000-713f-a37c-a5aed07e133e\"\n";
    let folder = folder_with(&[("one.toml", document("acme", uuid)), ("other.toml", document("beta", uuid))]);
    let (ids, faults) = read(folder.path());
    assert!(ids.is_empty());
    assert!(faults[0].starts_with("one.toml: line 3: uuid = \"01a22ee6"), "{faults:?}");
}

#[test]
fn only_toml_files_without_a_leading_dot_are_documents() {
    let folder = folder_with(&[
        (".hidden.toml", document("hidden", "")),
        ("notes.txt", "not a document".to_owned()),
        ("acme.toml~", "not a document".to_owned()),
        ("acme.toml", document("acme", "")),
    ]);
    fs::create_dir(folder.path().join("folder.toml")).unwrap();
    let (ids, faults) = read(folder.path());
    assert_eq!(ids, ["acme"]);
    assert_eq!(faults, ["folder.toml: is not a regular file"]);
}

#[test]
fn a_document_over_a_mebibyte_is_refused() {
    let comment = "#".repeat(1 << 20);
    let folder = folder_with(&[("big.toml", document("acme", &comment))]);
    assert_eq!(read(folder.path()).1, ["big.toml: is larger than 1 MiB, the most a document may have"]);
}

#[test]
fn a_document_that_is_not_utf8_is_refused_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("latin.toml"), b"version = 1\ndisplay_name = \"\xe9\"\n").unwrap();
    assert_eq!(read(folder.path()).1, ["latin.toml: line 2 is not UTF-8"]);
}

#[cfg(unix)]
#[test]
fn documents_behind_links_are_read_and_dangling_links_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::create_dir(path.join("..2026_0001")).unwrap();
    fs::write(path.join("..2026_0001/acme.toml"), document("acme", "")).unwrap();
    std::os::unix::fs::symlink("..2026_0001", path.join("..data")).unwrap();
    std::os::unix::fs::symlink("..data/acme.toml", path.join("acme.toml")).unwrap();
    std::os::unix::fs::symlink("..data/gone.toml", path.join("gone.toml")).unwrap();
    let (ids, faults) = read(path);
    assert_eq!(ids, ["acme"]);
    assert_eq!(faults.len(), 1);
    assert!(faults[0].starts_with("gone.toml: cannot be read: "), "{faults:?}");
}

#[test]
fn a_folder_that_is_not_there_is_an_error_that_names_it() {
    let error = TenantsFolder::read(Path::new("no-such-folder")).unwrap_err();
    assert!(error.message().starts_with("the tenants folder no-such-folder cannot be read: "), "{error}");
}

#[test]
fn the_example_tenants_are_good_and_have_the_demo_keys() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tenants");
    let examples = TenantsFolder::read(&folder).unwrap();
    assert_eq!(examples.faults, []);
    let ids: Vec<&str> = examples.tenants.iter().map(|(_, tenant)| tenant.id.as_str()).collect();
    assert_eq!(ids, ["acme-corp", "beta-llc"]);
    for (_, tenant) in &examples.tenants {
        assert!(!tenant.keys.is_empty() && tenant.keys.iter().all(|key| is_demo_key(&key.sha256)), "{}", tenant.id);
    }
}

#[test]
fn a_folder_with_too_many_documents_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..=insula_store::folder::DOCUMENTS_MAX {
        fs::File::create(folder.path().join(format!("{number}.toml"))).unwrap();
    }
    let error = TenantsFolder::read(folder.path()).unwrap_err();
    assert!(error.message().ends_with("holds more than 10000 documents: remove some"), "{error}");
}
