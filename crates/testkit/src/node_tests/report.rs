//! What a run of the node tests says to people: counts, and what the unsupported cases lack. Makes text; prints nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};

use insula_model::supported_operators;

use super::cases::Scope;
use super::counts::Counts;
use super::{NO_TYPE, Outcome, Verdict};

/// Counts and what is lacking, most first.
pub fn summary(counts: &Counts, verdicts: &[Verdict<'_>]) -> String {
    let mut text = String::new();
    // a string cannot fail to be written to
    let _ = write_summary(&mut text, counts, verdicts);
    text
}

fn write_summary(text: &mut String, counts: &Counts, verdicts: &[Verdict<'_>]) -> fmt::Result {
    writeln!(text, "{:5} ONNX node tests of onnx {}", counts.total, counts.onnx)?;
    for (category, cases) in &counts.excluded {
        writeln!(text, "{cases:5} out of scope: {category}")?;
    }
    writeln!(text, "{:5} in scope", counts.in_scope)?;
    for (cases, what) in [(counts.pass, "pass"), (counts.unsupported(), "unsupported"), (counts.wrong, "wrong")] {
        writeln!(text, "{cases:5} {what}")?;
    }
    write_ranking(text, "operators that the unsupported cases lack", lacking(verdicts, Lack::Operator))?;
    write_ranking(
        text,
        "operators whose form, and types whose tensors, the other unsupported cases lack",
        lacking(verdicts, Lack::Form),
    )
}

fn write_ranking(text: &mut String, title: &str, counted: BTreeMap<String, usize>) -> fmt::Result {
    if counted.is_empty() {
        return Ok(());
    }
    let mut ranked: Vec<_> = counted.into_iter().collect();
    ranked.sort_by_key(|(name, cases)| (std::cmp::Reverse(*cases), name.clone()));
    let shown: Vec<String> = ranked.iter().map(|(name, cases)| format!("{name} {cases}")).collect();
    writeln!(text, "{title}: {}", shown.join(", "))
}

#[derive(Clone, Copy, PartialEq)]
enum Lack {
    Operator,
    Form,
}

/// How many unsupported cases lack each operator, or a form of it.
fn lacking(verdicts: &[Verdict<'_>], lack: Lack) -> BTreeMap<String, usize> {
    let supported: BTreeSet<&str> = supported_operators().collect();
    let mut counted = BTreeMap::new();
    for verdict in verdicts {
        let (Outcome::Unsupported(message), Scope::In { operators, .. }) = (&verdict.outcome, &verdict.case.scope)
        else {
            continue;
        };
        let missing: Vec<&String> = operators.iter().filter(|operator| !supported.contains(&***operator)).collect();
        match lack {
            Lack::Operator => missing.into_iter().for_each(|name| *counted.entry(name.clone()).or_default() += 1),
            Lack::Form if missing.is_empty() => *counted.entry(refused_operator(message).to_string()).or_default() += 1,
            Lack::Form => {}
        }
    }
    counted
}

/// The operator that a refusal names, or what it is about when it is not about a node.
fn refused_operator(message: &str) -> &str {
    let named = message.split_once("(operator `").and_then(|(_, rest)| rest.split_once('`'));
    match named {
        Some((operator, _)) => operator,
        None if message.starts_with(NO_TYPE) => &message[NO_TYPE.len()..],
        None if message.starts_with("input ") => "(an input)",
        None if message.starts_with("output ") => "(an output)",
        None => "(the file)",
    }
}

/// One line for each case whose outcome is called `wanted`, or for every one: name, outcome, reason.
pub fn listing(verdicts: &[Verdict<'_>], wanted: Option<&str>) -> String {
    let mut text = String::new();
    for verdict in verdicts {
        let (name, reason) = match &verdict.outcome {
            Outcome::Pass => ("pass", ""),
            Outcome::Unsupported(reason) => ("unsupported", reason.as_str()),
            Outcome::Wrong(reason) => ("wrong", reason.as_str()),
        };
        if wanted.is_none_or(|wanted| wanted == name) {
            // a string cannot fail to be written to
            let _ = writeln!(text, "{name:11} {}  {}", verdict.case.name, without_list(reason));
        }
    }
    text
}

/// A refusal without the list of everything that is supported.
fn without_list(reason: &str) -> &str {
    reason.split_once("; supported, of domain").map_or(reason, |(reason, _)| reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node_tests::cases::{Case, Tolerance};

    fn case(name: &str, operators: &[&str]) -> Case {
        let tolerance = Tolerance { relative: 0.0, absolute: 0.0 };
        let operators = operators.iter().map(|name| name.to_string()).collect();
        Case { name: name.into(), scope: Scope::In { tolerance, operators, inputs: vec![], outputs: vec![] } }
    }

    #[test]
    fn what_is_lacking_is_ranked_and_forms_are_told_from_operators() {
        let cases = [case("a", &["Add", "NoSuch"]), case("b", &["NoSuch"]), case("c", &["Conv"]), case("d", &["Add"])];
        let refused = |message: &str| Outcome::Unsupported(message.into());
        let outcomes = [
            refused("node 1 (operator `NoSuch`, opset 20): operator `NoSuch` of domain `ai.onnx` is not supported"),
            refused("node 0 (operator `NoSuch`, opset 20): operator `NoSuch` of domain `ai.onnx` is not supported"),
            refused("node 0 (operator `Conv`, opset 20): 3 spatial dimensions are not supported"),
            Outcome::Wrong("output `y`: its type is FP16".into()),
        ];
        let verdicts: Vec<Verdict<'_>> =
            cases.iter().zip(outcomes).map(|(case, outcome)| Verdict { case, outcome }).collect();
        assert_eq!(lacking(&verdicts, Lack::Operator), [("NoSuch".to_string(), 2)].into());
        assert_eq!(lacking(&verdicts, Lack::Form), [("Conv".to_string(), 1)].into());
        assert_eq!(listing(&verdicts, Some("wrong")), "wrong       d  output `y`: its type is FP16\n");
    }
}
