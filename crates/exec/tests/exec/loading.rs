//! Weights: packed once, shared by content, gone with their last user; and operations that no file of ours has.

use std::sync::Arc;

use insula_core::DType;
use insula_exec::{CpuDevice, Device, DeviceKind};
use insula_model::{LoadOptions, Model, NoExternalData, Op, Precision};

use crate::loaded_model::{Loaded, example};

fn digits(device: &CpuDevice, precision: Precision, max_batch: usize) -> Arc<Model> {
    let file = std::fs::read(example("models/digits/1/model.onnx")).unwrap();
    let options = LoadOptions { precision, max_batch, ..LoadOptions::new(device.folder()) };
    Model::load(file.into(), &NoExternalData, &options).unwrap()
}

#[test]
fn the_same_content_is_packed_once_and_counted_once() {
    let device = CpuDevice::new();
    let first = device.load_weights(&digits(&device, Precision::Fp32, 32)).unwrap();
    let again = device.load_weights(&digits(&device, Precision::Fp32, 8)).unwrap();
    assert_eq!(device.weight_bytes(), first.bytes(), "batch sizes do not matter");
    assert_eq!(first.bytes(), again.bytes());
    let halves = device.load_weights(&digits(&device, Precision::Fp16, 32)).unwrap();
    let (all, apart) = (device.weight_bytes(), first.bytes() + halves.bytes());
    assert!(all > first.bytes() && all <= apart, "{all} bytes: both have the biases, which are FP32 in any case");
    drop(halves);
    drop((first, again));
    assert_eq!(device.weight_bytes(), 0);
}

#[test]
fn a_plan_keeps_its_weights() {
    let Loaded { device, model, weights } = Loaded::new("models/digits/1", Precision::Fp32);
    let plan = device.lower(&model.logical_plan(4).unwrap(), &weights).unwrap();
    let bytes = weights.bytes();
    drop(weights);
    assert_eq!(device.weight_bytes(), bytes);
    assert!(plan.memory_bytes() > 0 && plan.bucket() == 4);
    drop(plan);
    assert_eq!(device.weight_bytes(), 0);
}

#[test]
fn weights_of_another_model_are_refused() {
    let digits = Loaded::new("models/digits/1", Precision::Fp32);
    let slow = Loaded::new("test/models/slow/1", Precision::Fp32);
    let error = digits.device.lower(&digits.model.logical_plan(1).unwrap(), &slow.weights).unwrap_err();
    assert!(format!("{error:?}").contains("another model"), "{error:?}");
}

#[test]
fn the_device_says_what_it_is_and_what_it_can_do() {
    let device = CpuDevice::new();
    assert_eq!((device.name(), device.kind()), ("cpu", DeviceKind::Cpu));
    assert!(device.supports(&Op::MatMul) && device.supports(&Op::Cast { to: DType::Int8 }));
    assert!(!device.supports(&Op::Cast { to: DType::Bytes }));
    assert!(["portable", "avx2+fma+f16c"].contains(&device.instruction_set()));
}
