//! A load generator for HTTP/1.1 on loopback: so many connections, each with one request in flight, for a stated time. It
//! reads answers whole and counts what is not 200; it shares the machine with the server under test, as all figures say.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// One request to be sent again and again, as the bytes on the wire.
#[derive(Debug, Clone)]
pub struct Request {
    bytes: Vec<u8>,
}

impl Request {
    /// A POST of `body` to `path` with further `headers`.
    pub fn post(path: &str, headers: &[(&str, &str)], body: &[u8]) -> Request {
        let mut head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        Request { bytes: [head.as_bytes(), body].concat() }
    }
}

/// What a load saw.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Answers with status 200.
    pub good: usize,
    /// All other answers and broken connections.
    pub bad: usize,
    /// Latencies of good answers, sorted.
    pub latencies: Vec<Duration>,
    /// How long the load ran.
    pub time: Duration,
}

impl Seen {
    /// Good answers a second.
    pub fn rate(&self) -> f64 {
        self.good as f64 / self.time.as_secs_f64().max(1e-9)
    }

    /// The latency below which `part` (0 to 1) of the good answers were.
    pub fn latency(&self, part: f64) -> Duration {
        let last = self.latencies.len().saturating_sub(1);
        let at = ((last as f64) * part).round() as usize;
        self.latencies.get(at).copied().unwrap_or_default()
    }
}

/// Sends `request` to `address` over `connections` connections for `time`, on one thread.
pub fn run(address: &str, request: &Request, connections: usize, time: Duration) -> std::io::Result<Seen> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let started = Instant::now();
        let end = started + time;
        let callers: Vec<_> =
            (0..connections).map(|_| tokio::spawn(call_until(address.to_string(), request.clone(), end))).collect();
        let mut all = Seen::default();
        for caller in callers {
            let seen = caller.await.unwrap_or_default();
            all.good += seen.good;
            all.bad += seen.bad;
            all.latencies.extend(seen.latencies);
        }
        all.time = started.elapsed();
        all.latencies.sort_unstable();
        Ok(all)
    })
}

async fn call_until(address: String, request: Request, end: Instant) -> Seen {
    let mut seen = Seen::default();
    while Instant::now() < end {
        let Ok(mut stream) = TcpStream::connect(&address).await else {
            seen.bad += 1;
            continue;
        };
        if stream.set_nodelay(true).is_err() {
            seen.bad += 1;
            continue;
        }
        let mut buffer = Vec::with_capacity(64 << 10);
        while Instant::now() < end {
            let started = Instant::now();
            match call(&mut stream, &request, &mut buffer).await {
                Ok(200) => {
                    seen.good += 1;
                    seen.latencies.push(started.elapsed());
                }
                Ok(_) => seen.bad += 1,
                Err(_) => {
                    seen.bad += 1;
                    break;
                }
            }
        }
    }
    seen
}

/// One request and its whole answer; returns the status.
async fn call(stream: &mut TcpStream, request: &Request, buffer: &mut Vec<u8>) -> std::io::Result<u16> {
    stream.write_all(&request.bytes).await?;
    buffer.clear();
    loop {
        if stream.read_buf(buffer).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(status) = whole_answer(buffer)? {
            return Ok(status);
        }
    }
}

/// The status once `buffer` holds a whole answer with a declared length.
fn whole_answer(buffer: &[u8]) -> std::io::Result<Option<u16>> {
    let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
    let malformed = || std::io::Error::new(std::io::ErrorKind::InvalidData, "an answer without status or length");
    let head = std::str::from_utf8(&buffer[..end]).map_err(|_| malformed())?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(malformed)?;
    let header = |line: &str| {
        line.split_once(':')
            .filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            .map(|(_, value)| value.trim().to_string())
    };
    let length: usize = head.lines().find_map(header).and_then(|value| value.parse().ok()).ok_or_else(malformed)?;
    Ok((buffer.len() >= end + 4 + length).then_some(status))
}
