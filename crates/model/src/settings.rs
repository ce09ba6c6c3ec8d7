//! `model.toml`, the optional settings beside a model's versions: precision, labels, batching. Unknown keys are errors that name
//! the nearest known one, and all faults are reported at once. It reads text; the repository reads the file.

use toml::{Table, Value};

use crate::error::{LoadError, LoadErrorKind, LoadResult, quoted};
use crate::model::{LARGEST_MAX_BATCH, LoadOptions};
use crate::passes::precision::Precision;

/// What `model.toml` says; every key is optional.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelSettings {
    /// The numbers to compute in.
    pub precision: Option<Precision>,
    /// The names of the classes, in the order of the output that holds their scores.
    pub labels: Vec<String>,
    /// The most rows in a batch.
    pub max_batch: Option<usize>,
}

impl ModelSettings {
    /// Reads the text of a `model.toml`. The error lists every fault.
    pub fn parse(text: &str) -> LoadResult<ModelSettings> {
        let table: Table = text.parse().map_err(|error: toml::de::Error| {
            LoadError::new(LoadErrorKind::Settings, format!("it is not TOML: {}", error.message()))
        })?;
        let mut settings = ModelSettings::default();
        let mut faults = Vec::new();
        for (key, value) in &table {
            let read = match key.as_str() {
                "precision" => precision(value).map(|found| settings.precision = Some(found)),
                "labels" => labels(value).map(|found| settings.labels = found),
                "batching" => batching(value, &mut faults).map(|found| settings.max_batch = found),
                _ => Err(unknown(key, &["precision", "labels", "batching"])),
            };
            faults.extend(read.err());
        }
        match faults.is_empty() {
            true => Ok(settings),
            false => Err(LoadError::new(LoadErrorKind::Settings, faults.join("; "))),
        }
    }

    /// `options` with what these settings say in place of the defaults.
    pub fn apply<'a>(&self, options: LoadOptions<'a>) -> LoadOptions<'a> {
        LoadOptions {
            precision: self.precision.unwrap_or(options.precision),
            max_batch: self.max_batch.unwrap_or(options.max_batch),
            ..options
        }
    }
}

fn precision(value: &Value) -> Result<Precision, String> {
    let text = value.as_str().ok_or("`precision` must be a string: \"fp16\" or \"fp32\"")?;
    text.parse().map_err(|error: insula_core::Error| error.message().to_string())
}

fn labels(value: &Value) -> Result<Vec<String>, String> {
    let label = |value: &Value| value.as_str().map(str::to_string);
    let labels = value.as_array().and_then(|labels| labels.iter().map(label).collect());
    labels.ok_or_else(|| "`labels` must be a list of strings".to_string())
}

fn batching(value: &Value, faults: &mut Vec<String>) -> Result<Option<usize>, String> {
    let table = value.as_table().ok_or("`batching` must be a table")?;
    let mut max_batch = None;
    for (key, value) in table {
        if key != "max_batch" {
            faults.push(unknown(&format!("batching.{key}"), &["batching.max_batch"]));
            continue;
        }
        let size = value.as_integer().and_then(|size| usize::try_from(size).ok());
        max_batch = size.filter(|size| (1..=LARGEST_MAX_BATCH).contains(size));
        if max_batch.is_none() {
            faults.push(format!("`batching.max_batch` must be a whole number from 1 to {LARGEST_MAX_BATCH}"));
        }
    }
    Ok(max_batch)
}

fn unknown(key: &str, known: &[&str]) -> String {
    let nearest = known.iter().min_by_key(|known| edit_distance(key, known));
    format!(
        "unknown key {}, the nearest known one is {}",
        quoted(key),
        nearest.map_or_else(String::new, |key| quoted(key))
    )
}

/// Levenshtein's distance, over the first 64 characters of each.
fn edit_distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, from) in left.chars().take(64).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for (column, to) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_optional() {
        assert_eq!(ModelSettings::parse("").unwrap(), ModelSettings::default());
        let text = "precision = \"fp16\"\nlabels = [\"cat\", \"dog\"]\n[batching]\nmax_batch = 8\n";
        let expected = ModelSettings {
            precision: Some(Precision::Fp16),
            labels: vec!["cat".into(), "dog".into()],
            max_batch: Some(8),
        };
        assert_eq!(ModelSettings::parse(text).unwrap(), expected);
    }

    #[test]
    fn unknown_keys_are_answered_with_the_nearest_known_one() {
        let error = ModelSettings::parse("precison = \"fp16\"").unwrap_err();
        assert_eq!(error.message(), "unknown key `precison`, the nearest known one is `precision`");
        let error = ModelSettings::parse("[batching]\nmaxbatch = 8").unwrap_err();
        assert!(error.message().contains("`batching.max_batch`"), "{error}");
    }

    #[test]
    fn all_faults_are_reported_at_once() {
        let text = "precision = \"fp8\"\nlabels = [1]\nlabel = []\n[batching]\nmax_batch = 0\nsize = 1\n";
        let error = ModelSettings::parse(text).unwrap_err();
        for part in ["`fp8`", "`labels` must", "`label`", "`batching.max_batch` must", "`batching.size`"] {
            assert!(error.message().contains(part), "{part} in {error}");
        }
    }

    #[test]
    fn what_is_not_toml_is_refused() {
        assert_eq!(ModelSettings::parse("precision = ").unwrap_err().kind(), LoadErrorKind::Settings);
    }
}
