//! A model's constants as the kernels want them: matrices and filters packed, biases and operands as they are. Each is packed
//! once for its content; every bucket, shape class, version and tenant that has the same holds the same copy.

mod cache;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::Arc;

use insula_core::{Code, DType, Error, Result};
use insula_kernels::Floats;
use insula_kernels::conv::ConvWeights;
use insula_kernels::conv_transpose::{ConvTransposeShape, ConvTransposeWeights};
use insula_kernels::gemm::{PANEL_COLUMNS, PackedWeights, Storage};
use insula_kernels::recurrent::RecurrentWeights;
use insula_model::{Binding, Constant, ConstantId, LogicalPlan, Op, Operand, Source, Step};

use super::steps::conv::conv_shape;
use super::steps::conv_transpose::conv_transpose_shape;
use super::steps::recurrent::recurrent_shape;
use super::tensor::floats;
use crate::device::Weights;
use cache::PieceBytes;
pub(super) use cache::WeightCache;

/// How much larger packed weights may be than stored ones, and what is never refused.
const MOST_GROWTH: usize = 4;
const FREE_GROWTH: usize = 64 << 20;

/// The constants that a model's plans use.
pub(super) struct CpuWeights {
    /// Right-hand sides of products, one B for each matrix of the constant.
    matrices: HashMap<ConstantId, Arc<[PackedWeights]>>,
    /// Weights of convolutions, by constant and groups: one constant can serve several layers.
    filters: HashMap<(ConstantId, usize), Arc<ConvWeights>>,
    /// Weights of transposed convolutions, which are laid out for their sizes.
    transposed_filters: HashMap<(ConstantId, ConvTransposeShape), Arc<ConvTransposeWeights>>,
    /// Both weights of recurrent layers.
    recurrent: HashMap<[ConstantId; 2], Arc<RecurrentWeights>>,
    biases: HashMap<ConstantId, Arc<[f32]>>,
    /// What is read as it is.
    plain: HashMap<ConstantId, Arc<Constant>>,
    bytes: usize,
}

impl CpuWeights {
    /// Packs what `plan` uses of `constants`, but for what `cache` has. Every plan of a model uses the same.
    pub(super) fn pack(constants: &[Constant], plan: &LogicalPlan, cache: &WeightCache) -> Result<CpuWeights> {
        check_growth(constants, plan)?;
        let weights = CpuWeights {
            matrices: HashMap::new(),
            filters: HashMap::new(),
            transposed_filters: HashMap::new(),
            recurrent: HashMap::new(),
            biases: HashMap::new(),
            plain: HashMap::new(),
            bytes: 0,
        };
        let mut packing = Packing { constants, plan, cache, weights };
        for step in &plan.steps {
            packing.add_step(step).map_err(|error| error.context(format_args!("node `{}`", step.name)))?;
        }
        for output in &plan.outputs {
            if let Binding::Constant(id) = output.binding {
                packing.add_plain(id)?;
            }
        }
        let mut weights = packing.weights;
        weights.bytes = weights.count_bytes();
        Ok(weights)
    }

    /// Bytes of all pieces, each counted once however many constants have its content.
    fn count_bytes(&self) -> usize {
        let matrices = self.matrices.values().map(piece_size);
        let filters = self.filters.values().map(piece_size);
        let transposed = self.transposed_filters.values().map(piece_size);
        let recurrent = self.recurrent.values().map(piece_size);
        let biases = self.biases.values().map(piece_size);
        let plain = self.plain.values().map(piece_size);
        let pieces: HashMap<usize, usize> =
            matrices.chain(filters).chain(transposed).chain(recurrent).chain(biases).chain(plain).collect();
        pieces.values().sum()
    }

    /// The packed matrices of constant `id`.
    pub(super) fn matrices(&self, id: ConstantId) -> Result<Arc<[PackedWeights]>> {
        self.matrices.get(&id).cloned().ok_or_else(|| missing(id))
    }

    /// The packed filters of constant `id` in `groups` groups.
    pub(super) fn filters(&self, id: ConstantId, groups: usize) -> Result<Arc<ConvWeights>> {
        self.filters.get(&(id, groups)).cloned().ok_or_else(|| missing(id))
    }

    /// The packed filters of constant `id` for a transposed convolution of `shape`.
    pub(super) fn transposed_filters(
        &self,
        id: ConstantId,
        shape: &ConvTransposeShape,
    ) -> Result<Arc<ConvTransposeWeights>> {
        self.transposed_filters.get(&(id, *shape)).cloned().ok_or_else(|| missing(id))
    }

