//! Compute threads: a network whose steps are large enough to be shared gives the same bits on any number of them, alone, beside
//! other runs and after a stop.

use insula_core::DType;
use insula_exec::{BatchIo, CpuDevice, EntryIo, ExecError};
use insula_model::Precision;

use crate::loaded_model::{Arena, Loaded};
use crate::network::Network;
use crate::operations::tensor;

/// Rows of the batches: enough that each kind of step has more work than stays on one thread.
const ROWS: usize = 6;

/// Convolutions of all kinds, pooling, arithmetic, functions, softmax, products with weights and of tensors.
fn wide_network() -> Vec<u8> {
    let (same, twos): (&[i64], &[i64]) = (&[1, 1, 1, 1], &[2, 2]);
    Network::new(&[8, 40, 40])
        .weight("c.w", &[48, 8, 3, 3], 0.0, 0.2)
        .weight("c.b", &[48], 0.0, 0.2)
        .weight("d.w", &[48, 1, 3, 3], 0.0, 0.4)
        .weight("p.w", &[48, 48, 1, 1], 0.0, 0.2)
        .weight("s.w", &[64, 48, 3, 3], 0.0, 0.1)
        .node("Conv", &["x", "c.w", "c.b"], "c", &[("pads", same)])
        .node("Sigmoid", &["c"], "sigmoid", &[])
        .node("Mul", &["c", "sigmoid"], "swish", &[])
        .node("Conv", &["swish", "d.w"], "d", &[("pads", same), ("group", &[48])])
        .node("Conv", &["d", "p.w"], "p", &[])
        .node("Add", &["p", "swish"], "sum", &[])
        .node("Relu", &["sum"], "relu", &[])
        .node("Transpose", &["relu"], "keys", &[("perm", &[0, 1, 3, 2])])
        .node("MatMul", &["relu", "keys"], "scores", &[])
        .node("Softmax", &["scores"], "weights", &[("axis", &[-1])])
        .node("MatMul", &["weights", "relu"], "mixed", &[])
        .node("MaxPool", &["mixed"], "pool", &[("kernel_shape", &[3, 3]), ("strides", twos), ("pads", same)])
        .node("Conv", &["pool", "s.w"], "s", &[("pads", same), ("strides", twos)])
        .node("Transpose", &["s"], "last", &[("perm", &[0, 2, 3, 1])])
        .weight("o.w", &[64, 80], 0.0, 0.3)
        .node("MatMul", &["last", "o.w"], "y", &[])
        .finish("y", &[10, 10, 80])
}

fn loaded(threads: usize) -> Loaded {
    Loaded::on(CpuDevice::with_threads(threads, &[]).unwrap(), wide_network(), Precision::File)
}

fn input() -> Vec<u8> {
    tensor(&[ROWS, 8, 40, 40], 3).values.iter().flat_map(|x| (*x as f32).to_le_bytes()).collect()
}

#[test]
fn bits_do_not_depend_on_the_number_of_threads() {
    let input = input();
    let alone = loaded(1).answer(ROWS, ROWS, &[&input]);
    assert_eq!(alone[0].len(), ROWS * 100 * 80 * DType::Fp32.size().unwrap());
    for threads in [2, 3, 5] {
        let shared = loaded(threads);
        for _ in 0..20 {
            assert!(shared.answer(ROWS, ROWS, &[&input]) == alone, "{threads} threads");
        }
    }
}

#[test]
fn runs_at_once_on_the_same_threads_do_not_disturb_each_other() {
    let input = input();
    let shared = loaded(3);
    let alone = shared.answer(ROWS, ROWS, &[&input]);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..20).for_each(|_| assert!(shared.answer(ROWS, ROWS, &[&input]) == alone)));
        }
    });
}

#[test]
fn a_shared_run_can_be_stopped_anywhere_and_run_again() {
    let input = input();
    let shared = loaded(2);
    let expected = shared.answer(ROWS, ROWS, &[&input]);
    let plan = shared.lower(ROWS);
    let (mut arena, mut outputs) = (Arena::new(plan.arena_bytes()), shared.rooms(ROWS, &[&input]));
    for allowed in 0..12 {
        let mut asked = 0;
        let mut run = |outputs: &mut Vec<Vec<u8>>, stop: &mut dyn FnMut() -> bool| {
            let outputs = outputs.iter_mut().map(|room| Some(&mut room[..])).collect();
            let entry = EntryIo { rows: ROWS, inputs: [&input[..]].into_iter().collect(), outputs };
            let mut batch = BatchIo { entries: [entry].into_iter().collect() };
            plan.run(arena.bytes(), &mut batch, &mut || stop())
        };
        let stopped = run(&mut outputs, &mut || {
            asked += 1;
            asked > allowed
        });
        assert_eq!(stopped, Err(ExecError::Stopped));
        run(&mut outputs, &mut || false).unwrap();
        assert!(outputs == expected);
    }
}
