//! Answers: what is in their description, the text of every type, and that they can be written in pieces of any size.

use std::sync::Arc;

use half::f16;
use insula_core::{
    Code, DType, Encode, EncodedHead, Error, ModelSignature, OutputTensor, Shape, TensorSource, TensorSpec,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::memory::decode_binary;

/// Finished outputs over vectors.
pub struct Outputs {
    pub model: &'static str,
    pub tensors: Vec<(String, DType, Shape, Vec<u8>)>,
}

impl TensorSource for Outputs {
    fn model_name(&self) -> &str {
        self.model
    }

    fn model_version(&self) -> u32 {
        3
    }

    fn outputs(&self) -> usize {
        self.tensors.len()
    }

    fn output(&self, index: usize) -> Option<OutputTensor<'_>> {
        let (name, dtype, shape, bytes) = self.tensors.get(index)?;
        Some(OutputTensor { name, dtype: *dtype, shape, bytes })
    }
}

fn tensor(name: &str, dtype: DType, count: usize, bytes: &[u8]) -> (String, DType, Shape, Vec<u8>) {
    (name.to_owned(), dtype, Shape::new(&[count]).unwrap(), bytes.to_vec())
}

fn floats(name: &str, values: &[f32]) -> (String, DType, Shape, Vec<u8>) {
    tensor(name, DType::Fp32, values.len(), &values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>())
}

fn strings(name: &str, values: &[&[u8]]) -> (String, DType, Shape, Vec<u8>) {
    let elements = values.iter().flat_map(|value| [&(value.len() as u32).to_le_bytes()[..], value].concat());
    tensor(name, DType::Bytes, values.len(), &elements.collect::<Vec<_>>())
}

/// The encoder that a request for `outputs` gets, each with whether it wants binary data.
pub fn reply(outputs: &Outputs, binary: &[bool], id: Option<&str>) -> Box<dyn Encode> {
    let specs = outputs.tensors.iter().map(|(name, dtype, ..)| TensorSpec {
        name: (**name).into(),
        dtype: *dtype,
        dims: vec![],
    });
    let signature = ModelSignature { inputs: vec![], outputs: specs.collect(), batched: false, max_batch: 1 };
    let wanted: Vec<_> = outputs
        .tensors
        .iter()
        .zip(binary)
        .map(|((name, ..), binary)| json!({"name": name, "parameters": {"binary_data": binary}}))
        .collect();
    let request = json!({"id": id, "inputs": [], "outputs": wanted});
    decode_binary(&Arc::new(signature), &request.to_string(), &[]).unwrap().request.reply
}

fn steps(encoder: &mut dyn Encode, outputs: &Outputs, piece: usize) -> Result<Vec<u8>, Error> {
    let mut body = Vec::new();
    loop {
        let start = body.len();
        body.resize(start + piece, 0);
        let count = encoder.step(outputs, &mut body[start..])?;
        body.truncate(start + count);
        if count == 0 {
            return Ok(body);
        }
    }
}

/// The head and the body of an answer written in pieces of `piece` bytes.
pub fn encode(
    outputs: &Outputs,
    binary: &[bool],
    id: Option<&str>,
    piece: usize,
) -> Result<(EncodedHead, Vec<u8>), Error> {
    let mut encoder = reply(outputs, binary, id);
    let head = encoder.head(outputs)?;
    let body = steps(&mut *encoder, outputs, piece)?;
    if let Some(length) = head.length {
        assert_eq!(length, body.len());
    }
    Ok((head, body))
}

fn json_of(outputs: &Outputs) -> Value {
    let (head, body) = encode(outputs, &vec![false; outputs.tensors.len()], None, 100).unwrap();
    assert_eq!((head.media_type, head.description_length), ("application/json", None));
    serde_json::from_slice(&body).unwrap()
}

#[test]
fn a_json_answer_names_model_version_and_every_output() {
    let outputs = Outputs { model: "digits", tensors: vec![floats("y", &[1.0, -0.5]), strings("z", &[b"a"])] };
    let (head, body) = encode(&outputs, &[false, false], Some("q\"1"), 1000).unwrap();
    assert_eq!(
        head,
        EncodedHead { media_type: "application/json", description_length: None, length: Some(body.len()) }
    );
    assert_eq!(
        std::str::from_utf8(&body).unwrap(),
        "{\"id\":\"q\\\"1\",\"model_name\":\"digits\",\"model_version\":\"3\",\"outputs\":[\
         {\"name\":\"y\",\"datatype\":\"FP32\",\"shape\":[2],\"data\":[1.0,-0.5]},\
         {\"name\":\"z\",\"datatype\":\"BYTES\",\"shape\":[1],\"data\":[\"a\"]}]}"
    );
}

#[test]
fn an_id_is_repeated_only_if_it_was_given() {
    let outputs = Outputs { model: "m", tensors: vec![floats("y", &[1.0])] };
    assert_eq!(json_of(&outputs).get("id"), None);
}