    /// The packed weights of the recurrent layer `step`.
    pub(super) fn recurrent(&self, step: &Step) -> Result<Arc<RecurrentWeights>> {
        let ids = recurrent_constants(step)?;
        self.recurrent.get(&ids).cloned().ok_or_else(|| missing(ids[0]))
    }

    /// The bias in constant `id`.
    pub(super) fn bias(&self, id: ConstantId) -> Result<Arc<[f32]>> {
        self.biases.get(&id).cloned().ok_or_else(|| missing(id))
    }

    /// Constant `id` as it is.
    pub(super) fn plain(&self, id: ConstantId) -> Result<Constant> {
        self.plain.get(&id).map(|constant| Constant::clone(constant)).ok_or_else(|| missing(id))
    }
}

impl Weights for CpuWeights {
    fn bytes(&self) -> usize {
        self.bytes
    }
}

impl fmt::Debug for CpuWeights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CpuWeights({} bytes)", self.bytes)
    }
}

/// A piece's address and size.
fn piece_size<T: PieceBytes + ?Sized>(piece: &Arc<T>) -> (usize, usize) {
    (Arc::as_ptr(piece).cast::<u8>().addr(), piece.piece_bytes())
}

/// Weights that are being packed.
struct Packing<'a> {
    constants: &'a [Constant],
    plan: &'a LogicalPlan,
    cache: &'a WeightCache,
    weights: CpuWeights,
}

impl Packing<'_> {
    fn add_step(&mut self, step: &Step) -> Result<()> {
        for (index, operand) in step.inputs.iter().chain(&step.epilogue.residual).enumerate() {
            let Source::Constant(id) = operand.source else { continue };
            match &step.op {
                _ if !is_packed(step, index) => self.add_plain(id)?,
                Op::MatMul => self.add_matrices(id, operand.shape.dims())?,
                Op::Conv(conv) => self.add_filters(id, step, conv)?,
                Op::ConvTranspose(conv) => self.add_transposed_filters(id, step, conv)?,
                Op::Recurrent(layer) => self.add_recurrent(step, layer)?,
                _ => self.add_plain(id)?,
            }
        }
        match step.epilogue.bias {
            Some(id) => self.add_bias(id),
            None => Ok(()),
        }
    }

    fn add_matrices(&mut self, id: ConstantId, dims: &[usize]) -> Result<()> {
        let Entry::Vacant(place) = self.weights.matrices.entry(id) else { return Ok(()) };
        let constant = find(self.constants, id)?;
        let &[.., depth, columns] = dims else {
            return Err(Error::internal("the plan could not be lowered", "a matrix has fewer than two dimensions"));
        };
        let packed = self.cache.matrices(constant, [depth, columns], || {
            let values = constant_floats(constant)?;
            let count = values.len().checked_div(depth * columns).unwrap_or(0);
            let pack = |matrix: usize| {
                let first = matrix * depth * columns;
                PackedWeights::pack(storage(constant), depth, columns, |k, n| values.get(first + k * columns + n))
            };
            Ok((0..count).map(pack).collect())
        })?;
        place.insert(packed);
        Ok(())
    }

    fn add_filters(&mut self, id: ConstantId, step: &Step, conv: &insula_model::Conv) -> Result<()> {
        let Entry::Vacant(place) = self.weights.filters.entry((id, conv.groups)) else { return Ok(()) };
        let constant = find(self.constants, id)?;
        let shape = conv_shape(self.plan, step, conv)?;
        let packed = self.cache.filters(constant, conv.groups, || {
            Ok(Arc::new(ConvWeights::pack(&shape, storage(constant), constant_floats(constant)?)))
        })?;
        place.insert(packed);
        Ok(())
    }

    fn add_transposed_filters(
        &mut self,
        id: ConstantId,
        step: &Step,
        conv: &insula_model::ConvTranspose,
    ) -> Result<()> {
        let shape = conv_transpose_shape(self.plan, step, conv)?;
        let Entry::Vacant(place) = self.weights.transposed_filters.entry((id, shape)) else { return Ok(()) };
        let constant = find(self.constants, id)?;
        let packed = self.cache.transposed_filters(constant, &shape, || {
            Ok(Arc::new(ConvTransposeWeights::pack(&shape, storage(constant), constant_floats(constant)?)))
        })?;
        place.insert(packed);
        Ok(())
    }

    fn add_recurrent(&mut self, step: &Step, layer: &insula_model::Recurrent) -> Result<()> {
        let ids = recurrent_constants(step)?;
        let Entry::Vacant(place) = self.weights.recurrent.entry(ids) else { return Ok(()) };
        let shape = recurrent_shape(self.plan, step, layer)?;
        let (input, state) = (find(self.constants, ids[0])?, find(self.constants, ids[1])?);
        let packed = self.cache.recurrent([input, state], &shape, || {
            let (input_floats, state_floats) = (constant_floats(input)?, constant_floats(state)?);
            Ok(Arc::new(RecurrentWeights::pack(&shape, storage(input), input_floats, state_floats)))
        })?;
        place.insert(packed);
        Ok(())
    }

    fn add_bias(&mut self, id: ConstantId) -> Result<()> {
        if let Entry::Vacant(place) = self.weights.biases.entry(id) {
            let constant = find(self.constants, id)?;
            place.insert(self.cache.bias(constant, || Ok(constant.typed::<f32>()?.into()))?);
        }
        Ok(())
    }

    fn add_plain(&mut self, id: ConstantId) -> Result<()> {
        if let Entry::Vacant(place) = self.weights.plain.entry(id) {
            let constant = find(self.constants, id)?;
            place.insert(self.cache.plain(constant, || Ok(Arc::new(constant.clone())))?);
        }
        Ok(())
    }
}

