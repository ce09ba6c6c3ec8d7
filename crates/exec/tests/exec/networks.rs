//! Whole networks, fused and laid out by the passes: the device against the interpreter following the same plan in double
//! precision, and a row against itself in other batches.

use insula_core::DType;
use insula_model::{Activation, Binding, Constant, LogicalPlan, Op, Operand, Precision, Source};

use crate::interpreter::{Tensor, activate, interpret};
use crate::loaded_model::{Loaded, elements};
use crate::network::Network;
use crate::operations::{tensor, values};

/// A block as in ResNet: convolutions with batch normalisation, a projected shortcut, then pooling and a dense layer.
fn residual_block() -> Vec<u8> {
    let mut network = Network::new(&[5, 9, 7]);
    for (name, filters, channels, kernel) in [("c1", 18, 5, 3), ("c2", 18, 18, 3), ("shortcut", 18, 5, 1)] {
        network = network
            .weight(&format!("{name}.w"), &[filters, channels, kernel, kernel], 0.0, 0.3)
            .weight(&format!("{name}.scale"), &[filters], 1.0, 0.2)
            .weight(&format!("{name}.shift"), &[filters], 0.0, 0.2)
            .weight(&format!("{name}.mean"), &[filters], 0.0, 0.2)
            .weight(&format!("{name}.variance"), &[filters], 1.0, 0.5);
    }
    let pads: &[i64] = &[1, 1, 1, 1];
    let normalise = |network: Network, input: &str, name: &str| {
        let parameter = |what: &str| format!("{name}.{what}");
        let inputs = [input, &parameter("scale"), &parameter("shift"), &parameter("mean"), &parameter("variance")];
        network.node("BatchNormalization", &inputs, &format!("{name}.norm"), &[])
    };
    let network = network.node("Conv", &["x", "c1.w"], "c1", &[("pads", pads), ("strides", &[2, 2])]);
    let network = normalise(network, "c1", "c1").node("Relu", &["c1.norm"], "r1", &[]);
    let network = normalise(network.node("Conv", &["r1", "c2.w"], "c2", &[("pads", pads)]), "c2", "c2");
    let network = network.node("Conv", &["x", "shortcut.w"], "shortcut", &[("strides", &[2, 2])]);
    normalise(network, "shortcut", "shortcut")
        .node("Add", &["c2.norm", "shortcut.norm"], "sum", &[])
        .node("Relu", &["sum"], "r2", &[])
        .node("GlobalAveragePool", &["r2"], "pool", &[])
        .node("Flatten", &["pool"], "flat", &[("axis", &[1])])
        .weight("dense.w", &[11, 18], 0.0, 0.3)
        .weight("dense.b", &[11], 0.0, 0.3)
        .node("Gemm", &["flat", "dense.w", "dense.b"], "logits", &[("transB", &[1])])
        .node("Softmax", &["logits"], "y", &[("axis", &[-1])])
        .finish("y", &[11])
}

/// Depthwise and pointwise convolutions with clipping, as in MobileNet, and a pooling that is flattened with its pixels.
fn separable_block() -> Vec<u8> {
    Network::new(&[12, 10, 10])
        .weight("dw", &[12, 1, 3, 3], 0.0, 0.5)
        .weight("dw.b", &[12], 0.0, 0.3)
        .weight("pw", &[20, 12, 1, 1], 0.0, 0.5)
        .weight("zero", &[], 0.0, 0.0)
        .weight("six", &[], 6.0, 0.0)
        .node("Conv", &["x", "dw", "dw.b"], "d", &[("pads", &[1, 1, 1, 1]), ("group", &[12])])
        .node("Clip", &["d", "zero", "six"], "clipped", &[])
        .node("Conv", &["clipped", "pw"], "p", &[])
        .node(
            "AveragePool",
            &["p"],
            "pooled",
            &[("kernel_shape", &[3, 3]), ("strides", &[2, 2]), ("pads", &[1, 1, 1, 1])],
        )
        .node("Tanh", &["pooled"], "t", &[])
        .node("Flatten", &["t"], "flat", &[("axis", &[1])])
        .weight("dense", &[500, 7], 0.0, 0.1)
        .node("MatMul", &["flat", "dense"], "y", &[])
        .finish("y", &[7])
}

/// Attention of one head with its residual: products of two tensors that both depend on the input.
fn attention() -> Vec<u8> {
    Network::new(&[6, 16])
        .weight("q.w", &[16, 16], 0.0, 0.4)
        .weight("k.w", &[16, 16], 0.0, 0.4)
        .weight("v.w", &[16, 16], 0.0, 0.4)
        .weight("v.b", &[16], 0.0, 0.4)
        .weight("o.w", &[16, 16], 0.0, 0.4)
        .weight("scale", &[], 0.25, 0.0)
        .node("MatMul", &["x", "q.w"], "q", &[])
        .node("MatMul", &["x", "k.w"], "k", &[])
        .node("MatMul", &["x", "v.w"], "v0", &[])
        .node("Add", &["v0", "v.b"], "v", &[])
        .node("Transpose", &["k"], "kt", &[("perm", &[0, 2, 1])])
        .node("MatMul", &["q", "kt"], "scores", &[])
        .node("Mul", &["scores", "scale"], "scaled", &[])
        .node("Softmax", &["scaled"], "weights", &[("axis", &[-1])])
        .node("MatMul", &["weights", "v"], "mixed", &[])
        .node("Add", &["mixed", "x"], "joined", &[])
        .node("MatMul", &["joined", "o.w"], "o", &[])
        .node("Add", &["o", "joined"], "out", &[])
        .node("Sigmoid", &["out"], "y", &[])
        .finish("y", &[6, 16])
}

