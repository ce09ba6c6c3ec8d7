//! Any bytes are either a model, all of whose plans can be proven, or an error: never a panic, and never memory beyond the
//! limits. Run by `cargo +nightly fuzz run read_onnx` in `crates/model`; seed it with the examples' `model.onnx` files.
#![no_main]

use insula_model::{LoadOptions, ModelFile, NoExternalData, NoFolding, Precision};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for precision in [Precision::File, Precision::Fp16, Precision::Fp32] {
        let options = LoadOptions { precision, constant_limit: 1 << 24, arena_limit: 1 << 28, ..LoadOptions::new(&NoFolding) };
        let Ok(file) = ModelFile::load(bytes.to_vec().into(), &NoExternalData, &options) else { return };
        let Some(model) = file.fixed() else { continue };
        for rows in model.buckets() {
            let plan = model.logical_plan(rows).expect("a loaded model has a plan for each of its buckets");
            plan.verify(model.constants()).expect("a plan that was made is proven");
        }
    }
});
