//! The `data` of JSON tensors: counts, nesting, ranges and rounding of every type, and what is said of each fault.

use std::sync::Arc;

use half::{bf16, f16};
use insula_core::{Code, DType, Dimension, Error, ModelSignature, TensorSpec};

use crate::memory::{Decoded, decode_json};

/// A model with one input `x` of `dtype` and any shape of `rank` dimensions.
pub fn any_shape(dtype: DType, rank: usize) -> Arc<ModelSignature> {
    let dims = (0..rank).map(|index| Dimension::Symbolic(format!("d{index}").into())).collect();
    let inputs = vec![TensorSpec { name: "x".into(), dtype, dims }];
    Arc::new(ModelSignature { outputs: inputs.clone(), inputs, batched: false, max_batch: 1 })
}

fn decode(dtype: DType, shape: &[usize], data: &str) -> Result<Decoded, Error> {
    let signature = any_shape(dtype, shape.len());
    let first =
        format!("{{\"inputs\":[{{\"name\":\"x\",\"shape\":{shape:?},\"datatype\":\"{dtype}\",\"data\":{data}}}]}}");
    let last =
        format!("{{\"inputs\":[{{\"data\":{data},\"name\":\"x\",\"shape\":{shape:?},\"datatype\":\"{dtype}\"}}]}}");
    let (first, last) = (decode_json(&signature, &first), decode_json(&signature, &last));
    match (&first, &last) {
        (Ok(first), Ok(last)) => assert_eq!(first.bytes(0), last.bytes(0)),
        (Err(first), Err(last)) => assert_eq!(first.code(), last.code(), "{first} / {last}"),
        _ => panic!("the order of the keys matters for {dtype} {shape:?} {data:.80}"),
    }
    first
}

#[track_caller]
fn gives(dtype: DType, data: &str, expected: &[u8]) {
    let count = data.split(',').count();
    assert_eq!(decode(dtype, &[count], data).unwrap().bytes(0), expected, "{dtype} {data}");
}

#[track_caller]
fn refused(dtype: DType, shape: &[usize], data: &str, named: &[&str]) {
    let Err(error) = decode(dtype, shape, data) else { panic!("{dtype} {shape:?} {data:.80} was accepted") };
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    for name in named {
        assert!(error.message().contains(name), "{error} does not name {name:?}");
    }
}

#[test]
fn the_count_must_be_the_shapes_and_both_counts_are_told() {
    for (data, found) in
        [("[]", "0"), ("[1]", "1"), ("[1,2,3]", "3"), ("[1,2,3,4,5]", "5"), ("[1,2,3,4,5,6,7,8,9]", "9")]
    {
        refused(DType::Fp32, &[1, 4], data, &["input `x`", &format!("{found} elements"), "has 4"]);
        refused(DType::Int8, &[4], data, &[&format!("{found} elements"), "has 4"]);
    }
    refused(DType::Bytes, &[2], "[\"a\"]", &["1 elements", "has 2"]);
    refused(DType::Bytes, &[2], "[\"a\",\"b\",\"ccccccccccccccccccccccc\"]", &["3 elements", "has 2"]);
    refused(DType::Bool, &[2], "[true,true,false]", &["3 elements", "has 2"]);
}

#[test]
fn a_shape_far_larger_than_the_text_reserves_nothing() {
    let huge = 1usize << 40;
    refused(DType::Fp64, &[huge], "[1,2,3]", &["3 elements", "1099511627776"]);
    refused(DType::Bytes, &[huge], "[\"\"]", &["1 elements"]);
    refused(DType::Fp64, &[1 << 20, 1 << 20], "[[1],[2]]", &["ragged"]);
}

#[test]
fn data_may_be_flat_or_nested_exactly_as_the_shape() {
    let flat = decode(DType::Uint8, &[2, 1, 3], "[1,2,3,4,5,6]").unwrap();
    let nested = decode(DType::Uint8, &[2, 1, 3], "[[[1,2,3]],[ [4,5,6] ]]").unwrap();
    assert_eq!(flat.bytes(0), nested.bytes(0));
    assert_eq!(decode(DType::Uint8, &[], "[7]").unwrap().bytes(0), [7]);
}

