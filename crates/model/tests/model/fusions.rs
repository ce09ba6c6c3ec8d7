//! What is fused, what is not, and that it computes the same.

use insula_model::onnx::data_type::FLOAT;
use insula_model::{Activation, LogicalPlan};

use crate::builder::*;
use crate::loading::{assert_optimised_alike, operations};

const PADDED: &[i64] = &[1, 1, 1, 1];

/// `[N,3,5,5]` and a 3x3 convolution to 4 channels, `conv`.
fn convolved() -> Builder {
    Builder::new(15).input("x", FLOAT, "N,3,5,5").random_floats("w", &[4, 3, 3, 3], 1).random_floats("b", &[4], 2).node(
        "Conv",
        &["x", "w", "b"],
        "conv",
        vec![ints("pads", PADDED)],
    )
}

fn normalised(builder: Builder, from: &str, to: &str) -> Builder {
    let name = |what: &str| format!("{to}_{what}");
    let (scale, bias, mean, variance) = (name("scale"), name("bias"), name("mean"), name("variance"));
    builder
        .random_floats(&scale, &[4], 11)
        .random_floats(&bias, &[4], 12)
        .random_floats(&mean, &[4], 13)
        .floats(&variance, &[4], &[0.5, 1.0, 2.0, 4.0])
        .node("BatchNormalization", &[from, &scale, &bias, &mean, &variance], to, vec![])
}

/// The operations, the input's transposition to channels last left out.
fn computed(plan: &LogicalPlan) -> Vec<&'static str> {
    operations(plan).into_iter().filter(|name| *name != "Transpose").collect()
}

#[test]
fn convolution_bias_normalisation_and_activation_are_one_step() {
    let builder = normalised(convolved(), "conv", "norm").node("Relu", &["norm"], "y", vec![]).untyped_output("y");
    let plan = assert_optimised_alike(&builder, 3, 1e-5);
    assert_eq!(operations(&plan), ["Transpose", "Conv", "Transpose"]);
    assert_eq!(plan.steps[1].epilogue.activation, Some(Activation::Relu));
    assert!(plan.steps[1].epilogue.bias.is_some());
}

#[test]
fn two_normalisations_in_a_row_fold_too() {
    let builder = normalised(normalised(convolved(), "conv", "first"), "first", "y").untyped_output("y");
    assert_eq!(computed(&assert_optimised_alike(&builder, 2, 1e-5)), ["Conv"]);
}

#[test]
fn every_activation_ends_a_convolution() {
    for (operator, attributes) in [("Relu", vec![]), ("Sigmoid", vec![]), ("Tanh", vec![])] {
        let builder = convolved().node(operator, &["conv"], "y", attributes).untyped_output("y");
        assert_eq!(computed(&assert_optimised_alike(&builder, 2, 1e-5)), ["Conv"]);
    }
    let builder = convolved().floats("six", &[], &[0.6]).floats("zero", &[], &[0.0]);
    let builder = builder.node("Clip", &["conv", "zero", "six"], "y", vec![]).untyped_output("y");
    assert_eq!(computed(&assert_optimised_alike(&builder, 2, 1e-5)), ["Conv"]);
}

#[test]
fn a_normalisation_of_its_own_is_a_scale_and_a_shift_where_the_tensor_is() {
    let builder = Builder::new(15).input("x", FLOAT, "N,4,2,2");
    let builder = normalised(builder, "x", "norm").node("Relu", &["norm"], "y", vec![]).untyped_output("y");
    assert_eq!(operations(&assert_optimised_alike(&builder, 2, 1e-5)), ["Mul", "Add"]);
    let builder = Builder::new(15).input("x", FLOAT, "N,4");
    let builder = normalised(builder, "x", "norm").node("Relu", &["norm"], "y", vec![]).untyped_output("y");
    assert_eq!(operations(&assert_optimised_alike(&builder, 2, 1e-5)), ["Mul"]);
}

#[test]
fn a_product_takes_scale_bias_and_activation() {
    let builder = Builder::new(15)
        .input("x", FLOAT, "N,6")
        .random_floats("w", &[5, 6], 1)
        .random_floats("c", &[5], 2)
        .random_floats("shift", &[1, 5], 4)
        .node("Gemm", &["x", "w", "c"], "gemm", vec![int("transB", 1), float("alpha", 0.5), float("beta", 2.0)])
        .node("Sub", &["gemm", "shift"], "shifted", vec![])
        .node("Tanh", &["shifted"], "y", vec![])
        .untyped_output("y");
    assert_eq!(operations(&assert_optimised_alike(&builder, 3, 1e-5)), ["MatMul"]);
}

