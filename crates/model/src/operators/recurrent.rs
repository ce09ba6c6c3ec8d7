//! RNN, GRU and LSTM: one layer each, whose outputs are slices of what it writes.

use smallvec::{SmallVec, smallvec};

use crate::error::{LoadError, LoadResult};
use crate::graph::{Dim, ValueId};
use crate::op::movement::{AxisSlice, Movement};
use crate::op::{GateFunction, Op, Recurrent, RecurrentCell, RecurrentDirection, RecurrentInputs};
use crate::operators::{Item, NodeImport};
use crate::shape_inference::shown;

pub(super) fn rnn(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    layer(node, RecurrentCell::Plain)
}

pub(super) fn gru(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let linear_before_reset = node.attributes.flag("linear_before_reset", false)?;
    layer(node, RecurrentCell::Gru { linear_before_reset })
}

pub(super) fn lstm(node: &mut NodeImport<'_>) -> LoadResult<Item> {
    let input_forget = node.attributes.flag("input_forget", false)?;
    layer(node, RecurrentCell::Lstm { input_forget })
}

fn layer(node: &mut NodeImport<'_>, cell: RecurrentCell) -> LoadResult<Item> {
    let mut inputs: SmallVec<[ValueId; 8]> = smallvec![node.value(0)?, node.value(1)?, node.value(2)?];
    let more = [3, 4, 5, 6, 7].map(|index| node.optional(index));
    let mut there = [false; 5];
    for (there, more) in there.iter_mut().zip(more) {
        if let Some(more) = more? {
            *there = true;
            inputs.push(more);
        }
    }
    let [bias, lengths, hidden, cell_state, peepholes] = there;
    check_hidden_size(node, inputs[2])?;
    let layer = Recurrent {
        cell,
        directions: directions(node, cell)?,
        batch_first: node.opset >= 14 && node.attributes.flag("layout", false)?,
        clip: node.attributes.float("clip")?,
        inputs: RecurrentInputs { bias, lengths, hidden, cell: cell_state, peepholes },
    };
    let batch_first = layer.batch_first;
    let all = node.compute(Op::Recurrent(layer), &inputs)?;
    let axis = usize::from(batch_first);
    let dims = node.dims(all);
    let Dim::Fixed(written) = dims[axis] else {
        return Err(LoadError::malformed(format!("its output has shape {}", shown(&dims))));
    };
    let steps = written - cell.last_states();
    for state in 0..cell.last_states() {
        let last = steps_of(node, all, axis, steps + state, 1)?;
        let mut dims = node.dims(last);
        dims.remove(axis);
        let last = node.view(last, dims)?;
        node.more_outputs.push(Item::Value(last));
    }
    steps_of(node, all, axis, 0, steps).map(Item::Value)
}

fn steps_of(node: &mut NodeImport<'_>, all: ValueId, axis: usize, start: usize, size: usize) -> LoadResult<ValueId> {
    node.compute(Op::Move(Movement::Slice(smallvec![AxisSlice { axis, start, step: 1, size }])), &[all])
}

/// Refuses a `hidden_size` that is not that of the recurrence weight.
fn check_hidden_size(node: &NodeImport<'_>, weight: ValueId) -> LoadResult<()> {
    let Some(declared) = node.attributes.int("hidden_size")? else { return Ok(()) };
    let dims = node.dims(weight);
    match dims.last() {
        Some(Dim::Fixed(size)) if usize::try_from(declared) == Ok(*size) => Ok(()),
        _ => Err(LoadError::malformed(format!(
            "attribute `hidden_size` is {declared}, but the recurrence weight has shape {}",
            shown(&dims)
        ))),
    }
}

fn directions(node: &NodeImport<'_>, cell: RecurrentCell) -> LoadResult<SmallVec<[RecurrentDirection; 2]>> {
    let reverse: &[bool] = match node.attributes.text("direction")?.unwrap_or("forward") {
        "forward" => &[false],
        "reverse" => &[true],
        "bidirectional" => &[false, true],
        _ => {
            return Err(LoadError::malformed("attribute `direction` must be forward, reverse or bidirectional"));
        }
    };
    let count = match cell {
        RecurrentCell::Plain => 1,
        RecurrentCell::Gru { .. } => 2,
        RecurrentCell::Lstm { .. } => 3,
    };
    let functions = functions(node, cell, count * reverse.len())?;
    let direction = |(reverse, functions): (&bool, &[GateFunction])| {
        let mut all = [GateFunction::Tanh; 3];
        all[..count].copy_from_slice(functions);
        RecurrentDirection { reverse: *reverse, functions: all }
    };
    Ok(reverse.iter().zip(functions.chunks_exact(count)).map(direction).collect())
}

/// `count` functions: those named, or the cell's own for each direction.
fn functions(node: &NodeImport<'_>, cell: RecurrentCell, count: usize) -> LoadResult<Vec<GateFunction>> {
    let (alphas, betas) = (node.attributes.floats("activation_alpha")?, node.attributes.floats("activation_beta")?);
    let Some(names) = node.attributes.texts("activations")? else {
        let own: &[GateFunction] = match cell {
            RecurrentCell::Plain => &[GateFunction::Tanh],
            RecurrentCell::Gru { .. } => &[GateFunction::Sigmoid, GateFunction::Tanh],
            RecurrentCell::Lstm { .. } => &[GateFunction::Sigmoid, GateFunction::Tanh, GateFunction::Tanh],
        };
        return Ok(own.iter().copied().cycle().take(count).collect());
    };
    if names.len() != count {
        return Err(LoadError::malformed(format!("attribute `activations` names {}, expected {count}", names.len())));
    }
    // each function takes the next value of a kind that it has
    let mut alphas = alphas.unwrap_or_default().iter().copied();
    let mut betas = betas.unwrap_or_default().iter().copied();
    let mut alpha = |default: f32| alphas.next().unwrap_or(default);
    let mut beta = |default: f32| betas.next().unwrap_or(default);
    let mut function = |name: &str| {
        Ok(match name.to_ascii_lowercase().as_str() {
            "relu" => GateFunction::Relu,
            "tanh" => GateFunction::Tanh,
            "sigmoid" => GateFunction::Sigmoid,
            "affine" => GateFunction::Affine(alpha(1.0), beta(0.0)),
            "leakyrelu" => GateFunction::LeakyRelu(alpha(0.01)),
            "thresholdedrelu" => GateFunction::ThresholdedRelu(alpha(1.0)),
            "scaledtanh" => GateFunction::ScaledTanh(alpha(1.0), beta(1.0)),
            "hardsigmoid" => GateFunction::HardSigmoid(alpha(0.2), beta(0.5)),
            "elu" => GateFunction::Elu(alpha(1.0)),
            "softsign" => GateFunction::Softsign,
            "softplus" => GateFunction::Softplus,
            _ => {
                return Err(LoadError::unsupported(format!(
                    "activation {}; the eleven that ONNX names for recurrent layers are supported",
                    crate::error::quoted(name)
                )));
            }
        })
    };
    names.into_iter().map(&mut function).collect()
}
