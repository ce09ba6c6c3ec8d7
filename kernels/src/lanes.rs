//! Folding many values into one in eight lanes: value `i` goes to lane `i % 8`, then the lanes are folded in a fixed order.
//! So a fold's bits depend on its values alone. Softmax and means use it.

const LANES: usize = 8;

/// One axis of a tensor and how many elements lie inside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Strip {
    /// The axis's size.
    pub axis: usize,
    /// Elements between neighbours along the axis.
    pub inner: usize,
}

/// The sum of `values`.
#[inline(always)]
pub(crate) fn fold_sum(values: &[f32]) -> f32 {
    let mut lanes = [0.0; LANES];
    add_to_lanes(&mut lanes, values);
    finish_sum(lanes)
}

/// Adds `values` to `lanes`, the first to lane 0.
#[inline(always)]
pub(crate) fn add_to_lanes(lanes: &mut [f32; LANES], values: &[f32]) {
    let (rows, rest) = values.as_chunks::<LANES>();
    for row in rows {
        for (lane, x) in lanes.iter_mut().zip(row) {
            *lane += x;
        }
    }
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane += x;
    }
}

/// The sum of the lanes, by halves.
#[inline(always)]
pub(crate) fn finish_sum(lanes: [f32; LANES]) -> f32 {
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

/// The largest of `values`; NaN if one of them is NaN, negative infinity if there are none.
#[inline(always)]
pub(crate) fn fold_max(values: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (rows, rest) = values.as_chunks::<LANES>();
    for row in rows {
        for (lane, x) in lanes.iter_mut().zip(row) {
            *lane = larger(*lane, *x);
        }
    }
    rest.iter().chain(&lanes).fold(f32::NEG_INFINITY, |max, x| larger(max, *x))
}

#[inline(always)]
fn larger(max: f32, x: f32) -> f32 {
    if x > max || x.is_nan() { x } else { max }
}
