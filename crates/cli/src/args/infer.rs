//! `insula infer`.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use insula_core::{ModelName, Version};

use super::output::OutputFormat;
use crate::commands::infer::scale::Scale;
use crate::failure::Failure;
use crate::server_url::ServerUrl;

/// What was asked of `insula infer`.
#[derive(Debug, Args)]
pub struct InferArgs {
    /// The model, by the name that the tenant calls it
    #[arg(value_name = "MODEL")]
    pub model: ModelName,

    /// A PNG image, a JSON request of the Open Inference Protocol v2, or `-` for either on the standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Where the server listens
    #[arg(long, value_name = "URL", env = "INSULA_SERVER", default_value = "http://127.0.0.1:8000")]
    pub server: ServerUrl,

    /// The tenant's key; in the environment other users of the machine cannot see it
    #[arg(long, value_name = "KEY", env = "INSULA_KEY", hide_env_values = true)]
    pub key: Option<Key>,

    /// The version to ask; without it the server's route decides
    #[arg(long, value_name = "VERSION")]
    pub model_version: Option<Version>,

    /// Ask for this output only; may be repeated
    #[arg(long = "output", value_name = "NAME")]
    pub outputs: Vec<String>,

    /// What the darkest and the lightest pixel of an image stand for [default: 0:1, for integer inputs 0:255]
    #[arg(long, value_name = "MIN:MAX", allow_hyphen_values = true)]
    pub scale: Option<Scale>,

    /// The longest wait for the answer
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = parse_timeout)]
    pub timeout: Duration,

    /// A table, or the server's JSON answer as it came
    #[arg(short, long = "format", value_name = "FORMAT", default_value = "table")]
    pub output: OutputFormat,
}

/// A key as typed. Neither debug output nor an error message shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// The secret text, `None` when it is empty. Fails when it cannot stand in a header.
    pub fn text(&self) -> Result<Option<&str>, Failure> {
        if self.0.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Ok(Some(&*self.0).filter(|text| !text.is_empty()));
        }
        Err(Failure::misused("the key holds spaces or other characters that no key has")
            .hint("copy it whole, and nothing beside it"))
    }
}

impl From<String> for Key {
    fn from(text: String) -> Key {
        Key(text)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

fn parse_timeout(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.001..=86_400.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "expected a number of seconds from 0.001 to 86400".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_shows_in_no_message() {
        let key = Key::from("ins_secret word".to_owned());
        let shown = format!("{key:?} {:?}", key.text().unwrap_err());
        assert!(!shown.contains("secret"), "{shown}");
    }

    #[test]
    fn an_empty_key_is_none() {
        assert_eq!(Key::from(String::new()).text(), Ok(None));
        assert_eq!(Key::from("ins_1".to_owned()).text(), Ok(Some("ins_1")));
    }
}
