//! Models on real disks: what is listed, loaded, stored, removed and refused.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use bytes::Bytes;
use insula_core::{Code, Error, ModelName, TenantId, Version};
use insula_model::onnx::data_type::FLOAT;
use insula_model::onnx::{StringStringEntryProto, TensorProto};
use insula_model::{
    LoadErrorKind, LoadOptions, NoFolding, Precision, PrivateModels, Repository, VersionFiles, versions_of_files,
};

use crate::builder::*;

fn name(text: &str) -> ModelName {
    ModelName::new(text).unwrap()
}

fn version(number: u32) -> Version {
    Version::new(number).unwrap()
}

fn small_model() -> Bytes {
    Builder::new(13).input("x", FLOAT, "N,4").node("Relu", &["x"], "y", vec![]).untyped_output("y").bytes()
}

/// y = x + w, w being the four floats at `location`.
fn external_model(location: &str) -> Bytes {
    let entry = StringStringEntryProto { key: "location".into(), value: location.into() };
    let weight = TensorProto { data_location: 1, external_data: vec![entry], ..tensor("w", FLOAT, &[4], vec![]) };
    Builder::new(13)
        .input("x", FLOAT, "N,4")
        .constant(weight)
        .node("Add", &["x", "w"], "y", vec![])
        .untyped_output("y")
        .bytes()
}

fn write(root: &Path, path: &str, bytes: &[u8]) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

fn options() -> LoadOptions<'static> {
    LoadOptions::new(&NoFolding)
}

#[test]
fn versions_compare_as_numbers_and_other_folders_are_ignored() {
    let root = tempfile::tempdir().unwrap();
    for folder in ["10", "2", "1", "0", "-1", "01", "1.0", "latest", "2147483648", "99999999999999999999", ".3"] {
        write(root.path(), &format!("m/{folder}/model.onnx"), &small_model());
    }
    write(root.path(), "m/7", b"a file, not a folder");
    let repository = Repository::new(root.path());
    let numbers: Vec<u32> = repository.versions(&name("m")).unwrap().into_iter().map(Version::number).collect();
    assert_eq!(numbers, [1, 2, 10]);
}

#[test]
fn models_are_listed_by_name() {
    let root = tempfile::tempdir().unwrap();
    for model in ["b", "a", "not a name", ".hidden"] {
        write(root.path(), &format!("{model}/1/model.onnx"), &small_model());
    }
    write(root.path(), "README.md", b"");
    assert_eq!(Repository::new(root.path()).names().unwrap(), [name("a"), name("b")]);
    assert_eq!(Repository::new(root.path().join("nowhere")).names().unwrap(), []);
}

#[test]
fn what_is_not_there_is_missing() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "m/1/other.onnx", &small_model());
    let repository = Repository::new(root.path());
    assert_eq!(repository.versions(&name("none")).unwrap_err().kind(), LoadErrorKind::Missing);
    for (model, number) in [("m", 1), ("m", 2), ("none", 1)] {
        let error = repository.load(&name(model), version(number), &options()).unwrap_err();
        assert_eq!((error.kind(), Error::from(error.clone()).code()), (LoadErrorKind::Missing, Code::NotFound));
        assert!(error.message().contains(&format!("model `{model}` version {number}")), "{error}");
    }
}

#[test]
fn settings_replace_the_defaults() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "m/1/model.onnx", &small_model());
    let repository = Repository::new(root.path());
    assert_eq!(repository.settings(&name("m")).unwrap().max_batch, None);
    write(root.path(), "m/model.toml", b"precision = \"fp16\"\n[batching]\nmax_batch = 4\n");
    let options = repository.settings(&name("m")).unwrap().apply(options());
    assert_eq!(options.precision, Precision::Fp16);
    assert_eq!(repository.load(&name("m"), version(1), &options).unwrap().fixed().unwrap().buckets(), [1, 2, 4]);
    write(root.path(), "m/model.toml", b"presicion = 1");
    let error = repository.settings(&name("m")).unwrap_err();
    assert!(error.message().contains("model `m`, model.toml") && error.message().contains("`precision`"), "{error}");
    write(root.path(), "m/model.toml", &[0xff]);
    assert_eq!(repository.settings(&name("m")).unwrap_err().kind(), LoadErrorKind::Settings);
}

