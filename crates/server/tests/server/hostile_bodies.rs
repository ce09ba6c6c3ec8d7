//! Bodies made to hurt: bombs, towers of brackets, floods that were never admitted.

use std::fs;
use std::io::{ErrorKind, Write};
use std::net::TcpStream;
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::running_server::{JSON, RunningServer, SHARED};
use crate::tensors::{output, request, values};
use crate::wire::{Connection, head};

const INFER: &str = "/v2/models/identity_fp32/infer";

#[test]
fn a_small_gzip_body_that_unpacks_without_end_is_refused_by_the_limit() {
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    for _ in 0..64 {
        packer.write_all(&[b' '; 1 << 20]).unwrap();
    }
    let bomb = packer.finish().unwrap();
    for _ in 0..2 {
        let answer = SHARED.ask("POST", INFER, &[JSON, ("content-encoding", "gzip")], &bomb);
        assert!(answer.error(413).contains("16"), "{}", answer.text());
    }
}

#[test]
fn a_packed_request_is_answered_like_a_plain_one() {
    let data = values(1, 16, 4);
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(request(1, 16, &data).to_string().as_bytes()).unwrap();
    let answer = SHARED.ask("POST", INFER, &[JSON, ("content-encoding", "gzip")], &packer.finish().unwrap());
    assert_eq!(output(&answer.json()), data);
}

#[test]
fn an_unknown_packing_is_refused_with_those_that_are_known() {
    let answer = SHARED.ask("POST", INFER, &[JSON, ("content-encoding", "br")], b"{}");
    answer.error(501);
    assert_eq!(answer.header("accept-encoding"), Some("gzip, deflate"));
}

#[test]
fn towers_of_brackets_are_refused() {
    for levels in [200, 100_000, 1_000_000] {
        let open = "[".repeat(levels);
        let shut = "]".repeat(levels);
        let input = format!(
            "{{\"inputs\":[{{\"name\":\"INPUT0\",\"shape\":[1,16],\"datatype\":\"FP32\",\"data\":{open}{shut}}}]}}"
        );
        let parameters = format!("{{\"parameters\":{}1{}}}", "{\"a\":".repeat(levels), "}".repeat(levels));
        for body in [open.clone(), format!("{open}{shut}"), input, parameters] {
            SHARED.ask("POST", INFER, &[JSON], body.as_bytes()).error(400);
        }
    }
}

#[test]
fn the_answer_to_a_body_over_the_limit_arrives_although_the_caller_goes_on_sending() {
    for announced in [64usize << 20, 600 << 20] {
        let mut connection = SHARED.connect();
        connection.send(head("POST", INFER, &[JSON, ("content-length", &announced.to_string())]));
        let piece = vec![b' '; 1 << 20];
        for _ in 0..48 {
            if connection.socket.write_all(&piece).is_err() {
                break;
            }
        }
        let answer = connection.answer().unwrap();
        assert!(answer.error(413).contains("16777216"), "{}", answer.text());
        assert_eq!(answer.header("connection"), Some("close"));
    }
}

#[test]
fn a_body_in_chunks_over_the_limit_is_refused_too() {
    let mut connection = SHARED.connect();
    connection.send(head("POST", INFER, &[JSON, ("transfer-encoding", "chunked")]));
    let piece = [format!("{:x}\r\n", 1 << 20).as_bytes(), &vec![b' '; 1 << 20], b"\r\n"].concat();
    for _ in 0..40 {
        if connection.socket.write_all(&piece).is_err() {
            break;
        }
    }
    connection.answer().unwrap().error(413);
}

/// Set for the process that measures alone: other tests' servers share this one's memory.
const ALONE: &str = "MEASURES_ALONE";

#[test]
fn five_hundred_strangers_who_announce_large_bodies_cost_only_their_heads() {
    if std::env::var_os(ALONE).is_some() {
        return measure_strangers();
    }
    let this = "hostile_bodies::five_hundred_strangers_who_announce_large_bodies_cost_only_their_heads";
    let mut alone = Command::new(std::env::current_exe().unwrap());
    let measured = alone.args([this, "--exact", "--nocapture"]).env(ALONE, "1").output().unwrap();
    let told = String::from_utf8_lossy(&measured.stdout);
    println!("{told}");
    assert!(measured.status.success() && told.contains("1 passed"), "{}", String::from_utf8_lossy(&measured.stderr));
}

fn measure_strangers() {
    let server = RunningServer::start(|_| {});
    let before = resident();
    let request = head("POST", INFER, &[JSON, ("content-length", "16777216"), ("authorization", "Bearer ins_wrong")]);
    let address = server.server.addresses().http;
    let mut strangers: Vec<Connection> = (0..500).map(|_| Connection::open(address)).collect();
    let piece = vec![b' '; 64 << 10];
    for stranger in &mut strangers {
        stranger.send(&request);
        stranger.socket.set_nonblocking(true).unwrap();
        flood(&mut stranger.socket, &piece, 4 << 20);
    }
    let risen = resident().saturating_sub(before);
    println!("500 strangers with open bodies: resident memory rose by {} KiB", risen >> 10);
    for stranger in &mut strangers {
        stranger.socket.set_nonblocking(false).unwrap();
        stranger.answer().unwrap().error(401);
    }
    assert!(risen < 32 << 20, "resident memory rose by {} KiB", risen >> 10);
}

/// Sends up to `most` bytes, as far as they are taken without waiting.
fn flood(socket: &mut TcpStream, piece: &[u8], most: usize) {
    let mut sent = 0;
    while sent < most {
        match socket.write(piece) {
            Ok(count) => sent += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(error) => panic!("the connection was reset before its answer: {error}"),
        }
    }
}

/// Bytes of this process that are in memory.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<usize>().unwrap() << 10
}
