//! Binary and raw requests: the first bytes choose the input's type and rank, the length header and the step; the rest is
//! the body.
#![no_main]

#[path = "../../tests/protocol/memory.rs"]
#[allow(dead_code, reason = "each target uses a part")]
mod memory;
mod model;

use insula_api::{ContentEncoding, RequestFormat};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&[dtype, rank, length, budget], body)) = data.split_first_chunk() else { return };
    let signature = model::signature(dtype, rank);
    let format = RequestFormat::Binary { description_length: usize::from(length) };
    let decode = |budget| memory::decode_packed(format, ContentEncoding::Identity, &signature, 0, body, budget);
    match (decode(1 << 18), decode(1 + usize::from(budget))) {
        (Ok(whole), Ok(stepped)) => assert_eq!(whole.bytes(0), stepped.bytes(0)),
        (Err(whole), Err(stepped)) => assert_eq!(whole, stepped),
        _ => panic!("the budget decides"),
    }
});