#[test]
fn a_broken_model_is_refused_each_time_and_the_next_one_loads() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "m/1/model.onnx", &small_model());
    write(root.path(), "m/2/model.onnx", &small_model()[..20]);
    std::fs::create_dir_all(root.path().join("m/3/model.onnx")).unwrap();
    let repository = Repository::new(root.path());
    let first = repository.load(&name("m"), version(2), &options()).unwrap_err();
    assert_eq!(first, repository.load(&name("m"), version(2), &options()).unwrap_err());
    assert_eq!(Error::from(first).code(), Code::InvalidArgument);
    assert_eq!(repository.load(&name("m"), version(3), &options()).unwrap_err().kind(), LoadErrorKind::Malformed);
    repository.load(&name("m"), version(1), &options()).unwrap();
}

#[test]
fn external_data_lies_in_the_versions_folder_alone() {
    let root = tempfile::tempdir().unwrap();
    let weight: Vec<u8> = [1.0f32, 2.0, 3.0, 4.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    write(root.path(), "m/1/model.onnx", &external_model("weights/w.bin"));
    write(root.path(), "m/1/weights/w.bin", &weight);
    write(root.path(), "secret.bin", &weight);
    write(root.path(), "m/2/model.onnx", &external_model("../../secret.bin"));
    write(root.path(), "m/3/model.onnx", &external_model("link.bin"));
    std::os::unix::fs::symlink("../../secret.bin", root.path().join("m/3/link.bin")).unwrap();
    write(root.path(), "m/4/model.onnx", &external_model(root.path().join("secret.bin").to_str().unwrap()));
    let repository = Repository::new(root.path());
    repository.load(&name("m"), version(1), &options()).unwrap();
    for number in [2, 3, 4] {
        let error = repository.load(&name("m"), version(number), &options()).unwrap_err();
        assert_eq!(error.kind(), LoadErrorKind::ExternalData);
        assert!(
            !format!("{error:?}").contains("secret") && !format!("{error:?}").contains(root.path().to_str().unwrap()),
            "{error:?}"
        );
    }
}

fn files(list: &[(&str, Bytes)]) -> VersionFiles {
    let mut files = VersionFiles::default();
    for (path, bytes) in list {
        files.insert(path, bytes.clone()).unwrap();
    }
    files
}

#[test]
fn uploaded_files_are_sorted_into_versions_and_load_from_memory() {
    let uploaded = [
        ("file:10/model.onnx".to_string(), small_model()),
        ("file:2/model.onnx".to_string(), external_model("w/w.bin")),
        ("file:2/w/w.bin".to_string(), Bytes::from(vec![0; 16])),
    ];
    let versions = versions_of_files(uploaded).unwrap();
    assert_eq!(versions.keys().map(|version| version.number()).collect::<Vec<_>>(), [2, 10]);
    versions.values().for_each(|files| drop(files.load(&options()).unwrap()));
    let lost = files(&[("model.onnx", external_model("w.bin"))]).load(&options()).unwrap_err();
    assert_eq!(lost.kind(), LoadErrorKind::ExternalData);
    assert_eq!(files(&[("other.onnx", small_model())]).load(&options()).unwrap_err().kind(), LoadErrorKind::Settings);
}

#[test]
fn names_of_uploaded_files_that_leave_their_folder_are_refused() {
    let bad = [
        "model.onnx",
        "file:model.onnx",
        "file:0/model.onnx",
        "file:-1/m",
        "file:01/m",
        "file:x/m",
        "file:1/",
        "file:1/../m",
        "file:1//m",
        "file:1/a/../../m",
        "file:1/.hidden",
        "file:1/a\\b",
        "file:1//etc/passwd",
        "file:2147483648/m",
        "file:1/./m",
    ];
    for bad in bad {
        let error = versions_of_files([(bad.to_string(), Bytes::new())]).unwrap_err();
        assert_eq!(error.kind(), LoadErrorKind::Settings, "{bad}: {error}");
    }
    let twice = |first: &str, second: &str| {
        versions_of_files([(first.to_string(), Bytes::new()), (second.to_string(), Bytes::new())])
    };
    assert!(twice("file:1/a", "file:1/a").is_err());
    assert!(twice("file:1/a", "file:1/a/b").is_err());
    assert!(twice("file:1/a/b", "file:1/a").is_err());
    assert!(twice("file:1/a", "file:2/a").is_ok());
}

fn tenant() -> TenantId {
    TenantId::new("acme").unwrap()
}

#[test]
fn a_private_model_is_stored_loaded_and_removed() {
    let state = tempfile::tempdir().unwrap();
    let models = PrivateModels::open(state.path(), &tenant()).unwrap();
    let stored = files(&[("model.onnx", external_model("w/w.bin")), ("w/w.bin", Bytes::from(vec![0; 16]))]);
    models.store(&name("m"), version(3), &stored).unwrap();
    let folder = state.path().join("models/acme/m/3");
    assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(std::fs::metadata(folder.join("w/w.bin")).unwrap().permissions().mode() & 0o777, 0o600);
    models.repository().load(&name("m"), version(3), &options()).unwrap();
    let other = files(&[("model.onnx", small_model())]);
    models.store(&name("m"), version(3), &other).unwrap();
    assert!(!folder.join("w").exists(), "a file of what was replaced is still there");
    models.repository().load(&name("m"), version(3), &options()).unwrap();
    models.store(&name("m"), version(4), &stored).unwrap();
    models.remove(&name("m"), version(3)).unwrap();
    assert_eq!(models.repository().versions(&name("m")).unwrap(), [version(4)]);
    assert_eq!(models.remove(&name("m"), version(3)).unwrap_err().kind(), LoadErrorKind::Missing);
    models.remove(&name("m"), version(4)).unwrap();
    assert_eq!(models.repository().names().unwrap(), []);
    assert_eq!(std::fs::read_dir(state.path().join("models/acme")).unwrap().count(), 0);
}

#[test]
fn what_an_interrupted_write_left_is_not_seen_and_cleaned_up_at_the_next_start() {
    let state = tempfile::tempdir().unwrap();
    write(state.path(), "models/acme/.work-0/model.onnx", b"half a fi");
    write(state.path(), "models/acme/m/1/model.onnx", &small_model());
    let models = PrivateModels::open(state.path(), &tenant()).unwrap();
    assert!(!state.path().join("models/acme/.work-0").exists());
    assert_eq!(models.repository().names().unwrap(), [name("m")]);
    models.store(&name("m"), version(2), &files(&[("model.onnx", small_model())])).unwrap();
    assert_eq!(models.repository().versions(&name("m")).unwrap(), [version(1), version(2)]);
}

#[test]
fn a_version_is_never_seen_half_written() {
    let state = tempfile::tempdir().unwrap();
    let models = PrivateModels::open(state.path(), &tenant()).unwrap();
    let stored = files(&[("model.onnx", external_model("w.bin")), ("w.bin", Bytes::from(vec![0; 16]))]);
    std::thread::scope(|scope| {
        // looks until it has loaded the last version, so it has seen every state there was time to see
        scope.spawn(|| {
            let mut newest = 0;
            while newest < 20 {
                for number in models.repository().versions(&name("m")).unwrap_or_default() {
                    models.repository().load(&name("m"), number, &options()).unwrap();
                    newest = newest.max(number.number());
                }
            }
        });
        for number in 1..=20 {
            models.store(&name("m"), version(number), &stored).unwrap();
        }
    });
}

#[test]
fn a_fingerprint_tells_whether_a_versions_files_have_changed() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "m/1/model.onnx", &small_model());
    write(root.path(), "m/1/data/w.bin", b"12345678");
    let repository = Repository::new(root.path());
    let first = repository.fingerprint(&name("m"), version(1)).unwrap();
    assert_eq!(repository.fingerprint(&name("m"), version(1)), Some(first.clone()));
    write(root.path(), "m/1/data/w.bin", b"123456789");
    let grown = repository.fingerprint(&name("m"), version(1)).unwrap();
    assert_ne!(grown, first);
    write(root.path(), "m/1/data/more.bin", b"");
    assert_ne!(repository.fingerprint(&name("m"), version(1)).unwrap(), grown);
    assert_eq!(repository.fingerprint(&name("m"), version(2)), None);
}
