//! Functions of one tensor, and the kernels' names for them.

use insula_core::Result;
use insula_kernels::unary::{Function, apply};
use insula_kernels::{Activation, Isa, Number};

use crate::batch::StopPoint;
use crate::cpu::lower::Lowering;
use crate::cpu::step::{Step, StepTensors, Tiles};
use crate::error::ExecError;

/// Operations that an element is worth when it takes an exponential.
const ELEMENT_WORK: usize = 16;

#[derive(Debug)]
struct ActivationStep {
    isa: Isa,
    number: Number,
    function: Function,
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
        number: lowering.number(output.dtype)?,
        function: Function::Activation(kernel(activation)),
        tiles: Tiles::new(output.shape.elements(), ELEMENT_WORK, 1),
    }))
}

impl Step for ActivationStep {
    fn run(&self, tensors: StepTensors<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        let (input, size) = (tensors.input(0)?, self.number.size());
        self.tiles.each(stop, |elements| {
            let bytes = elements.start * size..elements.end * size;
            apply(self.isa, self.function, self.number, &input[bytes.clone()], &mut tensors.output[bytes]);
            Ok(())
        })
    }
}
