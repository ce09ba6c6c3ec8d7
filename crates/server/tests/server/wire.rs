//! HTTP/1.1 by hand: what is sent is exactly what a test writes, and what comes back is read to its last byte.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use crate::running_server::KEY;

/// Longer than anything should take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection to a server.
pub struct Connection {
    pub socket: TcpStream,
    buffer: Vec<u8>,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    /// The value of the header called `name`.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    /// The body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {:?}", self.text()))
    }

    /// Checks that this is an error of `status` as all of them should be, and returns its message.
    pub fn error(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{}", self.text());
        assert_eq!(self.header("content-type"), Some("application/json"));
        let body = self.json();
        let message = body["error"].as_str().unwrap().to_owned();
        assert!(!message.is_empty());
        for leak in ["panick", "unwrap", ".rs:"] {
            assert!(!message.to_lowercase().contains(leak), "{message}");
        }
        assert!(body["code"].is_string(), "{body}");
        assert_eq!(body["request_id"].as_str(), self.header("x-request-id"), "{body}");
        message
    }
}

/// A request's head; it carries the tests' key unless `headers` bring their own.
pub fn head(verb: &str, path: &str, headers: &[(&str, &str)]) -> String {
    let own_key = headers.iter().any(|(name, _)| matches!(*name, "authorization" | "x-api-key"));
    let key = if own_key { String::new() } else { format!("authorization: Bearer {KEY}\r\n") };
    let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("{verb} {path} HTTP/1.1\r\nhost: test\r\n{key}{lines}\r\n")
}

impl Connection {
    /// Connects to `address`.
    pub fn open(address: SocketAddr) -> Connection {
        Connection::try_open(address).unwrap()
    }

    /// Connects to `address` if it is listened on.
    pub fn try_open(address: SocketAddr) -> Result<Connection, ErrorKind> {
        let socket = TcpStream::connect(address).map_err(|error| error.kind())?;
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        Ok(Connection { socket, buffer: Vec::new() })
    }

    /// Sends `bytes`.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.socket.write_all(bytes.as_ref()).unwrap();
    }

    /// Sends a request with a body and its length, and reads the answer.
    pub fn ask(&mut self, verb: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.try_ask(verb, path, headers, body).unwrap()
    }

    /// [`Connection::ask`], or how the connection ended instead.
    pub fn try_ask(
        &mut self,
        verb: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Answer, ErrorKind> {
        let length = body.len().to_string();
        let mut all = headers.to_vec();
        if verb != "GET" && verb != "HEAD" {
            all.push(("content-length", &length));
        }
        let mut request = head(verb, path, &all).into_bytes();
        request.extend_from_slice(body);
        self.socket.write_all(&request).map_err(|error| error.kind())?;
        self.answer()
    }

    /// Reads one answer that has a body if it says so.
    pub fn answer(&mut self) -> Result<Answer, ErrorKind> {
        let head = self.until(b"\r\n\r\n")?;
        let head = String::from_utf8(head).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap().parse().unwrap();
        let split = |line: &str| line.split_once(':').map(|(name, value)| (name.to_owned(), value.trim().to_owned()));
        let mut answer = Answer { status, headers: lines.filter_map(split).collect(), body: Vec::new() };
        if status >= 200 {
            answer.body = self.body(&answer)?;
        }
        Ok(answer)
    }

    fn body(&mut self, answer: &Answer) -> Result<Vec<u8>, ErrorKind> {
        if answer.header("transfer-encoding") == Some("chunked") {
            let mut body = Vec::new();
            loop {
                let size = self.until(b"\r\n")?;
                let size = usize::from_str_radix(std::str::from_utf8(&size).unwrap().trim(), 16).unwrap();
                body.extend(self.take(size)?);
                self.take(2)?;
                if size == 0 {
                    return Ok(body);
                }
            }
        }
        let length = answer.header("content-length").map_or(0, |length| length.parse().unwrap());
        self.take(length)
    }

    fn until(&mut self, end: &[u8]) -> Result<Vec<u8>, ErrorKind> {
        loop {
            if let Some(at) = self.buffer.windows(end.len()).position(|window| window == end) {
                let mut taken = self.take(at + end.len())?;
                taken.truncate(at);
                return Ok(taken);
            }
            self.more()?;
        }
    }

    fn take(&mut self, count: usize) -> Result<Vec<u8>, ErrorKind> {
        while self.buffer.len() < count {
            self.more()?;
        }
        Ok(self.buffer.drain(..count).collect())
    }

    fn more(&mut self) -> Result<(), ErrorKind> {
        let mut piece = vec![0; 64 << 10];
        match self.socket.read(&mut piece) {
            Ok(0) => Err(ErrorKind::UnexpectedEof),
            Ok(count) => {
                self.buffer.extend_from_slice(&piece[..count]);
                Ok(())
            }
            Err(error) => Err(error.kind()),
        }
    }

    /// Whether the server closes the connection without another byte.
    pub fn is_closed(&mut self) -> bool {
        self.buffer.is_empty() && self.more() == Err(ErrorKind::UnexpectedEof)
    }

    /// Whether no byte of an answer has come yet.
    pub fn has_nothing_to_read(&mut self) -> bool {
        self.socket.set_nonblocking(true).unwrap();
        let nothing = self.buffer.is_empty() && self.more() == Err(ErrorKind::WouldBlock);
        self.socket.set_nonblocking(false).unwrap();
        nothing
    }

    /// Ends this side and leaves the other open.
    pub fn end_sending(&mut self) {
        self.socket.shutdown(Shutdown::Write).unwrap();
    }
}
