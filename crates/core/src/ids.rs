//! Names and numbers that stand for things: tenants, keys, models, versions, requests. Each is checked when made and
//! cheap to clone; none is parsed again further in.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::{Error, Result};

macro_rules! checked_name {
    ($(#[$doc:meta])* $name:ident, $what:literal, $rule:literal, $check:path) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            #[doc = concat!("Checks and makes a ", $what, "; it must be ", $rule, ".")]
            pub fn new(text: &str) -> Result<Self> {
                if $check(text) {
                    return Ok($name(text.into()));
                }
                let shown: String = text.chars().take(80).collect();
                Err(Error::invalid(format!(concat!("{:?} is not a ", $what, ": it must be ", $rule), shown)))
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self> {
                $name::new(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = Error;

            fn try_from(text: String) -> Result<Self> {
                $name::new(&text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0.to_string()
            }
        }
    };
}

checked_name!(
    /// A tenant's id: a DNS label.
    TenantId,
    "tenant id",
    "a DNS label: 1 to 63 of a-z, 0-9 and `-`, neither first nor last a `-`",
    is_dns_label
);

checked_name!(
    /// The name by which a tenant calls a model: one path segment.
    ModelName,
    "model name",
    "1 to 128 of a-z, A-Z, 0-9, `_`, `-` and `.`, the first a letter or digit",
    is_model_name
);

checked_name!(
    /// The id of a key (never its secret).
    KeyId,
    "key id",
    "1 to 64 of a-z, A-Z, 0-9, `_` and `-`",
    is_key_id
);

fn is_dns_label(text: &str) -> bool {
    let edge = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-')
}

fn is_model_name(text: &str) -> bool {
    text.len() <= 128
        && text.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric)
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}

fn is_key_id(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// A model's version: 1 to 2^31 - 1, compared as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version(u32);

impl Version {
    /// A version from its number.
    pub fn new(number: u32) -> Result<Version> {
        if (1..=i32::MAX as u32).contains(&number) {
            return Ok(Version(number));
        }
        Err(Error::invalid(format!(
            "{number} is not a model version: versions are whole numbers from 1 to {}",
            i32::MAX
        )))
    }

    /// The number.
    pub fn number(self) -> u32 {
        self.0
    }
}

impl FromStr for Version {
    type Err = Error;

    /// Accepts exactly the decimal digits of a number without sign or leading zero.
    fn from_str(text: &str) -> Result<Version> {
        let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
        let number = if plain { text.parse::<u32>().ok() } else { None };
        let shown: String = text.chars().take(40).collect();
        number.and_then(|number| Version::new(number).ok()).ok_or_else(|| {
            Error::invalid(format!(
                "{shown:?} is not a model version: versions are whole numbers from 1 to {}",
                i32::MAX
            ))
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The id of one request: a UUID v7 of ours, or what the caller sent if it is short and printable.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RequestId(IdForm);

#[derive(Clone, PartialEq, Eq, Hash)]
enum IdForm {
    Ours(Uuid),
    Callers(Box<str>),
}

impl RequestId {
    /// The longest id that is taken over from a caller, in bytes.
    pub const MAX_LENGTH: usize = 128;

    /// A new UUID v7.
    pub fn generate() -> RequestId {
        RequestId(IdForm::Ours(Uuid::now_v7()))
    }

    /// The caller's id if it is 1 to 128 visible ASCII characters, else a new one.
    pub fn from_caller(text: &str) -> RequestId {
        let usable =
            (1..=RequestId::MAX_LENGTH).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        if usable { RequestId(IdForm::Callers(text.into())) } else { RequestId::generate() }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            IdForm::Ours(uuid) => uuid.as_hyphenated().fmt(f),
            IdForm::Callers(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenant_ids_are_dns_labels() {
        assert!(TenantId::new("acme-corp").is_ok());
        for bad in ["", "-a", "a-", "Acme", "a_b", "a.b", "ä", &"a".repeat(64)] {
            assert!(TenantId::new(bad).is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn model_names_are_one_path_segment() {
        assert!(ModelName::new("digits-v2.1_x").is_ok());
        for bad in ["", ".", "..", ".hidden", "a/b", "a\\b", "a b", "a%2e", &"a".repeat(129)] {
            assert!(ModelName::new(bad).is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn versions_are_plain_positive_numbers() {
        assert_eq!("10".parse::<Version>().unwrap().number(), 10);
        for bad in ["0", "-1", "latest", "1.0", "01", "+1", " 1", "", "2147483648", "18446744073709551615"] {
            assert!(bad.parse::<Version>().is_err(), "{bad:?} was accepted");
        }
        assert!("10".parse::<Version>().unwrap() > "9".parse::<Version>().unwrap());
    }

    #[test]
    fn odd_request_ids_are_replaced() {
        assert_eq!(RequestId::from_caller("abc-1").to_string(), "abc-1");
        for odd in ["", "with space", "line\nbreak", &"x".repeat(129)] {
            assert_ne!(RequestId::from_caller(odd).to_string(), odd);
        }
    }
}
