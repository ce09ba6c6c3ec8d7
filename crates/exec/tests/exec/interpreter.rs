//! A second opinion: operations computed one element at a time, straight from their definitions, in double precision.

use insula_model::op::{ArgExtreme, Reduce, Reduction};
use insula_model::{Activation, AveragePool, BinaryOp, Conv, Op, Window};

/// A tensor of doubles.
#[derive(Debug, Clone)]
pub struct Tensor {
    pub dims: Vec<usize>,
    pub values: Vec<f64>,
}

impl Tensor {
    pub fn new(dims: &[usize], values: Vec<f64>) -> Tensor {
        assert_eq!(dims.iter().product::<usize>(), values.len());
        Tensor { dims: dims.to_vec(), values }
    }

    fn build(dims: &[usize], mut value: impl FnMut(&[usize]) -> f64) -> Tensor {
        let values = (0..dims.iter().product()).map(|index| value(&position(dims, index))).collect();
        Tensor { dims: dims.to_vec(), values }
    }

    fn at(&self, position: &[usize]) -> f64 {
        self.values[position.iter().zip(&self.dims).fold(0, |offset, (at, size)| offset * size + at)]
    }

    /// The element that meets `position` of a larger shape under broadcasting.
    fn broadcast_at(&self, position: &[usize]) -> f64 {
        let own = &position[position.len() - self.dims.len()..];
        self.at(&own.iter().zip(&self.dims).map(|(at, size)| if *size == 1 { 0 } else { *at }).collect::<Vec<_>>())
    }
}

fn position(dims: &[usize], mut index: usize) -> Vec<usize> {
    let mut position = vec![0; dims.len()];
    for (at, size) in position.iter_mut().zip(dims).rev() {
        *at = index % size;
        index /= size;
    }
    position
}

/// The output of `op`, whose shape is known to be `dims`.
pub fn interpret(op: &Op, inputs: &[Tensor], dims: &[usize]) -> Tensor {
    let input = &inputs[0];
    Tensor::build(dims, |at| match op {
        Op::Conv(conv) => convolve(conv, input, &inputs[1], at),
        Op::MaxPool(window) => taps(window, input, at).into_iter().fold(f64::NEG_INFINITY, f64::max),
        Op::AveragePool(pool) => average(pool, input, at),
        Op::MatMul => product(input, &inputs[1], at),
        Op::Binary(op) => arithmetic(*op, input.broadcast_at(at), inputs[1].broadcast_at(at)),
        Op::Activation(activation) => activate(*activation, input.at(at)),
        Op::Softmax { axis, logarithm } => {
            let along = along(input, *axis, at);
            let max = along.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum = along.iter().map(|x| (x - max).exp()).sum::<f64>();
            if *logarithm { input.at(at) - max - sum.ln() } else { (input.at(at) - max).exp() / sum }
        }
        Op::ArgExtreme(ArgExtreme { largest, axis, keep_dims, select_last_index }) => {
            let along = along(input, *axis, &restored(input, at, &[*axis], *keep_dims));
            let extreme = along.iter().copied().reduce(if *largest { f64::max } else { f64::min }).unwrap();
            let mut equals = along.iter().enumerate().filter(|(_, x)| **x == extreme).map(|(index, _)| index);
            (if *select_last_index { equals.next_back() } else { equals.next() }).unwrap() as f64
        }
        Op::Reduce(Reduce { reduction, axes, keep_dims }) => {
            reduced(*reduction, &gathered(input, axes, &restored(input, at, axes, *keep_dims)))
        }
        Op::Normalize { centred, epsilon } => {
            let along = along(input, at.len() - 1, at);
            let count = along.len() as f64;
            let mean = if *centred { along.iter().sum::<f64>() / count } else { 0.0 };
            let square = along.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
            let normal = (input.at(at) - mean) / (square + f64::from(*epsilon)).sqrt();
            let operand = |index: usize| inputs.get(index).map(|tensor| tensor.broadcast_at(at));
            normal * operand(1).unwrap_or(1.0) + operand(2).unwrap_or(0.0)
        }
        Op::Transpose { permutation } => {
            let mut from = vec![0; at.len()];
            for (at, axis) in at.iter().zip(permutation) {
                from[*axis] = *at;
            }
            input.at(&from)
        }
        Op::Move(_) | Op::Sample(_) => panic!("{op:?} has tests of its own"),
        Op::Cast { .. } => input.at(at),
        other => panic!("the tests do not interpret {}", other.name()),
    })
}

fn arithmetic(op: BinaryOp, a: f64, b: f64) -> f64 {
    match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::Div => a / b,
        BinaryOp::Pow => a.powf(b),
        BinaryOp::Mod => a - (a / b).floor() * b,
        BinaryOp::Fmod => a % b,
        BinaryOp::Max => a.max(b),
        BinaryOp::Min => a.min(b),
        BinaryOp::PRelu if a < 0.0 => a * b,
        BinaryOp::PRelu => a,
    }
}

/// A function of one element.
pub fn activate(activation: Activation, x: f64) -> f64 {
    match activation {
        Activation::Relu => x.max(0.0),
        Activation::LeakyRelu { slope } => x.max(0.0) + f64::from(slope) * x.min(0.0),
        Activation::Clip { min, max } => x.max(f64::from(min)).min(f64::from(max)),
        Activation::Sigmoid => sigmoid(x),
        Activation::HardSigmoid { alpha, beta } => (f64::from(alpha) * x + f64::from(beta)).clamp(0.0, 1.0),
        Activation::HardSwish => x * (x / 6.0 + 0.5).clamp(0.0, 1.0),
        Activation::Swish { alpha } => x * sigmoid(f64::from(alpha) * x),
        Activation::Gelu => x * (1.0 + erf(x / 2f64.sqrt())) / 2.0,
        Activation::GeluTanh => {
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3));
            x * (1.0 + inner.tanh()) / 2.0
        }
        Activation::Tanh => x.tanh(),
    }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// The error function by its Taylor series, for small arguments.
