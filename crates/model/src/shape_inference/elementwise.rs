//! Types and dimensions of what works element by element: which types each operation has, and numpy's broadcasting.

use insula_core::DType;

use crate::error::{LoadError, LoadResult};
use crate::graph::TensorType;
use crate::op::{Bitwise, Elementwise, Function};
use crate::shape_inference::{broadcast, check_same_types, is_float, is_integer, is_number};

/// What `op` makes of `inputs`.
pub(super) fn infer(op: Elementwise, inputs: &[&TensorType]) -> LoadResult<TensorType> {
    let first = inputs[0];
    let refused = |supported: &str| {
        let name = op.name();
        Err(LoadError::unsupported(format!("input 0 has type {}; {name} is supported on {supported}", first.dtype)))
    };
    match op {
        Elementwise::Function(Function::Abs | Function::Neg | Function::Sign) => match is_number(first.dtype) {
            true => Ok(first.clone()),
            false => refused("numbers"),
        },
        Elementwise::Function(_) => match is_float(first.dtype) {
            true => Ok(first.clone()),
            false => refused("floats"),
        },
        Elementwise::Compare(_) => {
            check_same_types(inputs, 0)?;
            match first.dtype {
                DType::Bytes => refused("numbers and BOOL"),
                _ => Ok(TensorType { dtype: DType::Bool, dims: broadcast(&first.dims, &inputs[1].dims)? }),
            }
        }
        Elementwise::Bitwise(bitwise) => {
            check_same_types(inputs, 0)?;
            let logical = matches!(bitwise, Bitwise::And | Bitwise::Or | Bitwise::Xor) && first.dtype == DType::Bool;
            match is_integer(first.dtype) || logical {
                true => Ok(TensorType { dtype: first.dtype, dims: broadcast(&first.dims, &inputs[1].dims)? }),
                false => refused("integers, And, Or and Xor on BOOL too"),
            }
        }
        Elementwise::Where => choice(inputs),
        Elementwise::BitCast { to } => match first.dtype.size().is_some() && first.dtype.size() == to.size() {
            true => Ok(TensorType { dtype: to, dims: first.dims.clone() }),
            false => refused(&format!("types of the size of {to}")),
        },
    }
}

fn choice(inputs: &[&TensorType]) -> LoadResult<TensorType> {
    let [condition, chosen, otherwise] = inputs else {
        return Err(LoadError::malformed("a choice has three inputs"));
    };
    if condition.dtype != DType::Bool {
        return Err(LoadError::malformed(format!("input 0 has type {}, a condition is BOOL", condition.dtype)));
    }
    check_same_types(inputs, 1)?;
    if chosen.dtype == DType::Bytes {
        return Err(LoadError::unsupported("its operands have type BYTES; Where is supported on numbers and BOOL"));
    }
    let dims = broadcast(&condition.dims, &broadcast(&chosen.dims, &otherwise.dims)?)?;
    Ok(TensorType { dtype: chosen.dtype, dims })
}