#[test]
fn ragged_data_is_refused_saying_where() {
    for (data, named) in [
        ("[[1,2,3],[4,5]]", "[1]"),
        ("[[1,2,3],[4,5,6,7]]", "[1]"),
        ("[[1,2,3]]", "outermost"),
        ("[[1,2,3],[4,5,6],[7,8,9]]", "outermost"),
        ("[[1,2,3],4,5,6]", "outermost"),
        ("[1,[2,3],4,5,6]", "outermost"),
        ("[[[1,2,3],[4,5,6]]]", "more than 2 deep"),
        ("[[],[]]", "[0]"),
    ] {
        refused(DType::Int32, &[2, 3], data, &["input `x`", named]);
    }
}

#[test]
fn integers_take_whole_numbers_in_their_range_only() {
    gives(DType::Uint8, "[0,255,-0]", &[0, 255, 0]);
    gives(DType::Int8, "[-128,127]", &[0x80, 0x7f]);
    gives(DType::Uint16, "[65535]", &[0xff, 0xff]);
    gives(DType::Int16, "[-32768]", &i16::MIN.to_le_bytes());
    gives(DType::Uint32, "[4294967295]", &[0xff; 4]);
    gives(DType::Int32, "[-2147483648]", &i32::MIN.to_le_bytes());
    gives(DType::Uint64, "[18446744073709551615]", &[0xff; 8]);
    gives(DType::Int64, "[-9223372036854775808]", &i64::MIN.to_le_bytes());
    for (dtype, value) in [
        (DType::Uint8, "256"),
        (DType::Uint8, "-1"),
        (DType::Int8, "128"),
        (DType::Uint16, "65536"),
        (DType::Int16, "-32769"),
        (DType::Uint32, "4294967296"),
        (DType::Int32, "2147483648"),
        (DType::Uint64, "18446744073709551616"),
        (DType::Int64, "9223372036854775808"),
        (DType::Int64, "-9223372036854775809"),
        (DType::Int64, "1.0"),
        (DType::Int32, "1e2"),
        (DType::Uint64, "99999999999999999999999999999999999999999999"),
    ] {
        refused(
            dtype,
            &[2],
            &format!("[0,{value}]"),
            &["element 1", "input `x`", &value[..value.len().min(40)], dtype.name()],
        );
    }
}

#[test]
fn floats_take_any_number_and_round_to_the_nearest() {
    gives(DType::Fp32, "[1,0.1,-0.0,1e-50,16777217]", &le([1.0f32, 0.1, -0.0, 0.0, 16777216.0].map(f32::to_le_bytes)));
    // halfway between two f32 but for a digit that f64 cannot see
    gives(DType::Fp32, "[1.00000005960464477539062500001]", &1.0000001f32.to_le_bytes());
    gives(DType::Fp32, "[3.4028235e38]", &f32::MAX.to_le_bytes());
    gives(DType::Fp64, "[0.1,5e-324,1.7976931348623157e308]", &le([0.1, 5e-324, f64::MAX].map(f64::to_le_bytes)));
    gives(
        DType::Fp16,
        "[65504,65519,1e-8,2049,-0.1]",
        &le([65504.0, 65504.0, 0.0, 2048.0, -0.1].map(|v| f16::from_f64(v).to_le_bytes())),
    );
    gives(DType::Bf16, "[1.01,-3e38]", &le([1.01f32, -3e38].map(|v| bf16::from_f32(v).to_le_bytes())));
}

fn le<const N: usize, const M: usize>(values: [[u8; N]; M]) -> Vec<u8> {
    values.concat()
}

