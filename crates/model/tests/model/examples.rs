//! The project's own models: they load as they should, and answer as onnxruntime does.

use std::path::PathBuf;
use std::sync::Arc;

use insula_core::{DType, ModelName, Version};
use insula_model::{Binding, LoadOptions, Model, Precision, Repository};

use crate::interpreter::{Folder, Tensor, run};
use crate::loading::operations;

fn project(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(path)
}

fn load(folder: &str, name: &str, version: u32, precision: Precision) -> Arc<Model> {
    let options = LoadOptions { precision, ..LoadOptions::new(&Folder) };
    Repository::new(project(folder))
        .load(&ModelName::new(name).unwrap(), Version::new(version).unwrap(), &options)
        .unwrap()
        .fixed()
        .unwrap()
        .clone()
}

fn reference(name: &str) -> Vec<f64> {
    let bytes = std::fs::read(project("test/reference").join(name)).unwrap();
    crate::interpreter::decode(DType::Fp32, &bytes)
}

#[test]
fn digits_is_eight_steps_without_a_transposition() {
    let model = load("models", "digits", 1, Precision::File);
    let plan = model.logical_plan(32).unwrap();
    assert_eq!(operations(&plan), ["Mul", "Conv", "Conv", "MaxPool", "MatMul", "MatMul", "Softmax", "ArgMax"]);
    assert_eq!(plan.outputs[1].dtype, DType::Int64);
    let settings = Repository::new(project("models")).settings(&ModelName::new("digits").unwrap()).unwrap();
    assert_eq!((settings.precision, settings.labels.len()), (Some(Precision::Fp32), 10));
}

#[test]
fn digits_answers_as_onnxruntime_does() {
    let images: Vec<f64> = std::fs::read(project("digits/heldout_images.u8")).unwrap()[..64 * 64]
        .iter()
        .map(|&ink| f64::from(ink))
        .collect();
    let expected = reference("digits_probabilities.f32");
    for (precision, tolerance) in [(Precision::Fp32, 1e-5), (Precision::Fp16, 2e-2)] {
        let model = load("models", "digits", 1, precision);
        let plan = model.logical_plan(32).unwrap();
        for half in 0..2 {
            let input = Tensor::new(&[32, 1, 8, 8], images[half * 2048..(half + 1) * 2048].to_vec());
            let found = &run(&plan, model.constants(), &[input])[0].data;
            for (found, expected) in found.iter().zip(&expected[half * 320..]) {
                assert!((found - expected).abs() < tolerance, "{precision}: {found}, expected {expected}");
            }
        }
    }
}

#[test]
fn slow_is_a_chain_of_products_on_two_places_in_the_arena() {
    let model = load("test/models", "slow", 1, Precision::File);
    let plan = model.logical_plan(8).unwrap();
    assert_eq!(plan.steps.len(), 84);
    assert_eq!(plan.steps.iter().filter(|step| step.op.name() == "MatMul").count(), 82);
    let widest = plan.buffers.iter().map(|buffer| buffer.bytes).max().unwrap();
    assert!(plan.arena_bytes < 3 * widest, "{plan}");
}

#[test]
fn identities_are_their_inputs() {
    let dtypes = [("fp32", DType::Fp32), ("fp16", DType::Fp16), ("int64", DType::Int64), ("bytes", DType::Bytes)];
    for (name, dtype) in dtypes {
        for precision in [Precision::File, Precision::Fp16, Precision::Fp32] {
            let plan = load("test/models", &format!("identity_{name}"), 1, precision).logical_plan(4).unwrap();
            assert_eq!(
                (plan.steps.len(), plan.outputs[0].binding, plan.outputs[0].dtype),
                (0, Binding::Input(0), dtype)
            );
        }
    }
}

#[test]
fn versions_multiply_by_their_number() {
    for version in [1, 2, 10] {
        let model = load("test/models", "versions", version, Precision::File);
        let outputs =
            run(&model.logical_plan(1).unwrap(), model.constants(), &[Tensor::new(&[1, 4], vec![1.0, 2.0, 3.0, 4.0])]);
        let factor = f64::from(version);
        assert_eq!(outputs[0].data, [factor, 2.0 * factor, 3.0 * factor, 4.0 * factor]);
    }
}
