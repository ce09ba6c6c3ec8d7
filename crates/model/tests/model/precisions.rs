//! FP16 and FP32 as a choice: what is stored changes, what callers see does not.

use insula_core::DType;
use insula_model::onnx::data_type::{FLOAT, FLOAT16, INT64};
use std::sync::Arc;

use insula_model::{LoadError, LoadOptions, LogicalPlan, Model, NoExternalData, Op, Precision};

use crate::builder::*;
use crate::interpreter::{Folder, Tensor, run};
use crate::loading::{operations, random_inputs};

fn load(builder: &Builder, precision: Precision) -> Result<Arc<Model>, LoadError> {
    Model::load(builder.bytes(), &NoExternalData, &LoadOptions { precision, ..LoadOptions::new(&Folder) })
}

fn plan(builder: &Builder, precision: Precision) -> LogicalPlan {
    load(builder, precision).unwrap().logical_plan(2).unwrap()
}

fn network(elem_type: i32) -> Builder {
    let halves = |dims: &[i64], seed| {
        let values = random(dims.iter().product::<i64>() as usize, seed);
        let dtype = if elem_type == FLOAT { DType::Fp32 } else { DType::Fp16 };
        tensor("", elem_type, dims, crate::interpreter::encode(dtype, &values))
    };
    let named = |name: &str, mut tensor: insula_model::onnx::TensorProto| {
        tensor.name = name.into();
        tensor
    };
    Builder::new(15)
        .input("x", elem_type, "N,1,4,4")
        .constant(named("w", halves(&[3, 1, 3, 3], 1)))
        .constant(named("b", halves(&[3], 2)))
        .constant(named("d", halves(&[12, 4], 3)))
        .node("Conv", &["x", "w", "b"], "conv", vec![])
        .node("Relu", &["conv"], "relu", vec![])
        .node("Flatten", &["relu"], "flat", vec![])
        .node("MatMul", &["flat", "d"], "scores", vec![])
        .node("Softmax", &["scores"], "y", vec![])
        .node("ArgMax", &["y"], "best", vec![int("axis", 1), int("keepdims", 0)])
        .output("y", elem_type, "N,4")
        .output("best", INT64, "N")
}

#[test]
fn fp16_stores_weights_and_activations_in_half_between_casts_at_the_borders() {
    let plan = plan(&network(FLOAT), Precision::Fp16);
    assert_eq!(operations(&plan), ["Cast", "Conv", "MatMul", "Softmax", "ArgMax", "Cast"]);
    assert_eq!(
        (plan.inputs[0].dtype, plan.outputs[0].dtype, plan.outputs[1].dtype),
        (DType::Fp32, DType::Fp32, DType::Int64)
    );
    for step in &plan.steps[1..5] {
        assert!(step.inputs.iter().all(|input| input.dtype == DType::Fp16), "{plan}");
    }
}

#[test]
fn fp32_widens_the_halves_of_the_file() {
    let plan = plan(&network(FLOAT16), Precision::Fp32);
    assert_eq!(operations(&plan), ["Cast", "Conv", "MatMul", "Softmax", "ArgMax", "Cast"]);
    assert_eq!((plan.inputs[0].dtype, plan.outputs[0].dtype), (DType::Fp16, DType::Fp16));
    assert!(plan.steps[1..5].iter().all(|step| step.inputs.iter().all(|input| input.dtype == DType::Fp32)));
}

#[test]
fn the_files_own_precision_needs_no_cast() {
    for elem_type in [FLOAT, FLOAT16] {
        assert_eq!(operations(&plan(&network(elem_type), Precision::File)), ["Conv", "MatMul", "Softmax", "ArgMax"]);
    }
    assert_eq!(operations(&plan(&network(FLOAT), Precision::Fp32)), ["Conv", "MatMul", "Softmax", "ArgMax"]);
}

#[test]
fn biases_are_fp32_in_any_precision() {
    for (elem_type, precision) in [(FLOAT, Precision::Fp16), (FLOAT16, Precision::File), (FLOAT16, Precision::Fp32)] {
        let model = load(&network(elem_type), precision).unwrap();
        let plan = model.logical_plan(1).unwrap();
        let bias = plan.steps.iter().find_map(|step| step.epilogue.bias).unwrap();
        assert_eq!(model.constants()[bias.index()].dtype(), DType::Fp32);
    }
}

