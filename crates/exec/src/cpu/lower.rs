//! From a logical plan to a CPU plan: a kernel for each step, a place for each operand. What a kernel cannot do is refused
//! here, at load. The choice looks at the layer, never at the number of rows.

use std::ops::Range;
use std::sync::Arc;

use insula_core::{Code, DType, Error, Result};
use insula_kernels::{Isa, Number};
use insula_model::{Binding, LogicalPlan, Op, Operand, Source, Step as LogicalStep};
use smallvec::SmallVec;

use super::gather::{InputPlace, OutputPlace};
use super::plan::{ARENA_ALIGNMENT, CpuPlan, Place, PlacedStep};
use super::step::Step;
use super::steps;
use super::tensor::number;
use super::thread_groups::ThreadGroups;
use super::weights::{CpuWeights, is_floating, is_packed};

/// What a step file needs to make its step.
pub(super) struct Lowering<'a> {
    pub isa: Isa,
    /// How many threads there are for a run.
    pub threads: usize,
    pub plan: &'a LogicalPlan,
    pub weights: &'a CpuWeights,
    pub step: &'a LogicalStep,
}

/// Lowers `plan` with the `weights` of its model, to run on `threads`.
pub(super) fn lower(
    isa: Isa,
    threads: &Arc<ThreadGroups>,
    plan: &LogicalPlan,
    weights: Arc<CpuWeights>,
) -> Result<CpuPlan> {
    let inputs = place_inputs(plan)?;
    let tensor_bytes = inputs.last().map_or(plan.arena_bytes, |input| input.range.end);
    let tensor_bytes = aligned(tensor_bytes)?;
    let mut steps = Vec::with_capacity(plan.steps.len());
    for step in &plan.steps {
        let lowered = lower_step(&Lowering { isa, threads: threads.most(), plan, weights: &weights, step }, &inputs);
        steps.push(lowered.map_err(|error| error.context(format_args!("node `{}` ({})", step.name, step.op.name())))?);
    }
    let scratch_bytes = aligned(steps.iter().map(|step| step.step.scratch_bytes()).max().unwrap_or(0))?;
    if tensor_bytes.checked_add(scratch_bytes).is_none() {
        return Err(too_large());
    }
    let outputs = plan.outputs.iter().map(|output| place_output(plan, &weights, output)).collect::<Result<_>>()?;
    let threads = Arc::clone(threads);
    Ok(CpuPlan { bucket: plan.rows, inputs, steps, outputs, tensor_bytes, scratch_bytes, threads, _weights: weights })
}

fn lower_step(lowering: &Lowering<'_>, inputs: &[InputPlace]) -> Result<PlacedStep> {
    let (step, kernel) = (lowering.step, lower_op(lowering)?);
    // A constant that a step has packed is the step's own.
    let mut places = SmallVec::new();
    for (index, operand) in step.inputs.iter().chain(&step.epilogue.residual).enumerate() {
        if !is_packed(step, index) {
            places.push(place_operand(lowering, inputs, operand)?);
        }
    }
    Ok(PlacedStep { step: kernel, inputs: places, output: buffer_range(lowering.plan, step.output)? })
}

fn lower_op(lowering: &Lowering<'_>) -> Result<Box<dyn Step>> {
    match &lowering.step.op {
        Op::Conv(conv) if is_floating(lowering.input(0)?.dtype) => steps::conv::lower(lowering, conv),
        Op::Conv(conv) => steps::exact_conv::lower(lowering, conv),
        Op::ConvTranspose(conv) => steps::conv_transpose::lower(lowering, conv),
        Op::DeformConv(conv) => steps::deform_conv::lower(lowering, conv),
        Op::LpPool(pool) => steps::pool::norm(lowering, pool),
        Op::MaxPositions(op) => steps::max_positions::lower(lowering, op),
        Op::Recurrent(layer) => steps::recurrent::lower(lowering, layer),
        Op::MaxPool(window) => steps::pool::max(lowering, window),
        Op::AveragePool(pool) => steps::pool::average(lowering, pool),
        Op::MatMul if is_floating(lowering.input(0)?.dtype) => steps::matmul::lower(lowering),
        Op::MatMul => steps::exact_matmul::lower(lowering),
        Op::Binary(op) => steps::binary::lower(lowering, *op),
        Op::Activation(activation) => steps::elementwise::lower_activation(lowering, *activation),
        Op::Elementwise(op) => steps::elementwise::lower(lowering, *op),
        Op::Softmax { axis, logarithm } => steps::softmax::lower(lowering, *axis, *logarithm),
        Op::Normalize { centred, epsilon } => steps::normalize::lower(lowering, *centred, *epsilon),
        Op::Reduce(op) => steps::reduce::lower(lowering, op),
        Op::ArgExtreme(op) => steps::arg_extreme::lower(lowering, *op),
        Op::Cumulative(op) => steps::cumulative::lower(lowering, *op),
        Op::Transpose { permutation } => steps::transpose::lower(lowering, permutation),
        Op::Move(movement) => steps::movement::lower(lowering, movement),
        Op::Sample(sampling) => steps::sampling::lower(lowering, sampling),
        Op::Cast { to } => steps::cast::lower(lowering, *to),
    }
}

