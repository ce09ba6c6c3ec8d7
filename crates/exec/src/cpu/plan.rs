//! A plan on the CPU: steps with their kernels chosen and their operands placed. The arena holds, one behind the other, the
//! logical plan's buffers, inputs that are brought together, and scratch.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use insula_model::Constant;
use smallvec::SmallVec;

use super::compute_threads::ComputeThreads;
use super::gather::{InputBytes, InputPlace, OutputPlace, check_rows, scatter};
use super::step::{Step, StepTensors};
use super::thread_groups::ThreadGroups;
use super::weights::CpuWeights;
use crate::batch::{BatchIo, StopPoint};
use crate::device::LoweredPlan;
use crate::error::ExecError;

/// Alignment of the arena and of everything in it.
pub(super) const ARENA_ALIGNMENT: usize = insula_model::ARENA_ALIGNMENT;

/// Where an operand is.
#[derive(Debug, Clone)]
pub(super) enum Place {
    /// In the arena, written by an earlier step.
    Arena(Range<usize>),
    /// This one of the plan's gathered inputs.
    Input(usize),
    /// A constant.
    Constant(Constant),
}

/// A step with its operands.
#[derive(Debug)]
pub(super) struct PlacedStep {
    pub step: Box<dyn Step>,
    /// Operands, then the residual if there is one.
    pub inputs: SmallVec<[Place; 3]>,
    pub output: Range<usize>,
}

/// A lowered plan.
#[derive(Debug)]
pub(super) struct CpuPlan {
    pub bucket: usize,
    /// Inputs that steps read.
    pub inputs: Vec<InputPlace>,
    pub steps: Vec<PlacedStep>,
    pub outputs: Vec<OutputPlace>,
    /// Bytes of the arena in front of the scratch.
    pub tensor_bytes: usize,
    pub scratch_bytes: usize,
    /// What large steps are shared among.
    pub threads: Arc<ThreadGroups>,
    /// Keeps the weights that steps share findable for others with the same content.
    pub _weights: Arc<CpuWeights>,
}

impl LoweredPlan for CpuPlan {
    fn bucket(&self) -> usize {
        self.bucket
    }

    fn arena_bytes(&self) -> usize {
        self.tensor_bytes + self.scratch_bytes
    }

    fn memory_bytes(&self) -> usize {
        let steps = self.steps.iter().map(|step| size_of_val(step) + step.step.memory_bytes()).sum::<usize>();
        size_of_val(self) + steps + size_of_val(&*self.inputs) + size_of_val(&*self.outputs)
    }

    fn run(&self, arena: &mut [u8], batch: &mut BatchIo<'_>, stop: &mut dyn StopPoint) -> Result<(), ExecError> {
        self.run_steps(arena, batch, stop, || ())
    }

    fn run_timed(
        &self,
        arena: &mut [u8],
        batch: &mut BatchIo<'_>,
        stop: &mut dyn StopPoint,
        times: &mut Vec<Duration>,
    ) -> Result<(), ExecError> {
        let mut ends = Vec::with_capacity(self.steps.len() + 1);
        self.run_steps(arena, batch, stop, || ends.push(Instant::now()))?;
        times.clear();
        times.extend(ends.windows(2).map(|pair| pair[1] - pair[0]));
        Ok(())
    }
}

impl CpuPlan {
    /// Runs `batch`; calls `pass` before the first step and after each.
    fn run_steps(
        &self,
        arena: &mut [u8],
        batch: &mut BatchIo<'_>,
        stop: &mut dyn StopPoint,
        mut pass: impl FnMut(),
    ) -> Result<(), ExecError> {
        check_rows(batch, self.bucket)?;
        let arena = self.check_arena(arena)?;
        let (tensors, scratch) = arena.split_at_mut(self.tensor_bytes);
        let mut inputs = SmallVec::<[InputBytes<'_>; 2]>::new();
        for input in &self.inputs {
            inputs.push(input.gather(tensors, batch, self.bucket)?);
        }
        let threads = self.threads.here();
        pass();
        for (index, step) in self.steps.iter().enumerate() {
            if index > 0 && stop.should_stop() {
                return Err(ExecError::Stopped);
            }
            step.run(tensors, &inputs, scratch, threads, stop)?;
            pass();
        }
        scatter(&self.outputs, tensors, batch)
    }

    fn check_arena<'a>(&self, arena: &'a mut [u8]) -> Result<&'a mut [u8], ExecError> {
        let (needed, found) = (self.arena_bytes(), arena.len());
        if needed == 0 {
            return Ok(&mut []);
        }
        if !arena.as_ptr().addr().is_multiple_of(ARENA_ALIGNMENT) {
            return Err(ExecError::misfit(format!("the arena is not aligned to {ARENA_ALIGNMENT}")));
        }
        arena
            .get_mut(..needed)
            .ok_or_else(|| ExecError::misfit(format!("the arena has {found} bytes, {needed} are needed")))
    }
}

impl PlacedStep {
    fn run(
        &self,
        tensors: &mut [u8],
        gathered: &[InputBytes<'_>],
        scratch: &mut [u8],
        threads: &ComputeThreads,
        stop: &mut dyn StopPoint,
    ) -> Result<(), ExecError> {
        if self.output.is_empty() {
            return Ok(());
        }
        let Around { before, output, after, after_start } = Around::split(tensors, &self.output)?;
        let in_arena = |range: &Range<usize>| {
            let found = if range.end <= before.len() {
                before.get(range.clone())
            } else {
                let from = range.start.checked_sub(after_start);
                from.and_then(|from| after.get(from..from + range.len()))
            };
            found.ok_or_else(|| {
                ExecError::misfit(format!("an operand at {range:?} meets the output at {:?}", self.output))
            })
        };
        let mut inputs = SmallVec::new();
        for place in &self.inputs {
            inputs.push(match place {
                Place::Arena(range) => in_arena(range)?,
                Place::Constant(constant) => constant.bytes(),
                Place::Input(index) => match gathered.get(*index) {
                    Some(InputBytes::Gathered(range)) => in_arena(range)?,
                    Some(InputBytes::InPlace(bytes)) => bytes,
                    None => return Err(ExecError::misfit(format!("gathered input {index} is missing"))),
                },
            });
        }
        self.step.run(StepTensors { inputs, output, scratch, threads }, stop)
    }
}

/// The arena split around the output of a step, so that the rest can be read while it is written.
struct Around<'a> {
    before: &'a [u8],
    output: &'a mut [u8],
    after: &'a [u8],
    after_start: usize,
}

impl<'a> Around<'a> {
    fn split(tensors: &'a mut [u8], output: &Range<usize>) -> Result<Around<'a>, ExecError> {
        let length = tensors.len();
        let outside = || ExecError::misfit(format!("the output at {output:?} is outside the arena of {length} bytes"));
        let (before, rest) = tensors.split_at_mut_checked(output.start).ok_or_else(outside)?;
        let (output_bytes, after) = rest.split_at_mut_checked(output.len()).ok_or_else(outside)?;
        Ok(Around { before, output: output_bytes, after, after_start: output.end })
    }
}