#[test]
fn floats_that_would_be_infinite_are_refused() {
    for (dtype, value) in [
        (DType::Fp16, "70000"),
        (DType::Fp16, "65520"),
        (DType::Bf16, "3.4e38"),
        (DType::Fp32, "1e39"),
        (DType::Fp32, "-3.5e38"),
        (DType::Fp64, "1e400"),
        (DType::Fp64, "1e99999999999999999999"),
    ] {
        refused(dtype, &[1], &format!("[{value}]"), &["element 0", value, dtype.name()]);
    }
}

#[test]
fn nan_and_infinity_are_not_json_and_the_way_out_is_named() {
    for word in ["NaN", "Infinity", "-Infinity"] {
        refused(DType::Fp32, &[2], &format!("[1,{word}]"), &["binary"]);
    }
    let unquoted = decode_json(&any_shape(DType::Fp32, 1), "{\"x\":NaN}").err().unwrap();
    assert!(unquoted.message().contains("NaN and Infinity are not JSON"), "{unquoted}");
}

#[test]
fn booleans_are_true_or_false() {
    gives(DType::Bool, "[true,false]", &[1, 0]);
    for value in ["1", "0", "\"true\"", "null", "tru", "truex", "[]"] {
        refused(DType::Bool, &[1], &format!("[{value}]"), &[]);
    }
}

#[test]
fn byte_strings_are_json_strings_of_any_character() {
    let expected = [&b"\x03\0\0\0a\"b"[..], b"\0\0\0\0", b"\x07\0\0\0\xc3\xa9\n\xf0\x9f\x98\x80"].concat();
    gives(DType::Bytes, r#"["a\"b","","é\n\ud83d\ude00"]"#, &expected);
    refused(DType::Bytes, &[1], "[\"a\nb\"]", &["control"]);
    refused(DType::Bytes, &[1], r#"["\ud83d"]"#, &["surrogate"]);
    refused(DType::Bytes, &[1], r#"["\q"]"#, &["backslash"]);
    refused(DType::Bytes, &[1], "[7]", &["element 0", "a number", "BYTES"]);
    let invalid = b"{\"inputs\":[{\"name\":\"x\",\"shape\":[1],\"datatype\":\"BYTES\",\"data\":[\"a\xffb\"]}]}";
    let format = insula_api::RequestFormat::Json;
    let identity = insula_api::ContentEncoding::Identity;
    for budget in [1, 2, 1000] {
        let error = crate::memory::decode_packed(format, identity, &any_shape(DType::Bytes, 1), 0, invalid, budget)
            .err()
            .unwrap();
        assert!(error.message().contains("UTF-8"), "{error}");
    }
}

#[test]
fn values_of_another_kind_are_refused_by_index_and_type() {
    for (value, kind) in [("null", "null"), ("\"1\"", "a string"), ("{}", "an object"), ("true", "a boolean")] {
        refused(DType::Fp32, &[2], &format!("[1,{value}]"), &["element 1", "input `x`", kind, "FP32"]);
    }
    for (value, kind) in [("\"text\"", "a string"), ("{\"a\":1}", "an object"), ("null", "null"), ("7", "a number")] {
        refused(DType::Fp32, &[2], value, &["`data`", "input `x`", kind]);
    }
}

#[test]
fn arrays_keep_jsons_grammar() {
    for data in
        ["[1,]", "[,1]", "[1 2]", "[1,,2]", "[01]", "[1.]", "[.5]", "[+1]", "[1e]", "[-]", "[1", "[0x1]", "[1]]"]
    {
        refused(DType::Fp32, &[1], data, &[]);
    }
}

#[test]
fn very_long_numbers_are_refused_and_long_ones_are_exact() {
    let long = format!("0.{}1", "0".repeat(300));
    gives(DType::Fp64, &format!("[{long}]"), &1e-301f64.to_le_bytes());
    gives(DType::Fp64, &format!("[1{}e-1000]", "0".repeat(1000)), &1f64.to_le_bytes());
    refused(DType::Fp64, &[1], &format!("[1{}]", "0".repeat(5000)), &["longer than 4096"]);
}
