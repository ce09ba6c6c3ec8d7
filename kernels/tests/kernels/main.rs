//! Each kernel against its definition in double precision, with AVX2 and without, and against itself on parts of its work.
#![cfg(test)]

mod arg;
mod conv;
mod conv_transpose;
mod cumulative;
mod elementwise;
mod gemm;
mod normalise;
mod numbers;
mod pool;
mod product;
mod recurrent;
mod reduce;
mod sampling;
mod softmax;
mod typed;
mod unary;
