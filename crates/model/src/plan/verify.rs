//! The proof that a plan is safe to run in an arena that other batches have used: every byte that a step or an output reads was
//! written by an earlier step of the same run, and nothing is overwritten while it is still to be read. It does not trust the
//! placement: it follows the writes step by step.

use std::collections::BTreeMap;

use insula_core::{DType, Error, Result, Shape};

use crate::constant::Constant;
use crate::plan::{ARENA_ALIGNMENT, Binding, BufferId, LogicalPlan, Operand, Source};

/// Checks `plan`; the error is internal and says where it fails.
pub(super) fn verify(plan: &LogicalPlan, constants: &[Constant]) -> Result<()> {
    let mut arena = Arena { plan, constants, whole: BTreeMap::new() };
    for (index, step) in plan.steps.iter().enumerate() {
        let at = format!("step {index} `{}`", step.name);
        for operand in step.inputs.iter().chain(&step.epilogue.residual) {
            arena.check_operand(operand, &at)?;
        }
        let output =
            plan.buffers.get(step.output.index()).ok_or_else(|| broken(&at, "writes a buffer that does not exist"))?;
        if let Some(bias) = step.epilogue.bias {
            let fits = constants.get(bias.index()).is_some_and(|bias| {
                bias.dtype() == DType::Fp32 && Some(&bias.shape().elements()) == output.shape.dims().last()
            });
            if !fits {
                return Err(broken(&at, "has a bias that does not fit its output"));
            }
        }
        arena.write(step.output, &at)?;
        // the output must not lie over what the same step reads
        for operand in step.inputs.iter().chain(&step.epilogue.residual) {
            arena.check_operand(operand, &at)?;
        }
    }
    for (index, output) in plan.outputs.iter().enumerate() {
        let source = match output.binding {
            Binding::Buffer(buffer) => Source::Buffer(buffer),
            Binding::Input(input) => Source::Input(input),
            Binding::Constant(id) => Source::Constant(id),
        };
        arena.check(source, output.dtype, &output.shape, &format!("output {index}"))?;
    }
    Ok(())
}

struct Arena<'a> {
    plan: &'a LogicalPlan,
    constants: &'a [Constant],
    /// The buffers that are whole, by their offsets: written, and not overwritten since.
    whole: BTreeMap<usize, (usize, BufferId)>,
}

impl Arena<'_> {
    fn write(&mut self, id: BufferId, at: &str) -> Result<()> {
        let buffer = &self.plan.buffers[id.index()];
        let end = buffer.offset.checked_add(buffer.bytes).filter(|end| *end <= self.plan.arena_bytes);
        let Some(end) = end.filter(|_| buffer.offset.is_multiple_of(ARENA_ALIGNMENT)) else {
            return Err(broken(at, "writes a buffer that is not within the arena"));
        };
        if buffer.shape.bytes(buffer.dtype)? != Some(buffer.bytes) {
            return Err(broken(at, "writes a buffer whose size is not that of its shape"));
        }
        // whole buffers do not overlap each other, so those that this one destroys are the last ones that begin before its end
        while let Some((&begin, &(last, _))) = self.whole.range(..end).next_back() {
            if last <= buffer.offset {
                break;
            }
            self.whole.remove(&begin);
        }
        self.whole.insert(buffer.offset, (end, id));
        Ok(())
    }

    fn check_operand(&self, operand: &Operand, at: &str) -> Result<()> {
        if operand.dtype == DType::Bytes {
            return Err(broken(at, "reads BYTES"));
        }
        self.check(operand.source, operand.dtype, &operand.shape, at)
    }

    /// Whether `source` is whole and has as many bytes as `shape` says.
    fn check(&self, source: Source, dtype: DType, shape: &Shape, at: &str) -> Result<()> {
        let bytes = shape.bytes(dtype)?;
        let fits = match source {
            Source::Buffer(id) => self.plan.buffers.get(id.index()).is_some_and(|buffer| {
                let whole = self.whole.get(&buffer.offset).is_some_and(|(_, found)| *found == id);
                whole && buffer.dtype == dtype && Some(buffer.bytes) == bytes
            }),
            Source::Input(index) => self
                .plan
                .inputs
                .get(index as usize)
                .is_some_and(|input| input.dtype == dtype && input.shape.elements() == shape.elements()),
            Source::Constant(id) => {
                let found = self.constants.get(id.index());
                found.is_some_and(|constant| constant.dtype() == dtype && Some(constant.bytes().len()) == bytes)
            }
        };
        match fits {
            true => Ok(()),
            false => Err(broken(
                at,
                &format!("reads {source:?} as {dtype} {shape}, which is not whole there or not of that size"),
            )),
        }
    }
}

fn broken(at: &str, what: &str) -> Error {
    Error::internal("the plan does not hold together", format!("{at} {what}"))
}

#[cfg(test)]
mod tests;