#[test]
fn what_else_reads_the_intermediate_keeps_it() {
    let shared = convolved().node("Relu", &["conv"], "y", vec![]).node("Tanh", &["conv"], "z", vec![]);
    let plan = assert_optimised_alike(&shared.untyped_output("y").untyped_output("z"), 2, 1e-5);
    assert_eq!(computed(&plan), ["Conv", "Relu", "Tanh"]);
    let output = convolved().node("Relu", &["conv"], "y", vec![]).untyped_output("y").untyped_output("conv");
    assert_eq!(computed(&assert_optimised_alike(&output, 2, 1e-5)), ["Conv", "Relu"]);
}

#[test]
fn nothing_is_fused_behind_an_activation() {
    let builder = convolved()
        .node("Relu", &["conv"], "relu", vec![])
        .random_floats("shift", &[4, 1, 1], 9)
        .node("Add", &["relu", "shift"], "y", vec![])
        .untyped_output("y");
    assert_eq!(computed(&assert_optimised_alike(&builder, 2, 1e-5)), ["Conv", "Add"]);
}

#[test]
fn summands_that_vary_along_other_axes_stay() {
    let builder =
        convolved().random_floats("map", &[5, 5], 9).node("Add", &["conv", "map"], "y", vec![]).untyped_output("y");
    let plan = assert_optimised_alike(&builder, 2, 1e-5);
    assert_eq!(computed(&plan), ["Conv", "Add"]);
}

#[test]
fn a_summand_that_widens_the_result_stays() {
    let builder = Builder::new(15)
        .input("x", FLOAT, "N,1,3")
        .random_floats("w", &[3, 2], 1)
        .node("MatMul", &["x", "w"], "product", vec![])
        .random_floats("wide", &[4, 2], 2)
        .node("Add", &["product", "wide"], "y", vec![])
        .untyped_output("y");
    assert_eq!(operations(&assert_optimised_alike(&builder, 2, 1e-5)), ["MatMul", "Add"]);
}

#[test]
fn subtracting_from_a_constant_is_no_bias() {
    let builder = Builder::new(15)
        .input("x", FLOAT, "N,3")
        .random_floats("w", &[3, 2], 1)
        .random_floats("c", &[2], 2)
        .node("MatMul", &["x", "w"], "product", vec![])
        .node("Sub", &["c", "product"], "y", vec![])
        .untyped_output("y");
    assert_eq!(operations(&assert_optimised_alike(&builder, 2, 1e-5)), ["MatMul", "Sub"]);
}

/// ResNet's basic block: two convolutions and the input added.
fn block(shortcut: &str) -> Builder {
    let builder = normalised(convolved(), "conv", "stem").node("Relu", &["stem"], "start", vec![]);
    let builder = builder
        .random_floats("w1", &[4, 4, 3, 3], 3)
        .random_floats("w2", &[4, 4, 3, 3], 4)
        .random_floats("ws", &[4, 4, 1, 1], 5)
        .node("Conv", &["start", "w1"], "conv1", vec![ints("pads", PADDED)]);
    let builder = normalised(builder, "conv1", "norm1").node("Relu", &["norm1"], "relu1", vec![]);
    let builder = builder.node("Conv", &["relu1", "w2"], "conv2", vec![ints("pads", PADDED)]);
    let builder = normalised(builder, "conv2", "norm2").node("Conv", &["start", "ws"], "side", vec![]);
    builder.node("Add", &["norm2", shortcut], "sum", vec![]).node("Relu", &["sum"], "y", vec![]).untyped_output("y")
}

#[test]
fn a_residual_block_is_its_convolutions() {
    let plan = assert_optimised_alike(&block("start"), 2, 1e-4);
    assert_eq!(computed(&plan), ["Conv", "Conv", "Conv"]);
    let last = plan.steps.iter().rfind(|step| step.op.name() == "Conv").unwrap();
    assert!(last.epilogue.residual.is_some() && last.epilogue.bias.is_some());
    assert_eq!(last.epilogue.activation, Some(Activation::Relu));
}

