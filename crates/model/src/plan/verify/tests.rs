//! The proof finds every way in which a plan can be wrong.

use std::sync::Arc;

use crate::op::{Activation, Op};
use crate::plan::{Buffer, Epilogue, PlanInput, PlanOutput, Step};

use super::*;

/// x -> Relu -> Sigmoid -> Tanh -> y, three buffers of 64 bytes.
fn chain() -> LogicalPlan {
    let shape = Shape::new(&[4, 4]).unwrap();
    let operand = |source| Operand { source, dtype: DType::Fp32, shape: shape.clone() };
    let step = |index: u32, activation, source| Step {
        name: Arc::from(format!("n{index}")),
        op: Op::Activation(activation),
        inputs: [operand(source)].into_iter().collect(),
        output: BufferId(index),
        epilogue: Epilogue::NONE,
    };
    let buffer = |offset| Buffer { dtype: DType::Fp32, shape: shape.clone(), offset, bytes: 64 };
    LogicalPlan {
        rows: 4,
        inputs: vec![PlanInput { dtype: DType::Fp32, shape: shape.clone(), bytes: Some(64) }],
        buffers: vec![buffer(0), buffer(64), buffer(0)],
        steps: vec![
            step(0, Activation::Relu, Source::Input(0)),
            step(1, Activation::Sigmoid, Source::Buffer(BufferId(0))),
            step(2, Activation::Tanh, Source::Buffer(BufferId(1))),
        ],
        outputs: vec![PlanOutput { binding: Binding::Buffer(BufferId(2)), dtype: DType::Fp32, shape, bytes: Some(64) }],
        arena_bytes: 128,
    }
}

fn detail(plan: &LogicalPlan) -> String {
    verify(plan, &[]).unwrap_err().detail().unwrap_or_default().to_string()
}

#[test]
fn a_sound_plan_passes() {
    verify(&chain(), &[]).unwrap();
}

#[test]
fn reading_what_was_not_written_is_found() {
    let mut plan = chain();
    plan.steps.swap(0, 1);
    assert!(detail(&plan).starts_with("step 0"), "{}", detail(&plan));
}

#[test]
fn reading_what_was_overwritten_is_found() {
    let mut plan = chain();
    plan.steps[2].inputs[0].source = Source::Buffer(BufferId(0));
    plan.buffers[1].offset = 0;
    assert!(detail(&plan).contains("step 1"), "{}", detail(&plan));
    let mut plan = chain();
    plan.outputs[0].binding = Binding::Buffer(BufferId(0));
    assert!(detail(&plan).contains("output 0"), "{}", detail(&plan));
}

#[test]
fn an_output_over_its_own_operand_is_found() {
    let mut plan = chain();
    plan.buffers[1].offset = 0;
    assert!(detail(&plan).contains("step 1"));
}

#[test]
fn partial_overlap_is_found() {
    let mut plan = chain();
    let long = Shape::new(&[8, 4]).unwrap();
    plan.buffers[2] = Buffer { shape: long.clone(), bytes: 128, ..plan.buffers[2].clone() };
    plan.outputs[0] = PlanOutput { binding: Binding::Buffer(BufferId(1)), ..plan.outputs[0].clone() };
    assert!(detail(&plan).contains("step 2"), "{}", detail(&plan));
}

#[test]
fn sizes_types_and_places_must_fit() {
    let mut plan = chain();
    plan.arena_bytes = 127;
    assert!(detail(&plan).contains("within the arena"));
    let mut plan = chain();
    plan.buffers[1].offset = 32;
    assert!(detail(&plan).contains("within the arena"));
    let mut plan = chain();
    plan.steps[1].inputs[0].shape = Shape::new(&[4, 5]).unwrap();
    assert!(detail(&plan).contains("step 1"));
    let mut plan = chain();
    plan.steps[1].inputs[0].dtype = DType::Int32;
    assert!(detail(&plan).contains("step 1"));
    let mut plan = chain();
    plan.steps[0].inputs[0].source = Source::Input(1);
    assert!(detail(&plan).contains("step 0"));
    let mut plan = chain();
    plan.steps[0].epilogue.bias = Some(crate::constant::ConstantId(0));
    assert!(detail(&plan).contains("bias"));
}
