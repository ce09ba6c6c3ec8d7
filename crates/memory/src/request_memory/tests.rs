//! What decoders rely on: slots, adopted ranges, unpacking within its limit, and that faults are answers.

use insula_core::{Code, Nanos};

use super::*;
use crate::test_domain::{MIB, lone_domain};

fn request(body: &[u8], unpacked_limit: u64) -> RequestMemory {
    request_in(&lone_domain(4 * MIB), body, unpacked_limit)
}

fn request_in(domain: &Arc<Domain>, body: &[u8], unpacked_limit: u64) -> RequestMemory {
    let mut buffer = BodyBuffer::with_declared(domain, body.len(), None, MIB).unwrap();
    buffer.write(body).unwrap();
    RequestMemory::new(buffer, unpacked_limit).unwrap()
}

#[test]
fn a_body_with_bytes_missing_is_no_request() {
    let buffer = BodyBuffer::with_declared(&lone_domain(MIB), 3, None, MIB).unwrap();
    assert_eq!(RequestMemory::new(buffer, MIB).unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn tensors_are_written_from_the_body_and_read_back_by_slot() {
    let mut memory = request(b"description0123", MIB);
    let adopted = memory.adopt(11..15).unwrap();
    let reserved = memory.reserve(8).unwrap();
    let (body, piece) = memory.body_and_slot(reserved);
    piece[..4].copy_from_slice(&body[11..]);
    piece[4..].copy_from_slice(b"wxyz");
    assert_eq!((memory.slot(adopted), memory.input_bytes(reserved)), (&b"0123"[..], &b"0123wxyz"[..]));
    assert!(memory.slot(reserved).as_ptr().addr().is_multiple_of(64));
    memory.truncate(reserved, 5).unwrap();
    assert_eq!(memory.slot(reserved), b"0123w");
}

#[test]
fn adopted_and_foreign_slots_give_no_piece_to_write() {
    let mut memory = request(b"0123", MIB);
    let adopted = memory.adopt(0..4).unwrap();
    for slot in [adopted, TensorSlot(1), TensorSlot(u32::MAX)] {
        assert!(memory.body_and_slot(slot).1.is_empty());
        assert_eq!(memory.truncate(slot, 0).unwrap_err().code(), Code::Internal);
    }
    assert!(memory.slot(TensorSlot(7)).is_empty());
    let reserved = memory.reserve(4).unwrap();
    assert!(memory.truncate(reserved, 5).is_err());
}

#[test]
fn only_ranges_of_the_body_can_be_adopted() {
    let mut memory = request(b"0123", MIB);
    for range in [0..5, 4..5, usize::MAX - 1..usize::MAX, Range { start: 3, end: 2 }] {
        assert_eq!(memory.adopt(range).unwrap_err().code(), Code::InvalidArgument);
    }
    let empty = memory.adopt(4..4).unwrap();
    assert!(memory.slot(empty).is_empty());
}

#[test]
fn a_body_is_unpacked_beside_the_packed_one_and_takes_its_place() {
    let domain = lone_domain(4 * MIB);
    let mut memory = request_in(&domain, b"packed", MIB);
    memory.unpack_reserve(4).unwrap();
    memory.unpack_room().1[..4].copy_from_slice(b"unpa");
    memory.unpack_reserve(100_000).unwrap();
    let (packed, room) = memory.unpack_room();
    assert_eq!((packed, &room[..4]), (&b"packed"[..], &b"unpa"[..]));
    room[4..8].copy_from_slice(b"cked");
    memory.unpack_finish(8).unwrap();
    assert_eq!(memory.body(), b"unpacked");
    assert_eq!(domain.usage().leases, 1, "the packed body has been given back");
}

#[test]
fn room_to_unpack_doubles_up_to_the_limit_and_no_byte_further() {
    let domain = lone_domain(4 * MIB);
    let mut memory = request_in(&domain, b"packed", 150_000);
    let mut rooms = Vec::new();
    let error = loop {
        let written = memory.unpack_room().1.len();
        match memory.unpack_reserve(written + 1) {
            Ok(()) => rooms.push(memory.unpack_room().1.len()),
            Err(error) => break error,
        }
    };
    assert_eq!(rooms, [64 << 10, 128 << 10, 150_000]);
    assert_eq!(error.code(), Code::PayloadTooLarge);
    assert!(error.message().contains("150001") && error.message().contains("limit is 150000 bytes"), "{error}");
}

#[test]
fn unpacking_cannot_claim_more_than_there_is_or_pull_the_body_from_under_a_tensor() {
    let mut memory = request(b"packed", MIB);
    assert!(memory.unpack_finish(1).is_err());
    memory.unpack_reserve(70_000).unwrap();
    assert!(memory.unpack_finish(usize::MAX).is_err());
    let adopted = memory.adopt(0..6).unwrap();
    assert!(memory.unpack_finish(3).is_err());
    assert_eq!(memory.slot(adopted), b"packed");
}

#[test]
fn the_tenants_memory_limit_holds_for_tensors_and_for_unpacking() {
    let mut memory = request_in(&lone_domain(100 << 10), b"packed", MIB);
    assert_eq!(memory.reserve(1 << 20).unwrap_err().code(), Code::QuotaExceeded);
    assert_eq!(memory.reserve(usize::MAX).unwrap_err().code(), Code::QuotaExceeded);
    assert_eq!(memory.unpack_reserve(200 << 10).unwrap_err().code(), Code::QuotaExceeded);
    memory.reserve(90 << 10).unwrap();
}

#[test]
fn what_only_the_decoder_needed_goes_back_before_the_run() {
    let domain = lone_domain(4 * MIB);
    let mut text = request_in(&domain, &[b' '; 5000], MIB);
    let slot = text.reserve(10).unwrap();
    text.finish_decoding();
    assert_eq!((domain.usage().leases, text.input_bytes(slot).len(), text.body()), (1, 10, &b""[..]));
    let mut binary = request_in(&domain, b"0123", MIB);
    let adopted = binary.adopt(1..3).unwrap();
    binary.finish_decoding();
    assert_eq!(binary.input_bytes(adopted), b"12");
}

#[test]
fn decoding_for_a_deleted_tenant_ends() {
    let domain = lone_domain(4 * MIB);
    let mut memory = request_in(&domain, b"packed", MIB);
    domain.close(Nanos(0));
    for error in [memory.reserve(1).unwrap_err(), memory.unpack_reserve(1).unwrap_err()] {
        assert_eq!(error.refusal().unwrap().limit, "tenant_deleted");
    }
}

#[test]
fn the_memory_of_a_request_can_move_to_another_thread() {
    fn movable<T: Send>(value: T) -> T {
        value
    }
    let mut memory = movable(request(b"0123", MIB));
    let slot = memory.reserve(4).unwrap();
    let read = std::thread::spawn(move || memory.slot(slot).len()).join().unwrap();
    assert_eq!(read, 4);
}
