//! Short ways from a builder to a model and its results, and what loading itself promises.

use std::sync::Arc;

use bytes::Bytes;
use insula_core::{DType, Dimension, Shape};
use insula_model::onnx::data_type::{FLOAT, INT64, STRING};
use insula_model::onnx_file::{DeclaredInput, OnnxFile};
use insula_model::passes::constant_folding::Folding;
use insula_model::reader::ReadInput;
use insula_model::{
    Binding, ClassInput, Dim, Graph, LoadError, LoadOptions, LogicalPlan, Model, ModelFile, NoExternalData, Op, reader,
};

use crate::builder::{Builder, random};
use crate::interpreter::{Folder, Tensor, encode, run};

pub fn try_load(bytes: Bytes) -> Result<Arc<Model>, LoadError> {
    Model::load(bytes, &NoExternalData, &LoadOptions::new(&Folder))
}

pub fn load(builder: &Builder) -> Arc<Model> {
    try_load(builder.bytes()).unwrap()
}

/// The outputs of the optimised model for `inputs`, of `rows` rows.
pub fn infer(builder: &Builder, rows: usize, inputs: &[Tensor]) -> Vec<Tensor> {
    let model = load(builder);
    run(&model.logical_plan(rows).unwrap(), model.constants(), inputs)
}

/// The file of `builder`, read.
pub fn open(builder: &Builder) -> ModelFile {
    ModelFile::load(builder.bytes(), &NoExternalData, &LoadOptions::new(&Folder)).unwrap()
}

/// The outputs of the model for the class of `inputs`, whose rows all inputs have if `file` is batched.
pub fn infer_class(file: &ModelFile, inputs: &[Tensor]) -> Vec<Tensor> {
    let signature = file.signature();
    let shapes: Vec<Shape> = inputs.iter().map(|input| Shape::new(&input.dims).unwrap()).collect();
    let bytes: Vec<Vec<u8>> =
        inputs.iter().zip(&signature.inputs).map(|(input, spec)| encode(spec.dtype, &input.data)).collect();
    let classed = shapes.iter().zip(&bytes).map(|(shape, bytes)| ClassInput { shape, bytes });
    let class = file.class(&classed.collect::<Vec<_>>()).unwrap();
    let model = file.specialise(&class, &Folder).unwrap();
    let rows = if signature.batched { inputs[0].dims[0] } else { 1 };
    run(&model.logical_plan(rows).unwrap(), model.constants(), inputs)
}

/// Random inputs for `plan`.
pub fn random_inputs(plan: &LogicalPlan) -> Vec<Tensor> {
    let input = |(index, input): (usize, &insula_model::PlanInput)| {
        Tensor::new(input.shape.dims(), random(input.shape.elements(), 7 + index as u64))
    };
    plan.inputs.iter().enumerate().map(input).collect()
}

/// Runs the graph as it stands in the file and the optimised one on the same random rows: they agree within `tolerance`, and
/// so does every row alone. Gives the optimised plan.
pub fn assert_optimised_alike(builder: &Builder, rows: usize, tolerance: f64) -> LogicalPlan {
    let read = as_it_stands(builder);
    let plain = LogicalPlan::new(&read, rows).unwrap();
    let model = load(builder);
    let plan = model.logical_plan(rows).unwrap();
    let inputs = random_inputs(&plain);
    let expected = run(&plain, &read.constants, &inputs);
    let found = run(&plan, model.constants(), &inputs);
    assert_alike(&found, &expected, tolerance, &plan);
    if rows > 1 {
        let alone = model.logical_plan(1).unwrap();
        for row in 0..rows {
            let part = |tensors: &[Tensor]| tensors.iter().map(|tensor| row_of(tensor, row)).collect::<Vec<_>>();
            assert_alike(&run(&alone, model.constants(), &part(&inputs)), &part(&found), tolerance, &alone);
        }
    }
    plan
}

/// The graph as the file has it, dimension 0 of its inputs being the batch where it is symbolic.
fn as_it_stands(builder: &Builder) -> Graph {
    let file = OnnxFile::open(builder.bytes(), &NoExternalData, 1 << 30).unwrap();
    let dim = |dim: &Dimension| match dim {
        Dimension::Fixed(size) => Dim::Fixed(*size),
        Dimension::Symbolic(_) => Dim::Batch,
    };
    let input = |input: &DeclaredInput| ReadInput { dims: input.dims.iter().map(dim).collect(), value: None };
    let inputs: Vec<ReadInput> = file.inputs().iter().map(input).collect();
    reader::read(&file, &inputs, &Folding::new(&Folder)).unwrap()
}

fn row_of(tensor: &Tensor, row: usize) -> Tensor {
    let size = tensor.data.len() / tensor.dims[0];
    let dims = [&[1], &tensor.dims[1..]].concat();
    Tensor::new(&dims, tensor.data[row * size..(row + 1) * size].to_vec())
}

pub fn assert_alike(found: &[Tensor], expected: &[Tensor], tolerance: f64, plan: &LogicalPlan) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found.dims, expected.dims, "{plan}");
        for (index, (found, expected)) in found.data.iter().zip(&expected.data).enumerate() {
            assert!((found - expected).abs() <= tolerance, "element {index}: {found}, expected {expected}\n{plan}");
        }
    }
}

/// The operations of a plan, in order.
pub fn operations(plan: &LogicalPlan) -> Vec<&'static str> {
    plan.steps.iter().map(|step| step.op.name()).collect()
}

