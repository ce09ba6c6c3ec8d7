//! The choice between two tensors, element by element, under a third. It moves elements of any type and computes nothing.

use std::ops::Range;

use bytemuck::{Pod, cast_slice, cast_slice_mut};

use super::Broadcast;
use crate::element_bits::by_element_size;

/// Writes `rows` of the output (see [`Broadcast::rows`]): the element of `chosen` where `condition` is not 0, else that of
/// `otherwise`. All are whole tensors; elements of the latter two and of `out` have `size` bytes and are aligned to them.
///
/// # Panics
///
/// When the parts do not fit together: a defect of the caller.
pub fn select(
    size: usize,
    broadcast: &Broadcast<3>,
    rows: Range<usize>,
    (condition, chosen, otherwise): (&[u8], &[u8], &[u8]),
    out: &mut [u8],
) {
    by_element_size!(size, T => {
        let operands: (&[T], &[T]) = (cast_slice(chosen), cast_slice(otherwise));
        run(broadcast, rows, condition, operands, cast_slice_mut(out));
    });
}

fn run<T: Pod>(
    broadcast: &Broadcast<3>,
    rows: Range<usize>,
    condition: &[u8],
    (chosen, otherwise): (&[T], &[T]),
    out: &mut [T],
) {
    let columns = broadcast.columns();
    let steps = broadcast.column_strides();
    for row in rows {
        let starts = broadcast.offsets(row);
        let out = &mut out[row * columns..(row + 1) * columns];
        if steps == [1, 1, 1] {
            let range = |start: usize| start..start + columns;
            let operands = chosen[range(starts[1])].iter().zip(&otherwise[range(starts[2])]);
            for (out, (condition, (chosen, otherwise))) in
                out.iter_mut().zip(condition[range(starts[0])].iter().zip(operands))
            {
                *out = if *condition != 0 { *chosen } else { *otherwise };
            }
        } else {
            for (column, out) in out.iter_mut().enumerate() {
                let [at, yes, no] = std::array::from_fn(|operand| starts[operand] + column * steps[operand]);
                *out = if condition[at] != 0 { chosen[yes] } else { otherwise[no] };
            }
        }
    }
}