#[test]
fn a_binary_answer_has_its_tensors_behind_the_description_in_order() {
    let outputs = Outputs {
        model: "m",
        tensors: vec![floats("y", &[f32::NAN, 1.0]), floats("j", &[2.0]), strings("z", &[b"\xff"])],
    };
    let (head, body) = encode(&outputs, &[true, false, true], None, 7).unwrap();
    assert_eq!((head.media_type, head.length), ("application/octet-stream", Some(body.len())));
    let (text, tail) = body.split_at(head.description_length.unwrap());
    assert_eq!(tail, [&outputs.tensors[0].3[..], &outputs.tensors[2].3].concat());
    let text: Value = serde_json::from_slice(text).unwrap();
    assert_eq!(text["outputs"][0]["parameters"]["binary_data_size"], 8);
    assert_eq!(text["outputs"][0].get("data"), None);
    assert_eq!(text["outputs"][1]["data"], json!([2.0]));
    assert_eq!(text["outputs"][2]["parameters"]["binary_data_size"], 5);
}

#[test]
fn nan_and_infinity_are_refused_by_name_and_point_to_binary_data() {
    let half = |values: &[f32]| values.iter().flat_map(|value| f16::from_f32(*value).to_le_bytes()).collect::<Vec<_>>();
    for (dtype, bytes) in [
        (DType::Fp32, [1.0f32.to_le_bytes(), f32::NAN.to_le_bytes()].concat()),
        (DType::Fp64, [1.0f64.to_le_bytes(), f64::NEG_INFINITY.to_le_bytes()].concat()),
        (DType::Fp16, half(&[1.0, f32::INFINITY])),
        (DType::Bf16, [0x80, 0x3f, 0xc0, 0x7f].to_vec()),
    ] {
        let outputs = Outputs { model: "m", tensors: vec![tensor("logits", dtype, 2, &bytes)] };
        let error = encode(&outputs, &[false], None, 10).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(["logits", "element 1", "binary_data"].iter().all(|word| error.message().contains(word)), "{error}");
        assert!(encode(&outputs, &[true], None, 10).unwrap().1.ends_with(&bytes));
    }
}

#[test]
fn bytes_that_are_no_text_are_refused_by_name_and_point_to_binary_data() {
    let outputs = Outputs { model: "m", tensors: vec![strings("z", &[b"ok", b"\xff"])] };
    let error = encode(&outputs, &[false], None, 10).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(["output `z`", "element 1", "binary_data"].iter().all(|word| error.message().contains(word)), "{error}");
}

#[test]
fn an_output_that_does_not_hold_its_own_lengths_is_a_fault_of_ours() {
    let outputs = Outputs { model: "m", tensors: vec![tensor("z", DType::Bytes, 1, b"\x05\0\0\0ab")] };
    assert_eq!(encode(&outputs, &[false], None, 10).unwrap_err().code(), Code::Internal);
    let two = Outputs { model: "m", tensors: vec![floats("y", &[1.0]), floats("z", &[1.0])] };
    assert_eq!(reply(&outputs, &[true], None).head(&two).unwrap_err().code(), Code::Internal);
}

#[test]
fn every_type_is_written_as_json_reads_it() {
    let two = |name: &str, dtype, low: &[u8], high: &[u8]| tensor(name, dtype, 2, &[low, high].concat());
    let outputs = Outputs {
        model: "m",
        tensors: vec![
            two("b", DType::Bool, &[0], &[1]),
            two("u8", DType::Uint8, &[0], &[255]),
            two("i8", DType::Int8, &[0x80], &[0x7f]),
            two("u16", DType::Uint16, &[0; 2], &[0xff; 2]),
            two("i16", DType::Int16, &i16::MIN.to_le_bytes(), &i16::MAX.to_le_bytes()),
            two("u32", DType::Uint32, &[0; 4], &[0xff; 4]),
            two("i32", DType::Int32, &i32::MIN.to_le_bytes(), &i32::MAX.to_le_bytes()),
            two("u64", DType::Uint64, &[0; 8], &[0xff; 8]),
            two("i64", DType::Int64, &i64::MIN.to_le_bytes(), &i64::MAX.to_le_bytes()),
            two("f16", DType::Fp16, &f16::MIN.to_le_bytes(), &f16::from_f32(0.5).to_le_bytes()),
            two("bf16", DType::Bf16, &0xc0a0u16.to_le_bytes(), &0x3f80u16.to_le_bytes()),
            two("f64", DType::Fp64, &0.1f64.to_le_bytes(), &1e300f64.to_le_bytes()),
            strings("s", &["\"\\/\u{8}\u{c}\n\r\t\u{0}\u{1f}é\u{1f600}".as_bytes(), b""]),
        ],
    };
    let answer = json_of(&outputs);
    let data: Vec<_> = answer["outputs"].as_array().unwrap().iter().map(|output| output["data"].clone()).collect();
    assert_eq!(
        data,
        [
            json!([false, true]),
            json!([0, 255]),
            json!([-128, 127]),
            json!([0, 65535]),
            json!([-32768, 32767]),
            json!([0, u32::MAX]),
            json!([i32::MIN, i32::MAX]),
            json!([0, u64::MAX]),
            json!([i64::MIN, i64::MAX]),
            json!([-65504.0, 0.5]),
            json!([-5.0, 1.0]),
            json!([0.1, 1e300]),
            json!(["\"\\/\u{8}\u{c}\n\r\t\u{0}\u{1f}é\u{1f600}", ""]),
        ]
    );
}

