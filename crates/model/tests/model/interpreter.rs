//! Runs plans, slowly and plainly, in an arena of real bytes: what the tests compare passes and operators with. It computes in
//! f64 and rounds when it stores. It is also the folder of constants that the tests hand in.

use half::f16;
use insula_core::{DType, Result, Shape};
use insula_model::op::sampling::{Coordinates, Interpolation, Rounding};
use insula_model::op::{ArgExtreme, Comparison, Elementwise, Function, Movement, Reduce, Reduction, Sampling};
use insula_model::{
    Activation, BinaryOp, Binding, Constant, ConstantFolder, LogicalPlan, Op, Operand, Source, Step, Window,
};

/// A tensor in numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    pub dims: Vec<usize>,
    pub data: Vec<f64>,
}

impl Tensor {
    pub fn new(dims: &[usize], data: Vec<f64>) -> Tensor {
        assert_eq!(dims.iter().product::<usize>(), data.len());
        Tensor { dims: dims.to_vec(), data }
    }

    /// The element at `index`, where dimensions of size 1 stretch and missing ones are in front.
    fn stretched(&self, index: &[usize]) -> f64 {
        let index = &index[index.len() - self.dims.len()..];
        let position = self.dims.iter().zip(index).fold(0, |position, (&dim, &at)| position * dim + at.min(dim - 1));
        self.data[position]
    }
}

/// Runs `plan` on `inputs`. The arena starts full of NaN patterns, so what is read unwritten shows.
pub fn run(plan: &LogicalPlan, constants: &[Constant], inputs: &[Tensor]) -> Vec<Tensor> {
    let mut arena = vec![0xffu8; plan.arena_bytes];
    let input_bytes: Vec<Vec<u8>> =
        inputs.iter().zip(&plan.inputs).map(|(tensor, input)| encode(input.dtype, &tensor.data)).collect();
    for step in &plan.steps {
        let read = |operand: &Operand| {
            let bytes = source_bytes(operand.source, plan, &arena, constants, &input_bytes);
            Tensor::new(operand.shape.dims(), decode(operand.dtype, bytes))
        };
        let operands: Vec<Tensor> = step.inputs.iter().map(read).collect();
        let residual = step.epilogue.residual.as_ref().map(read);
        let buffer = &plan.buffers[step.output.index()];
        let mut output = compute(&step.op, &operands.iter().collect::<Vec<_>>(), buffer.shape.dims());
        finish(step, &mut output, constants, residual.as_ref());
        arena[buffer.offset..buffer.offset + buffer.bytes].copy_from_slice(&encode(buffer.dtype, &output.data));
    }
    let bound = |binding| match binding {
        Binding::Buffer(id) => Source::Buffer(id),
        Binding::Input(index) => Source::Input(index),
        Binding::Constant(id) => Source::Constant(id),
    };
    plan.outputs
        .iter()
        .map(|output| {
            let bytes = source_bytes(bound(output.binding), plan, &arena, constants, &input_bytes);
            Tensor::new(output.shape.dims(), decode(output.dtype, bytes))
        })
        .collect()
}

/// Computes constants by interpreting.
#[derive(Debug)]
pub struct Folder;

impl ConstantFolder for Folder {
    fn fold(&self, op: &Op, inputs: &[&Constant]) -> Result<Option<Constant>> {
        let tensors: Vec<Tensor> = inputs
            .iter()
            .map(|constant| Tensor::new(constant.shape().dims(), decode(constant.dtype(), constant.bytes())))
            .collect();
        let dims = match op {
            Op::Binary(_) => {
                let rank = tensors.iter().map(|tensor| tensor.dims.len()).max().unwrap();
                let at = |tensor: &Tensor, axis: usize| {
                    (axis + tensor.dims.len()).checked_sub(rank).map_or(1, |axis| tensor.dims[axis])
                };
                (0..rank).map(|axis| tensors.iter().map(|tensor| at(tensor, axis)).max().unwrap()).collect()
            }
            Op::Activation(_) | Op::Cast { .. } => tensors[0].dims.clone(),
            _ => return Ok(None),
        };
        let dtype = if let Op::Cast { to } = op { *to } else { inputs[0].dtype() };
        let output = compute(op, &tensors.iter().collect::<Vec<_>>(), &dims);
        Constant::new(dtype, Shape::new(&dims)?, &encode(dtype, &output.data)).map(Some)
    }
}

fn source_bytes<'a>(
    source: Source,
    plan: &LogicalPlan,
    arena: &'a [u8],
    constants: &'a [Constant],
    inputs: &'a [Vec<u8>],
) -> &'a [u8] {
    match source {
        Source::Input(index) => &inputs[index as usize],
        Source::Constant(id) => constants[id.index()].bytes(),
        Source::Buffer(id) => {
            let buffer = &plan.buffers[id.index()];
            &arena[buffer.offset..buffer.offset + buffer.bytes]
        }
    }
}