#[test]
fn of_two_convolutions_added_the_later_takes_the_other_on() {
    let plan = assert_optimised_alike(&block("side"), 2, 1e-4);
    assert_eq!(computed(&plan), ["Conv", "Conv", "Conv", "Conv"]);
    assert_eq!(plan.steps.iter().filter(|step| step.epilogue.residual.is_some()).count(), 1);
}

#[test]
fn a_tensor_added_to_itself_is_no_residual() {
    let builder = convolved().node("Add", &["conv", "conv"], "y", vec![]).untyped_output("y");
    let plan = assert_optimised_alike(&builder, 2, 1e-4);
    assert_eq!(computed(&plan), ["Conv", "Add"]);
    assert!(plan.steps.iter().all(|step| step.epilogue.residual.is_none()));
}

#[test]
fn a_weight_that_two_nodes_share_is_scaled_for_one_alone() {
    let builder = Builder::new(15)
        .input("x", FLOAT, "N,3")
        .random_floats("w", &[3, 3], 1)
        .floats("two", &[], &[2.0])
        .node("MatMul", &["x", "w"], "first", vec![])
        .node("Mul", &["first", "two"], "y", vec![])
        .node("MatMul", &["x", "w"], "z", vec![])
        .untyped_output("y")
        .untyped_output("z");
    assert_eq!(operations(&assert_optimised_alike(&builder, 2, 1e-5)), ["MatMul", "MatMul"]);
}

#[test]
fn what_depends_on_constants_alone_is_computed_at_load() {
    let builder = Builder::new(15)
        .input("x", FLOAT, "N,3,4,4")
        .random_floats("w", &[2, 3, 3, 3], 1)
        .floats("two", &[], &[2.0])
        .node("Mul", &["w", "two"], "doubled", vec![])
        .node("Tanh", &["doubled"], "weight", vec![])
        .node("Conv", &["x", "weight"], "y", vec![])
        .untyped_output("y");
    assert_eq!(computed(&assert_optimised_alike(&builder, 2, 1e-5)), ["Conv"]);
}

mod chains {
    use super::*;
    use proptest::prelude::*;

    fn link(builder: Builder, index: usize, kind: u8) -> Builder {
        let (from, to, w) = (format!("v{index}"), format!("v{}", index + 1), format!("w{index}"));
        let seed = index as u64 + 20;
        match kind {
            0 => builder.random_floats(&w, &[4, 4, 3, 3], seed).node(
                "Conv",
                &[&from, &w],
                &to,
                vec![ints("pads", PADDED)],
            ),
            1 => normalised(builder, &from, &to),
            2 => builder.node("Relu", &[&from], &to, vec![]),
            3 => builder.random_floats(&w, &[4, 1, 1], seed).node("Add", &[&w, &from], &to, vec![]),
            4 => builder.random_floats(&w, &[1], seed).node("Mul", &[&from, &w], &to, vec![]),
            5 => builder.node("Add", &[&from, &format!("v{}", index / 2)], &to, vec![]),
            6 => builder.random_floats(&w, &[3, 3], seed).node("MatMul", &[&from, &w], &to, vec![]),
            7 => builder.node("Transpose", &[&from], &to, vec![ints("perm", &[0, 1, 3, 2])]),
            8 => builder.node("MaxPool", &[&from], &to, vec![ints("kernel_shape", &[3, 3]), ints("pads", PADDED)]),
            9 => builder.node("Softmax", &[&from], &to, vec![int("axis", 1)]),
            10 => builder.random_floats(&w, &[4, 3, 1], seed).node("Sub", &[&from, &w], &to, vec![]),
            _ => builder.node("Sigmoid", &[&from], &to, vec![]),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]
        #[test]
        fn any_chain_computes_the_same_with_no_more_steps(kinds in proptest::collection::vec(0u8..12, 1..10), extra in 0usize..10) {
            let builder = Builder::new(15).input("v0", FLOAT, "N,4,3,3");
            let links = kinds.len();
            let builder = kinds.iter().enumerate().fold(builder, |builder, (index, kind)| link(builder, index, *kind));
            let mut builder = builder.untyped_output(&format!("v{links}"));
            if extra < links {
                builder = builder.untyped_output(&format!("v{extra}"));
            }
            let plan = assert_optimised_alike(&builder, 2, 2e-3);
            let nodes = kinds.iter().filter(|kind| **kind != 7).count();
            prop_assert!(computed(&plan).len() <= nodes + kinds.iter().filter(|kind| **kind == 1).count());
        }
    }
}