#[test]
fn empty_outputs_are_empty_arrays() {
    let outputs =
        Outputs { model: "m", tensors: vec![tensor("y", DType::Fp32, 0, b""), tensor("z", DType::Bytes, 0, b"")] };
    assert_eq!(json_of(&outputs)["outputs"][1]["data"], json!([]));
    assert_eq!(json_of(&outputs)["outputs"][0]["shape"], json!([0]));
}

#[test]
fn large_json_answers_are_written_as_they_go_and_their_length_is_not_promised() {
    let values: Vec<f32> = (0..50_000).map(|index| index as f32 / 7.0).collect();
    let outputs = Outputs { model: "m", tensors: vec![floats("y", &values), strings("z", &[&[b'\n'; 70_000], b"b"])] };
    let (head, body) = encode(&outputs, &[false, false], None, 64 << 10).unwrap();
    assert_eq!(head.length, None);
    let text: Value = serde_json::from_slice(&body).unwrap();
    let read: Vec<f32> =
        text["outputs"][0]["data"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap() as f32).collect();
    assert_eq!(read, values);
    assert_eq!(text["outputs"][1]["data"][0].as_str().unwrap().len(), 70_000);
    for piece in [1, 13, 1000] {
        assert_eq!(encode(&outputs, &[false, false], None, piece).unwrap().1, body);
    }
}

#[test]
fn a_large_json_output_beside_a_binary_one_is_padded_to_its_announced_length() {
    let values: Vec<f32> = (0..20_000).map(|index| -(index as f32) / 3e-20).collect();
    let outputs = Outputs { model: "m", tensors: vec![floats("b", &[1.0, 2.0]), floats("j", &values)] };
    for piece in [17, 64 << 10] {
        let (head, body) = encode(&outputs, &[true, false], None, piece).unwrap();
        let (text, tail) = body.split_at(head.description_length.unwrap());
        assert_eq!((head.length, tail), (Some(body.len()), &outputs.tensors[0].3[..]));
        let text: Value = serde_json::from_slice(text).unwrap();
        assert_eq!(text["outputs"][1]["data"].as_array().unwrap().len(), values.len());
    }
}

proptest! {
    #[test]
    fn an_answer_is_the_same_in_pieces_of_any_size(
        values in proptest::collection::vec(any::<f32>().prop_filter("finite", |value| value.is_finite()), 0..40),
        texts in proptest::collection::vec(".{0,20}", 0..10),
        integers in proptest::collection::vec(any::<i64>(), 0..10),
        binary in proptest::collection::vec(any::<bool>(), 3),
        piece in 1usize..100,
    ) {
        let texts: Vec<_> = texts.iter().map(|text| text.as_bytes()).collect();
        let longs: Vec<u8> = integers.iter().flat_map(|value| value.to_le_bytes()).collect();
        let outputs = Outputs {
            model: "m",
            tensors: vec![floats("f", &values), strings("s", &texts), tensor("i", DType::Int64, integers.len(), &longs)],
        };
        let whole = encode(&outputs, &binary, Some("id"), 64 << 10).unwrap();
        prop_assert_eq!(&encode(&outputs, &binary, Some("id"), piece).unwrap(), &whole);
        let text = whole.1.get(..whole.0.description_length.unwrap_or(whole.1.len())).unwrap();
        prop_assert!(serde_json::from_slice::<Value>(text).is_ok());
    }

    #[test]
    fn floats_read_back_as_the_same_bits(value in any::<f32>(), double in any::<f64>()) {
        prop_assume!(value.is_finite() && double.is_finite());
        let outputs = Outputs { model: "m", tensors: vec![floats("f", &[value]), tensor("d", DType::Fp64, 1, &double.to_le_bytes())] };
        let (_, body) = encode(&outputs, &[false, false], None, 1000).unwrap();
        let text = std::str::from_utf8(&body).unwrap();
        let written: Vec<&str> = text.split("\"data\":[").skip(1).map(|rest| rest.split(']').next().unwrap()).collect();
        prop_assert_eq!(written[0].parse::<f32>().unwrap().to_bits(), value.to_bits());
        prop_assert_eq!(written[1].parse::<f64>().unwrap().to_bits(), double.to_bits());
    }
}