fn finish(step: &Step, output: &mut Tensor, constants: &[Constant], residual: Option<&Tensor>) {
    if let Some(bias) = step.epilogue.bias {
        let bias: &[f32] = constants[bias.index()].typed().unwrap();
        output.data.iter_mut().enumerate().for_each(|(index, value)| *value += f64::from(bias[index % bias.len()]));
    }
    if let Some(residual) = residual {
        assert_eq!(residual.dims, output.dims);
        output.data.iter_mut().zip(&residual.data).for_each(|(value, residual)| *value += residual);
    }
    if let Some(activation) = step.epilogue.activation {
        output.data.iter_mut().for_each(|value| *value = activate(activation, *value));
    }
}

fn compute(op: &Op, inputs: &[&Tensor], dims: &[usize]) -> Tensor {
    let count = dims.iter().product();
    let each = |value: &dyn Fn(&[usize]) -> f64| (0..count).map(|position| value(&unravel(position, dims))).collect();
    let data = match op {
        Op::Conv(conv) => each(&|at| convolve(&conv.window, conv.groups, inputs[0], inputs[1], at)),
        Op::MaxPool(window) => each(&|at| pixels(window, inputs[0], at).into_iter().fold(f64::NEG_INFINITY, f64::max)),
        Op::AveragePool(pool) => each(&|at| {
            let found = pixels(&pool.window, inputs[0], at);
            let all = pool.window.kernel.iter().product::<usize>();
            found.iter().sum::<f64>() / if pool.count_include_pad { all } else { found.len() } as f64
        }),
        Op::MatMul => each(&|at| product(inputs[0], inputs[1], at)),
        Op::Binary(op) => each(&|at| {
            let (left, right) = (inputs[0].stretched(at), inputs[1].stretched(at));
            match op {
                BinaryOp::Add => left + right,
                BinaryOp::Sub => left - right,
                BinaryOp::Mul => left * right,
                BinaryOp::Div => left / right,
                BinaryOp::Pow => left.powf(right),
                BinaryOp::Mod => left - (left / right).floor() * right,
                BinaryOp::Fmod => left % right,
                BinaryOp::Max => left.max(right),
                BinaryOp::Min => left.min(right),
                BinaryOp::PRelu if left < 0.0 => left * right,
                BinaryOp::PRelu => left,
            }
        }),
        Op::Activation(activation) => inputs[0].data.iter().map(|value| activate(*activation, *value)).collect(),
        Op::Elementwise(op) => each(&|at| elementwise(*op, inputs, at)),
        Op::Softmax { axis, logarithm: false } => each(&|at| {
            let line = line(inputs[0], *axis, at);
            let largest = line.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            (line[at[*axis]] - largest).exp() / line.iter().map(|value| (value - largest).exp()).sum::<f64>()
        }),
        Op::ArgExtreme(ArgExtreme { largest: true, axis, keep_dims, select_last_index }) => each(&|at| {
            let mut at = at.to_vec();
            if !keep_dims {
                at.insert(*axis, 0);
            }
            let mut best = 0;
            let line = line(inputs[0], *axis, &at);
            for (index, value) in line.iter().enumerate() {
                if *value > line[best] || (*select_last_index && *value == line[best]) {
                    best = index;
                }
            }
            best as f64
        }),
        Op::Reduce(Reduce { reduction, axes, keep_dims }) => {
            each(&|at| reduced(*reduction, &gathered(inputs[0], axes, *keep_dims, at)))
        }
        Op::Normalize { centred, epsilon } => each(&|at| {
            let line = line(inputs[0], at.len() - 1, at);
            let count = line.len() as f64;
            let mean = if *centred { line.iter().sum::<f64>() / count } else { 0.0 };
            let square = line.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
            let normal = (line[at[at.len() - 1]] - mean) / (square + f64::from(*epsilon)).sqrt();
            let operand = |index: usize| inputs.get(index).map(|tensor| tensor.stretched(at));
            normal * operand(1).unwrap_or(1.0) + operand(2).unwrap_or(0.0)
        }),
        Op::Transpose { permutation } => each(&|at| {
            let mut from = at.to_vec();
            permutation.iter().zip(at).for_each(|(&axis, &index)| from[axis] = index);
            inputs[0].stretched(&from)
        }),
        Op::Move(movement) => each(&|at| moved(movement, inputs, at)),
        Op::Sample(sampling) => each(&|at| resized(sampling, inputs[0], at)),
        Op::Cast { to } => {
            let whole = !matches!(to, DType::Fp16 | DType::Fp32);
            inputs[0].data.iter().map(|value| if whole { value.trunc() } else { *value }).collect()
        }
        other => panic!("the tests do not interpret {}", other.name()),
    };
    Tensor::new(dims, data)
}