impl<'a> Lowering<'a> {
    /// Operand `index`.
    pub(super) fn input(&self, index: usize) -> Result<&'a Operand> {
        self.step.inputs.get(index).ok_or_else(|| broken(format!("operand {index} is missing")))
    }

    /// The output's shape and type.
    pub(super) fn output(&self) -> Result<&'a insula_model::Buffer> {
        self.plan.buffers.get(self.step.output.index()).ok_or_else(|| broken("its output is missing"))
    }

    /// The kernels' name for `dtype`. Fails for byte strings.
    pub(super) fn number(&self, dtype: DType) -> Result<Number> {
        let what = || format!("{} is not supported for {dtype}", self.step.op.name());
        number(dtype).ok_or_else(|| Error::new(Code::Unsupported, what()))
    }

    /// Bytes of an element of operand `index`.
    pub(super) fn element_bytes(&self, index: usize) -> Result<usize> {
        self.input(index)?.dtype.size().ok_or_else(|| broken("its elements vary in size"))
    }

    /// The values of the epilogue's bias.
    pub(super) fn bias(&self) -> Result<Option<Arc<[f32]>>> {
        self.step.epilogue.bias.map(|id| self.weights.bias(id)).transpose()
    }

    /// The epilogue's activation.
    pub(super) fn activation(&self) -> insula_kernels::Activation {
        self.step.epilogue.activation.map(steps::elementwise::activation).unwrap_or_default()
    }
}

/// A place for each input that some step reads, behind the plan's own buffers.
fn place_inputs(plan: &LogicalPlan) -> Result<Vec<InputPlace>> {
    let reads = |index: usize| {
        let operands = plan.steps.iter().flat_map(|step| step.inputs.iter().chain(&step.epilogue.residual));
        operands.into_iter().any(|operand| operand.source == Source::Input(index as u32))
    };
    let mut places = Vec::new();
    let mut end = plan.arena_bytes;
    for (index, input) in plan.inputs.iter().enumerate().filter(|(index, _)| reads(*index)) {
        let bytes =
            input.bytes.ok_or_else(|| broken(format!("a step reads input {index}, whose elements vary in size")))?;
        let start = aligned(end)?;
        end = start.checked_add(bytes).ok_or_else(too_large)?;
        places.push(InputPlace { index, row_bytes: row_bytes(bytes, plan.rows)?, range: start..end });
    }
    Ok(places)
}

fn place_operand(lowering: &Lowering<'_>, inputs: &[InputPlace], operand: &Operand) -> Result<Place> {
    Ok(match operand.source {
        Source::Buffer(id) => Place::Arena(buffer_range(lowering.plan, id)?),
        Source::Constant(id) => Place::Constant(lowering.weights.plain(id)?),
        Source::Input(index) => {
            let position = inputs.iter().position(|input| input.index == index as usize);
            Place::Input(position.ok_or_else(|| broken(format!("input {index} is missing")))?)
        }
    })
}

fn place_output(plan: &LogicalPlan, weights: &CpuWeights, output: &insula_model::PlanOutput) -> Result<OutputPlace> {
    Ok(match output.binding {
        Binding::Buffer(id) => {
            let range = buffer_range(plan, id)?;
            OutputPlace::Arena { row_bytes: row_bytes(range.len(), plan.rows)?, range }
        }
        Binding::Input(index) => OutputPlace::Input(index as usize),
        Binding::Constant(id) => OutputPlace::Constant(weights.plain(id)?),
    })
}

fn buffer_range(plan: &LogicalPlan, id: insula_model::BufferId) -> Result<Range<usize>> {
    let buffer = plan.buffers.get(id.index()).ok_or_else(|| broken(format!("{id:?} is missing")))?;
    let end = buffer.offset.checked_add(buffer.bytes).ok_or_else(too_large)?;
    Ok(buffer.offset..end)
}

fn row_bytes(bytes: usize, rows: usize) -> Result<usize> {
    match bytes.checked_rem(rows) {
        Some(0) => Ok(bytes / rows),
        _ => Err(broken(format!("{bytes} bytes are not {rows} rows"))),
    }
}

fn aligned(bytes: usize) -> Result<usize> {
    bytes.checked_next_multiple_of(ARENA_ALIGNMENT).ok_or_else(too_large)
}

fn too_large() -> Error {
    Error::invalid("the model's intermediates are larger than can be addressed: lower max_batch")
}

/// An error of the plan's own making.
pub(super) fn broken(what: impl Into<String>) -> Error {
    Error::internal("the plan could not be lowered", what)
}
