//! The loop behind every operation of two tensors of any type: for each row of the output a flat run over what meets there.

use std::ops::Range;

use super::Broadcast;

/// Writes `function` of the elements of `a` and `b` that meet in `rows` of the output; all slices are whole tensors.
pub(super) fn each_pair<A: Copy, B: Copy, O>(
    broadcast: &Broadcast,
    rows: Range<usize>,
    (a, b): (&[A], &[B]),
    out: &mut [O],
    function: impl Fn(A, B) -> O,
) {
    let columns = broadcast.columns();
    let [a_step, b_step] = broadcast.column_strides();
    for row in rows {
        let [a_start, b_start] = broadcast.offsets(row);
        let out = &mut out[row * columns..(row + 1) * columns];
        match (a_step, b_step) {
            (0, 0) => {
                for out in out {
                    *out = function(a[a_start], b[b_start]);
                }
            }
            (0, _) => {
                let left = a[a_start];
                for (out, b) in out.iter_mut().zip(&b[b_start..b_start + columns]) {
                    *out = function(left, *b);
                }
            }
            (_, 0) => {
                let right = b[b_start];
                for (out, a) in out.iter_mut().zip(&a[a_start..a_start + columns]) {
                    *out = function(*a, right);
                }
            }
            (_, _) => {
                let pairs = a[a_start..a_start + columns].iter().zip(&b[b_start..b_start + columns]);
                for (out, (a, b)) in out.iter_mut().zip(pairs) {
                    *out = function(*a, *b);
                }
            }
        }
    }
}
