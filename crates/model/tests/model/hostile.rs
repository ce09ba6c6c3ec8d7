//! Files made to hurt: mutated bytes, endless chains, sizes out of proportion. Each is answered with an error or a model, never with a
//! panic, an overflow of the stack, or memory that the file does not have.

use insula_model::onnx::data_type::FLOAT;
use insula_model::onnx::{AttributeProto, NodeProto, TensorProto};
use insula_model::{LoadErrorKind, LoadOptions, Model, NoExternalData, NoFolding};
use proptest::prelude::*;
use prost::Message;

use crate::builder::*;
use crate::loading::{load, operations, try_load};

/// Loads with a small budget and plans, if there is a model.
fn load_and_plan(bytes: Vec<u8>) {
    let options = LoadOptions { constant_limit: 1 << 20, arena_limit: 1 << 24, ..LoadOptions::new(&NoFolding) };
    if let Ok(model) = Model::load(bytes.into(), &NoExternalData, &options) {
        for rows in model.buckets() {
            model.logical_plan(rows).unwrap().verify(model.constants()).unwrap();
        }
    }
}

fn varied() -> Builder {
    Builder::new(13)
        .input("x", FLOAT, "N,2,6,6")
        .random_floats("w", &[4, 1, 3, 3], 1)
        .random_floats("b", &[4], 2)
        .random_floats("d", &[5, 16], 3)
        .ints("shape", &[2], &[0, -1])
        .node(
            "Conv",
            &["x", "w", "b"],
            "c",
            vec![int("group", 2), ints("pads", &[1, 0, 1, 0]), ints("strides", &[2, 1])],
        )
        .node("BatchNormalization", &["c", "b", "b", "b", "b"], "n", vec![float("epsilon", 4.0)])
        .node(
            "MaxPool",
            &["n"],
            "p",
            vec![ints("kernel_shape", &[2, 2]), ints("strides", &[2, 2]), int("ceil_mode", 1)],
        )
        .node("Transpose", &["p"], "t", vec![ints("perm", &[0, 2, 3, 1])])
        .node("Reshape", &["t", "shape"], "f", vec![])
        .node("Gemm", &["f", "d"], "g", vec![int("transB", 1), float("alpha", 0.5)])
        .node("Softmax", &["g"], "y", vec![int("axis", 1)])
        .node("ArgMax", &["y"], "k", vec![int("axis", 1)])
        .output("y", FLOAT, "N,5")
        .untyped_output("k")
}

#[test]
fn the_model_that_is_mutated_below_loads() {
    load(&varied());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn mutated_files_never_panic(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..3), 1..6)) {
        let mut bytes = varied().model.encode_to_vec();
        for (index, byte, how) in changes {
            let at = index.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => {
                    bytes.remove(at);
                }
            }
        }
        load_and_plan(bytes);
    }

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        load_and_plan(bytes);
    }

    #[test]
    fn mutated_attributes_and_sizes_never_panic(node in 0usize..8, value in any::<i64>(), small in -3i64..9, at in 0usize..4, which in 0u8..5) {
        let mut builder = varied();
        let graph = builder.graph();
        match which {
            0 => graph.node[node].attribute.iter_mut().for_each(|attribute| {
                attribute.i = value;
                if let Some(entry) = attribute.ints.get_mut(at) {
                    *entry = value;
                }
            }),
            1 => graph.node[node].attribute.iter_mut().for_each(|attribute| {
                attribute.i = small;
                if let Some(entry) = attribute.ints.get_mut(at) {
                    *entry = small;
                }
            }),
            2 => {
                let tensor = &mut graph.initializer[node % 4];
                let index = at % tensor.dims.len();
                tensor.dims[index] = value;
            }
            3 => {
                let dim = &mut graph.input[0].r#type.as_mut().unwrap().tensor_type.as_mut().unwrap().shape.as_mut().unwrap().dim;
                dim[at % 4].value = Some(insula_model::onnx::dimension_proto::Value::DimValue(value));
            }
            _ => builder.model.opset_import[0].version = small + 7,
        }
        load_and_plan(builder.model.encode_to_vec());
    }
}

#[test]
fn a_chain_of_twenty_thousand_nodes_is_planned_without_recursion() {
    let chain = |operators: &[&str]| {
        let mut builder = Builder::new(13).input("v0", FLOAT, "N,4");
        for index in 0..20_000 {
            let operator = operators[index % operators.len()];
            builder = builder.node(operator, &[&format!("v{index}")], &format!("v{}", index + 1), vec![]);
        }
        // last to first: the order is found, not given
        builder.graph().node.reverse();
        builder.untyped_output("v20000")
    };
    let child = std::thread::Builder::new().stack_size(256 << 10).spawn(move || {
        let plan = load(&chain(&["Relu", "Tanh"])).logical_plan(1).unwrap();
        assert_eq!((plan.steps.len(), plan.arena_bytes), (20_000, 128));
        assert_eq!(load(&chain(&["Identity"])).logical_plan(1).unwrap().steps.len(), 0);
    });
    child.unwrap().join().unwrap();
}

