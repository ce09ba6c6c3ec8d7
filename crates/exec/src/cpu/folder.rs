//! Computes single operations on constants while a model is loaded, with the kernels that run it later: a constant folded
//! here has the bits it would have had at run time.

use std::sync::Arc;

use insula_core::{Error, Result};
use insula_kernels::Isa;
use insula_model::shape_inference::infer;
use insula_model::{
    Binding, Buffer, BufferId, Constant, ConstantFolder, ConstantId, Dim, Epilogue, LogicalPlan, Op, Operand,
    PlanOutput, Source, Step, TensorType,
};
use smallvec::SmallVec;

use super::compute_threads::ComputeThreads;
use super::lower::lower;
use super::thread_groups::ThreadGroups;
use super::weights::{CpuWeights, WeightCache};
use crate::batch::{BatchIo, EntryIo};
use crate::device::LoweredPlan;

/// Folds with one instruction set.
#[derive(Debug)]
pub(super) struct CpuFolder {
    isa: Isa,
    threads: Arc<ThreadGroups>,
}

impl CpuFolder {
    pub(super) fn new(isa: Isa) -> CpuFolder {
        CpuFolder { isa, threads: Arc::new(ThreadGroups::of(ComputeThreads::alone())) }
    }
}

impl ConstantFolder for CpuFolder {
    fn fold(&self, op: &Op, inputs: &[&Constant]) -> Result<Option<Constant>> {
        let constants: Vec<Constant> = inputs.iter().map(|constant| (*constant).clone()).collect();
        let plan = one_step_plan(op, &constants)?;
        let weights = CpuWeights::pack(&constants, &plan, &WeightCache::sharing_nothing())?;
        let lowered = lower(self.isa, &self.threads, &plan, Arc::new(weights))?;
        let output = &plan.outputs[0];
        let mut bytes = vec![0; plan.buffers[0].bytes];
        let mut arena = Arena::new(lowered.arena_bytes());
        let entry = EntryIo { rows: 1, inputs: SmallVec::new(), outputs: SmallVec::from_iter([Some(&mut bytes[..])]) };
        lowered.run(arena.bytes(), &mut BatchIo { entries: SmallVec::from_iter([entry]) }, &mut || false)?;
        Constant::new(output.dtype, output.shape.clone(), &bytes).map(Some)
    }
}

/// A plan of nothing but `op` on constants 0, 1, ...
fn one_step_plan(op: &Op, constants: &[Constant]) -> Result<LogicalPlan> {
    let fixed = |constant: &Constant| TensorType {
        dtype: constant.dtype(),
        dims: constant.shape().dims().iter().map(|size| Dim::Fixed(*size)).collect(),
    };
    let types: Vec<TensorType> = constants.iter().map(fixed).collect();
    let output = infer(op, &types.iter().collect::<Vec<_>>())?;
    let (dtype, shape) = (output.dtype, output.shape(1)?);
    let bytes = shape
        .bytes(dtype)?
        .ok_or_else(|| Error::internal("a constant could not be computed", "its elements vary in size"))?;
    let operand = |(index, constant): (usize, &Constant)| Operand {
        source: Source::Constant(ConstantId(index as u32)),
        dtype: constant.dtype(),
        shape: constant.shape().clone(),
    };
    let step = Step {
        name: "constant".into(),
        op: op.clone(),
        inputs: constants.iter().enumerate().map(operand).collect(),
        output: BufferId(0),
        epilogue: Epilogue::NONE,
    };
    Ok(LogicalPlan {
        rows: 1,
        inputs: Vec::new(),
        buffers: vec![Buffer { dtype, shape: shape.clone(), offset: 0, bytes }],
        steps: vec![step],
        outputs: vec![PlanOutput { binding: Binding::Buffer(BufferId(0)), dtype, shape, bytes: Some(bytes) }],
        arena_bytes: bytes,
    })
}

/// Memory for one run, aligned as arenas are.
struct Arena(Vec<Line>);

#[derive(Clone, Copy, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(C, align(64))]
struct Line([u8; 64]);

impl Arena {
    fn new(bytes: usize) -> Arena {
        Arena(vec![Line([0; 64]); bytes.div_ceil(64)])
    }

    fn bytes(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.0)
    }
}
