//! The doctor's findings as a table for people or as JSON for programs, and the words that sum them up. It only makes text.

use std::fmt::Write;

use serde::Serialize;

use super::finding::{Finding, Level};
use crate::failure::Failure;
use crate::printer::{BAD, GOOD, WARNING};

/// Everything the doctor found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    bad: usize,
    warnings: usize,
    findings: Vec<Finding>,
}

impl Report {
    /// A report of `findings`, in their order.
    pub fn new(findings: Vec<Finding>) -> Report {
        let count = |level: Level| findings.iter().filter(|finding| finding.level == level).count();
        Report { bad: count(Level::Bad), warnings: count(Level::Warn), findings }
    }

    /// Whether a server would not start, or would fail.
    pub fn is_bad(&self) -> bool {
        self.bad > 0
    }

    /// A line a finding: level, what, value, and after a dash what to do.
    pub fn table(&self) -> String {
        let width = self.findings.iter().map(|finding| finding.what.chars().count()).max().unwrap_or(0);
        let mut text = String::new();
        for finding in &self.findings {
            let style = match finding.level {
                Level::Ok => GOOD,
                Level::Warn => WARNING,
                Level::Bad => BAD,
            };
            let _ = write!(
                text,
                "{style}{:4}{style:#}  {:width$}  {}",
                finding.level.as_str(),
                finding.what,
                finding.value
            );
            if let Some(advice) = &finding.advice {
                let _ = write!(text, " - {advice}");
            }
            text.push('\n');
        }
        text
    }

    /// One JSON object.
    pub fn json(&self) -> Result<String, Failure> {
        let text = serde_json::to_string_pretty(self);
        text.map(|text| text + "\n")
            .map_err(|error| Failure::new(format_args!("the report cannot be written as JSON: {error}")))
    }

    /// How many of what.
    pub fn summary(&self) -> String {
        match (self.bad, self.warnings) {
            (0, 0) => "everything is as it should be".to_owned(),
            (bad, warnings) => format!("{bad} bad, {warnings} to look at, of {}", self.findings.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report::new(vec![
            Finding::ok("cores", "2 allowed"),
            Finding::warn("huge pages", "never", "allow them"),
            Finding::bad("threads", 40, "raise the limit"),
        ])
    }

    #[test]
    fn the_table_has_a_line_a_finding() {
        let expected = "\
ok    cores       2 allowed
warn  huge pages  never - allow them
bad   threads     40 - raise the limit
";
        assert_eq!(anstream::adapter::strip_str(&report().table()).to_string(), expected);
        assert_eq!(report().summary(), "1 bad, 1 to look at, of 3");
    }

    #[test]
    fn programs_get_the_same_as_json() {
        let json: serde_json::Value = serde_json::from_str(&report().json().unwrap()).unwrap();
        assert_eq!(json["bad"], 1);
        assert_eq!(json["findings"][1]["level"], "warn");
        assert_eq!(json["findings"][0]["advice"], serde_json::Value::Null);
    }

    #[test]
    fn only_a_bad_finding_makes_the_report_bad() {
        assert!(report().is_bad());
        assert!(!Report::new(vec![Finding::warn("a", "b", "c")]).is_bad());
    }
}