fn product(left: &Tensor, right: &Tensor, at: &[usize]) -> f64 {
    let (batch, [row, column]) = at.split_at(at.len() - 2) else { unreachable!() };
    let term = |k| left.stretched(&[batch, &[*row, k]].concat()) * right.stretched(&[batch, &[k, *column]].concat());
    (0..*left.dims.last().unwrap()).map(term).sum()
}

fn moved(movement: &Movement, inputs: &[&Tensor], at: &[usize]) -> f64 {
    let mut from = at.to_vec();
    match movement {
        Movement::Slice(slices) => {
            for slice in slices {
                from[slice.axis] = (slice.start as i64 + at[slice.axis] as i64 * slice.step) as usize;
            }
            inputs[0].stretched(&from)
        }
        Movement::Concat { axis } => {
            let fits = |input: &&&Tensor| match from[*axis].checked_sub(input.dims[*axis]) {
                Some(rest) => {
                    from[*axis] = rest;
                    false
                }
                None => true,
            };
            let input = inputs.iter().find(fits).unwrap();
            input.stretched(&from)
        }
        Movement::Pad(pad) => {
            let inside = |axis: usize| {
                let at = at[axis].checked_sub(pad.before[axis])?;
                (at < inputs[0].dims[axis]).then_some(at)
            };
            match (0..at.len()).map(inside).collect::<Option<Vec<usize>>>() {
                Some(from) => inputs[0].stretched(&from),
                None => inputs[1].data[0],
            }
        }
        Movement::Expand { .. } => inputs[0].stretched(at),
        Movement::Gather { axis } => {
            let rank = inputs[1].dims.len();
            let index = inputs[1].stretched(&at[*axis..axis + rank]);
            let index = if index < 0.0 { index + inputs[0].dims[*axis] as f64 } else { index };
            inputs[0].stretched(&[&at[..*axis], &[index as usize], &at[axis + rank..]].concat())
        }
        other => panic!("the tests do not use {other:?}"),
    }
}

fn resized(sampling: &Sampling, input: &Tensor, at: &[usize]) -> f64 {
    let Sampling::Resize(resize) = sampling else { panic!("the tests do not use {sampling:?}") };
    assert_eq!(resize.interpolation, Interpolation::Nearest(Rounding::Floor));
    assert_eq!(resize.coordinates, Coordinates::Asymmetric);
    let mut from = at.to_vec();
    from[resize.axis] = (at[resize.axis] as f64 / resize.scale) as usize;
    input.stretched(&from)
}

