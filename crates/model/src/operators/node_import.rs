//! One node on its way from the file into the graph: its inputs, attributes and operator set, and short ways to add nodes
//! that carry its name. The operators use it; it knows none of them.

use std::sync::Arc;

use insula_core::{DType, Shape};
use smallvec::SmallVec;

use crate::constant::Constant;
use crate::error::{LoadError, LoadResult};
use crate::graph::{Graph, TensorType, ValueId};
use crate::op::Op;
use crate::operators::Attributes;
use crate::passes::constant_folding::Folding;
use crate::shape_inference::{Dims, rows_meet};
use crate::tensor_reader::TensorReader;

/// What a name in the file stands for.
#[derive(Debug, Clone)]
pub(crate) enum Item {
    /// A tensor.
    Value(ValueId),
    /// Sizes taken from shapes, which may be the batch's: known at load, so no tensor is made of them unless somebody asks.
    Sizes(Sizes),
}

/// Integers taken from shapes and constants.
#[derive(Debug, Clone)]
pub(crate) struct Sizes {
    /// The integers.
    pub sizes: SmallVec<[Size; 4]>,
    /// Whether it is a scalar (then there is one) and not a vector.
    pub scalar: bool,
}

/// One integer, known at load or the batch's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    /// Always this.
    Number(i64),
    /// The rows of the batch.
    Batch,
}

/// A node being imported.
pub(crate) struct NodeImport<'a> {
    /// The graph that grows.
    pub graph: &'a mut Graph,
    /// The reader of tensors in attributes.
    pub tensors: &'a TensorReader<'a>,
    /// Computes what depends on constants alone.
    pub folding: &'a Folding<'a>,
    /// The node's name.
    pub name: Arc<str>,
    /// Its inputs; `None` for one left out.
    pub inputs: SmallVec<[Option<Item>; 4]>,
    /// Its attributes.
    pub attributes: Attributes<'a>,
    /// The version of ONNX's operator set that the model uses.
    pub opset: i64,
    /// Which of its outputs somebody may read, the first included.
    pub wanted: SmallVec<[bool; 4]>,
    /// What the operator gives for the outputs after the first, in order; left empty by operators that have none.
    pub more_outputs: SmallVec<[Item; 2]>,
}

impl NodeImport<'_> {
    /// Input number `index` as a tensor. Fails when it was left out or depends on the number of rows.
    pub fn value(&mut self, index: usize) -> LoadResult<ValueId> {
        match self.optional(index)? {
            Some(value) => Ok(value),
            None => Err(LoadError::malformed(format!("input {index} is left out"))),
        }
    }

    /// Input number `index` as a tensor, if it is there.
    pub fn optional(&mut self, index: usize) -> LoadResult<Option<ValueId>> {
        match self.inputs.get(index).cloned().flatten() {
            None => Ok(None),
            Some(Item::Value(value)) => Ok(Some(value)),
            Some(Item::Sizes(sizes)) => {
                let constant = sizes.to_constant()?;
                self.graph.add_constant(self.name.clone(), constant).map(Some)
            }
        }
    }

    /// Input number `index` as sizes, if it is there: from shapes, or a constant of integers. Fails for anything else.
    pub fn sizes(&self, index: usize) -> LoadResult<Option<Sizes>> {
        match self.inputs.get(index).cloned().flatten() {
            None => Ok(None),
            Some(Item::Sizes(sizes)) => Ok(Some(sizes)),
            Some(Item::Value(value)) => match self.graph.constant(value) {
                Some(constant) => Sizes::from_constant(constant).map(Some),
                None => Err(self.not_known(index, value)),
            },
        }
    }

    /// Whether output number `index` is wanted.
    pub fn wants(&self, index: usize) -> bool {
        self.wanted.get(index).copied().unwrap_or(false)
    }

    /// Input number `index` as a constant, if it is there. Fails when it is not known before a request runs, naming the
    /// model's inputs whose values it depends on: they then become part of what a plan is made for.
    pub fn known(&mut self, index: usize) -> LoadResult<Option<&Constant>> {
        let Some(value) = self.optional(index)? else { return Ok(None) };
        match self.graph.constant(value).is_some() {
            true => Ok(self.graph.constant(value)),
            false => Err(self.not_known(index, value)),
        }
    }

    fn not_known(&self, index: usize, value: ValueId) -> LoadError {
        let inputs = self.graph.inputs_behind(value);
        LoadError::needs_values(format!("input {index} must be known before a request runs"), inputs)
    }

    /// Input number `index` as integers, if it is there. Fails when it is not a constant.
    pub fn integers(&self, index: usize) -> LoadResult<Option<Vec<i64>>> {
        let Some(Item::Value(value)) = self.inputs.get(index).and_then(Option::as_ref) else {
            let sizes = self.sizes(index)?;
            return sizes.map(|sizes| Ok(sizes.to_constant()?.to_i64()?)).transpose();
        };
        match self.graph.constant(*value) {
            Some(constant) => Ok(Some(
                constant.to_i64().map_err(|error| LoadError::from(error).context(format_args!("input {index}")))?,
            )),
            None => Err(self.not_known(index, *value)),
        }
    }

    /// Input number `index` as one float, if it is there. Fails when it is not a constant with one element.
    pub fn scalar(&mut self, index: usize) -> LoadResult<Option<f32>> {
        let Some(constant) = self.known(index)? else { return Ok(None) };
        match &*constant.to_f32()? {
            [one] => Ok(Some(*one)),
            _ => Err(LoadError::unsupported(format!("input {index} must have one element"))),
        }
    }

    /// A tensor's type.
    pub fn tensor(&self, value: ValueId) -> &TensorType {
        self.graph.tensor(value)
    }

    /// A tensor's dimensions.
    pub fn dims(&self, value: ValueId) -> Dims {
        self.graph.tensor(value).dims.clone()
    }

    /// How many dimensions a tensor has.
    pub fn rank(&self, value: ValueId) -> usize {
        self.graph.tensor(value).dims.len()
    }

    /// Adds an operation, or its result when all its inputs are constants.
    pub fn compute(&mut self, op: Op, inputs: &[ValueId]) -> LoadResult<ValueId> {
        match self.folding.fold(self.graph, &self.name, &op, inputs)? {
            Some(constant) => self.graph.add_constant(self.name.clone(), constant),
            None => self.graph.add_compute(self.name.clone(), op, inputs),
        }
    }

    /// Adds a view.
    pub fn view(&mut self, input: ValueId, dims: Dims) -> LoadResult<ValueId> {
        self.graph.add_view(self.name.clone(), input, dims)
    }

    /// Adds a transposition.
    pub fn transpose(&mut self, input: ValueId, permutation: &[usize]) -> LoadResult<ValueId> {
        self.graph.add_transpose(self.name.clone(), input, permutation)
    }

    /// Moves axis 1, ONNX's channels, to the end.
    pub fn channels_last(&mut self, input: ValueId) -> LoadResult<ValueId> {
        let rank = self.rank(input);
        let permutation: SmallVec<[usize; 4]> = std::iter::once(0).chain(2..rank).chain([1]).take(rank).collect();
        self.transpose(input, &permutation)
    }

    /// Moves the last axis back to axis 1.
    pub fn channels_second(&mut self, input: ValueId) -> LoadResult<ValueId> {
        let rank = self.rank(input);
        let permutation: SmallVec<[usize; 4]> =
            std::iter::once(0).chain([rank - 1]).chain(1..rank - 1).take(rank).collect();
        self.transpose(input, &permutation)
    }

    /// Adds an FP32 or FP16 constant with one element and no dimension.
    pub fn scalar_constant(&mut self, dtype: DType, value: f32) -> LoadResult<ValueId> {
        let constant = Constant::of_f32(dtype, Shape::default(), &[value])?;
        self.graph.add_constant(self.name.clone(), constant)
    }
}

