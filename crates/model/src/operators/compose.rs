//! Short ways to compose an operator of several operations: each adds one node, with constants of the right type. The families
//! that have no kernel of their own use them.

use insula_core::{DType, Shape};

use crate::constant::Constant;
use crate::error::{LoadError, LoadResult};
use crate::graph::{Dim, ValueId};
use crate::op::{Axes, BinaryOp, Comparison, Elementwise, Function, Op, Reduce, Reduction};
use crate::operators::NodeImport;
use crate::shape_inference::{Dims, rows_meet};

impl NodeImport<'_> {
    /// Arithmetic of two tensors of one type.
    pub fn binary(&mut self, op: BinaryOp, left: ValueId, right: ValueId) -> LoadResult<ValueId> {
        self.compute(Op::Binary(op), &[left, right])
    }

    /// Arithmetic of a tensor and a number in its type.
    pub fn binary_number(&mut self, op: BinaryOp, left: ValueId, right: f64) -> LoadResult<ValueId> {
        let right = self.number(self.tensor(left).dtype, right)?;
        self.binary(op, left, right)
    }

    /// A function of each element.
    pub fn function(&mut self, function: Function, input: ValueId) -> LoadResult<ValueId> {
        self.compute(Op::Elementwise(Elementwise::Function(function)), &[input])
    }

    /// A comparison of two tensors of one type.
    pub fn compare(&mut self, comparison: Comparison, left: ValueId, right: ValueId) -> LoadResult<ValueId> {
        self.compute(Op::Elementwise(Elementwise::Compare(comparison)), &[left, right])
    }

    /// `chosen` where `condition` is true, else `otherwise`.
    pub fn choose(&mut self, condition: ValueId, chosen: ValueId, otherwise: ValueId) -> LoadResult<ValueId> {
        self.compute(Op::Elementwise(Elementwise::Where), &[condition, chosen, otherwise])
    }

    /// `input` as `to`; itself if it is that already.
    pub fn cast(&mut self, input: ValueId, to: DType) -> LoadResult<ValueId> {
        match self.tensor(input).dtype == to {
            true => Ok(input),
            false => self.compute(Op::Cast { to }, &[input]),
        }
    }

    /// A reduction over `axes`, which stay with size 1.
    pub fn reduce(&mut self, reduction: Reduction, input: ValueId, axes: &[usize]) -> LoadResult<ValueId> {
        self.reduce_to(reduction, input, axes.into(), true)
    }

    /// A reduction over `axes`. Over none it is its function of single elements.
    pub fn reduce_to(
        &mut self,
        reduction: Reduction,
        input: ValueId,
        axes: Axes,
        keep_dims: bool,
    ) -> LoadResult<ValueId> {
        if !axes.is_empty() {
            return self.compute(Op::Reduce(Reduce { reduction, axes, keep_dims }), &[input]);
        }
        match reduction {
            Reduction::L1 | Reduction::L2 => self.function(Function::Abs, input),
            Reduction::LogSum => self.function(Function::Log, input),
            Reduction::SumSquare => self.binary(BinaryOp::Mul, input, input),
            _ => Ok(input),
        }
    }

    /// A constant of `dtype` with one element and no dimension.
    pub fn number(&mut self, dtype: DType, value: f64) -> LoadResult<ValueId> {
        let constant = Constant::of_f64(dtype, Shape::default(), &[value])?;
        self.graph.add_constant(self.name.clone(), constant)
    }

    /// The numbers 0, 1, ... of INT64, along `axis` of `rank` dimensions.
    pub fn range_along(&mut self, count: usize, axis: usize, rank: usize) -> LoadResult<ValueId> {
        let mut dims = vec![1; rank];
        dims[axis] = count;
        let numbers: Vec<i64> = (0..count as i64).collect();
        if !self.graph.charge_derived(count.saturating_mul(8)) {
            return Err(LoadError::limit("the constants that its nodes need are too large"));
        }
        let constant = Constant::new(DType::Int64, Shape::new(&dims)?, bytemuck::cast_slice(&numbers))?;
        self.graph.add_constant(self.name.clone(), constant)
    }

    /// A vector laid along `axis` of `rank` dimensions; what has no dimension stays.
    pub fn along_axis(&mut self, vector: ValueId, axis: usize, rank: usize) -> LoadResult<ValueId> {
        let dims = self.dims(vector);
        if dims.is_empty() {
            return Ok(vector);
        }
        let [Dim::Fixed(count)] = dims[..] else {
            return Err(LoadError::malformed("a value a channel must be a vector"));
        };
        let dims: Dims = (0..rank).map(|index| Dim::Fixed(if index == axis { count } else { 1 })).collect();
        self.view(vector, dims)
    }

    /// `input` with all dimensions from `axis` on as one.
    pub fn flat_from(&mut self, input: ValueId, axis: usize) -> LoadResult<ValueId> {
        let dims = self.dims(input);
        let columns = fixed_elements(&dims[axis..])?;
        let flat = dims[..axis].iter().copied().chain([Dim::Fixed(columns)]).collect();
        self.view(input, flat)
    }
}

/// The product of dimensions none of which may be the batch.
pub(super) fn fixed_elements(dims: &[Dim]) -> LoadResult<usize> {
    dims.iter().try_fold(1usize, |product, dim| match dim {
        Dim::Fixed(size) => {
            product.checked_mul(*size).ok_or_else(|| LoadError::limit("its shape has too many elements"))
        }
        Dim::Batch => Err(rows_meet("it runs along the batch")),
    })
}
