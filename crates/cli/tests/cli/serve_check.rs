//! Starts that must not happen, and `insula serve --check`, which starts nothing.

use crate::insula::{Ended, Insula, argument, insula, project};

const DEMO_KEY_SHA256: &str = "a1fd6f98a4ed2c23384f2564b368726804c0f248e072c8cf3ece756dfcc625b3";

fn serve(options: &[&str]) -> Insula {
    let models = argument(&project("examples/models"));
    insula([&["serve", "--models", &models, "--admin", "127.0.0.1:0"][..], options].concat())
}

fn document(id: &str, more: &str) -> String {
    format!(
        "version = 1\nid = \"{id}\"\nstate = \"active\"\n{more}\n[[models]]\nname = \"digits\"\ncatalog = \"digits\"\n"
    )
}

fn errors(ended: &Ended) -> Vec<&str> {
    ended.words.lines().filter_map(|line| line.strip_prefix("error: ")).collect()
}

#[test]
fn the_example_folders_are_good() {
    let tenants = argument(&project("tenants"));
    let ended = serve(&["--check", "--tenants", &tenants]).run();
    assert_eq!(ended.code, Some(0), "{}", ended.words);
    for tenant in ["acme-corp", "beta-llc"] {
        assert!(ended.data.contains(&format!("tenant {tenant}: models digits\n")), "{}", ended.data);
    }
}

#[test]
fn a_broken_document_is_named_with_file_line_and_key() {
    let ended = serve(&["--check", "--tenants", "t"])
        .file("t/good.toml", &document("good", ""))
        .file("t/broken.toml", &document("broken", "[quota]\nweigth = 2.0\n"))
        .run();
    assert_eq!(ended.code, Some(1));
    assert!(ended.data.contains("tenant good"), "{}", ended.data);
    let errors = errors(&ended);
    assert_eq!(errors.len(), 1, "{}", ended.words);
    assert!(errors[0].starts_with("t/broken.toml: line 5: ") && errors[0].contains("weigth"), "{}", errors[0]);
}

#[test]
fn faults_of_file_environment_and_options_come_out_together() {
    for check in [&[][..], &["--check"]] {
        let ended = serve(&[&["--http", "here"][..], check].concat())
            .env("INSULA_WORKERS", "none")
            .file("insula.toml", "[server]\nhttps = true\n")
            .run();
        assert_eq!((ended.code, ended.data.as_str()), (Some(2), ""));
        let errors = errors(&ended);
        assert_eq!(errors.len(), 3, "{}", ended.words);
        for place in ["insula.toml line 2: ", "INSULA_WORKERS: server.workers: ", "--http: server.http: "] {
            assert!(errors.iter().any(|error| error.starts_with(place)), "{place} is not in {errors:?}");
        }
    }
}

#[test]
fn a_demo_key_on_an_address_that_others_reach_refuses_to_start() {
    let key = format!("[[keys]]\nid = \"k_demo\"\nsha256 = \"{DEMO_KEY_SHA256}\"\ncreated = 2026-12-01T00:00:00Z\n");
    for check in [&[][..], &["--check"]] {
        let ended = serve(&[&["--http", "0.0.0.0:0", "--tenants", "t"][..], check].concat())
            .file("t/acme.toml", &document("acme", &key))
            .run();
        assert_eq!(ended.code, Some(1), "{}", ended.words);
        assert!(!ended.data.contains("insula is ready"), "{}", ended.data);
        let errors = errors(&ended);
        assert!(errors.iter().any(|error| error.contains("`k_demo`") && error.contains("0.0.0.0")), "{}", ended.words);
    }
}

#[test]
fn without_folders_to_serve_the_error_says_how_to_name_them() {
    let ended = insula(["serve", "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"]).run();
    assert_eq!((ended.code, ended.data.as_str()), (Some(1), ""));
    let errors = errors(&ended);
    assert!(errors.iter().any(|error| error.contains("--tenants DIR")), "{}", ended.words);
    assert!(errors.iter().any(|error| error.contains("--models DIR")), "{}", ended.words);
}
