//! The model that takes its time: what it computes, and that a run of it can be stopped on the way.

use std::cell::Cell;

use insula_exec::{BatchIo, EntryIo, ExecError};
use insula_model::Precision;
use smallvec::SmallVec;

use crate::loaded_model::{Arena, Loaded, elements, stored_floats};

fn input(rows: usize) -> Vec<f32> {
    (0..rows * 16).map(|k| (k % 97) as f32 - 48.0).collect()
}

#[test]
fn it_agrees_with_the_stored_answers_and_with_its_input() {
    let input = input(8);
    let stored = stored_floats("test/reference/slow_output.f32");
    for (precision, bound) in [(Precision::Fp32, 1e-4), (Precision::Fp16, 0.1)] {
        let loaded = Loaded::new("test/models/slow/1", precision);
        let answer = loaded.answer(8, 8, &[bytemuck::cast_slice(&input)]);
        let found: Vec<f32> = elements(&answer[0]);
        for ((found, stored), input) in found.iter().zip(&stored).zip(&input) {
            assert!(
                (found - stored).abs() <= bound && (found - input).abs() <= bound,
                "{found} for {input}, {precision}"
            );
        }
    }
}

#[test]
fn a_run_can_be_stopped_between_steps_and_run_again() {
    let loaded = Loaded::new("test/models/slow/1", Precision::Fp32);
    let plan = loaded.lower(1);
    let input = input(1);
    let mut arena = Arena::new(plan.arena_bytes());
    let mut output = vec![0u8; 64];
    let asked = Cell::new(0);
    let mut run = |stop_after: usize| {
        asked.set(0);
        let outputs = SmallVec::from_iter([Some(&mut output[..])]);
        let entry = EntryIo { rows: 1, inputs: SmallVec::from_slice(&[bytemuck::cast_slice(&input)]), outputs };
        let mut batch = BatchIo { entries: SmallVec::from_iter([entry]) };
        let mut stop = || {
            asked.set(asked.get() + 1);
            asked.get() > stop_after
        };
        plan.run(arena.bytes(), &mut batch, &mut stop)
    };
    assert_eq!(run(0), Err(ExecError::Stopped));
    assert_eq!(run(50), Err(ExecError::Stopped));
    assert_eq!(asked.get(), 51);
    assert_eq!(run(usize::MAX), Ok(()));
    assert!(asked.get() >= 80, "{} questions in more than 80 steps", asked.get());
    let found: Vec<f32> = elements(&output);
    assert!(found.iter().zip(&input).all(|(found, input)| (found - input).abs() <= 1e-4));
}

#[test]
fn a_long_step_is_asked_within() {
    // 8 rows of 512 positions: a product of 4096 x 128 x 128 is one tile, the whole has as many questions as steps, while
    // 32 rows take several tiles a product.
    let loaded = Loaded::new("test/models/slow/1", Precision::Fp16);
    let count = |bucket: usize| {
        let plan = loaded.lower(bucket);
        let input = input(bucket);
        let mut arena = Arena::new(plan.arena_bytes());
        let mut output = vec![0u8; 64 * bucket];
        let mut asked = 0;
        let outputs = SmallVec::from_iter([Some(&mut output[..])]);
        let entry = EntryIo { rows: bucket, inputs: SmallVec::from_slice(&[bytemuck::cast_slice(&input)]), outputs };
        let mut stop = || {
            asked += 1;
            false
        };
        plan.run(arena.bytes(), &mut BatchIo { entries: SmallVec::from_iter([entry]) }, &mut stop).unwrap();
        asked
    };
    assert!(count(32) > count(8));
}