#[test]
fn the_signature_is_the_files() {
    let builder = Builder::new(17)
        .input("image", FLOAT, "rows,3")
        .node("Relu", &["image"], "y", vec![])
        .node("ArgMax", &["y"], "best", vec![crate::builder::int("axis", 1), crate::builder::int("keepdims", 0)])
        .output("y", FLOAT, "rows,3")
        .output("best", INT64, "whatever");
    let signature = load(&builder).signature();
    assert_eq!((signature.batched, signature.max_batch), (true, 32));
    assert_eq!(&*signature.inputs[0].name, "image");
    assert_eq!(signature.inputs[0].dims, [Dimension::Symbolic("rows".into()), Dimension::Fixed(3)]);
    assert_eq!(signature.outputs.iter().map(|output| output.dtype).collect::<Vec<_>>(), [DType::Fp32, DType::Int64]);
    assert_eq!(signature.outputs[1].dims, [Dimension::Symbolic("rows".into())]);
}

#[test]
fn a_model_of_fixed_dimensions_is_not_batched() {
    let builder = Builder::new(17)
        .input("x", FLOAT, "4,3")
        .node("Softmax", &["x"], "y", vec![crate::builder::int("axis", 0)])
        .untyped_output("y");
    let model = load(&builder);
    assert_eq!((model.signature().batched, model.buckets()), (false, vec![1]));
    assert!(model.logical_plan(2).is_err());
    assert_eq!(model.logical_plan(1).unwrap().outputs[0].shape.dims(), [4, 3]);
}

#[test]
fn an_identity_is_the_input_itself_for_any_type() {
    let builder = Builder::new(17)
        .input("x", STRING, "N,2")
        .node("Identity", &["x"], "t", vec![])
        .node("Identity", &["t"], "y", vec![])
        .output("y", STRING, "N,2");
    let plan = load(&builder).logical_plan(4).unwrap();
    assert!(plan.steps.is_empty() && plan.arena_bytes == 0);
    assert_eq!(
        (plan.outputs[0].binding, plan.outputs[0].bytes, plan.outputs[0].dtype),
        (Binding::Input(0), None, DType::Bytes)
    );
}

#[test]
fn buckets_are_powers_of_two_and_the_largest_batch() {
    let builder = Builder::new(17).input("x", FLOAT, "N,2").node("Relu", &["x"], "y", vec![]).untyped_output("y");
    let buckets = |max_batch| {
        let options = LoadOptions { max_batch, ..LoadOptions::new(&Folder) };
        Model::load(builder.bytes(), &NoExternalData, &options).map(|model| model.buckets())
    };
    assert_eq!(buckets(32).unwrap(), [1, 2, 4, 8, 16, 32]);
    assert_eq!(buckets(24).unwrap(), [1, 2, 4, 8, 16, 24]);
    assert_eq!(buckets(1).unwrap(), [1]);
    assert!(buckets(0).is_err() && buckets(100_000).is_err());
}

#[test]
fn constants_among_the_inputs_are_not_inputs() {
    let builder = Builder::new(8)
        .input("x", FLOAT, "N,2")
        .input("w", FLOAT, "2")
        .floats("w", &[2], &[3.0, 4.0])
        .node("Add", &["x", "w"], "y", vec![])
        .untyped_output("y");
    assert_eq!(load(&builder).signature().inputs.len(), 1);
    assert_eq!(infer(&builder, 1, &[Tensor::new(&[1, 2], vec![1.0, 1.0])])[0].data, [4.0, 5.0]);
}

#[test]
fn nodes_may_stand_in_any_order() {
    let builder = Builder::new(17)
        .input("x", FLOAT, "N,2")
        .node("Tanh", &["t"], "y", vec![])
        .node("Relu", &["x"], "t", vec![])
        .untyped_output("y");
    assert_eq!(operations(&load(&builder).logical_plan(1).unwrap()), ["Relu", "Tanh"]);
}

#[test]
fn copies_of_a_model_have_one_content_hash_and_others_another() {
    let scaled = |factor: f32, operator: &str| {
        let builder = Builder::new(17).input("x", FLOAT, "N,2").floats("w", &[], &[factor]);
        open(&builder.node(operator, &["x", "w"], "y", vec![]).untyped_output("y")).content_hash()
    };
    assert_eq!(scaled(2.0, "Mul"), scaled(2.0, "Mul"));
    assert_ne!(scaled(2.0, "Mul"), scaled(3.0, "Mul"));
    assert_ne!(scaled(2.0, "Mul"), scaled(2.0, "Add"));
}

#[test]
fn an_output_that_is_a_constant_is_bound_to_it() {
    let builder = Builder::new(17)
        .input("x", FLOAT, "1,2")
        .floats("w", &[2], &[3.0, 4.0])
        .node("Identity", &["w"], "y", vec![])
        .node("Relu", &["x"], "z", vec![])
        .untyped_output("y")
        .untyped_output("z");
    let model = load(&builder);
    let plan = model.logical_plan(1).unwrap();
    assert!(matches!(plan.outputs[0].binding, Binding::Constant(_)));
    assert_eq!(run(&plan, model.constants(), &[Tensor::new(&[1, 2], vec![0.0; 2])])[0].data, [3.0, 4.0]);
}

#[test]
fn dead_nodes_and_their_constants_are_gone() {
    let builder = Builder::new(17)
        .input("x", FLOAT, "N,2")
        .random_floats("w", &[2, 1000], 1)
        .node("MatMul", &["x", "w"], "unused", vec![])
        .node("Relu", &["x"], "y", vec![])
        .untyped_output("y");
    let model = load(&builder);
    assert!(matches!(model.logical_plan(1).unwrap().steps[0].op, Op::Activation(_)));
    assert!(model.constants().is_empty());
}
