//! What a document may not say, and how it is told: each fault by itself with its line and sentence, all of them at once,
//! and what is not offered refused by name.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use insula_store::{DocumentFaults, TenantDocument};

const GOOD: &str = r#"version = 1
id = "acme-corp"
uuid = "01a22ee6-b000-713f-a37c-a5aed07e133e"
display_name = "Acme Corp"
state = "active"
isolation = "shared"
event_loop = "own"

[quota]
weight = 1.0
requests_per_second = 200.0
burst = 400
concurrency = 64
queue = 256
memory = "256MiB"
request_bytes = "16MiB"
timeout_ms = 5000

[[keys]]
id = "k_7f3a"
sha256 = "a1fd6f98a4ed2c23384f2564b368726804c0f248e072c8cf3ece756dfcc625b3"
created = 2026-12-01T00:00:00Z
expires = 2027-12-01T00:00:00Z

[[models]]
name = "digits"
catalog = "digits"
version = 1
precision = "fp16"
"#;

/// The faults of [`GOOD`] with `from` replaced by `to`, one a line.
fn faults_of(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "the document has no {from:?}");
    match TenantDocument::parse(&GOOD.replacen(from, to, 1)) {
        Ok(_) => format!("{to:?} was accepted"),
        Err(faults) => faults.faults().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
    }
}

#[test]
fn the_document_of_these_tests_is_good() {
    TenantDocument::parse(GOOD).unwrap();
}

#[test]
fn each_fault_is_told_with_its_line_its_value_and_what_was_expected() {
    let cases = [
        (
            "version = 1\nid",
            "version = 2\nid",
            "line 1: version = 2: this version of insula reads documents of version 1 only",
        ),
        ("\"acme-corp\"", "\"Acme\"", "line 2: id: \"Acme\" is not a tenant id: it must be a DNS label"),
        ("\"acme-corp\"", "7", "line 2: id: must be a string, not of type integer"),
        ("\"acme-corp\"", "\"unknown\"", "line 2: id = \"unknown\": metrics use this name"),
        ("01a22ee6-b000", "01a22ee6b000", "line 3: uuid = \"01a22ee6b000-713f-a37c-a5aed07e133e\": must be a UUID"),
        ("Acme Corp", "", "line 4: display_name = \"\": must be 1 to 200 characters"),
        ("Acme Corp", "a\\u0007b", "line 4: display_name = \"a\\u0007b\": must be 1 to 200 characters without control"),
        ("\"active\"", "\"paused\"", "line 5: state = \"paused\": must be \"active\" or \"suspended\""),
        ("\"shared\"", "\"weak\"", "line 6: isolation = \"weak\": must be \"shared\""),
        ("weight = 1.0", "weight = 0", "line 10: quota.weight = 0: must be 0.01 to 1000"),
        ("weight = 1.0", "weight = nan", "line 10: quota.weight = nan: must be 0.01 to 1000"),
        ("weight = 1.0", "weight = 1e400", "line 10: quota.weight = 1e400: must be 0.01 to 1000"),
        ("weight = 1.0", "weight = \"1\"", "line 10: quota.weight: must be a number, not of type string"),
        ("burst = 400", "burst = -1", "line 12: quota.burst = -1: must be a whole number from 1 to 10000000"),
        ("burst = 400", "burst = 4.5", "line 12: quota.burst: must be a whole number, not of type float"),
        (
            "\"256MiB\"",
            "\"256MB\"",
            "line 15: quota.memory = \"256MB\": must be a whole number of bytes, or one with KiB",
        ),
        ("\"256MiB\"", "\"64KiB\"", "line 15: quota.memory = \"64KiB\": must be 1MiB to 16384GiB"),
        (
            "\"16MiB\"",
            "\"512MiB\"",
            "line 16: quota.request_bytes = \"512MiB\": must not be over the tenant's memory, 256MiB",
        ),
        ("5000", "0", "line 17: quota.timeout_ms = 0: must be a whole number from 1 to 86400000"),
        ("\"k_7f3a\"", "\"k 7\"", "line 20: keys[0].id: \"k 7\" is not a key id"),
        (
            "2026-12-01T00:00:00Z",
            "\"2026-12-01T00:00:00Z\"",
            "line 22: keys[0].created = \"2026-12-01T00:00:00Z\": must be a date",
        ),
        (
            "2026-12-01T00:00:00Z",
            "2026-12-01T00:00:00",
            "line 22: keys[0].created = 2026-12-01T00:00:00: must be a date and time with an offset",
        ),
        (
            "2027-12-01T00:00:00Z",
            "2026-12-01T00:00:00Z",
            "line 23: keys[0].expires = 2026-12-01T00:00:00Z: must be later",
        ),
        ("name = \"digits\"", "name = \"a/b\"", "line 26: models[0].name: \"a/b\" is not a model name"),
        ("name = \"digits\"", "name = \"unknown\"", "line 26: models[0].name = \"unknown\": metrics use this name"),
        (
            "version = 1\nprecision",
            "version = 0\nprecision",
            "line 28: models[0].version = 0: must be a whole number from 1",
        ),
        ("\"fp16\"", "\"int8\"", "line 29: models[0].precision = \"int8\": must be \"fp16\" or \"fp32\""),
    ];
    for (from, to, expected) in cases {
        let told = faults_of(from, to);
        assert!(told.starts_with(expected) && !told.contains('\n'), "{to}\n  told:     {told}\n  expected: {expected}");
    }
}