fn activate(activation: Activation, value: f64) -> f64 {
    match activation {
        Activation::Relu => value.max(0.0),
        Activation::LeakyRelu { slope } => value.max(0.0) + f64::from(slope) * value.min(0.0),
        Activation::Clip { min, max } => value.max(f64::from(min)).min(f64::from(max)),
        Activation::Sigmoid => sigmoid(value),
        Activation::HardSigmoid { alpha, beta } => (f64::from(alpha) * value + f64::from(beta)).clamp(0.0, 1.0),
        Activation::HardSwish => value * (value / 6.0 + 0.5).clamp(0.0, 1.0),
        Activation::Swish { alpha } => value * sigmoid(f64::from(alpha) * value),
        Activation::Gelu => value * (1.0 + erf(value / 2f64.sqrt())) / 2.0,
        Activation::GeluTanh => {
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (value + 0.044715 * value.powi(3));
            value * (1.0 + inner.tanh()) / 2.0
        }
        Activation::Tanh => value.tanh(),
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

fn function(function: Function, x: f64) -> f64 {
    match function {
        Function::Abs => x.abs(),
        Function::Neg => -x,
        Function::Exp => x.exp(),
        Function::Log => x.ln(),
        Function::Sqrt => x.sqrt(),
        Function::Reciprocal => 1.0 / x,
        Function::Erf => erf(x),
        Function::Round => x.round_ties_even(),
        other => panic!("the tests do not interpret {other:?}"),
    }
}

/// Every operation element by element that is neither arithmetic nor an activation.
fn elementwise(op: Elementwise, inputs: &[&Tensor], at: &[usize]) -> f64 {
    let operand = |index: usize| inputs[index].stretched(at);
    match op {
        Elementwise::Function(op) => function(op, operand(0)),
        Elementwise::Compare(Comparison::Equal) => f64::from(operand(0) == operand(1)),
        Elementwise::Compare(Comparison::Less) => f64::from(operand(0) < operand(1)),
        Elementwise::Compare(Comparison::LessOrEqual) => f64::from(operand(0) <= operand(1)),
        Elementwise::Compare(Comparison::Greater) => f64::from(operand(0) > operand(1)),
        Elementwise::Compare(Comparison::GreaterOrEqual) => f64::from(operand(0) >= operand(1)),
        Elementwise::Where if operand(0) != 0.0 => operand(1),
        Elementwise::Where => operand(2),
        other => panic!("the tests do not interpret {}", other.name()),
    }
}

/// The image's pixel under element `[i, j]` of the window at output pixel `[y, x]`, if that is not padding.
fn pixel(window: &Window, image: &Tensor, [y, x]: [usize; 2], [i, j]: [usize; 2]) -> Option<[usize; 2]> {
    let row = (y * window.strides[1] + i * window.dilations[1]).checked_sub(window.pads.before[1])?;
    let column = (x * window.strides[2] + j * window.dilations[2]).checked_sub(window.pads.before[2])?;
    (row < image.dims[1] && column < image.dims[2]).then_some([row, column])
}

fn pixels(window: &Window, image: &Tensor, at: &[usize]) -> Vec<f64> {
    let mut found = Vec::new();
    for i in 0..window.kernel[1] {
        for j in 0..window.kernel[2] {
            if let Some([row, column]) = pixel(window, image, [at[1], at[2]], [i, j]) {
                found.push(image.stretched(&[at[0], row, column, at[3]]));
            }
        }
    }
    found
}

fn convolve(window: &Window, groups: usize, image: &Tensor, weight: &Tensor, at: &[usize]) -> f64 {
    let (outputs, per_group) = (weight.dims[0], weight.dims[1]);
    let first = at[3] / (outputs / groups) * per_group;
    let mut sum = 0.0;
    for i in 0..window.kernel[1] {
        for j in 0..window.kernel[2] {
            let Some([row, column]) = pixel(window, image, [at[1], at[2]], [i, j]) else { continue };
            for channel in 0..per_group {
                sum +=
                    image.stretched(&[at[0], row, column, first + channel]) * weight.stretched(&[at[3], channel, i, j]);
            }
        }
    }
    sum
}

fn line(input: &Tensor, axis: usize, at: &[usize]) -> Vec<f64> {
    let mut at = at.to_vec();
    (0..input.dims[axis])
        .map(|index| {
            at[axis] = index;
            input.stretched(&at)
        })
        .collect()
}

/// The elements that are reduced to the output's at `at`.
fn gathered(input: &Tensor, axes: &[usize], keep_dims: bool, at: &[usize]) -> Vec<f64> {
    let mut kept = at.iter();
    let from: Vec<Option<usize>> = (0..input.dims.len())
        .map(|axis| match axes.contains(&axis) {
            true => {
                if keep_dims {
                    kept.next();
                }
                None
            }
            false => kept.next().copied(),
        })
        .collect();
    let matching = (0..input.data.len()).filter(|&position| {
        unravel(position, &input.dims)
            .iter()
            .zip(&from)
            .all(|(index, wanted)| wanted.is_none_or(|wanted| wanted == *index))
    });
    matching.map(|position| input.data[position]).collect()
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

fn unravel(mut position: usize, dims: &[usize]) -> Vec<usize> {
    let mut index = vec![0; dims.len()];
    for (axis, dim) in dims.iter().enumerate().rev() {
        index[axis] = position % dim;
        position /= dim;
    }
    index
}

pub fn encode(dtype: DType, data: &[f64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for &value in data {
        match dtype {
            DType::Fp32 => bytes.extend((value as f32).to_le_bytes()),
            DType::Fp16 => bytes.extend(f16::from_f64(value).to_le_bytes()),
            DType::Int64 => bytes.extend((value as i64).to_le_bytes()),
            DType::Int32 => bytes.extend((value as i32).to_le_bytes()),
            DType::Uint8 | DType::Bool => bytes.extend((value as u8).to_le_bytes()),
            other => panic!("the tests do not use {other}"),
        }
    }
    bytes
}

pub fn decode(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    let size = dtype.size().unwrap();
    let value = |bytes: &[u8]| match dtype {
        DType::Fp32 => f64::from(f32::from_le_bytes(bytes.try_into().unwrap())),
        DType::Fp16 => f16::from_le_bytes(bytes.try_into().unwrap()).to_f64(),
        DType::Int64 => i64::from_le_bytes(bytes.try_into().unwrap()) as f64,
        DType::Int32 => f64::from(i32::from_le_bytes(bytes.try_into().unwrap())),
        DType::Uint8 | DType::Bool => f64::from(bytes[0]),
        other => panic!("the tests do not use {other}"),
    };
    bytes.chunks_exact(size).map(value).collect()
}