#[test]
fn both_precisions_agree_within_what_half_can_say() {
    let (wide, half) =
        (load(&network(FLOAT), Precision::Fp32).unwrap(), load(&network(FLOAT), Precision::Fp16).unwrap());
    let (wide_plan, half_plan) = (wide.logical_plan(4).unwrap(), half.logical_plan(4).unwrap());
    let inputs = random_inputs(&wide_plan);
    let expected = run(&wide_plan, wide.constants(), &inputs);
    crate::loading::assert_alike(&run(&half_plan, half.constants(), &inputs)[..1], &expected[..1], 5e-3, &half_plan);
    assert!(half.constant_bytes() < wide.constant_bytes());
}

#[test]
fn casts_in_the_file_between_floats_become_nothing() {
    let builder = Builder::new(13)
        .input("x", FLOAT, "N,4")
        .node("Cast", &["x"], "h", vec![int("to", 10)])
        .node("Relu", &["h"], "r", vec![])
        .node("Cast", &["r"], "y", vec![int("to", 1)])
        .untyped_output("y")
        .untyped_output("r");
    assert_eq!(operations(&plan(&builder, Precision::File)), ["Cast", "Relu", "Cast"]);
    let wide = plan(&builder, Precision::Fp32);
    assert_eq!(operations(&wide), ["Relu", "Cast"]);
    assert_eq!(wide.outputs.iter().map(|output| output.dtype).collect::<Vec<_>>(), [DType::Fp32, DType::Fp16]);
    let half = plan(&builder, Precision::Fp16);
    assert_eq!(operations(&half), ["Cast", "Relu", "Cast"]);
    assert_eq!(half.outputs.iter().map(|output| output.dtype).collect::<Vec<_>>(), [DType::Fp32, DType::Fp16]);
}

#[test]
fn an_output_that_is_the_input_stays_what_came() {
    let builder = Builder::new(13)
        .input("x", FLOAT, "N,2,2")
        .node("Flatten", &["x"], "y", vec![])
        .node("Relu", &["y"], "z", vec![])
        .untyped_output("y")
        .untyped_output("z");
    let model = load(&builder, Precision::Fp16).unwrap();
    let plan = model.logical_plan(1).unwrap();
    assert_eq!(plan.outputs[0].binding, insula_model::Binding::Input(0));
    let x = vec![0.1f32 as f64, -70000.0, 1.0, 2.0];
    let outputs = run(&plan, model.constants(), &[Tensor::new(&[1, 2, 2], x.clone())]);
    assert_eq!(outputs[0].data, x);
    assert_eq!(outputs[1].data[2..], [1.0, 2.0]);
}

#[test]
fn integers_turned_to_floats_become_the_precisions_own() {
    let builder = Builder::new(13)
        .input("x", INT64, "N,4")
        .node("Cast", &["x"], "f", vec![int("to", 1)])
        .node("Relu", &["f"], "y", vec![])
        .untyped_output("y");
    let plan = plan(&builder, Precision::Fp16);
    assert_eq!(plan.steps[0].op, Op::Cast { to: DType::Fp16 });
    assert_eq!((operations(&plan), plan.outputs[0].dtype), (vec!["Cast", "Relu", "Cast"], DType::Fp32));
}

#[test]
fn a_constant_beyond_half_is_named() {
    let builder = Builder::new(13).input("x", FLOAT, "N,2").floats("w", &[2, 1], &[1.0, 1e6]).node(
        "MatMul",
        &["x", "w"],
        "y",
        vec![],
    );
    let builder = builder.untyped_output("y");
    let error = load(&builder, Precision::Fp16).unwrap_err();
    assert!(error.message().contains("`w`") && error.message().contains("fp32"), "{error}");
    load(&builder, Precision::Fp32).unwrap();
}

#[test]
fn precisions_are_read_by_name() {
    assert_eq!("fp16".parse::<Precision>().unwrap(), Precision::Fp16);
    assert_eq!("fp32".parse::<Precision>().unwrap(), Precision::Fp32);
    for other in ["file", "FP16", "bf16", ""] {
        assert!(other.parse::<Precision>().unwrap_err().message().contains("`fp16` or `fp32`"));
    }
}