#[test]
fn what_is_missing_is_told_where_it_belongs() {
    assert_eq!(
        faults_of("id = \"acme-corp\"\n", ""),
        "line 1: id: missing; add the tenant's id, such as `id = \"acme-corp\"`"
    );
    assert_eq!(
        faults_of("version = 1\nid", "id"),
        "line 1: version: missing; add the document's format, `version = 1`"
    );
    let told = faults_of("created = 2026-12-01T00:00:00Z\n", "");
    assert!(told.starts_with("line 19: keys[0].created: missing; add when it was made"), "{told}");
    let told = faults_of("name = \"digits\"\n", "");
    assert!(told.starts_with("line 25: models[0].name: missing"), "{told}");
    let empty = TenantDocument::parse("").unwrap_err();
    assert_eq!(empty.faults().iter().map(|fault| fault.key.as_str()).collect::<Vec<_>>(), ["version", "id"]);
}

#[test]
fn an_unknown_key_is_told_with_the_nearest_known_one() {
    let cases = [
        ("weight", "wieght", "line 10: quota.wieght: unknown key; the nearest known one is `weight`"),
        ("display_name", "displayname", "line 4: displayname: unknown key; the nearest known one is `display_name`"),
        ("[quota]", "[quotas]", "line 9: quotas: unknown key; the nearest known one is `quota`"),
        ("[[models]]", "[[model]]", "line 25: model: unknown key; the nearest known one is `models`"),
        ("catalog", "catalogue", "line 27: models[0].catalogue: unknown key; the nearest known one is `catalog`"),
        ("expires", "expiry", "line 23: keys[0].expiry: unknown key; the nearest known one is `expires`"),
    ];
    for (from, to, expected) in cases {
        assert_eq!(faults_of(from, to), expected);
    }
}

#[test]
fn what_this_version_does_not_offer_is_refused_by_name() {
    let cases = [
        (
            "isolation = \"shared\"",
            "isolation = \"strict\"",
            "line 6: `isolation = \"strict\"` is not available in this version; use \"shared\"",
        ),
        (
            "event_loop = \"own\"",
            "event_loop = \"shared\"",
            "line 7: `event_loop = \"shared\"` is not available in this version; use \"own\"",
        ),
        (
            "weight = 1.0",
            "memory_reserved = \"1GiB\"",
            "line 10: `quota.memory_reserved` is not available in this version; remove it",
        ),
        (
            "weight = 1.0",
            "gpu_memory = \"1GiB\"",
            "line 10: `quota.gpu_memory` is not available in this version; remove it",
        ),
        ("weight = 1.0", "connections = 4", "line 10: `quota.connections` is not available in this version; remove it"),
        (
            "weight = 1.0",
            "device_share = 0.5",
            "line 10: `quota.device_share` is not available in this version; remove it",
        ),
        (
            "expires = 2027-12-01T00:00:00Z",
            "scopes = [\"infer\"]",
            "line 23: `keys[0].scopes` is not available in this version; remove it",
        ),
        ("[quota]", "[shared_memory]\n[quota]", "line 9: `shared_memory` is not available in this version; remove it"),
    ];
    for (from, to, expected) in cases {
        assert_eq!(faults_of(from, to), expected);
    }
}

