//! Packed bodies: the first bytes choose the packing, the limit and the step; the rest is the body, unpacked as the single
//! element of a raw request.
#![no_main]

#[path = "../../tests/protocol/memory.rs"]
#[allow(dead_code, reason = "each target uses a part")]
mod memory;
mod model;

use insula_api::{ContentEncoding, RequestFormat};
use insula_core::DType;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&[packing, limit, budget], body)) = data.split_first_chunk() else { return };
    let encoding = if packing & 1 == 0 { ContentEncoding::Gzip } else { ContentEncoding::Deflate };
    let bytes = DType::ALL.iter().position(|dtype| *dtype == DType::Bytes).unwrap_or(0) as u8;
    let signature = model::signature(bytes, 1);
    let limit = usize::from(limit) * 64;
    let format = RequestFormat::Binary { description_length: 0 };
    let decode = |budget| memory::decode_packed(format, encoding, &signature, limit, body, budget);
    match (decode(1 << 18), decode(1 + usize::from(budget))) {
        (Ok(whole), Ok(stepped)) => {
            assert!(whole.bytes(0).len() <= limit + 4);
            assert_eq!(whole.bytes(0), stepped.bytes(0));
        }
        // a body that is damaged and too long is refused as either, whichever is met first
        (Err(_), Err(_)) => {}
        _ => panic!("the budget decides"),
    }
});
