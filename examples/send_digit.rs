//! A client in a few lines: sends the image of a seven to a running insula and prints the digit that comes back.
//! `cargo run -p insula-examples --bin send-digit [URL] [KEY]`. It uses nothing of insula's own code.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "an example prints what it got")]

use std::error::Error;

use serde_json::Value;

const URL: &str = "http://127.0.0.1:8000";
const KEY: &str = "ins_demo_acme_corp_0000000000000000000000";

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().unwrap_or_else(|| URL.to_string());
    let key = arguments.next().unwrap_or_else(|| KEY.to_string());
    let body = include_str!("digits/seven.json");
    let answer = ureq::post(format!("{url}/v2/models/digits/infer"))
        .header("Authorization", format!("Bearer {key}"))
        .header("Content-Type", "application/json")
        .send(body)?
        .body_mut()
        .read_to_string()?;
    let answer: Value = serde_json::from_str(&answer)?;
    let outputs = answer["outputs"].as_array().ok_or("the answer has no outputs")?;
    let digit = outputs.iter().find(|output| output["name"] == "digit").ok_or("the answer has no digit")?;
    println!("the image shows a {}", digit["data"][0]);
    Ok(())
}
