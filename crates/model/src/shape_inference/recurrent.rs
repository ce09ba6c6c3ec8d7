//! Dimensions of recurrent layers, and the check that all their operands fit together.

use insula_core::DType;

use crate::error::{LoadError, LoadResult};
use crate::graph::{Dim, TensorType};
use crate::op::{Recurrent, RecurrentInputs};
use crate::shape_inference::{Dims, is_arithmetic, rows_meet, shown};

pub(super) fn recurrent(layer: &Recurrent, inputs: &[&TensorType]) -> LoadResult<TensorType> {
    let RecurrentInputs { bias, lengths, hidden, cell, peepholes } = layer.inputs;
    let [input, weight, recurrent, more @ ..] = inputs else {
        return Err(LoadError::malformed(format!("it has {} inputs, expected at least 3", inputs.len())));
    };
    let (&[outer, inner, Dim::Fixed(features)], &[_, _, Dim::Fixed(size)]) = (&input.dims[..], &recurrent.dims[..])
    else {
        return Err(LoadError::malformed(format!(
            "its input has shape {} and its recurrence weight {}, expected 3 dimensions",
            shown(&input.dims),
            shown(&recurrent.dims)
        )));
    };
    if !is_arithmetic(input.dtype) {
        return Err(LoadError::unsupported(format!(
            "its input has type {}; recurrent layers are supported on FP32 and FP16",
            input.dtype
        )));
    }
    let (steps, batch) = if layer.batch_first { (inner, outer) } else { (outer, inner) };
    let Dim::Fixed(steps) = steps else { return Err(rows_meet("a recurrent layer runs along it")) };
    let (directions, rows) = (Dim::Fixed(layer.directions.len()), layer.cell.gates() * size);
    let fixed = Dim::Fixed;
    let states = if layer.batch_first { [batch, directions, fixed(size)] } else { [directions, batch, fixed(size)] };
    check("weight", weight, input.dtype, &[directions, fixed(rows), fixed(features)])?;
    check("recurrence weight", recurrent, input.dtype, &[directions, fixed(rows), fixed(size)])?;
    let expected: [(bool, &str, DType, &[Dim]); 5] = [
        (bias, "bias", input.dtype, &[directions, fixed(2 * rows)]),
        (lengths, "list of lengths", DType::Int32, &[batch]),
        (hidden, "initial state", input.dtype, &states),
        (cell, "initial cell", input.dtype, &states),
        (peepholes, "peephole weight", input.dtype, &[directions, fixed(3 * size)]),
    ];
    let mut more = more.iter();
    for (_, name, dtype, dims) in expected.into_iter().filter(|(there, ..)| *there) {
        let found = more.next().ok_or_else(|| LoadError::malformed(format!("its {name} is missing")))?;
        check(name, found, dtype, dims)?;
    }
    let steps = fixed(steps + layer.cell.last_states());
    let dims: Dims = match layer.batch_first {
        true => [batch, steps, directions, fixed(size)].into_iter().collect(),
        false => [steps, directions, batch, fixed(size)].into_iter().collect(),
    };
    Ok(TensorType { dtype: input.dtype, dims })
}

fn check(name: &str, found: &TensorType, dtype: DType, dims: &[Dim]) -> LoadResult<()> {
    if found.dtype == dtype && found.dims[..] == *dims {
        return Ok(());
    }
    Err(LoadError::malformed(format!(
        "its {name} is {} {}, expected {dtype} {}",
        found.dtype,
        shown(&found.dims),
        shown(dims)
    )))
}
