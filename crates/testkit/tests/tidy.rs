//! The rules of the source tree, one test each; a failure lists the places.

use insula_testkit::tidy::{edges, source, words};

fn none(faults: Vec<String>) {
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn crates_depend_only_along_the_edge_table() {
    assert!(edges::manifests().len() >= 12, "the manifests were not found");
    none(edges::forbidden_edges());
}

#[test]
fn manifests_inherit_from_the_workspace() {
    none(edges::manifests_apart());
}

#[test]
fn unsafe_code_is_forbidden_outside_its_crates() {
    none(edges::unsafe_not_forbidden());
}

#[test]
fn every_file_opens_with_a_head() {
    none(source::without_head());
}

#[test]
fn files_and_functions_fit_their_lengths() {
    none(source::too_long());
}

#[test]
fn nothing_is_unwrapped_outside_tests() {
    none(source::unwraps());
}

#[test]
fn nothing_is_left_unfinished() {
    none(words::unfinished());
}

#[test]
fn names_say_what_they_hold() {
    none(words::empty_names());
}

#[test]
fn the_top_level_holds_only_what_belongs_there() {
    none(words::strangers_at_the_top());
}
