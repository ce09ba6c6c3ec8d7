//! The border between requests and the arena: rows come together, outputs go apart, and what does not fit is refused.

use insula_exec::{BatchIo, EntryIo, ExecError};
use insula_model::Precision;
use proptest::prelude::*;
use smallvec::SmallVec;

use crate::loaded_model::{Arena, Loaded, elements, run_entries};

/// An input of `rows` rows of 16 floats, counted on from `first`.
fn counted(first: usize, rows: usize) -> Vec<f32> {
    (first * 16..(first + rows) * 16).map(|k| k as f32).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn each_request_gets_its_own_rows_back(counts in proptest::collection::vec(1usize..9, 1..5), askew: bool) {
        // `versions` 2 doubles its input: one step, so that rows pass through the arena.
        let loaded = Loaded::new("test/models/versions/2", Precision::Fp32);
        let plan = loaded.lower(32);
        let mut first = 0;
        // One byte further on nothing is aligned, so that nothing can run in place.
        let inputs: Vec<Vec<u8>> = counts.iter().map(|rows| {
            let values: Vec<f32> = (first * 4..(first + rows) * 4).map(|k| k as f32).collect();
            first += rows;
            let mut bytes = vec![0u8; usize::from(askew)];
            bytes.extend_from_slice(bytemuck::cast_slice(&values));
            bytes
        }).collect();
        let lists: Vec<[&[u8]; 1]> = inputs.iter().map(|input| [&input[usize::from(askew)..]]).collect();
        let requests: Vec<(usize, &[&[u8]])> = counts.iter().zip(&lists).map(|(rows, list)| (*rows, &list[..])).collect();
        let mut outputs: Vec<Vec<Vec<u8>>> = counts.iter().map(|rows| loaded.rooms(*rows, &[])).collect();
        run_entries(&*plan, &requests, &mut outputs.iter_mut().collect::<Vec<_>>()).unwrap();
        let all: Vec<u8> = outputs.concat().concat();
        let expected: Vec<f32> = (0..first * 4).map(|k| 2.0 * k as f32).collect();
        prop_assert_eq!(elements::<f32>(&all), expected);
    }
}

#[test]
fn models_that_return_their_input_copy_it_for_every_type() {
    for (model, row_bytes) in [("identity_fp32", 64), ("identity_fp16", 8), ("identity_int64", 32)] {
        let loaded = Loaded::new(&format!("test/models/{model}/1"), Precision::File);
        let plan = loaded.lower(4);
        assert_eq!(plan.arena_bytes(), 0, "{model} needs no arena");
        let inputs: Vec<u8> = (0..3 * row_bytes).map(|byte| byte as u8).collect();
        let (one, two) = inputs.split_at(row_bytes);
        let mut outputs = [vec![vec![0; row_bytes]], vec![vec![0; 2 * row_bytes]]];
        let [first, second] = &mut outputs;
        run_entries(&*plan, &[(1, &[one]), (2, &[two])], &mut [first, second]).unwrap();
        assert_eq!(outputs.concat().concat(), inputs);
    }
}

#[test]
fn byte_strings_of_any_length_are_copied() {
    let loaded = Loaded::new("test/models/identity_bytes/1", Precision::File);
    let one: &[u8] = b"\x02\0\0\0ab\0\0\0\0";
    let two: &[u8] = b"\x01\0\0\0x\x03\0\0\0xyz";
    let mut outputs = [vec![vec![0; one.len()]], vec![vec![0; two.len()]]];
    let [first, second] = &mut outputs;
    run_entries(&*loaded.lower(2), &[(1, &[one]), (1, &[two])], &mut [first, second]).unwrap();
    assert_eq!((&outputs[0][0][..], &outputs[1][0][..]), (one, two));
}

#[test]
fn outputs_that_are_not_wanted_are_not_written() {
    let loaded = Loaded::new("models/digits/1", Precision::Fp32);
    let plan = loaded.lower(1);
    let input = [0.0f32; 64];
    let mut digit = [0u8; 8];
    let entry = EntryIo {
        rows: 1,
        inputs: SmallVec::from_slice(&[bytemuck::cast_slice(&input)]),
        outputs: SmallVec::from_iter([None, Some(&mut digit[..])]),
    };
    let mut arena = Arena::new(plan.arena_bytes());
    plan.run(arena.bytes(), &mut BatchIo { entries: SmallVec::from_iter([entry]) }, &mut || false).unwrap();
    assert!(i64::from_le_bytes(digit) < 10);
}

#[test]
fn what_does_not_fit_the_plan_is_refused_and_never_mixed() {
    let loaded = Loaded::new("test/models/versions/2", Precision::Fp32);
    let plan = loaded.lower(2);
    let input = counted(0, 1);
    let row: &[u8] = bytemuck::cast_slice(&input[..4]);
    let refused = |rows: usize, inputs: &[&[u8]], room: usize, arena_bytes: usize| {
        let mut output = vec![0; room];
        let outputs = SmallVec::from_iter([Some(&mut output[..])]);
        let entry = EntryIo { rows, inputs: SmallVec::from_slice(inputs), outputs };
        let mut arena = Arena::new(arena_bytes);
        let ended = plan.run(arena.bytes(), &mut BatchIo { entries: SmallVec::from_iter([entry]) }, &mut || false);
        matches!(ended, Err(ExecError::Misfit(_)))
    };
    let enough = plan.arena_bytes();
    assert!(!refused(1, &[row], 16, enough));
    assert!(refused(0, &[&[]], 0, enough), "no rows");
    assert!(refused(3, &[&[0; 48]], 48, enough), "more rows than the bucket");
    assert!(refused(usize::MAX, &[row], 16, enough), "rows that overflow");
    assert!(refused(1, &[&row[..12]], 16, enough), "an input that is too short");
    assert!(refused(1, &[&[0; 20]], 16, enough), "an input that is too long");
    assert!(refused(1, &[], 16, enough), "no input");
    assert!(refused(1, &[row], 12, enough), "room that is too small");
    assert!(refused(1, &[row], 20, enough), "room that is too large");
    assert!(refused(1, &[row], 16, enough - 64), "an arena that is too small");
    assert!(plan.run(&mut [], &mut BatchIo::default(), &mut || false).is_err(), "no entries");
}

#[test]
fn an_arena_that_is_not_aligned_is_refused() {
    let loaded = Loaded::new("test/models/versions/2", Precision::Fp32);
    let plan = loaded.lower(1);
    let (input, mut output) = (counted(0, 1), [0u8; 16]);
    let outputs = SmallVec::from_iter([Some(&mut output[..])]);
    let entry = EntryIo { rows: 1, inputs: SmallVec::from_slice(&[bytemuck::cast_slice(&input[..4])]), outputs };
    let mut arena = Arena::new(plan.arena_bytes() + 64);
    let ended =
        plan.run(&mut arena.bytes()[4..], &mut BatchIo { entries: SmallVec::from_iter([entry]) }, &mut || false);
    assert!(matches!(ended, Err(ExecError::Misfit(_))));
}

#[test]
fn several_threads_run_one_plan_at_once() {
    let loaded = Loaded::new("models/digits/1", Precision::Fp32);
    let input = vec![8.0f32; 64];
    let bytes: &[u8] = bytemuck::cast_slice(&input);
    let expected = loaded.answer(1, 1, &[bytes]);
    let plan = loaded.lower(1);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let mut outputs = loaded.rooms(1, &[]);
                    run_entries(&*plan, &[(1, &[bytes])], &mut [&mut outputs]).unwrap();
                    assert_eq!(outputs, expected);
                }
            });
        }
    });
}
