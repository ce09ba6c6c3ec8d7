//! The paths whose requests are looked at before their body, read from the raw path because that happens before routing.
//! It allocates only for percent-encoded names. Admission calls it.

use std::borrow::Cow;

/// What a path asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Target<'p> {
    /// `POST /v2/models/{model}[/versions/{version}]/infer`
    Infer {
        /// The model's name.
        model: Cow<'p, str>,
        /// The version's text.
        version: Option<Cow<'p, str>>,
    },
    /// Something of a tenant's whose body is read.
    Owned,
    /// Anything else.
    Other,
}

impl<'p> Target<'p> {
    /// Reads `path`, which has no query.
    pub(crate) fn of(path: &'p str) -> Target<'p> {
        let Some(rest) = path.strip_prefix("/v2/") else { return Target::Other };
        let mut segments = rest.split('/');
        let parts = [segments.next(), segments.next(), segments.next(), segments.next(), segments.next()];
        if segments.next().is_some() {
            return if rest.starts_with("repository/") { Target::Owned } else { Target::Other };
        }
        match parts {
            [Some("models"), Some(model), Some("infer"), None, None] => {
                Target::Infer { model: decode(model), version: None }
            }
            [Some("models"), Some(model), Some("versions"), Some(version), Some("infer")] => {
                Target::Infer { model: decode(model), version: Some(decode(version)) }
            }
            [Some("repository"), ..] => Target::Owned,
            _ => Target::Other,
        }
    }
}

/// A path segment with its percent-encoding undone. One that is malformed, or not UTF-8 then, stays as it is: no model is
/// called so.
pub(crate) fn decode(segment: &str) -> Cow<'_, str> {
    if !segment.contains('%') {
        return Cow::Borrowed(segment);
    }
    let mut decoded = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let (byte, after) = match (byte, after) {
            (b'%', [high, low, after @ ..]) => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, after),
                _ => return Cow::Borrowed(segment),
            },
            (b'%', _) => return Cow::Borrowed(segment),
            (byte, after) => (*byte, after),
        };
        decoded.push(byte);
        rest = after;
    }
    String::from_utf8(decoded).map_or(Cow::Borrowed(segment), Cow::Owned)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inference_paths_name_model_and_version() {
        let infer = |model: &'static str, version: Option<&'static str>| Target::Infer {
            model: model.into(),
            version: version.map(Into::into),
        };
        assert_eq!(Target::of("/v2/models/digits/infer"), infer("digits", None));
        assert_eq!(Target::of("/v2/models/digits/versions/10/infer"), infer("digits", Some("10")));
        assert_eq!(Target::of("/v2/models/my%2Dmodel/infer"), infer("my-model", None));
    }

    #[test]
    fn other_paths_are_not_inference() {
        for path in [
            "/",
            "/v2",
            "/v2/models/infer",
            "/v2/models/a/b/infer",
            "/v2/models/a/versions/infer",
            "/V2/models/a/infer",
        ] {
            assert_eq!(Target::of(path), Target::Other, "{path}");
        }
        assert_eq!(Target::of("/v2/repository/models/a/load"), Target::Owned);
        assert_eq!(Target::of("/v2/repository/x/models/a/load"), Target::Owned);
    }

    #[test]
    fn malformed_percent_encoding_stays_as_it_is() {
        for odd in ["%", "%2", "%zz", "%ff"] {
            assert_eq!(decode(odd), odd);
        }
    }
}
