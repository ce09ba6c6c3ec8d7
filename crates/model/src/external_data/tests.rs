//! External data: what is inside the folder is read, everything else is refused without a word about it.

use std::os::unix::fs::symlink;

use proptest::prelude::*;

use super::*;

const SECRET: &[u8] = b"a secret that must not be seen in any message";

fn folder() -> (tempfile::TempDir, VersionFolder) {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("secret.bin"), SECRET).unwrap();
    let version = root.path().join("1");
    std::fs::create_dir_all(version.join("weights")).unwrap();
    std::fs::write(version.join("a.bin"), (0..100u8).collect::<Vec<_>>()).unwrap();
    std::fs::write(version.join("weights/b.bin"), [7u8; 8]).unwrap();
    symlink("../secret.bin", version.join("link.bin")).unwrap();
    symlink("a.bin", version.join("inner_link.bin")).unwrap();
    symlink("..", version.join("up")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, version.join("pipe"), rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
    let opened = VersionFolder::open(&version).unwrap();
    (root, opened)
}

fn assert_refused(data: &dyn ExternalData, location: &str, offset: u64, length: usize) {
    let error = data.read(location, offset, length).unwrap_err();
    assert_eq!(error.kind(), LoadErrorKind::ExternalData, "{location:?}: {error}");
    let shown = format!("{error:?}");
    assert!(!shown.contains("secret") && !shown.contains("/tmp"), "{shown}");
}

#[test]
fn files_in_the_folder_and_below_are_read_from_their_offset() {
    let (_root, folder) = folder();
    assert_eq!(folder.read("a.bin", 10, 3).unwrap(), [10, 11, 12]);
    assert_eq!(folder.read("weights/b.bin", 0, 8).unwrap(), [7; 8]);
}

#[test]
fn locations_that_leave_the_folder_are_refused() {
    let (_root, folder) = folder();
    for location in [
        "",
        "/",
        "..",
        ".",
        "../secret.bin",
        "weights/../../secret.bin",
        "weights/../a.bin",
        "/etc/hostname",
        "./a.bin",
        "a.bin/",
        "weights//b.bin",
        "..\\secret.bin",
        "C:\\a.bin",
        "a.bin\0",
        &"x/".repeat(600),
    ] {
        assert_refused(&folder, location, 0, 1);
        assert_refused(&UploadedData::new([(location.to_string(), Bytes::from_static(&[1]))].into()), location, 0, 1);
    }
}

#[test]
fn links_pipes_and_folders_are_refused() {
    let (_root, folder) = folder();
    for location in ["link.bin", "inner_link.bin", "up/secret.bin", "up/1/a.bin", "pipe", "weights", "a.bin/x"] {
        assert_refused(&folder, location, 0, 1);
    }
}

#[test]
fn a_missing_file_is_refused() {
    let (_root, folder) = folder();
    assert_refused(&folder, "missing.bin", 0, 1);
    assert_refused(&UploadedData::default(), "missing.bin", 0, 1);
    assert_refused(&NoExternalData, "missing.bin", 0, 1);
}

#[test]
fn ranges_beyond_the_end_are_refused_before_memory_is_taken() {
    let (_root, folder) = folder();
    let uploaded = UploadedData::new([("a.bin".to_string(), Bytes::from_static(&[0; 100]))].into());
    for (offset, length) in [(0, 101), (100, 1), (u64::MAX, 1), (1, usize::MAX), (u64::MAX, usize::MAX)] {
        assert_refused(&folder, "a.bin", offset, length);
        assert_refused(&uploaded, "a.bin", offset, length);
    }
}

#[test]
fn a_folder_swapped_for_a_link_after_opening_is_not_followed() {
    let (root, folder) = folder();
    let version = root.path().join("1");
    std::fs::rename(version.join("weights"), version.join("moved")).unwrap();
    symlink("..", version.join("weights")).unwrap();
    assert_refused(&folder, "weights/secret.bin", 0, 1);
}

proptest! {
    #[test]
    fn no_location_leads_to_the_secret(location in "[./\\\\a-z0-9]{0,24}", prefix in "(|../|up/|link.bin|weights/)") {
        let (_root, folder) = folder();
        if let Ok(bytes) = folder.read(&format!("{prefix}{location}"), 0, 4) {
            prop_assert!(bytes != SECRET[..4]);
        }
    }
}