/// The outputs of `plan`, every value in double precision.
fn follow(plan: &LogicalPlan, constants: &[Constant], input: &Tensor) -> Vec<Tensor> {
    let mut buffers: Vec<Option<Tensor>> = vec![None; plan.buffers.len()];
    let constant = |index: usize| Tensor::new(constants[index].shape().dims(), values(&constants[index]));
    for step in &plan.steps {
        let read = |operand: &Operand| {
            let found = match operand.source {
                Source::Input(_) => input.clone(),
                Source::Buffer(id) => buffers[id.index()].clone().unwrap(),
                Source::Constant(id) => constant(id.index()),
            };
            Tensor::new(operand.shape.dims(), found.values)
        };
        let operands: Vec<Tensor> = step.inputs.iter().map(read).collect();
        let dims = plan.buffers[step.output.index()].shape.dims();
        let mut output = interpret(&step.op, &operands, dims);
        let last = dims.last().copied().unwrap_or(1);
        let bias = step.epilogue.bias.map(|id| constant(id.index()).values);
        let residual = step.epilogue.residual.as_ref().map(|operand| read(operand).values);
        for (index, x) in output.values.iter_mut().enumerate() {
            *x += bias.as_ref().map_or(0.0, |bias| bias[index % last]);
            *x += residual.as_ref().map_or(0.0, |residual| residual[index]);
            *x = step.epilogue.activation.map_or(*x, |activation: Activation| activate(activation, *x));
        }
        buffers[step.output.index()] = Some(output);
    }
    let output = |binding: &Binding| match binding {
        Binding::Buffer(id) => buffers[id.index()].clone().unwrap(),
        other => unreachable!("{other:?}: the test's networks compute their outputs"),
    };
    plan.outputs.iter().map(|place| output(&place.binding)).collect()
}

fn networks() -> [(&'static str, Vec<u8>, Vec<usize>); 3] {
    [
        ("residual block", residual_block(), vec![5, 9, 7]),
        ("separable block", separable_block(), vec![12, 10, 10]),
        ("attention", attention(), vec![6, 16]),
    ]
}

#[test]
fn the_device_agrees_with_the_interpreter_on_the_same_plan() {
    for (name, file, dims) in networks() {
        for (precision, bound) in [(Precision::Fp32, 2e-6), (Precision::Fp16, 4e-3)] {
            let loaded = Loaded::from_bytes(file.clone(), precision);
            let plan = loaded.model.logical_plan(3).unwrap();
            assert!(plan.steps.iter().any(|step| !step.epilogue.is_none()), "{name} has nothing fused");
            let input = tensor(&[&[3], &dims[..]].concat(), 7);
            let bytes: Vec<f32> = input.values.iter().map(|x| *x as f32).collect();
            let answer = loaded.answer(3, 3, &[bytemuck::cast_slice(&bytes)]);
            for (found, expected) in answer.iter().zip(follow(&plan, loaded.model.constants(), &input)) {
                let scale = expected.values.iter().fold(1.0f64, |max, x| max.max(x.abs()));
                for (found, exact) in elements::<f32>(found).iter().zip(&expected.values) {
                    assert!(
                        (f64::from(*found) - exact).abs() <= bound * scale,
                        "{name} in {precision}: {found} for {exact}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_row_gives_the_same_bits_in_every_batch_of_every_network() {
    for (name, file, dims) in networks() {
        for precision in [Precision::Fp32, Precision::Fp16] {
            let loaded = Loaded::from_bytes(file.clone(), precision);
            let row = dims.iter().product::<usize>();
            let input: Vec<f32> = tensor(&[&[32], &dims[..]].concat(), 9).values.iter().map(|x| *x as f32).collect();
            let answers = |bucket: usize| -> Vec<u8> {
                let batches = input.chunks(bucket * row);
                let answer = |batch: &[f32]| loaded.answer(bucket, batch.len() / row, &[bytemuck::cast_slice(batch)]);
                batches.flat_map(|batch| answer(batch).concat()).collect()
            };
            let alone = answers(1);
            for bucket in [2, 7, 32] {
                assert_eq!(answers(bucket), alone, "{name} in {precision}, batches of {bucket}");
            }
        }
    }
}

#[test]
fn the_networks_cover_residuals_and_products_of_two_tensors() {
    let plans: Vec<LogicalPlan> = networks()
        .into_iter()
        .map(|(_, file, _)| Loaded::from_bytes(file, Precision::Fp32).model.logical_plan(2).unwrap())
        .collect();
    let steps = || plans.iter().flat_map(|plan| &plan.steps);
    let dynamic =
        |step: &insula_model::Step| step.op == Op::MatMul && !matches!(step.inputs[1].source, Source::Constant(_));
    assert!(
        steps().any(|step| matches!(step.op, Op::Conv(_)) && step.epilogue.residual.is_some()),
        "no convolution with a residual"
    );
    assert!(
        steps().any(|step| dynamic(step) && step.epilogue.residual.is_some()),
        "no product of two tensors with a residual"
    );
    assert!(
        steps().any(|step| step.op == Op::MatMul && !dynamic(step) && step.epilogue.residual.is_some()),
        "no dense layer with a residual"
    );
    assert!(plans.iter().all(|plan| plan.inputs[0].dtype == DType::Fp32));
}
