//! Where settings come from, which one wins, and that all faults come out together.
#![cfg(test)]

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use insula_server::Server;
use insula_server::settings::{DeviceChoice, MemoryLimit, Overrides, Settings, SettingsFaults};

fn load(file: &str, variables: &[(&str, &str)], overrides: Overrides) -> Result<Settings, SettingsFaults> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("insula.toml");
    fs::write(&path, file).unwrap();
    let variables = variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    Settings::from_sources(variables, &Overrides { config: Some(path), ..overrides })
}

fn project(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

#[test]
fn later_sources_win() {
    let file = "[server]\nhttp = \"127.0.0.1:1\"\nadmin = \"127.0.0.1:2\"\nworkers = 3\nmemory = \"50%\"\n\
                [requests]\nbody_idle = \"250ms\"\n[log]\nlevel = \"debug\"\n";
    let variables = [("INSULA_ADMIN", "http://127.0.0.1:4/"), ("INSULA_WORKERS", "5"), ("INSULA_DEVICE", "")];
    let flags = Overrides { workers: Some("7".into()), ..Overrides::default() };
    let settings = load(file, &variables, flags).unwrap();
    assert_eq!(settings.http, SocketAddr::from(([127, 0, 0, 1], 1)));
    assert_eq!(settings.admin, SocketAddr::from(([127, 0, 0, 1], 4)));
    assert_eq!(settings.workers, Some(7));
    assert_eq!(settings.memory, MemoryLimit::Percent(50));
    assert_eq!(settings.requests.body_idle, Duration::from_millis(250));
    assert_eq!(settings.log.level, "debug");
    assert_eq!(settings.device, DeviceChoice::Auto);
}

#[test]
fn all_faults_of_all_sources_come_out_with_their_places() {
    let file = "[server]\nhttpp = 1\nworkers = 0\ngrpc = \"127.0.0.1:8001\"\n[log]\nformat = [1]\n";
    let variables = [("INSULA_MEMORY", "lots"), ("INSULA_OTLP_SAMPLE_RATIO", "2")];
    let flags = Overrides { device: Some("cuda".into()), http: Some("nowhere".into()), ..Overrides::default() };
    let faults = load(file, &variables, flags).unwrap_err();
    let told: Vec<String> = faults.faults().iter().map(ToString::to_string).collect();
    let expected = [
        ("insula.toml line 2", "the nearest known one is `server.http`"),
        ("insula.toml line 3", "server.workers"),
        ("insula.toml line 4", "gRPC is not available"),
        ("insula.toml line 6", "log.format"),
        ("INSULA_MEMORY", "\"lots\""),
        ("INSULA_OTLP_SAMPLE_RATIO", "0 to 1"),
        ("--http", "\"nowhere\""),
        ("--device", "cuda"),
    ];
    for (place, what) in expected {
        assert!(told.iter().any(|fault| fault.contains(place) && fault.contains(what)), "{place} {what} in {told:#?}");
    }
    assert_eq!(told.len(), expected.len(), "{told:#?}");
}

#[test]
fn a_file_that_is_no_toml_is_told_with_its_line_and_one_that_is_named_must_be_there() {
    let faults = load("[server]\nhttp = \n", &[], Overrides::default()).unwrap_err();
    assert!(faults.to_string().contains("line 2"), "{faults}");
    let missing = Overrides { config: Some("/nowhere/insula.toml".into()), ..Overrides::default() };
    let faults = Settings::from_sources([], &missing).unwrap_err();
    assert!(faults.to_string().contains("/nowhere/insula.toml"), "{faults}");
}

#[test]
fn a_slip_in_a_variable_is_noted_and_strangers_variables_are_not() {
    let variables =
        [("INSULA_WORKER", "2"), ("INSULA_SERVICE_HOST", "10.0.0.1"), ("INSULA_KEY", "k"), ("PATH", "/bin")];
    let settings = load("", &variables, Overrides::default()).unwrap();
    assert_eq!(settings.notes.len(), 1, "{:?}", settings.notes);
    assert!(settings.notes[0].contains("INSULA_WORKERS"));
}

#[test]
fn a_check_reads_the_documents_and_names_what_is_missing() {
    let mut settings =
        Settings { tenants: project("tenants"), models: project("examples/models"), ..Settings::default() };
    let report = settings.check();
    assert!(report.is_ok(), "{report}");
    assert!(report.to_string().contains("acme-corp"), "{report}");
    settings.models = project("examples/test/models");
    let report = settings.check();
    assert_eq!(report.faults.len(), 2, "{report}");
    assert!(report.faults[0].contains("digits"), "{report}");
    settings.tenants = "/nowhere".into();
    assert!(settings.check().faults[0].contains("--tenants"), "{report}");
}

#[test]
fn published_keys_are_refused_where_strangers_could_use_them() {
    let settings = Settings {
        http: SocketAddr::from(([0, 0, 0, 0], 0)),
        tenants: project("tenants"),
        models: project("examples/models"),
        state: tempfile::tempdir().unwrap().path().to_owned(),
        ..Settings::default()
    };
    assert!(!settings.check().is_ok());
    let refused = Server::start(settings).unwrap_err();
    assert!(refused.message().contains("k_demo") && refused.message().contains("acme-corp"), "{refused}");
}
