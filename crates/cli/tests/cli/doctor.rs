//! `insula doctor` on the machine that runs the tests, of which little is known, and on configurations, of which all is.

use serde_json::Value;

use crate::insula::{Insula, argument, insula, project};

fn doctor(tenants: &str, options: &[&str]) -> Insula {
    let models = argument(&project("examples/models"));
    let folders =
        ["doctor", "--tenants", tenants, "--models", &models, "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    insula([&folders[..], options].concat())
}

fn of_examples(options: &[&str]) -> Insula {
    doctor(&argument(&project("tenants")), options)
}

fn levels_of(report: &Value, what: &str) -> Vec<String> {
    let findings = report["findings"].as_array().unwrap().iter();
    findings
        .filter(|finding| finding["what"] == what)
        .map(|finding| finding["level"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn programs_get_every_finding_and_the_exit_code_says_whether_any_is_bad() {
    let ended = of_examples(&["-o", "json"]).run();
    let report: Value = serde_json::from_str(&ended.data).unwrap();
    assert_eq!(ended.code, Some(i32::from(report["bad"] != 0)), "{report}");
    for what in ["settings", "tenants", "models", "state folder", "http port", "admin port"] {
        assert_eq!(levels_of(&report, what), ["ok"], "{what}: {report}");
    }
    for what in ["cores", "numa nodes", "memory", "huge pages", "open files", "threads", "address space", "cpu kernels"]
    {
        assert_eq!(levels_of(&report, what).len(), 1, "{what}: {report}");
    }
}

#[test]
fn people_get_a_line_a_finding_and_words_that_sum_up() {
    let ended = of_examples(&[]).run();
    assert!(ended.data.lines().count() >= 15, "{}", ended.data);
    for line in ended.data.lines() {
        assert!(["ok    ", "warn  ", "bad   "].iter().any(|level| line.starts_with(level)), "{line}");
    }
    assert_eq!(ended.words.lines().count(), 1, "{}", ended.words);
}

#[test]
fn a_broken_configuration_is_bad_and_the_machine_is_looked_at_all_the_same() {
    let ended = of_examples(&["-o", "json", "--workers", "none"]).file("insula.toml", "[server]\nworker = 2\n").run();
    let report: Value = serde_json::from_str(&ended.data).unwrap();
    assert_eq!(ended.code, Some(1));
    assert_eq!(levels_of(&report, "settings"), ["bad", "bad"], "{report}");
    assert_eq!(levels_of(&report, "cores").len(), 1, "{report}");
}

#[test]
fn a_broken_tenant_document_is_bad() {
    let ended = doctor("t", &[]).file("t/acme.toml", "version = 1\nid = \"acme\"\nquotum = 1\n").run();
    assert_eq!(ended.code, Some(1));
    let line = ended.data.lines().find(|line| line.starts_with("bad   tenants")).unwrap();
    assert!(line.contains("t/acme.toml: line 3: ") && line.contains("quotum"), "{line}");
}
