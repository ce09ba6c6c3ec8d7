//! What the headers of an inference request say of its body: JSON or binary, packed or not. It reads header values only,
//! never the body. The server calls it before the first body byte and hands the result to the decoder.

use insula_core::{Code, Error, Result};

/// The header that gives the length of the JSON text at the start of a body with binary tensors.
pub const INFERENCE_HEADER_CONTENT_LENGTH: &str = "Inference-Header-Content-Length";

/// How an inference request's body is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestFormat {
    /// The whole body is JSON.
    Json,
    /// JSON first, then the bytes of the binary tensors.
    Binary {
        /// Bytes of the JSON text, counted in the unpacked body. 0: there is none, the body is the single input's bytes.
        description_length: usize,
    },
}

impl RequestFormat {
    /// Reads the headers `Content-Type` and `Inference-Header-Content-Length`. `body_length` is the length of the unpacked
    /// body if it is known (pass `None` for a packed one). Fails with [`Code::InvalidArgument`] naming the header.
    ///
    /// A body with the length header is binary whatever its type is called; one without is JSON, unless it says that it is
    /// a multipart form.
    pub fn from_headers(
        content_type: Option<&str>,
        inference_header_content_length: Option<&str>,
        body_length: Option<usize>,
    ) -> Result<RequestFormat> {
        let Some(value) = inference_header_content_length else {
            return refuse_forms(content_type).map(|()| RequestFormat::Json);
        };
        let value = value.trim();
        let plain = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
        let Some(description_length) = value.parse().ok().filter(|_| plain) else {
            return Err(Error::invalid(format!(
                "the header `{INFERENCE_HEADER_CONTENT_LENGTH}` is {:?}: it must be the number of bytes of the JSON text at the \
                 start of the body",
                shown(value)
            )));
        };
        match body_length {
            Some(length) if description_length > length => Err(description_too_long(description_length, length)),
            _ => Ok(RequestFormat::Binary { description_length }),
        }
    }
}

/// The error for a description that is longer than its body.
pub(crate) fn description_too_long(description_length: usize, body_length: usize) -> Error {
    Error::invalid(format!(
        "the header `{INFERENCE_HEADER_CONTENT_LENGTH}` is {description_length}, but the body has only {body_length} bytes"
    ))
}

/// What curl calls `application/x-www-form-urlencoded` unasked is nearly always JSON, and is read as such.
fn refuse_forms(content_type: Option<&str>) -> Result<()> {
    let media_type = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if media_type.get(..10).is_some_and(|start| start.eq_ignore_ascii_case("multipart/")) {
        return Err(Error::invalid(format!(
            "the header `Content-Type` is `{}`: send `application/json`, or `application/octet-stream` with \
             `{INFERENCE_HEADER_CONTENT_LENGTH}` for binary tensors",
            shown(media_type)
        )));
    }
    Ok(())
}

/// How a request's body is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentEncoding {
    /// Not at all.
    Identity,
    /// As a gzip file (RFC 1952).
    Gzip,
    /// As a zlib stream (RFC 1950), which HTTP calls deflate.
    Deflate,
}

impl ContentEncoding {
    /// Reads the header `Content-Encoding`. Fails with [`Code::Unsupported`] for anything else than one encoding we have.
    pub fn parse(value: &str) -> Result<ContentEncoding> {
        let value = value.trim();
        let is = |name: &str| value.eq_ignore_ascii_case(name);
        if value.is_empty() || is("identity") {
            Ok(ContentEncoding::Identity)
        } else if is("gzip") || is("x-gzip") {
            Ok(ContentEncoding::Gzip)
        } else if is("deflate") {
            Ok(ContentEncoding::Deflate)
        } else {
            Err(Error::new(
                Code::Unsupported,
                format!(
                    "the content encoding {:?} is not supported: use one of gzip, deflate or identity",
                    shown(value)
                ),
            ))
        }
    }
}

fn shown(value: &str) -> String {
    value.chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(content_type: &str, length: &str, body: Option<usize>) -> Result<RequestFormat> {
        let some = |text: &'static str| (!text.is_empty()).then_some(text);
        let (content_type, length): (&'static str, &'static str) =
            (content_type.to_owned().leak(), length.to_owned().leak());
        RequestFormat::from_headers(some(content_type), some(length), body)
    }

    #[test]
    fn a_body_without_the_length_header_is_json() {
        for content_type in [
            "",
            "application/json",
            "application/json; charset=utf-8",
            "application/x-www-form-urlencoded",
            "text/plain",
        ] {
            assert_eq!(format(content_type, "", Some(10)).unwrap(), RequestFormat::Json);
        }
    }

    #[test]
    fn a_multipart_form_is_refused_by_its_content_type_unless_the_length_header_says_what_it_is() {
        let form = "Multipart/form-data; boundary=x";
        let error = format(form, "", None).unwrap_err();
        assert!(error.message().contains("Content-Type"), "{error}");
        assert_eq!(format(form, "5", None).unwrap(), RequestFormat::Binary { description_length: 5 });
    }

    #[test]
    fn the_length_must_be_a_number_within_the_body() {
        assert_eq!(format("", "0", Some(3)).unwrap(), RequestFormat::Binary { description_length: 0 });
        assert_eq!(format("", "3", Some(3)).unwrap(), RequestFormat::Binary { description_length: 3 });
        assert_eq!(format("", "4", None).unwrap(), RequestFormat::Binary { description_length: 4 });
        for (value, body) in
            [("4", Some(3)), ("-1", None), ("+1", None), ("1.0", None), ("x", None), ("99999999999999999999", None)]
        {
            let error = format("", value, body).unwrap_err();
            assert!(error.message().contains(INFERENCE_HEADER_CONTENT_LENGTH), "{error}");
        }
        assert!(RequestFormat::from_headers(None, Some(""), None).is_err());
    }

    #[test]
    fn unknown_encodings_are_unsupported_and_the_known_ones_named() {
        assert_eq!(ContentEncoding::parse("GZIP").unwrap(), ContentEncoding::Gzip);
        assert_eq!(ContentEncoding::parse("deflate").unwrap(), ContentEncoding::Deflate);
        assert_eq!(ContentEncoding::parse("identity").unwrap(), ContentEncoding::Identity);
        for unknown in ["br", "zstd", "gzip, deflate"] {
            let error = ContentEncoding::parse(unknown).unwrap_err();
            assert_eq!(error.code(), Code::Unsupported);
            assert!(error.message().contains("gzip, deflate"), "{error}");
        }
    }
}
