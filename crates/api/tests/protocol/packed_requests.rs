//! Packed bodies: what unpacks, what is refused, and that the limit holds while unpacking.

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use insula_api::{ContentEncoding, RequestFormat};
use insula_core::{Code, DType, Error};
use proptest::prelude::*;

use crate::memory::{Decoded, decode_packed};
use crate::tensor_data::any_shape;

const LIMIT: usize = 1 << 20;

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Unpacks `body` as the single element of a raw BYTES request.
fn unpack(encoding: ContentEncoding, body: &[u8], limit: usize, budget: usize) -> Result<Vec<u8>, Error> {
    let format = RequestFormat::Binary { description_length: 0 };
    let decoded = decode_packed(format, encoding, &any_shape(DType::Bytes, 1), limit, body, budget)?;
    Ok(decoded.bytes(0)[4..].to_vec())
}

#[track_caller]
fn refused(encoding: ContentEncoding, body: &[u8], code: Code, named: &str) {
    for budget in [1, 1000, 1 << 20] {
        let error = unpack(encoding, body, LIMIT, budget).expect_err("it was unpacked");
        assert_eq!(error.code(), code, "{error}");
        assert!(error.message().contains(named), "{error} does not name {named:?}");
    }
}

fn decode_json(encoding: ContentEncoding, body: &[u8]) -> Result<Decoded, Error> {
    decode_packed(RequestFormat::Json, encoding, &any_shape(DType::Uint8, 1), LIMIT, body, 1 << 20)
}

#[test]
fn packed_json_is_unpacked_and_read_in_one_step_when_small() {
    let text = br#"{"inputs":[{"name":"x","shape":[3],"datatype":"UINT8","data":[1,2,3]}]}"#;
    for (encoding, body) in [(ContentEncoding::Gzip, gzip(text)), (ContentEncoding::Deflate, zlib(text))] {
        let decoded = decode_json(encoding, &body).unwrap();
        assert_eq!((decoded.bytes(0), decoded.steps), (&[1, 2, 3][..], 1));
    }
}

#[test]
fn the_description_length_counts_unpacked_bytes() {
    let text = br#"{"inputs":[{"name":"x","shape":[3],"datatype":"UINT8","parameters":{"binary_data_size":3}}]}"#;
    let body = gzip(&[&text[..], &[4, 5, 6]].concat());
    let format = RequestFormat::Binary { description_length: text.len() };
    let decoded = decode_packed(format, ContentEncoding::Gzip, &any_shape(DType::Uint8, 1), LIMIT, &body, 7).unwrap();
    assert_eq!(decoded.bytes(0), [4, 5, 6]);
}

#[test]
fn a_body_may_unpack_to_the_limit_and_not_to_one_byte_more() {
    let (fits, beyond) = (vec![b' '; LIMIT], vec![b' '; LIMIT + 1]);
    for budget in [100, 1 << 20] {
        assert_eq!(unpack(ContentEncoding::Gzip, &gzip(&fits), LIMIT, budget).unwrap().len(), LIMIT);
        assert_eq!(unpack(ContentEncoding::Deflate, &zlib(&fits), LIMIT, budget).unwrap().len(), LIMIT);
    }
    refused(ContentEncoding::Gzip, &gzip(&beyond), Code::PayloadTooLarge, "1048576");
    refused(ContentEncoding::Deflate, &zlib(&beyond), Code::PayloadTooLarge, "1048576");
    assert_eq!(unpack(ContentEncoding::Gzip, &gzip(b""), 0, 10).unwrap(), b"");
    assert_eq!(unpack(ContentEncoding::Gzip, &gzip(b"a"), 0, 10).unwrap_err().code(), Code::PayloadTooLarge);
}

#[test]
fn memory_grows_with_what_is_unpacked_and_never_past_the_limit() {
    let format = RequestFormat::Json;
    let mut sink = crate::memory::MemorySink::new(&gzip(&vec![b' '; 100 * LIMIT]));
    let mut decoder = insula_api::decoder(format, ContentEncoding::Gzip, any_shape(DType::Uint8, 1), LIMIT);
    let error = std::iter::repeat_with(|| decoder.step(&mut sink, 1000)).find_map(Result::err).unwrap();
    assert_eq!(error.code(), Code::PayloadTooLarge);
    assert_eq!(sink.peak, LIMIT);
    let mut sink = crate::memory::MemorySink::new(&gzip(b"{}"));
    let mut decoder = insula_api::decoder(format, ContentEncoding::Gzip, any_shape(DType::Uint8, 1), LIMIT);
    assert!(decoder.step(&mut sink, 1000).is_err());
    assert_eq!(sink.peak, 64 << 10);
}

