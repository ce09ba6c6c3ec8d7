//! The logical plan of a model for a batch of a fixed number of rows: steps in order, each with its operands, and the place of
//! every intermediate in one arena. It chooses no kernels, packs no weights and holds no memory; devices lower it.
//!
//! Shape of the contract for a device:
//! * every tensor is row-major and dense in the shape its [`Operand`] or [`Buffer`] states; images are `[N, H, W, C]`;
//! * a step reads operands from inputs, constants and arena buffers written by earlier steps, and writes **all** `bytes` of its one
//!   output buffer; the output never overlaps an operand of the same step, nor any buffer still to be read;
//! * then its epilogue, in this order, in f32 and before the one rounding to the buffer's type: `+ bias` (a vector over the last
//!   dimension), `+ residual` (a tensor of the output's shape and type), activation. Bias: on `Conv`, `MatMul`, `Binary`;
//!   residual: on `Conv` and `MatMul`; activation: on those three;
//! * one buffer may be read under several shapes (a reshape costs nothing), so take shapes from the operand;
//! * an output of the model is a buffer, one of the inputs unchanged (any type, BYTES included), or a constant.

mod arena;
mod build;
mod display;
mod verify;

use std::sync::Arc;

use insula_core::{DType, Shape};
use smallvec::SmallVec;

use crate::constant::ConstantId;
use crate::op::{Activation, Op};

/// Alignment of arena offsets, in bytes.
pub const ARENA_ALIGNMENT: usize = 64;

/// The position of a buffer in its plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferId(pub u32);

impl BufferId {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where an operand's bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// The model's input of this position, all rows of the batch one after another.
    Input(u32),
    /// An arena buffer.
    Buffer(BufferId),
    /// One of the model's constants.
    Constant(ConstantId),
}

/// A tensor that a step reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operand {
    /// Where its bytes are.
    pub source: Source,
    /// The element type.
    pub dtype: DType,
    /// The shape to read it in.
    pub shape: Shape,
}

/// What is done to an operation's result before it is stored. `T` is how a tensor is named: a value id or an operand.
#[derive(Debug, Clone, PartialEq)]
pub struct Epilogue<T> {
    /// Added first: an FP32 constant of shape `[last dimension]`, whatever the step's own type.
    pub bias: Option<ConstantId>,
    /// Added next: of the output's shape and type.
    pub residual: Option<T>,
    /// Applied last.
    pub activation: Option<Activation>,
}

impl<T> Epilogue<T> {
    /// Nothing is done.
    pub const NONE: Epilogue<T> = Epilogue { bias: None, residual: None, activation: None };

    /// Whether nothing is done.
    pub fn is_none(&self) -> bool {
        self.bias.is_none() && self.residual.is_none() && self.activation.is_none()
    }
}

/// One operation of a plan.
#[derive(Debug, Clone)]
pub struct Step {
    /// The node's name, for messages and profiles.
    pub name: Arc<str>,
    /// The operation.
    pub op: Op,
    /// What it reads, in the order [`Op`] documents.
    pub inputs: SmallVec<[Operand; 2]>,
    /// What it writes; shape and type are the buffer's.
    pub output: BufferId,
    /// What is done before the result is stored.
    pub epilogue: Epilogue<Operand>,
}

/// A tensor in the arena.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buffer {
    /// The element type.
    pub dtype: DType,
    /// The shape it is written in.
    pub shape: Shape,
    /// Its bytes from the arena's start, a multiple of [`ARENA_ALIGNMENT`].
    pub offset: usize,
    /// Its size in bytes.
    pub bytes: usize,
}

/// A tensor that the caller brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanInput {
    /// The element type.
    pub dtype: DType,
    /// The shape with the plan's rows.
    pub shape: Shape,
    /// Its size in bytes; `None` for BYTES, which no step reads.
    pub bytes: Option<usize>,
}

/// What an output of the model is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Binding {
    /// This buffer after the last step.
    Buffer(BufferId),
    /// The caller's own input of this position, byte for byte.
    Input(u32),
    /// This constant.
    Constant(ConstantId),
}

/// A tensor that the caller gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanOutput {
    /// Where its bytes are.
    pub binding: Binding,
    /// The element type.
    pub dtype: DType,
    /// The shape with the plan's rows.
    pub shape: Shape,
    /// Its size in bytes; `None` for BYTES, whose size is the request's.
    pub bytes: Option<usize>,
}

/// How a model computes a batch of `rows` rows.
#[derive(Debug, Clone)]
pub struct LogicalPlan {
    /// The rows of the batch: the bucket.
    pub rows: usize,
    /// The inputs, in the model's order.
    pub inputs: Vec<PlanInput>,
    /// The intermediates.
    pub buffers: Vec<Buffer>,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// The outputs, in the model's order.
    pub outputs: Vec<PlanOutput>,
    /// The arena's size in bytes.
    pub arena_bytes: usize,
}
