//! Whether the addresses that a server would listen on are free, tried by listening on them for a moment.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::time::Duration;

use insula_server::settings::Settings;

use super::finding::Finding;
use crate::http_client::HttpClient;

/// How long a server that is there already may take to show itself.
const PATIENCE: Duration = Duration::from_secs(1);

/// The findings about the addresses of `settings`.
pub fn check(settings: &Settings) -> Vec<Finding> {
    vec![
        port("http port", settings.http, "/v2/health/live", "--http"),
        port("admin port", settings.admin, "/livez", "--admin"),
    ]
}

fn port(what: &'static str, address: SocketAddr, probe: &str, option: &str) -> Finding {
    if address.port() == 0 {
        return Finding::ok(what, format_args!("{address}: any free one"));
    }
    match TcpListener::bind(address) {
        Ok(_) => Finding::ok(what, format_args!("{address} is free")),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_served(address, probe) => {
            let advice = format!(
                "an inference server answers there already: to start another beside it, choose an address with `{option}`"
            );
            Finding::warn(what, format_args!("{address} is taken"), advice)
        }
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let advice = format!("something else listens there: stop it, or choose an address with `{option}`");
            Finding::bad(what, format_args!("{address} is taken"), advice)
        }
        Err(error) => {
            let advice = format!("choose an address of this machine, with a port above 1023, with `{option}`");
            Finding::bad(what, format_args!("{address}: {error}"), advice)
        }
    }
}

/// Whether a server that knows `probe` answers at `address`.
fn is_served(address: SocketAddr, probe: &str) -> bool {
    let reachable = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => SocketAddr::from((Ipv4Addr::LOCALHOST, address.port())),
        IpAddr::V6(ip) if ip.is_unspecified() => SocketAddr::from((Ipv6Addr::LOCALHOST, address.port())),
        _ => address,
    };
    let Ok(url) = format!("http://{reachable}").parse() else { return false };
    HttpClient::new(url, None, PATIENCE).get(probe).is_ok()
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    #[test]
    fn a_port_that_something_else_holds_is_bad() {
        let holder = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = holder.local_addr().unwrap();
        std::thread::spawn(move || drop(holder.accept()));
        let finding = port("http port", address, "/v2/health/live", "--http");
        assert_eq!(finding.level, Level::Bad, "{finding:?}");
        assert!(finding.advice.unwrap().contains("--http"));
    }

    #[test]
    fn any_free_port_will_do_when_none_is_named() {
        assert_eq!(port("http port", SocketAddr::from(([127, 0, 0, 1], 0)), "/", "--http").level, Level::Ok);
    }

    #[test]
    fn an_address_of_another_machine_is_bad() {
        let finding = port("admin port", SocketAddr::from(([192, 0, 2, 1], 8002)), "/livez", "--admin");
        assert_eq!(finding.level, Level::Bad, "{finding:?}");
    }
}
