//! GFLOP/s of matrix products on one thread, against a probe of nothing but fused multiply-adds: how much of the
//! machine's arithmetic the kernels reach. Probe and shapes take turns, so that a slow wave of the host hits all alike.
//! Run it with `cargo bench -p insula-benches --bench gemm`.
#![allow(clippy::print_stdout, reason = "a benchmark's result")]

use std::hint::black_box;

use half::f16;
use insula_kernels::gemm::{Destination, Gemm, MatrixRows, PackedWeights, Storage, gemm_scratch_bytes};
use insula_kernels::probe::{OPERATIONS_PER_ROUND, multiply_adds};
use insula_kernels::{Activation, Floats, FloatsMut, Isa};

/// Turns; each figure is the median over them.
const TURNS: usize = 9;

/// (M, K, N)
const SHAPES: [(usize, usize, usize); 9] = [
    (512, 512, 512),
    (3136, 64, 256),
    (3136, 64, 64),
    (3136, 576, 64),
    (784, 1152, 128),
    (196, 1024, 256),
    (196, 2304, 256),
    (32, 2048, 1000),
    (1, 2048, 1000),
];

fn main() {
    let mut probes = Vec::new();
    let mut products: Vec<Product> = SHAPES
        .iter()
        .flat_map(|&shape| [Product::new(shape, Storage::F16), Product::new(shape, Storage::F32)])
        .collect();
    for _ in 0..TURNS {
        probes.push(probe());
        products.iter_mut().for_each(Product::turn);
    }
    let peak = median(&mut probes);
    let best = probes[TURNS - 1];
    let isa = Isa::detect().name();
    println!("{isa}: multiply-adds alone {peak:.1} GFLOP/s, best {best:.1}; one thread, medians of {TURNS} turns");
    println!(
        "{:>6} {:>6} {:>6}  {:<20} {:>8} {:>8} {:>9}",
        "M", "K", "N", "weights and values", "GFLOP/s", "best", "of probe"
    );
    for product in &mut products {
        let rate = median(&mut product.rates);
        let best = product.rates[TURNS - 1];
        let (rows, depth, columns) = product.shape;
        let stored = if product.halves { "halves" } else { "floats" };
        println!(
            "{rows:>6} {depth:>6} {columns:>6}  {stored:<20} {rate:>8.1} {best:>8.1} {:>8.1}%",
            100.0 * rate / peak
        );
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// GFLOP/s of independent multiply-adds in registers.
fn probe() -> f64 {
    let rounds = 1_000_000;
    let start = thread_time();
    black_box(multiply_adds(Isa::detect(), rounds, black_box(0.999)));
    f64::from(rounds) * OPERATIONS_PER_ROUND as f64 / (thread_time() - start) / 1e9
}

/// Seconds of processor time that this thread has had: what other programs take from the machine is not counted.
fn thread_time() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// One shape with its operands and the rates measured so far.
struct Product {
    shape: (usize, usize, usize),
    halves: bool,
    weights: PackedWeights,
    a: Vec<f32>,
    a_halves: Vec<f16>,
    c: Vec<f32>,
    c_halves: Vec<f16>,
    scratch: Vec<Line>,
    rates: Vec<f64>,
}

#[derive(Clone, Copy, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(C, align(64))]
struct Line([u8; 64]);

impl Product {
    fn new(shape: (usize, usize, usize), storage: Storage) -> Product {
        let (rows, depth, columns) = shape;
        let value = |i: usize| (((i * 40503) >> 4) % 1000) as f32 / 1000.0 - 0.5;
        let a: Vec<f32> = (0..rows * depth).map(value).collect();
        Product {
            shape,
            halves: storage == Storage::F16,
            weights: PackedWeights::pack(storage, depth, columns, |k, n| value(k * columns + n)),
            a_halves: a.iter().map(|x| f16::from_f32(*x)).collect(),
            a,
            c: vec![0.0; rows * columns],
            c_halves: vec![f16::ZERO; rows * columns],
            scratch: vec![Line([0; 64]); gemm_scratch_bytes(rows, depth, columns).div_ceil(64)],
            rates: Vec::new(),
        }
    }

    /// Runs the product for about 20 ms and notes the rate.
    fn turn(&mut self) {
        let (rows, depth, columns) = self.shape;
        let work = 2.0 * (rows * depth * columns) as f64;
        let repeats = (1.5e9 / work).ceil().min(2000.0) as u32;
        self.run();
        let start = thread_time();
        for _ in 0..repeats {
            self.run();
        }
        self.rates.push(work * f64::from(repeats) / (thread_time() - start) / 1e9);
    }

    fn run(&mut self) {
        let (rows, depth, columns) = self.shape;
        let isa = Isa::detect();
        let gemm = Gemm { isa, panels: self.weights.panels(), bias: None, activation: Activation::Relu };
        let (values, out) = if self.halves {
            (Floats::F16(&self.a_halves), FloatsMut::F16(&mut self.c_halves))
        } else {
            (Floats::F32(&self.a), FloatsMut::F32(&mut self.c))
        };
        let source = MatrixRows { isa, values, row_stride: depth, depth_stride: 1 };
        let to = Destination { values: out, stride: columns, offset: 0 };
        gemm.run(0..rows, &source, None, to, bytemuck::cast_slice_mut(&mut self.scratch));
    }
}
