//! A server that says what a test tells it to, for faults that a real one does not make on demand: it answers each
//! connection with the next of its answers and keeps what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;

/// One request as it came.
#[derive(Debug)]
pub struct Asked {
    /// The first line and the headers.
    pub head: String,
    pub body: Vec<u8>,
}

/// A running fake.
pub struct FakeServer {
    pub url: String,
    thread: JoinHandle<Vec<Asked>>,
}

/// An answer of `status` with a JSON `body`; it closes the connection.
pub fn json(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}").into()
}

impl FakeServer {
    /// Answers as many connections as there are `answers`.
    pub fn start(answers: Vec<Vec<u8>>) -> FakeServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let answer = move |answer: Vec<u8>| {
            let (mut connection, _) = listener.accept().unwrap();
            let asked = read(&connection);
            connection.write_all(&answer).unwrap();
            asked
        };
        FakeServer { url, thread: std::thread::spawn(move || answers.into_iter().map(answer).collect()) }
    }

    /// What was asked, once every answer is given.
    pub fn asked(self) -> Vec<Asked> {
        self.thread.join().unwrap()
    }
}

fn read(connection: &TcpStream) -> Asked {
    let mut reader = BufReader::new(connection);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut head).unwrap(), 0, "the request ends in its head: {head}");
    }
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).unwrap();
    Asked { head, body }
}
