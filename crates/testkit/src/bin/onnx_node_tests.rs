//! Runs the ONNX node tests through the engine and holds the counts to those that are committed. `conformance/run.sh` calls
//! it; by hand, `--only SUBSTRING` shows what becomes of single cases.
#![forbid(unsafe_code)]

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use insula_testkit::node_tests::cases::Tests;
use insula_testkit::node_tests::counts::Counts;
use insula_testkit::node_tests::operators_document::operators_document;
use insula_testkit::node_tests::{report, run_all};

const USAGE: &str = "usage: onnx_node_tests --cases DIR [--expect FILE] [--document FILE] [--update]
                       [--only SUBSTRING] [--list pass|unsupported|wrong]

  --cases DIR       what onnx_node_cases.py wrote
  --expect FILE     the committed counts: fails when fewer cases pass or are in scope, or any is wrong
  --document FILE   the table of operators: fails when it is out of date
  --update          writes both files instead
  --only SUBSTRING  runs the cases whose name contains it and shows each
  --list OUTCOME    shows the cases with this outcome and why";

#[derive(Debug, Default)]
struct Arguments {
    cases: Option<PathBuf>,
    expect: Option<PathBuf>,
    document: Option<PathBuf>,
    update: bool,
    only: Option<String>,
    list: Option<String>,
}

fn arguments() -> Result<Arguments, String> {
    let mut found = Arguments::default();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        if word == "--update" {
            found.update = true;
            continue;
        }
        let value = words.next().ok_or_else(|| format!("`{word}` is not known or lacks its value\n{USAGE}"))?;
        match word.as_str() {
            "--cases" => found.cases = Some(value.into()),
            "--expect" => found.expect = Some(value.into()),
            "--document" => found.document = Some(value.into()),
            "--only" => found.only = Some(value),
            "--list" if matches!(value.as_str(), "pass" | "unsupported" | "wrong") => found.list = Some(value),
            _ => return Err(format!("`{word} {value}` is not known\n{USAGE}")),
        }
    }
    Ok(found)
}

/// What the run says, and whether all is as it should be.
fn run() -> Result<(String, bool), String> {
    let arguments = arguments()?;
    let cases = arguments.cases.as_ref().ok_or_else(|| format!("--cases is missing\n{USAGE}"))?;
    let tests = Tests::read(cases)?;
    let verdicts = run_all(&tests, arguments.only.as_deref().unwrap_or(""))?;
    if arguments.only.is_some() {
        return Ok((report::listing(&verdicts, arguments.list.as_deref()), true));
    }
    let counts = Counts::new(&tests, &verdicts);
    let mut said = report::summary(&counts, &verdicts);
    said += &report::listing(&verdicts, Some("wrong"));
    if let Some(list) = arguments.list.as_deref().filter(|list| *list != "wrong") {
        said += &report::listing(&verdicts, Some(list));
    }
    let mut good = true;
    if let Some(path) = &arguments.expect {
        good &= hold_counts(path, &counts, arguments.update, &mut said)?;
    }
    if let Some(path) = &arguments.document {
        good &= hold_document(path, &operators_document(&counts, &verdicts), arguments.update, &mut said)?;
    }
    Ok((said, good))
}

fn hold_counts(path: &PathBuf, counts: &Counts, update: bool, said: &mut String) -> Result<bool, String> {
    if update {
        write(path, &counts.to_toml())?;
        return Ok(counts.wrong == 0);
    }
    let committed = Counts::read(path)?;
    let faults = counts.worse_than(&committed);
    faults.iter().for_each(|fault| *said += &format!("FAILED: {fault}\n"));
    if counts.pass > committed.pass {
        *said += &format!(
            "{} cases pass, {} are committed: raise the committed count with run.sh --update\n",
            counts.pass, committed.pass
        );
    }
    Ok(faults.is_empty())
}

fn hold_document(path: &PathBuf, document: &str, update: bool, said: &mut String) -> Result<bool, String> {
    if update {
        write(path, document)?;
        return Ok(true);
    }
    let current = std::fs::read_to_string(path).unwrap_or_default() == document;
    if !current {
        *said += &format!("FAILED: {} is out of date: run.sh --update writes it\n", path.display());
    }
    Ok(current)
}

fn write(path: &PathBuf, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{} could not be written: {error}", path.display()))
}

fn main() -> ExitCode {
    match run() {
        Ok((said, good)) => {
            // who closed the pipe does not want the rest
            let _ = std::io::stdout().write_all(said.as_bytes());
            if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::from(2)
        }
    }
}
