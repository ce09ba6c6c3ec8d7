//! Where a server listens, as given on the command line: an `http` URL without credentials. It connects to nothing; the
//! HTTP client and its error messages use it.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ureq::http::Uri;

/// The address of a server, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerUrl {
    base: String,
    host: String,
}

impl ServerUrl {
    /// The URL of `path`, which begins with a slash.
    pub fn join(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Whether it is this machine, by its loopback address or its name.
    pub fn is_loopback(&self) -> bool {
        let address = self.host.trim_start_matches('[').trim_end_matches(']');
        self.host.eq_ignore_ascii_case("localhost")
            || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

impl FromStr for ServerUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<ServerUrl, String> {
        let expected = "expected a URL such as http://127.0.0.1:8000";
        let uri: Uri = text.parse().map_err(|error| format!("{error}; {expected}"))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                return Err("this command speaks plain http only; point it behind the proxy that ends TLS".into());
            }
            _ => return Err(expected.into()),
        }
        if uri.query().is_some() || uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(format!("it must not have a user or a query; {expected}"));
        }
        let host = uri.host().filter(|host| !host.is_empty()).ok_or(expected)?.to_owned();
        Ok(ServerUrl { base: text.trim_end_matches('/').to_owned(), host })
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_put_behind_the_server() {
        for text in ["http://127.0.0.1:8000", "http://127.0.0.1:8000/"] {
            let url: ServerUrl = text.parse().unwrap();
            assert_eq!(url.join("/v2"), "http://127.0.0.1:8000/v2");
        }
        let behind_a_prefix: ServerUrl = "http://host/insula/".parse().unwrap();
        assert_eq!(behind_a_prefix.join("/v2"), "http://host/insula/v2");
    }

    #[test]
    fn anything_but_a_plain_http_url_is_refused_with_an_example() {
        for text in [
            "",
            "127.0.0.1:8000",
            "localhost",
            "ftp://host",
            "http://",
            "http://user:word@host",
            "http://host/?q=1",
            "http://ho st",
        ] {
            let error = text.parse::<ServerUrl>().unwrap_err();
            assert!(error.contains("http://127.0.0.1:8000"), "{text}: {error}");
        }
        assert!("https://host".parse::<ServerUrl>().unwrap_err().contains("TLS"));
    }

    #[test]
    fn this_machine_is_told_from_others() {
        for (text, loopback) in [
            ("http://127.0.0.1:1", true),
            ("http://127.8.8.8", true),
            ("http://[::1]:1", true),
            ("http://LocalHost", true),
            ("http://10.0.0.1", false),
            ("http://localhost.example.org", false),
        ] {
            assert_eq!(text.parse::<ServerUrl>().unwrap().is_loopback(), loopback, "{text}");
        }
    }
}
