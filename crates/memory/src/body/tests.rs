//! Bodies of declared and of unknown length: where they lie, what they refuse, and that nothing is lost when they grow.

use insula_core::{Code, Nanos};
use proptest::prelude::*;

use super::*;
use crate::test_config::cases;
use crate::test_domain::{MIB, lone_domain};

#[test]
fn raw_tensors_behind_a_description_lie_on_a_cache_line() {
    let domain = lone_domain(MIB);
    for description in [0, 1, 63, 64, 65, 100, 1000] {
        let mut body = BodyBuffer::with_declared(&domain, 1000, Some(description), 1000).unwrap();
        body.write(&[7; 1000]).unwrap();
        assert!(body.bytes()[description..].as_ptr().addr().is_multiple_of(LINE_BYTES), "{description}");
    }
}

#[test]
fn a_declared_body_takes_exactly_what_was_declared() {
    let domain = lone_domain(MIB);
    let mut body = BodyBuffer::with_declared(&domain, 10, None, 10).unwrap();
    assert!(body.is_empty() && !body.is_complete());
    body.write(b"01234").unwrap();
    let error = body.write(b"567890").unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.message().contains("11 bytes") && error.message().contains("length is 10"), "{error}");
    assert_eq!((body.len(), body.is_complete()), (5, false), "a refused chunk changes nothing");
    body.write(b"").unwrap();
    body.write(b"56789").unwrap();
    assert!(body.is_complete());
    assert_eq!(body.finish().unwrap().bytes(), b"0123456789");
}

#[test]
fn an_empty_declared_body_is_complete_at_once() {
    let mut body = BodyBuffer::with_declared(&lone_domain(MIB), 0, None, 10).unwrap();
    assert!(body.is_complete() && body.is_empty());
    body.write(b"").unwrap();
    assert!(body.write(b"x").is_err());
    assert_eq!(body.finish().unwrap().bytes(), b"");
}

#[test]
fn a_body_that_ended_early_is_refused() {
    let mut body = BodyBuffer::with_declared(&lone_domain(MIB), 10, None, 10).unwrap();
    body.write(b"0123").unwrap();
    let error = body.finish().unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.message().contains("after 4 bytes"), "{error}");
}

#[test]
fn what_is_too_long_is_refused_naming_the_limit_in_bytes() {
    let domain = lone_domain(MIB);
    let declared = BodyBuffer::with_declared(&domain, 101, None, 100).unwrap_err();
    let mut growing = BodyBuffer::growing(&domain, 100).unwrap();
    growing.write(&[1; 100]).unwrap();
    let grown = growing.write(&[1]).unwrap_err();
    for error in [declared, grown] {
        assert_eq!(error.code(), Code::PayloadTooLarge);
        assert!(error.message().contains("at least 101 bytes, the limit is 100 bytes"), "{error}");
    }
    assert_eq!(growing.len(), 100);
}

#[test]
fn lengths_that_no_memory_has_are_refused_not_added_up() {
    let domain = lone_domain(MIB);
    let error = BodyBuffer::with_declared(&domain, usize::MAX, Some(1), u64::MAX).unwrap_err();
    assert_eq!(error.code(), Code::QuotaExceeded);
    let error = BodyBuffer::with_declared(&domain, 10, Some(11), 100).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
}

#[test]
fn growing_is_reserved_first_and_a_refusal_keeps_what_was_written() {
    let domain = lone_domain(200 << 10);
    let mut body = BodyBuffer::growing(&domain, 16 * MIB).unwrap();
    body.write(&[3; 64 << 10]).unwrap();
    // 64 KiB + 128 KiB fit the limit, 128 KiB + 256 KiB do not
    body.write(&[4; 64 << 10]).unwrap();
    assert_eq!(domain.usage().high_water, 192 << 10);
    let error = body.write(&[5]).unwrap_err();
    assert_eq!((error.code(), body.len()), (Code::QuotaExceeded, 128 << 10));
    assert!(body.bytes()[..64 << 10].iter().all(|byte| *byte == 3));
    drop(body);
    assert_eq!(domain.usage().in_use, 0);
}

#[test]
fn the_last_doubling_stops_at_the_limit() {
    let domain = lone_domain(MIB);
    let mut body = BodyBuffer::growing(&domain, 100 << 10).unwrap();
    body.write(&[3; 70 << 10]).unwrap();
    assert_eq!(domain.usage().in_use, 100 << 10);
    assert!(body.is_complete());
}

#[test]
fn a_body_of_a_deleted_tenant_takes_no_more_chunks() {
    let domain = lone_domain(MIB);
    let mut body = BodyBuffer::with_declared(&domain, 10, None, 10).unwrap();
    body.write(b"01234").unwrap();
    domain.close(Nanos(0));
    assert_eq!(body.write(b"5").unwrap_err().refusal().unwrap().limit, "tenant_deleted");
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn whatever_the_chunks_the_body_is_their_concatenation(
        chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..if cfg!(miri) { 50 } else { 40_000 }), 0..12),
        description in 0usize..200,
    ) {
        let whole = chunks.concat();
        let domain = lone_domain(4 * MIB);
        let description = description.min(whole.len());
        let declared = BodyBuffer::with_declared(&domain, whole.len(), Some(description), MIB).unwrap();
        for mut body in [declared, BodyBuffer::growing(&domain, MIB).unwrap()] {
            chunks.iter().for_each(|chunk| body.write(chunk).unwrap());
            prop_assert!(body.is_complete() && body.bytes() == whole);
        }
        prop_assert_eq!(domain.usage().leases, 0);
    }
}
