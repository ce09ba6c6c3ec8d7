//! The admin port: metrics, probes, and its token where strangers can reach it.

use std::net::SocketAddr;

use crate::running_server::{RunningServer, SHARED};
use crate::wire::Connection;

#[test]
fn on_this_machine_it_needs_no_token() {
    let address = SHARED.server.addresses().admin;
    for path in ["/metrics", "/livez", "/readyz"] {
        let answer = Connection::open(address).ask("GET", path, &[("x-api-key", "")], b"");
        assert_eq!(answer.status, 200, "{path}");
    }
    Connection::open(address).ask("GET", "/v2/health/live", &[], b"").error(404);
    Connection::open(address).ask("POST", "/metrics", &[], b"").error(405);
}

#[test]
fn where_others_can_reach_it_everything_needs_the_token_that_the_first_start_made() {
    let running = RunningServer::start(|settings| settings.admin = SocketAddr::from(([0, 0, 0, 0], 0)));
    let port = running.server.addresses().admin.port();
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let token = std::fs::read_to_string(running.state.path().join("admin.token")).unwrap();
    let right = format!("Bearer {}", token.trim());
    for path in ["/metrics", "/livez", "/readyz"] {
        for wrong in ["Bearer wrong", "Basic x", ""] {
            Connection::open(address).ask("GET", path, &[("authorization", wrong)], b"").error(401);
        }
        assert_eq!(Connection::open(address).ask("GET", path, &[("authorization", &right)], b"").status, 200);
    }
}
