//! Routines for one device's arithmetic, shared by all tenants: matrix products, convolutions, poolings and what goes with
//! them, in halves or floats. They know shapes and slices, never graphs, models or tenants; they allocate nothing (scratch
//! is handed in) and keep no state. The exec crate lowers plans to calls of them.
//!
//! Every routine is written once as plain code that is right on any machine, and runs with AVX2, FMA and F16C where the
//! machine has them. Results depend on the operands and the instruction set: never on how many rows are computed at once,
//! nor on where in a tensor a row lies.

pub mod activation;
pub mod arg;
pub mod col2im;
pub mod concat;
pub mod conv;
pub mod conv_transpose;
pub mod convert;
pub mod cumulative;
mod element_bits;
pub mod elementwise;
mod float;
pub mod gather;
pub mod gemm;
pub mod grid_sample;
mod index;
pub mod interpolate;
mod isa;
mod lanes;
mod math;
pub mod non_max_suppression;
pub mod normalise;
mod number;
pub mod one_hot;
pub mod pool;
pub mod probe;
pub mod product;
pub mod recurrent;
pub mod reduce;
pub mod remap;
pub mod reverse;
pub mod roi_align;
pub mod scatter;
pub mod softmax;
pub mod top;
pub mod transpose;
pub mod triangle;
pub mod unary;
pub mod unique;
mod window;

pub use activation::Activation;
pub use float::{Floats, FloatsMut};
pub use index::{IndexError, Indices};
pub use isa::Isa;
pub use lanes::Strip;
pub use number::Number;
pub use window::Window;