/// Whether a step takes its input `index` packed at load and not as it is: a constant that it multiplies with.
pub(super) fn is_packed(step: &Step, index: usize) -> bool {
    let constant = |index: usize| {
        step.inputs
            .get(index)
            .is_some_and(|operand| is_floating(operand.dtype) && matches!(operand.source, Source::Constant(_)))
    };
    match step.op {
        Op::MatMul | Op::Conv(_) | Op::ConvTranspose(_) => index == 1 && constant(1),
        Op::Recurrent(_) => (index == 1 || index == 2) && constant(1) && constant(2),
        _ => false,
    }
}

/// Whether the fast kernels compute in `dtype`.
pub(super) fn is_floating(dtype: DType) -> bool {
    matches!(dtype, DType::Fp16 | DType::Fp32)
}

/// The constants of a recurrent layer whose weights are packed.
fn recurrent_constants(step: &Step) -> Result<[ConstantId; 2]> {
    match (step.inputs.get(1).map(|operand| operand.source), step.inputs.get(2).map(|operand| operand.source)) {
        (Some(Source::Constant(input)), Some(Source::Constant(state))) => Ok([input, state]),
        _ => Err(Error::internal("the plan could not be lowered", "a recurrent layer's weights are not constant")),
    }
}

/// Packing fills panels up to 16 columns, so that a file of many thin matrices would grow sixteenfold: refused before memory
/// is taken, but for small ones.
fn check_growth(constants: &[Constant], plan: &LogicalPlan) -> Result<()> {
    let (mut stored, mut packed) = (0usize, 0usize);
    for step in &plan.steps {
        let Some(Operand { source: Source::Constant(id), shape, .. }) = step.inputs.get(1) else { continue };
        let (columns, count) = match (&step.op, shape.dims()) {
            _ if !is_packed(step, 1) => continue,
            (Op::MatMul, &[ref batch @ .., _, columns]) => (columns, batch.iter().product::<usize>()),
            (Op::Conv(conv), &[filters, ..]) => (filters / conv.groups.max(1), conv.groups),
            (Op::ConvTranspose(conv), &[_, filters, ..]) => {
                (filters, conv.strides.iter().product::<usize>().saturating_mul(conv.groups))
            }
            _ => continue,
        };
        let bytes = find(constants, *id)?.bytes().len();
        let filled = columns.next_multiple_of(PANEL_COLUMNS).saturating_mul(bytes) / columns.max(1);
        stored = stored.saturating_add(bytes);
        packed = packed.saturating_add(filled).saturating_add(count.saturating_mul(size_of::<PackedWeights>()));
    }
    if packed > stored.saturating_mul(MOST_GROWTH).saturating_add(FREE_GROWTH) {
        return Err(Error::new(
            Code::Unsupported,
            format!(
                "its weights of {stored} bytes would take {packed} bytes once packed: its matrices or groups are too thin"
            ),
        ));
    }
    Ok(())
}

/// Weights are stored as their constant is: the model's precision has decided.
fn storage(constant: &Constant) -> Storage {
    if constant.dtype() == DType::Fp16 { Storage::F16 } else { Storage::F32 }
}

fn constant_floats(constant: &Constant) -> Result<Floats<'_>> {
    Ok(floats(constant.dtype(), constant.bytes())?)
}

fn find(constants: &[Constant], id: ConstantId) -> Result<&Constant> {
    constants.get(id.index()).ok_or_else(|| missing(id))
}

fn missing(id: ConstantId) -> Error {
    Error::internal(
        "the plan could not be lowered",
        format!("{id:?} is not among its weights: they belong to another model"),
    )
}
