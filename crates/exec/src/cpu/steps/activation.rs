//! Functions of one tensor, and the kernels' names for them.

use insula_core::{DType, Result};
use insula_kernels::elementwise::activate;
use insula_kernels::{Activation, FloatsMut, Isa};

use crate::batch::StopPoint;
use crate::cpu::lower::Lowering;
use crate::cpu::step::{Step, StepTensors, Tiles};
use crate::error::ExecError;

/// Operations that an element is worth when it takes an exponential.
const ELEMENT_WORK: usize = 16;

#[derive(Debug)]
struct ActivationStep {
    isa: Isa,
    dtype: DType,
    activation: Activation,
    tiles: Tiles,
}

/// The kernels' name for `activation`.
pub(in crate::cpu) fn kernel(activation: insula_model::Activation) -> Activation {
    match activation {
        insula_model::Activation::Relu => Activation::Relu,
        insula_model::Activation::Clip { min, max } => Activation::Clip { min, max },
        insula_model::Activation::Sigmoid => Activation::Sigmoid,
        insula_model::Activation::Tanh => Activation::Tanh,
    }
}

pub(in crate::cpu) fn lower(lowering: &Lowering<'_>, activation: insula_model::Activation) -> Result<Box<dyn Step>> {
    let output = lowering.output()?;
    Ok(Box::new(ActivationStep {
        isa: lowering.isa,
        dtype: output.dtype,
        activation: kernel(activation),
        tiles: Tiles::new(output.shape.elements(), ELEMENT_WORK, 1),
    }))
}

impl Step for ActivationStep {
    fn run(&self, mut tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let input = tensors.floats(0, self.dtype)?;
        self.tiles.each(stop, |elements| {
            let out = match tensors.output(self.dtype)? {
                FloatsMut::F16(out) => FloatsMut::F16(&mut out[elements.clone()]),
                FloatsMut::F32(out) => FloatsMut::F32(&mut out[elements.clone()]),
            };
            activate(self.isa, self.activation, input.range(elements), out);
            Ok(())
        })
    }
}
