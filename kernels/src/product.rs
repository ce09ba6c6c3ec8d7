//! Plain matrix products and convolutions of integers and double-precision floats. Integers wrap around, as ONNX's do;
//! double precision is summed in the order of k. They are right for every number of rows, and not tuned: the fast kernels are
//! for halves and floats.

use std::ops::Range;

use bytemuck::Pod;

use crate::conv::ConvShape;

/// A number that is multiplied and added exactly as its type does it.
pub trait Multiplicand: Pod {
    /// `self + a * b`.
    fn add_product(self, a: Self, b: Self) -> Self;
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Multiplicand for $type {
            #[inline(always)]
            fn add_product(self, a: $type, b: $type) -> $type {
                self.wrapping_add(a.wrapping_mul(b))
            }
        }
    )*};
}
integers!(i32, i64, u32, u64);

impl Multiplicand for f64 {
    #[inline(always)]
    fn add_product(self, a: f64, b: f64) -> f64 {
        self + a * b
    }
}

/// Computes `rows` of C = A B, where A has rows of `depth` and B `depth` rows of `columns` elements.
///
/// # Panics
///
/// When the parts do not fit together: a defect of the caller.
pub fn product<T: Multiplicand>(rows: Range<usize>, (depth, columns): (usize, usize), a: &[T], b: &[T], out: &mut [T]) {
    assert_eq!(b.len(), depth * columns, "a B of {depth} x {columns}");
    for row in rows {
        let to = &mut out[row * columns..(row + 1) * columns];
        to.fill(T::zeroed());
        for (a, b) in a[row * depth..(row + 1) * depth].iter().zip(b.chunks_exact(columns.max(1))) {
            add_scaled(to, *a, b);
        }
    }
}

#[inline(always)]
fn add_scaled<T: Multiplicand>(to: &mut [T], a: T, b: &[T]) {
    for (to, b) in to.iter_mut().zip(b) {
        *to = to.add_product(a, *b);
    }
}

/// Lays out the weights of a convolution, `[filters, channels / groups, kernel..]`, as [`convolve`] takes them:
/// `[groups][taps][channels / groups][filters / groups]`.
///
/// # Panics
///
/// When the parts do not fit together: a defect of the caller.
pub fn arrange_filters<T: Multiplicand>(shape: &ConvShape, weights: &[T], to: &mut [T]) {
    let (taps, channels) = (shape.window.taps(), shape.channels / shape.groups);
    let filters = shape.filters / shape.groups;
    assert!(weights.len() == to.len() && to.len() == shape.filters * channels * taps, "weights of a convolution");
    for (index, to) in to.iter_mut().enumerate() {
        let (filter, rest) = (index % filters, index / filters);
        let (channel, rest) = (rest % channels, rest / channels);
        let (tap, group) = (rest % taps, rest / taps);
        *to = weights[((group * filters + filter) * channels + channel) * taps + tap];
    }
}

/// Computes the output pixels `rows` of a convolution whose `filters` [`arrange_filters`] has laid out. `input` and `out` are
/// whole batches, channels last. Padding is zeros.
///
/// # Panics
///
/// When the parts do not fit together: a defect of the caller.
pub fn convolve<T: Multiplicand>(shape: &ConvShape, rows: Range<usize>, input: &[T], filters: &[T], out: &mut [T]) {
    let window = &shape.window;
    let (channels, columns) = (shape.channels / shape.groups, shape.filters / shape.groups);
    let mut pixel = window.pixel(rows.start);
    for row in rows {
        let to = &mut out[row * shape.filters..(row + 1) * shape.filters];
        to.fill(T::zeroed());
        let [inside_z, inside_y, inside_x]: [Range<usize>; 3] =
            std::array::from_fn(|axis| window.inside(axis, pixel.at[axis]));
        for (kz, ky) in inside_z.flat_map(|kz| inside_y.clone().map(move |ky| (kz, ky))) {
            for kx in inside_x.clone() {
                let taps = [kz, ky, kx];
                let at = std::array::from_fn(|axis| window.position(axis, pixel.at[axis], taps[axis]));
                let from = window.input_pixel(pixel.image, at) * shape.channels;
                let tap = (kz * window.kernel[1] + ky) * window.kernel[2] + kx;
                for (channel, x) in input[from..from + shape.channels].iter().enumerate() {
                    let (group, channel) = (channel / channels, channel % channels);
                    let first = ((group * window.taps() + tap) * channels + channel) * columns;
                    let to = &mut to[group * columns..(group + 1) * columns];
                    add_scaled(to, *x, &filters[first..first + columns]);
                }
            }
        }
        pixel = window.next(pixel);
    }
}