#[test]
fn a_cycle_through_twenty_thousand_nodes_is_found() {
    let mut builder = Builder::new(13).input("x", FLOAT, "N,4");
    for index in 0..20_000 {
        builder = builder.node("Relu", &[&format!("v{index}")], &format!("v{}", (index + 1) % 20_000), vec![]);
    }
    let error = try_load(builder.untyped_output("v0").bytes()).unwrap_err();
    assert!(error.message().contains("cycle"), "{error}");
}

#[test]
fn deep_nesting_is_skipped_or_refused() {
    // groups inside groups of a field nobody reads, and tensors' lengths that lie
    let nested = [0xfbu8, 0x07].repeat(50_000);
    assert_eq!(try_load(nested.into()).unwrap_err().kind(), LoadErrorKind::Malformed);
    assert_eq!(try_load(vec![0x3a, 0xff, 0xff, 0xff, 0xff, 0x0f].into()).unwrap_err().kind(), LoadErrorKind::Malformed);
}

#[test]
fn small_files_of_empty_messages_cannot_take_much_memory() {
    let node = NodeProto { attribute: vec![AttributeProto::default(); 1_500_000], ..NodeProto::default() };
    let mut builder = Builder::new(13);
    builder.graph().node.push(node);
    let bytes = builder.bytes();
    assert!(bytes.len() < 4 << 20);
    assert_eq!(try_load(bytes).unwrap_err().kind(), LoadErrorKind::Limit);
}

#[test]
fn transposing_a_constant_again_and_again_cannot_take_much_memory() {
    let mut builder = Builder::new(13).input("x", FLOAT, "N,1000").random_floats("w0", &[1000, 1000], 1);
    for index in 0..200 {
        builder = builder.node("Transpose", &[&format!("w{index}")], &format!("w{}", index + 1), vec![]);
    }
    // 64 MiB and four times the file's own 4 MB are 83 MB; 200 copies would be 800
    let model = load(&builder.node("MatMul", &["x", "w200"], "y", vec![]).untyped_output("y"));
    assert!(model.constant_bytes() <= 8_000_000);
    assert_eq!(operations(&model.logical_plan(1).unwrap()), ["MatMul"]);
}

#[test]
fn joining_sizes_with_themselves_again_and_again_is_refused() {
    let mut builder = Builder::new(13).input("x", FLOAT, "N,4").node("Shape", &["x"], "s0", vec![]);
    for index in 0..60 {
        let from = format!("s{index}");
        builder = builder.node("Concat", &[&from, &from], &format!("s{}", index + 1), vec![int("axis", 0)]);
    }
    let error = try_load(builder.node("Reshape", &["x", "s60"], "y", vec![]).untyped_output("y").bytes()).unwrap_err();
    assert!(error.message().contains("at most 64"), "{error}");
}

#[test]
fn many_intermediates_that_live_long_are_placed_quickly() {
    let mut builder = Builder::new(13).input("x", FLOAT, "N,4");
    for index in 0..30_000 {
        let name = format!("y{index}");
        builder = builder.node("Relu", &["x"], &name, vec![]).untyped_output(&name);
    }
    let plan = load(&builder).logical_plan(1).unwrap();
    assert_eq!((plan.steps.len(), plan.arena_bytes), (30_000, 30_000 * 64));
}

#[test]
fn folding_that_would_blow_up_stays_in_the_graph() {
    let builder = Builder::new(13)
        .input("x", FLOAT, "1,1,1")
        .random_floats("a", &[20_000, 1], 1)
        .random_floats("b", &[1, 20_000], 2)
        .node("Mul", &["a", "b"], "huge", vec![])
        .node("Mul", &["x", "huge"], "y", vec![])
        .untyped_output("y");
    let model = load(&builder);
    assert!(model.constant_bytes() < 1 << 20);
    assert_eq!(operations(&model.logical_plan(1).unwrap()), ["Mul", "Mul"]);
}

#[test]
fn external_data_that_claims_more_than_there_is_takes_no_memory() {
    let tensor = TensorProto { data_location: 1, ..tensor("w", FLOAT, &[1 << 30], vec![]) };
    let builder = Builder::new(13)
        .input("x", FLOAT, "N,1")
        .constant(tensor)
        .node("Relu", &["x"], "y", vec![])
        .untyped_output("y");
    assert_eq!(try_load(builder.bytes()).unwrap_err().kind(), LoadErrorKind::ExternalData);
}
