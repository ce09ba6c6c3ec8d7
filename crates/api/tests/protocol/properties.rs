//! Properties over random requests: the form in which a request is written never matters, and no bytes make a decoder panic.

use insula_api::{ContentEncoding, RequestFormat};
use insula_core::{DType, Error};
use proptest::prelude::*;

use crate::memory::{Decoded, decode_packed};
use crate::tensor_data::any_shape;

/// A tensor, and one way of writing a request with it.
#[derive(Debug, Clone)]
struct Written {
    dtype: DType,
    shape: Vec<usize>,
    /// Its elements as JSON.
    elements: Vec<String>,
    /// Its elements as bytes.
    bytes: Vec<u8>,
    nested: bool,
    order: Vec<usize>,
    space: &'static str,
}

fn element(dtype: DType) -> BoxedStrategy<(String, Vec<u8>)> {
    fn plain<T: ToString, const N: usize>(value: T, bytes: [u8; N]) -> (String, Vec<u8>) {
        (value.to_string(), bytes.to_vec())
    }
    match dtype {
        DType::Bool => any::<bool>().prop_map(|v| plain(v, [u8::from(v)])).boxed(),
        DType::Uint8 => any::<u8>().prop_map(|v| plain(v, v.to_le_bytes())).boxed(),
        DType::Uint16 => any::<u16>().prop_map(|v| plain(v, v.to_le_bytes())).boxed(),
        DType::Uint32 => any::<u32>().prop_map(|v| plain(v, v.to_le_bytes())).boxed(),
        DType::Uint64 => any::<u64>().prop_map(|v| plain(v, v.to_le_bytes())).boxed(),
        DType::Int8 => any::<i8>().prop_map(|v| plain(v, v.to_le_bytes())).boxed(),
        DType::Int16 => any::<i16>().prop_map(|v| plain(v, v.to_le_bytes())).boxed(),
        DType::Int32 => any::<i32>().prop_map(|v| plain(v, v.to_le_bytes())).boxed(),
        DType::Int64 => any::<i64>().prop_map(|v| plain(v, v.to_le_bytes())).boxed(),
        DType::Fp16 => any::<u16>()
            .prop_map(half::f16::from_bits)
            .prop_filter("finite", |v| v.is_finite())
            .prop_map(|v| (format!("{:e}", v.to_f64()), v.to_le_bytes().to_vec()))
            .boxed(),
        DType::Bf16 => any::<u16>()
            .prop_map(half::bf16::from_bits)
            .prop_filter("finite", |v| v.is_finite())
            .prop_map(|v| (v.to_f64().to_string(), v.to_le_bytes().to_vec()))
            .boxed(),
        DType::Fp32 => any::<f32>()
            .prop_filter("finite", |v| v.is_finite())
            .prop_map(|v| {
                (if v.to_bits() & 1 == 0 { format!("{v:E}") } else { v.to_string() }, v.to_le_bytes().to_vec())
            })
            .boxed(),
        DType::Fp64 => any::<f64>()
            .prop_filter("finite", |v| v.is_finite())
            .prop_map(|v| (format!("{v:e}"), v.to_le_bytes().to_vec()))
            .boxed(),
        DType::Bytes => (".{0,12}", any::<bool>())
            .prop_map(|(text, escape)| {
                let units = || text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect::<String>();
                let json = if escape { format!("\"{}\"", units()) } else { serde_json::to_string(&text).unwrap() };
                (json, [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat())
            })
            .boxed(),
    }
}

fn written() -> impl Strategy<Value = Written> {
    let dtype = proptest::sample::select(DType::ALL.to_vec());
    let shape = proptest::collection::vec(1usize..4, 0..4);
    (dtype, shape).prop_flat_map(|(dtype, shape)| {
        let count: usize = shape.iter().product();
        (
            proptest::collection::vec(element(dtype), count),
            any::<bool>(),
            Just(vec![0, 1, 2, 3]).prop_shuffle(),
            proptest::sample::select(vec!["", " ", "\n\t ", "\r\n    "]),
        )
            .prop_map(move |(elements, nested, order, space)| {
                let (elements, bytes): (Vec<_>, Vec<_>) = elements.into_iter().unzip();
                Written { dtype, shape: shape.clone(), elements, bytes: bytes.concat(), nested, order, space }
            })
    })
}

impl Written {
    fn data(&self) -> String {
        let mut level = self.elements.clone();
        let dims = if self.nested && !self.shape.is_empty() { self.shape.clone() } else { vec![level.len()] };
        for size in dims.iter().rev() {
            let comma = format!("{0},{0}", self.space);
            level = level.chunks(*size).map(|chunk| format!("[{0}{1}{0}]", self.space, chunk.join(&comma))).collect();
        }
        level.concat()
    }

    /// The request, with `source` for the tensor's data.
    fn request(&self, source: &str) -> String {
        let fields = [
            "\"name\":\"x\"".into(),
            format!("\"shape\":{:?}", self.shape),
            format!("\"datatype\":\"{}\"", self.dtype),
            source.into(),
        ];
        let fields: Vec<_> = self.order.iter().map(|index| fields[*index].clone()).collect();
        let space = self.space;
        format!(
            "{space}{{{space}\"inputs\"{space}:{space}[{{{}}}]{space}}}{space}",
            fields.join(&format!("{space},{space}"))
        )
    }

    fn json(&self) -> String {
        self.request(&format!("\"data\"{}:{}", self.space, self.data()))
    }

    fn decode(&self, format: RequestFormat, body: &[u8], budget: usize) -> Result<Decoded, Error> {
        decode_packed(format, ContentEncoding::Identity, &any_shape(self.dtype, self.shape.len()), 0, body, budget)
    }
}

fn budgets() -> impl Strategy<Value = usize> {
    prop_oneof![Just(1usize), 1usize..20, 1usize..500, Just(1 << 20)]
}

/// A change of one place in a body.
fn mutated() -> impl Strategy<Value = (Written, Vec<(prop::sample::Index, u8, u8)>)> {
    (written(), proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..3), 1..4))
}