/// The most integers that are followed as sizes: a rank and some to spare. Joining lists again and again must not grow them.
pub(crate) const MAX_SIZES: usize = 64;

impl Sizes {
    /// Whether one of them is the batch's.
    pub fn has_batch(&self) -> bool {
        self.sizes.contains(&Size::Batch)
    }

    /// Fails when there are too many.
    pub fn new(sizes: SmallVec<[Size; 4]>, scalar: bool) -> LoadResult<Sizes> {
        match sizes.len() > MAX_SIZES {
            true => Err(LoadError::unsupported(format!(
                "{} integers where sizes are expected, at most {MAX_SIZES} are supported",
                sizes.len()
            ))),
            false => Ok(Sizes { sizes, scalar }),
        }
    }

    /// The integers of a constant with at most one dimension.
    fn from_constant(constant: &Constant) -> LoadResult<Sizes> {
        if constant.shape().rank() > 1 {
            return Err(LoadError::unsupported(format!(
                "integers of shape {}; a scalar or a vector is supported",
                constant.shape()
            )));
        }
        let sizes = constant.to_i64()?.into_iter().take(MAX_SIZES + 1).map(Size::Number).collect();
        Sizes::new(sizes, constant.shape().rank() == 0)
    }

    /// As an INT64 constant. Fails when one of them is the batch's.
    pub fn to_constant(&self) -> LoadResult<Constant> {
        let mut values = Vec::with_capacity(self.sizes.len());
        for size in &self.sizes {
            match size {
                Size::Number(number) => values.push(*number),
                Size::Batch => return Err(rows_meet("its values would depend on the number of rows")),
            }
        }
        let shape = if self.scalar { Shape::default() } else { Shape::new(&[values.len()])? };
        Ok(Constant::new(DType::Int64, shape, bytemuck::cast_slice(&values))?)
    }
}

/// The axis that ONNX's `axis` means for a tensor of `rank` dimensions: negative ones count from the end.
pub(crate) fn resolve_axis(axis: i64, rank: usize) -> LoadResult<usize> {
    let resolved = if axis < 0 { axis.checked_add(rank as i64) } else { Some(axis) };
    match resolved.and_then(|axis| usize::try_from(axis).ok()).filter(|axis| *axis < rank) {
        Some(axis) => Ok(axis),
        None => Err(LoadError::malformed(format!("axis {axis} does not exist in a tensor of {rank} dimensions"))),
    }
}
