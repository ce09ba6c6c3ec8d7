//! Reads the setting that says what is logged. Stricter than the library's own reader, which takes a misspelt level for the
//! name of a module and then logs nothing else.

use insula_core::{Error, Result};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;

const LEVELS: [(&str, LevelFilter); 6] = [
    ("off", LevelFilter::OFF),
    ("error", LevelFilter::ERROR),
    ("warn", LevelFilter::WARN),
    ("info", LevelFilter::INFO),
    ("debug", LevelFilter::DEBUG),
    ("trace", LevelFilter::TRACE),
];

/// The filter that `text` describes.
pub(super) fn parse(text: &str) -> Result<Targets> {
    text.split(',').map(str::trim).try_fold(Targets::new(), |targets, part| {
        Ok(match part.split_once('=') {
            None => targets.with_default(level(part, text)?),
            Some((target, level_name)) if is_target(target) => targets.with_target(target, level(level_name, text)?),
            Some((target, _)) => return Err(refuse(text, &format!("{target:?} is not the name of a module"))),
        })
    })
}

fn level(name: &str, text: &str) -> Result<LevelFilter> {
    let found = LEVELS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(_, level)| *level).ok_or_else(|| refuse(text, &format!("{name:?} is not a level")))
}

fn is_target(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':' | b'-'))
}

fn refuse(text: &str, why: &str) -> Error {
    let wanted = "write a level (off, error, warn, info, debug, trace) or target=level, with commas between";
    Error::invalid(format!("the log filter {text:?} is not understood: {why}; {wanted}"))
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn a_level_holds_for_all_and_a_target_for_its_own() {
        let targets = parse("warn, insula_runtime=debug,actix_http=off").unwrap();
        assert!(targets.would_enable("insula_server", &Level::WARN));
        assert!(!targets.would_enable("insula_server", &Level::INFO));
        assert!(targets.would_enable("insula_runtime::router", &Level::DEBUG));
        assert!(!targets.would_enable("actix_http::h1", &Level::ERROR));
    }

    #[test]
    fn what_is_misspelt_is_told() {
        for (text, told) in [
            ("inof", "\"inof\" is not a level"),
            ("", "\"\" is not a level"),
            ("info,", "\"\" is not a level"),
            ("info,insula=loud", "\"loud\" is not a level"),
            ("=info", "\"\" is not the name of a module"),
            ("a b=info", "\"a b\" is not the name of a module"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.message().contains(told), "{error}");
        }
    }
}