#[test]
fn truncated_bodies_are_refused() {
    let text = b"some text that is long enough to be packed, packed, packed";
    for length in 0..gzip(text).len() {
        refused(ContentEncoding::Gzip, &gzip(text)[..length], Code::InvalidArgument, "gzip");
    }
    for length in 0..zlib(text).len() {
        refused(ContentEncoding::Deflate, &zlib(text)[..length], Code::InvalidArgument, "deflate");
    }
}

#[test]
fn garbage_after_the_end_is_refused() {
    refused(ContentEncoding::Gzip, &[&gzip(b"text")[..], b"x"].concat(), Code::InvalidArgument, "gzip");
    refused(ContentEncoding::Gzip, &[&gzip(b"text")[..], b"garbage and more"].concat(), Code::InvalidArgument, "gzip");
    refused(ContentEncoding::Deflate, &[&zlib(b"text")[..], b"x"].concat(), Code::InvalidArgument, "1 bytes follow");
}

#[test]
fn a_gzip_body_may_have_several_members() {
    let body = [gzip(b"one "), gzip(b""), gzip(b"two")].concat();
    for budget in [1, 1 << 20] {
        assert_eq!(unpack(ContentEncoding::Gzip, &body, LIMIT, budget).unwrap(), b"one two");
    }
}

#[test]
fn checksums_are_checked() {
    let (mut crc, mut length, mut adler) = (gzip(b"text"), gzip(b"text"), zlib(b"text"));
    let end = crc.len();
    crc[end - 8] ^= 1;
    length[end - 1] ^= 1;
    *adler.last_mut().unwrap() ^= 1;
    refused(ContentEncoding::Gzip, &crc, Code::InvalidArgument, "gzip");
    refused(ContentEncoding::Gzip, &length, Code::InvalidArgument, "gzip");
    refused(ContentEncoding::Deflate, &adler, Code::InvalidArgument, "deflate");
}

#[test]
fn one_packing_is_not_taken_for_another() {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(b"text").unwrap();
    let bare = encoder.finish().unwrap();
    refused(ContentEncoding::Deflate, &bare, Code::InvalidArgument, "deflate");
    refused(ContentEncoding::Deflate, &gzip(b"text"), Code::InvalidArgument, "deflate");
    refused(ContentEncoding::Gzip, &zlib(b"text"), Code::InvalidArgument, "gzip");
    refused(ContentEncoding::Gzip, b"{\"inputs\":[]}", Code::InvalidArgument, "gzip");
}

#[test]
fn a_gzip_header_may_have_a_name_a_comment_and_extra_fields() {
    let mut encoder = flate2::GzBuilder::new()
        .filename("name".repeat(100))
        .comment("comment")
        .extra(vec![7; 3000])
        .write(Vec::new(), Compression::fast());
    encoder.write_all(b"text").unwrap();
    let body = encoder.finish().unwrap();
    for budget in [1, 100, 1 << 20] {
        assert_eq!(unpack(ContentEncoding::Gzip, &body, LIMIT, budget).unwrap(), b"text");
    }
}

proptest! {
    #[test]
    fn whatever_was_packed_is_unpacked_in_steps_of_any_size(
        bytes in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..5000),
            (any::<u8>(), 0usize..200_000).prop_map(|(byte, count)| vec![byte; count]),
        ],
        budget in prop_oneof![1usize..50, 1usize..300_000],
    ) {
        prop_assert_eq!(&unpack(ContentEncoding::Gzip, &gzip(&bytes), LIMIT, budget).unwrap(), &bytes);
        prop_assert_eq!(&unpack(ContentEncoding::Deflate, &zlib(&bytes), LIMIT, budget).unwrap(), &bytes);
    }

    #[test]
    fn damaged_bodies_never_panic(mut body in proptest::collection::vec(any::<u8>(), 1..300).prop_map(|b| gzip(&b)),
                                  at in any::<prop::sample::Index>(), byte in any::<u8>(), budget in 1usize..400) {
        let at = at.index(body.len());
        body[at] = byte;
        let _ = unpack(ContentEncoding::Gzip, &body, LIMIT, budget);
        let _ = unpack(ContentEncoding::Deflate, &body, LIMIT, budget);
    }
}