fn mutate(body: &[u8], changes: &[(prop::sample::Index, u8, u8)]) -> Vec<u8> {
    const TELLING: &[u8] = b"{}[],:\"\\0123456789-+.eEtrufalsn \n\xc3\xff\0";
    let mut body = body.to_vec();
    for (at, byte, kind) in changes {
        if body.is_empty() {
            break;
        }
        let (at, byte) = (at.index(body.len()), TELLING[usize::from(*byte) % TELLING.len()]);
        match kind {
            0 => body[at] = byte,
            1 => body.insert(at, byte),
            _ => {
                body.remove(at);
            }
        }
    }
    body
}

proptest! {
    #[test]
    fn a_request_gives_the_same_tensor_however_it_is_written_and_stepped(written in written(), budget in budgets()) {
        let json = written.json();
        let decoded = written.decode(RequestFormat::Json, json.as_bytes(), budget).unwrap();
        prop_assert_eq!(decoded.bytes(0), &written.bytes[..], "{}", json);
        prop_assert_eq!(decoded.request.inputs()[0].shape().dims(), &written.shape[..]);
    }

    #[test]
    fn json_and_binary_agree(written in written(), budget in budgets()) {
        let text = written.request(&format!("\"parameters\":{{\"binary_data_size\":{}}}", written.bytes.len()));
        let format = RequestFormat::Binary { description_length: text.len() };
        let body = [text.as_bytes(), &written.bytes].concat();
        let decoded = written.decode(format, &body, budget).unwrap();
        prop_assert_eq!(decoded.bytes(0), &written.bytes[..]);
        let json = written.decode(RequestFormat::Json, written.json().as_bytes(), budget).unwrap();
        prop_assert_eq!(json.bytes(0), decoded.bytes(0));
    }

    #[test]
    fn damaged_requests_end_the_same_way_in_steps_of_any_size((written, changes) in mutated(), budget in budgets()) {
        let json = mutate(written.json().as_bytes(), &changes);
        let whole = written.decode(RequestFormat::Json, &json, 1 << 20);
        let stepped = written.decode(RequestFormat::Json, &json, budget);
        match (whole, stepped) {
            (Ok(whole), Ok(stepped)) => prop_assert_eq!(whole.bytes(0), stepped.bytes(0)),
            (Err(whole), Err(stepped)) => prop_assert_eq!(whole, stepped),
            _ => prop_assert!(false, "the budget {} decides about {:?}", budget, String::from_utf8_lossy(&json)),
        }
    }

    #[test]
    fn damaged_binary_requests_end_the_same_way_in_steps_of_any_size((written, changes) in mutated(), off in -3isize..4, budget in budgets()) {
        let text = written.request(&format!("\"parameters\":{{\"binary_data_size\":{}}}", written.bytes.len()));
        let format = RequestFormat::Binary { description_length: text.len().saturating_add_signed(off).max(1) };
        let body = mutate(&[text.as_bytes(), &written.bytes].concat(), &changes);
        let whole = written.decode(format, &body, 1 << 20);
        let stepped = written.decode(format, &body, budget);
        match (whole, stepped) {
            (Ok(whole), Ok(stepped)) => prop_assert_eq!(whole.bytes(0), stepped.bytes(0)),
            (Err(whole), Err(stepped)) => prop_assert_eq!(whole, stepped),
            _ => prop_assert!(false, "the budget {} decides about {:?}", budget, String::from_utf8_lossy(&body)),
        }
    }

    #[test]
    fn what_is_accepted_is_json((written, changes) in mutated()) {
        let json = mutate(written.json().as_bytes(), &changes);
        if written.decode(RequestFormat::Json, &json, 1 << 20).is_ok() {
            let read = serde_json::from_slice::<serde_json::Value>(&json);
            prop_assert!(read.is_ok(), "{:?}: {:?}", String::from_utf8_lossy(&json), read);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(body in proptest::collection::vec(any::<u8>(), 0..300), length in 0usize..310,
                                   budget in budgets(), encoding in 0u8..3) {
        let encoding = [ContentEncoding::Identity, ContentEncoding::Gzip, ContentEncoding::Deflate][usize::from(encoding)];
        for format in [RequestFormat::Json, RequestFormat::Binary { description_length: length }] {
            let _ = decode_packed(format, encoding, &any_shape(DType::Fp32, 1), 1000, &body, budget);
        }
    }
}