fn erf(x: f64) -> f64 {
    let (mut term, mut sum) = (x, x);
    for k in 1..200 {
        term *= -x * x / f64::from(k);
        sum += term / f64::from(2 * k + 1);
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}

/// Pixel and tap of a window along each spatial axis, for taps inside the image.
fn inside(window: &Window, input: &Tensor, at: &[usize]) -> Vec<(Vec<usize>, Vec<usize>)> {
    let axes = input.dims.len() - 2;
    let mut found = vec![(Vec::new(), Vec::new())];
    for axis in 0..axes {
        let triple = axis + 3 - axes;
        let along = |tap: usize| {
            let begin = at[axis + 1] * window.strides[triple] + tap * window.dilations[triple];
            begin.checked_sub(window.pads.before[triple]).filter(|pixel| *pixel < input.dims[axis + 1])
        };
        let taps: Vec<_> = (0..window.kernel[triple]).filter_map(|tap| Some((along(tap)?, tap))).collect();
        let longer = |(pixel, tap): &(Vec<usize>, Vec<usize>)| {
            let (pixel, tap) = (pixel.clone(), tap.clone());
            taps.iter()
                .map(move |more| ([&pixel[..], &[more.0]].concat(), [&tap[..], &[more.1]].concat()))
                .collect::<Vec<_>>()
        };
        found = found.iter().flat_map(longer).collect();
    }
    found
}

fn taps(window: &Window, input: &Tensor, at: &[usize]) -> Vec<f64> {
    let channel = at[at.len() - 1];
    let element = |pixel: Vec<usize>| input.at(&[&at[..1], &pixel, &[channel]].concat());
    inside(window, input, at).into_iter().map(|(pixel, _)| element(pixel)).collect()
}

fn average(pool: &AveragePool, input: &Tensor, at: &[usize]) -> f64 {
    let taps = taps(&pool.window, input, at);
    let count = if pool.count_include_pad { pool.window.kernel.iter().product() } else { taps.len() };
    taps.iter().sum::<f64>() / count as f64
}

fn convolve(conv: &Conv, input: &Tensor, weight: &Tensor, at: &[usize]) -> f64 {
    let (channels, filters) = (weight.dims[1], weight.dims[0] / conv.groups);
    let (batch, filter) = (&at[..1], at[at.len() - 1]);
    let first = filter / filters * channels;
    let term = |(pixel, tap): (Vec<usize>, Vec<usize>)| {
        let element = |c: usize| input.at(&[batch, &pixel, &[first + c]].concat());
        (0..channels).map(|c| element(c) * weight.at(&[&[filter, c][..], &tap].concat())).sum::<f64>()
    };
    inside(&conv.window, input, at).into_iter().map(term).sum()
}

fn product(left: &Tensor, right: &Tensor, at: &[usize]) -> f64 {
    let (batch, [row, column]) = (&at[..at.len() - 2], [at[at.len() - 2], at[at.len() - 1]]);
    let depth = right.dims[right.dims.len() - 2];
    let element = |tensor: &Tensor, row: usize, column: usize| tensor.broadcast_at(&[batch, &[row, column]].concat());
    // A matrix of one row or column is no broadcast: its index is 0 anyway.
    (0..depth).map(|k| element(left, row, k) * element(right, k, column)).sum()
}

fn along(input: &Tensor, axis: usize, at: &[usize]) -> Vec<f64> {
    let mut at = at.to_vec();
    (0..input.dims[axis])
        .map(|k| {
            at[axis] = k;
            input.at(&at)
        })
        .collect()
}

/// A position of the output as one of the input, 0 along the axes that were taken out.
fn restored(input: &Tensor, at: &[usize], axes: &[usize], keep_dims: bool) -> Vec<usize> {
    if keep_dims {
        return at.to_vec();
    }
    let mut kept = at.iter();
    (0..input.dims.len()).map(|axis| if axes.contains(&axis) { 0 } else { *kept.next().unwrap() }).collect()
}

/// The elements that are reduced to the output's at `at`.
fn gathered(input: &Tensor, axes: &[usize], at: &[usize]) -> Vec<f64> {
    let sizes: Vec<usize> = axes.iter().map(|axis| input.dims[*axis]).collect();
    let count = sizes.iter().product::<usize>();
    (0..count)
        .map(|index| {
            let mut from = at.to_vec();
            for (axis, k) in axes.iter().zip(position(&sizes, index)) {
                from[*axis] = k;
            }
            input.at(&from)
        })
        .collect()
}

fn reduced(reduction: Reduction, values: &[f64]) -> f64 {
    let sum = |map: fn(f64) -> f64| values.iter().map(|x| map(*x)).sum::<f64>();
    match reduction {
        Reduction::Sum => sum(|x| x),
        Reduction::Mean => sum(|x| x) / values.len() as f64,
        Reduction::Max => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        Reduction::Min => values.iter().copied().fold(f64::INFINITY, f64::min),
        Reduction::Prod => values.iter().product(),
        Reduction::L1 => sum(f64::abs),
        Reduction::L2 => sum(|x| x * x).sqrt(),
        Reduction::LogSum => sum(|x| x).ln(),
        Reduction::LogSumExp => sum(f64::exp).ln(),
        Reduction::SumSquare => sum(|x| x * x),
    }
}
