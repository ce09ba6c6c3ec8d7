//! The command line itself: help, version, completions, wrong use, and outputs that cannot be written.

use std::fs::File;
use std::process::Stdio;

use crate::insula::{Ended, insula};

#[test]
fn without_a_command_the_help_is_shown_and_the_use_is_wrong() {
    let ended = insula([""; 0]).run();
    assert_eq!((ended.code, ended.data.as_str()), (Some(2), ""));
    for command in ["serve", "infer", "doctor", "completions"] {
        assert!(ended.words.contains(&format!("\n  {command}")), "{}", ended.words);
    }
}

#[test]
fn help_that_was_asked_for_is_data() {
    let ended = insula(["--help"]).run();
    assert_eq!((ended.code, ended.words.as_str()), (Some(0), ""));
    assert!(ended.data.contains("Exit status: 0 done, 1 refused or failed, 2 wrong use, 3 server unreachable."));
}

#[test]
fn the_version_is_one_line() {
    let ended = insula(["--version"]).run();
    assert_eq!((ended.code, ended.data), (Some(0), format!("insula {}\n", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn unknown_options_and_values_are_wrong_use() {
    for arguments in [
        &["serve", "--nothing"][..],
        &["infer", "digits"],
        &["infer", "di/gits", "-"],
        &["infer", "digits", "-", "--server", "localhost:8000"],
        &["infer", "digits", "-", "--scale", "1"],
        &["infer", "digits", "-", "--model-version", "0"],
        &["infer", "digits", "-", "--timeout", "-1"],
        &["doctor", "-o", "xml"],
        &["completions", "tcsh"],
    ] {
        let ended = insula(arguments).run();
        assert_eq!((ended.code, ended.data.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(ended.words.starts_with("error: "), "{arguments:?}: {}", ended.words);
    }
}

#[test]
fn completions_know_every_command_and_option() {
    for shell in ["bash", "zsh", "fish"] {
        let ended = insula(["completions", shell]).run();
        assert_eq!((ended.code, ended.words.as_str()), (Some(0), ""), "{shell}");
        for word in ["serve", "infer", "doctor", "completions", "tenants", "scale"] {
            assert!(ended.data.contains(word), "{shell} lacks {word}");
        }
    }
}

#[test]
fn a_reader_that_went_away_is_no_failure() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let (mut command, _folder) = insula(["completions", "bash"]).into_parts();
    let ended = Ended::from(command.stdout(writer).stderr(Stdio::piped()).output().unwrap());
    assert_eq!((ended.code, ended.words.as_str()), (Some(0), ""));
}

#[test]
fn an_output_that_cannot_be_written_is_a_failure() {
    let (mut command, _folder) = insula(["completions", "bash"]).into_parts();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let ended = Ended::from(command.stdout(full).stderr(Stdio::piped()).output().unwrap());
    assert_eq!(ended.code, Some(1));
    assert!(ended.words.starts_with("error: the standard output cannot be written: "), "{}", ended.words);
}
