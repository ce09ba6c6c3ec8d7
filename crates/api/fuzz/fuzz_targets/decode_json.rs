//! JSON requests: the first bytes choose the input's type and rank and the step; the rest is the body. Whether it is read
//! whole or in steps must not matter.
#![no_main]

#[path = "../../tests/protocol/memory.rs"]
#[allow(dead_code, reason = "each target uses a part")]
mod memory;
mod model;

use insula_api::{ContentEncoding, RequestFormat};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&[dtype, rank, budget], body)) = data.split_first_chunk() else { return };
    let signature = model::signature(dtype, rank);
    let decode =
        |budget| memory::decode_packed(RequestFormat::Json, ContentEncoding::Identity, &signature, 0, body, budget);
    match (decode(1 << 18), decode(1 + usize::from(budget))) {
        (Ok(whole), Ok(stepped)) => assert_eq!(whole.bytes(0), stepped.bytes(0)),
        (Err(whole), Err(stepped)) => assert_eq!(whole, stepped),
        _ => panic!("the budget decides"),
    }
});
