//! Arithmetic of two tensors with what is fused to it.

use std::sync::Arc;

use insula_core::{DType, Result};
use insula_kernels::elementwise::{Arithmetic, Binary, Broadcast};
use insula_kernels::{Activation, Isa};
use insula_model::BinaryOp;

use crate::batch::StopPoint;
use crate::cpu::lower::{Lowering, broken};
use crate::cpu::step::{Step, StepTensors, Tiles};
use crate::error::ExecError;

/// Operations that an element is worth.
const ELEMENT_WORK: usize = 4;

/// Tensors up to this size run in rows as long as can be; larger ones in rows of the last dimension, to be cut into tiles.
const FLAT_ELEMENTS: usize = 1 << 20;

#[derive(Debug)]
struct BinaryStep {
    isa: Isa,
    dtype: DType,
    arithmetic: Arithmetic,
    broadcast: Broadcast,
    bias: Option<Arc<[f32]>>,
    activation: Activation,
    tiles: Tiles,
}

pub(in crate::cpu) fn lower(lowering: &Lowering<'_>, op: BinaryOp) -> Result<Box<dyn Step>> {
    let arithmetic = match op {
        BinaryOp::Add => Arithmetic::Add,
        BinaryOp::Sub => Arithmetic::Subtract,
        BinaryOp::Mul => Arithmetic::Multiply,
        BinaryOp::Div => Arithmetic::Divide,
    };
    let (bias, output) = (lowering.bias()?, lowering.output()?);
    let keep_last = bias.is_some() || output.shape.elements() > FLAT_ELEMENTS;
    let (a, b) = (lowering.input(0)?.shape.dims(), lowering.input(1)?.shape.dims());
    let broadcast =
        Broadcast::new(a, b, keep_last).ok_or_else(|| broken(format!("{a:?} and {b:?} do not broadcast")))?;
    let tiles = Tiles::new(broadcast.rows(), broadcast.columns() * ELEMENT_WORK, 1);
    let (isa, dtype, activation) = (lowering.isa, output.dtype, lowering.activation());
    Ok(Box::new(BinaryStep { isa, dtype, arithmetic, broadcast, bias, activation, tiles }))
}

impl Step for BinaryStep {
    fn run(&self, mut tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let (a, b) = (tensors.floats(0, self.dtype)?, tensors.floats(1, self.dtype)?);
        let BinaryStep { isa, arithmetic, broadcast, activation, .. } = *self;
        let binary = Binary { isa, arithmetic, broadcast, bias: self.bias.as_deref(), activation };
        self.tiles.each(stop, |rows| {
            binary.run(rows, a, b, tensors.output(self.dtype)?);
            Ok(())
        })
    }
}
