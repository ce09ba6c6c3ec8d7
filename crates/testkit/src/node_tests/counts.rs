//! The counts of the node tests that are committed: they may only get better. Reads, writes and compares them; who counts is
//! `report`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use toml::Table;

use super::cases::{Scope, Tests};
use super::{Outcome, Verdict};

/// How many cases there are of each sort.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// The version of the `onnx` package that made them.
    pub onnx: String,
    /// All cases.
    pub total: usize,
    /// Those out of scope, by category.
    pub excluded: BTreeMap<String, usize>,
    /// Those that are run.
    pub in_scope: usize,
    /// Those with the right outputs.
    pub pass: usize,
    /// Those with wrong outputs, other errors or panics.
    pub wrong: usize,
}

impl Counts {
    /// Counts all `tests` and the outcomes of those in scope.
    pub fn new(tests: &Tests, verdicts: &[Verdict<'_>]) -> Counts {
        let mut counts = Counts { onnx: tests.onnx.clone(), total: tests.cases.len(), ..Counts::default() };
        for case in &tests.cases {
            match &case.scope {
                Scope::In { .. } => counts.in_scope += 1,
                Scope::Out(category) => *counts.excluded.entry(category.clone()).or_default() += 1,
            }
        }
        counts.pass = verdicts.iter().filter(|verdict| verdict.outcome == Outcome::Pass).count();
        counts.wrong = verdicts.iter().filter(|verdict| matches!(verdict.outcome, Outcome::Wrong(_))).count();
        counts
    }

    /// The cases that the engine refused to load.
    pub fn unsupported(&self) -> usize {
        self.in_scope.saturating_sub(self.pass + self.wrong)
    }

    /// Reads what [`Counts::to_toml`] wrote.
    pub fn read(path: &Path) -> Result<Counts, String> {
        let named = |error: String| format!("{}: {error}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| named(error.to_string()))?;
        Counts::from_toml(&text).map_err(named)
    }

    fn from_toml(text: &str) -> Result<Counts, String> {
        let table: Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
        let number = |table: &Table, key: &str| {
            let found = table.get(key).and_then(toml::Value::as_integer).and_then(|value| usize::try_from(value).ok());
            found.ok_or_else(|| format!("`{key}` must be a count"))
        };
        let categories =
            table.get("excluded").and_then(toml::Value::as_table).ok_or("the table `excluded` is missing")?;
        let mut excluded = BTreeMap::new();
        for category in categories.keys() {
            excluded.insert(category.clone(), number(categories, category)?);
        }
        Ok(Counts {
            onnx: table.get("onnx").and_then(toml::Value::as_str).ok_or("`onnx` must be a version")?.to_string(),
            total: number(&table, "total")?,
            excluded,
            in_scope: number(&table, "in_scope")?,
            pass: number(&table, "pass")?,
            wrong: number(&table, "wrong")?,
        })
    }

    /// The file to commit.
    pub fn to_toml(&self) -> String {
        let mut text = format!(
            "# What the ONNX node tests must reach; `onnx_node_tests --update` writes it.\n\
             onnx = \"{}\"\ntotal = {}\nin_scope = {}\npass = {}\nwrong = {}\n\n\
             # Out of scope, each case in the first category that applies.\n[excluded]\n",
            self.onnx, self.total, self.in_scope, self.pass, self.wrong
        );
        for (category, cases) in &self.excluded {
            // a string cannot fail to be written to
            let _ = writeln!(text, "\"{category}\" = {cases}");
        }
        text
    }

    /// Where this is worse than `committed`: one line each.
    pub fn worse_than(&self, committed: &Counts) -> Vec<String> {
        let mut faults = Vec::new();
        if self.onnx != committed.onnx {
            faults.push(format!("the cases are from onnx {}, expected {}", self.onnx, committed.onnx));
        }
        if self.total != committed.total || self.excluded != committed.excluded {
            faults.push("the cases, or those out of scope, are not the committed ones".to_string());
        }
        if self.in_scope < committed.in_scope {
            faults.push(format!("{} cases are in scope, {} are committed", self.in_scope, committed.in_scope));
        }
        if self.pass < committed.pass {
            faults.push(format!("{} cases pass, {} are committed", self.pass, committed.pass));
        }
        if self.wrong > 0 {
            faults.push(format!("{} cases are wrong: `--list wrong` shows them", self.wrong));
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(in_scope: usize, pass: usize, wrong: usize) -> Counts {
        let excluded = [("ai.onnx.ml".to_string(), 4), ("image decoding".to_string(), 9)].into();
        Counts { onnx: "1.23.2".into(), total: in_scope + 13, excluded, in_scope, pass, wrong }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let written = counts(100, 40, 0);
        assert_eq!(Counts::from_toml(&written.to_toml()).unwrap(), written);
        assert!(Counts::from_toml("onnx = \"1\"\ntotal = -1\n[excluded]\n").unwrap_err().contains("`total`"));
    }

    #[test]
    fn fewer_passes_fewer_in_scope_and_any_wrong_case_are_worse() {
        let committed = counts(100, 40, 0);
        assert!(counts(100, 40, 0).worse_than(&committed).is_empty());
        assert!(counts(100, 41, 0).worse_than(&committed).is_empty());
        assert_eq!(counts(100, 39, 0).worse_than(&committed), ["39 cases pass, 40 are committed"]);
        assert!(counts(100, 60, 1).worse_than(&committed)[0].starts_with("1 cases are wrong"));
        assert_eq!(counts(99, 40, 0).worse_than(&committed).len(), 2);
    }
}