#[test]
fn key_ids_keys_and_model_names_are_unique() {
    let key = "[[keys]]\nid = \"k_7f3a\"\nsha256 = \"A1FD6f98a4ed2c23384f2564b368726804c0f248e072c8cf3ece756dfcc625b3\"\ncreated = 2026-12-02T00:00:00Z\n";
    let told = faults_of("[[models]]", &format!("{key}[[models]]"));
    assert_eq!(
        told,
        "line 26: keys[1].id = \"k_7f3a\": is also the id of keys[0]; ids must differ\n\
         line 27: keys[1].sha256: is the same key as keys[0]; remove one"
    );
    let told = faults_of("[[models]]", "[[models]]\nname = \"digits\"\n[[models]]");
    assert_eq!(told, "line 28: models[1].name = \"digits\": is also the name of models[0]; names must differ");
}

#[test]
fn all_faults_come_at_once_in_the_order_of_their_lines() {
    let text =
        "version = 3\nid = \"-\"\ncolour = 1\n[quota]\nweight = 2000\nmemory = 1\n[[keys]]\nid = \"\"\n[[models]]\n";
    let faults = TenantDocument::parse(text).unwrap_err();
    let found: Vec<(Option<usize>, &str)> =
        faults.faults().iter().map(|fault| (fault.line, fault.key.as_str())).collect();
    let expected = [
        (1, "version"),
        (2, "id"),
        (3, "colour"),
        (5, "quota.weight"),
        (6, "quota.memory"),
        (7, "keys[0].sha256"),
        (7, "keys[0].created"),
        (8, "keys[0].id"),
        (9, "models[0].name"),
    ];
    assert_eq!(found, expected.map(|(line, key)| (Some(line), key)));
    let error = insula_core::Error::from(faults);
    assert_eq!(error.code(), insula_core::Code::InvalidArgument);
    assert!(error.message().contains("line 5: quota.weight = 2000: must be 0.01 to 1000; line 6:"), "{error}");
}

#[test]
fn text_that_is_not_toml_is_told_by_its_lines() {
    let faults = TenantDocument::parse("version = 1\nid = \"a\"\nid = \"b\"\nstate = active\n").unwrap_err();
    let lines: Vec<_> = faults.faults().iter().map(|fault| fault.line).collect();
    assert_eq!(lines, [Some(3), Some(4)], "{faults}");
    assert!(faults.faults().iter().all(|fault| fault.message.starts_with("not TOML: ")), "{faults}");
}

#[test]
fn a_key_in_the_place_of_its_hash_is_not_repeated() {
    let told = faults_of(
        "a1fd6f98a4ed2c23384f2564b368726804c0f248e072c8cf3ece756dfcc625b3",
        "ins_a_secret_that_must_not_be_logged",
    );
    assert!(told.starts_with("line 21: keys[0].sha256: must be the SHA-256 of the key"), "{told}");
    assert!(!told.contains("secret"), "{told}");
    let told = faults_of("sha256 = \"a1", "sha256 = \"ins_a_secret\"\nkey = \"a1");
    assert!(!told.contains("ins_a_secret"), "{told}");
}

#[test]
fn a_flood_of_faults_is_cut_and_counted() {
    let text: String = (0..250).map(|n| format!("key{n} = 1\n")).collect();
    let faults = TenantDocument::parse(&text).unwrap_err();
    assert_eq!(faults.faults().len(), DocumentFaults::MAX + 1);
    // 250 unknown keys, version and id missing; the first 100 are told.
    assert_eq!(faults.faults()[DocumentFaults::MAX].message, "and 152 more faults");
}
