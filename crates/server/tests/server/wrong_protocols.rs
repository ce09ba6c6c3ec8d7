//! Other protocols than HTTP/1.1 on the port: an answer or a close, never silence.

use std::io::Read;

use crate::running_server::SHARED;

#[test]
fn http_2_and_tls_are_answered_or_closed() {
    let http2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    let tls = [&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..], &[0; 60]].concat();
    for hello in [http2, tls] {
        let mut connection = SHARED.connect();
        connection.send(&hello);
        let mut answer = Vec::new();
        let read = connection.socket.read_to_end(&mut answer);
        assert!(read.is_ok(), "{read:?}");
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 400"), "{:?}", String::from_utf8_lossy(&answer));
    }
}

#[test]
fn a_head_without_end_is_refused() {
    let mut connection = SHARED.connect();
    connection.send(b"GET /v2 HTTP/1.1\r\nhost: x\r\n");
    let line = format!("x-filler: {}\r\n", "f".repeat(1000));
    let mut sent = 0;
    while sent < 1 << 20 && std::io::Write::write_all(&mut connection.socket, line.as_bytes()).is_ok() {
        sent += line.len();
    }
    let answer = connection.answer().unwrap();
    assert!(matches!(answer.status, 400 | 431), "{}", answer.status);
}
