//! The graph of a model: values and nodes in two arenas, nodes in an order in which every value is made before it is read.
//! The reader builds it, the passes change it, plans are made from it. It refuses what is not in that order; it runs nothing.

use std::sync::Arc;

use insula_core::{DType, Result, Shape};
use smallvec::SmallVec;

use crate::constant::{Constant, ConstantId};
use crate::error::{LoadError, LoadResult};
use crate::op::Op;
use crate::plan::Epilogue;
use crate::shape_inference::{self, Dims};

/// The position of a value in its graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub u32);

impl ValueId {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One dimension of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dim {
    /// Always this many.
    Fixed(usize),
    /// The rows of the batch: the one symbol, and only ever dimension 0.
    Batch,
}

/// Element type and dimensions of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorType {
    /// The element type.
    pub dtype: DType,
    /// The dimensions, outermost first.
    pub dims: SmallVec<[Dim; 4]>,
}

impl TensorType {
    /// The concrete shape in a batch of `rows`. Fails when the elements cannot be counted.
    pub fn shape(&self, rows: usize) -> Result<Shape> {
        let concrete = |dim: &Dim| match dim {
            Dim::Fixed(size) => *size,
            Dim::Batch => rows,
        };
        Shape::new(&self.dims.iter().map(concrete).collect::<SmallVec<[usize; 4]>>())
    }
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueSource {
    /// The graph's input of this position.
    Input(usize),
    /// A constant.
    Constant(ConstantId),
    /// The output of the one node that writes it.
    Node,
}

/// A tensor in the graph.
#[derive(Debug, Clone)]
pub struct Value {
    /// The name in the file, or one made from it.
    pub name: Arc<str>,
    /// Element type and dimensions.
    pub tensor: TensorType,
    /// Where it comes from.
    pub source: ValueSource,
}

/// What a node does.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeOp {
    /// An operation for a device.
    Compute(Op),
    /// The same elements in the same order, under the output's dimensions (Identity, Reshape, Flatten, ...). Any element type.
    View,
}

/// An operation on values.
#[derive(Debug, Clone)]
pub struct Node {
    /// The name in the file, or one made from its output.
    pub name: Arc<str>,
    /// What it does.
    pub op: NodeOp,
    /// What it reads.
    pub inputs: SmallVec<[ValueId; 2]>,
    /// What it writes.
    pub output: ValueId,
    /// What is done to the result before it is stored; empty before fusion and for views.
    pub epilogue: Epilogue<ValueId>,
}

impl Node {
    /// Every value it reads, that of its epilogue included.
    pub fn reads(&self) -> impl Iterator<Item = ValueId> {
        self.inputs.iter().copied().chain(self.epilogue.residual)
    }
}

/// A named output of the graph.
#[derive(Debug, Clone)]
pub struct GraphOutput {
    /// The name callers use.
    pub name: Box<str>,
    /// The value.
    pub value: ValueId,
}

/// Values, nodes and constants of a model.
#[derive(Debug, Clone)]
pub struct Graph {
    /// All values.
    pub values: Vec<Value>,
    /// All nodes, each after those it depends on.
    pub nodes: Vec<Node>,
    /// The constants.
    pub constants: Vec<Constant>,
    /// The inputs, in the model's order.
    pub inputs: Vec<ValueId>,
    /// The outputs, in the model's order.
    pub outputs: Vec<GraphOutput>,
    /// Bytes of constants that may still be made from others (permuted, scaled, folded), so that a small file cannot grow large.
    pub derived_budget: u64,
}

/// Bytes of derived constants that any file may have; and as many times its own constants.
const DERIVED_BASE: u64 = 64 << 20;
const DERIVED_FACTOR: u64 = 4;

impl Default for Graph {
    /// Nothing, with what any file may derive from constants.
    fn default() -> Graph {
        Graph {
            values: Vec::new(),
            nodes: Vec::new(),
            constants: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            derived_budget: DERIVED_BASE,
        }
    }
}

impl Graph {
    /// A value's type.
    pub fn tensor(&self, value: ValueId) -> &TensorType {
        &self.values[value.index()].tensor
    }

    /// The constant that `value` is, if it is one.
    pub fn constant(&self, value: ValueId) -> Option<&Constant> {
        match self.values[value.index()].source {
            ValueSource::Constant(id) => Some(&self.constants[id.index()]),
            _ => None,
        }
    }

    /// Adds an input.
    pub fn add_input(&mut self, name: &str, tensor: TensorType) -> LoadResult<ValueId> {
        let value = self.add_value(name.into(), tensor, ValueSource::Input(self.inputs.len()))?;
        self.inputs.push(value);
        Ok(value)
    }

    /// Adds a constant of the file, which raises the budget for constants made from it.
    pub fn add_file_constant(&mut self, name: Arc<str>, constant: Constant) -> LoadResult<ValueId> {
        self.derived_budget = self.derived_budget.saturating_add(DERIVED_FACTOR * constant.bytes().len() as u64);
        self.add_constant(name, constant)
    }

    /// Takes `bytes` from the budget for derived constants; `false` when there is not so much left: then derive nothing.
    pub fn charge_derived(&mut self, bytes: usize) -> bool {
        match self.derived_budget.checked_sub(bytes as u64) {
            Some(left) => {
                self.derived_budget = left;
                true
            }
            None => false,
        }
    }

    /// The graph's inputs that `value` depends on, by their positions, ascending.
    pub fn inputs_behind(&self, value: ValueId) -> Vec<usize> {
        let writers = self.writers();
        let (mut seen, mut open, mut found) = (vec![false; self.values.len()], vec![value], Vec::new());
        while let Some(value) = open.pop() {
            if std::mem::replace(&mut seen[value.index()], true) {
                continue;
            }
            match self.values[value.index()].source {
                ValueSource::Input(input) => found.push(input),
                ValueSource::Constant(_) => {}
                ValueSource::Node => {
                    let writer = writers[value.index()].map(|index| &self.nodes[index]);
                    open.extend(writer.into_iter().flat_map(Node::reads));
                }
            }
        }
        found.sort_unstable();
        found
    }

    /// Which node writes each value.
    pub fn writers(&self) -> Vec<Option<usize>> {
        let mut writers = vec![None; self.values.len()];
        for (index, node) in self.nodes.iter().enumerate() {
            writers[node.output.index()] = Some(index);
        }
        writers
    }

    /// How often each value is read by nodes and outputs.
    pub fn readers(&self) -> Vec<u32> {
        let mut readers = vec![0; self.values.len()];
        let read = self.nodes.iter().flat_map(Node::reads).chain(self.outputs.iter().map(|output| output.value));
        for value in read {
            readers[value.index()] += 1;
        }
        readers
    }

    /// Adds a constant and its value.
    pub fn add_constant(&mut self, name: Arc<str>, constant: Constant) -> LoadResult<ValueId> {
        let id = ConstantId(u32::try_from(self.constants.len()).map_err(|_| too_many("constants"))?);
        let dims = constant.shape().dims().iter().map(|&size| Dim::Fixed(size)).collect();
        let tensor = TensorType { dtype: constant.dtype(), dims };
        self.constants.push(constant);
        self.add_value(name, tensor, ValueSource::Constant(id))
    }

    /// Adds a node that computes, and its output. Fails when the inputs do not fit the operation.
    pub fn add_compute(&mut self, name: Arc<str>, op: Op, inputs: &[ValueId]) -> LoadResult<ValueId> {
        let tensor = {
            let types: SmallVec<[&TensorType; 2]> = inputs.iter().map(|&input| self.tensor(input)).collect();
            shape_inference::infer(&op, &types)?
        };
        let output = self.add_value(name.clone(), tensor, ValueSource::Node)?;
        self.nodes.push(Node {
            name,
            op: NodeOp::Compute(op),
            inputs: inputs.into(),
            output,
            epilogue: Epilogue::NONE,
        });
        Ok(output)
    }

    /// Adds a view of `input` under `dims`, or gives what is there already: the input itself, or its constant reshaped.
    /// Fails when `dims` do not have as many elements.
    pub fn add_view(&mut self, name: Arc<str>, input: ValueId, dims: Dims) -> LoadResult<ValueId> {
        let tensor = self.tensor(input);
        if tensor.dims == dims {
            return Ok(input);
        }
        shape_inference::check_batch(&dims)?;
        let tensor = TensorType { dtype: tensor.dtype, dims };
        let rows_kept = tensor.dims.contains(&Dim::Batch) == self.tensor(input).dims.contains(&Dim::Batch);
        if !rows_kept || tensor.shape(1)?.elements() != self.tensor(input).shape(1)?.elements() {
            let (from, to) = (shape_inference::shown(&self.tensor(input).dims), shape_inference::shown(&tensor.dims));
            return Err(LoadError::malformed(format!(
                "{from} cannot be reshaped to {to}: they have different numbers of elements"
            )));
        }
        if let Some(constant) = self.constant(input) {
            let reshaped = constant.reshaped(tensor.shape(1)?)?;
            return self.add_constant(name, reshaped);
        }
        let output = self.add_value(name.clone(), tensor, ValueSource::Node)?;
        self.nodes.push(Node {
            name,
            op: NodeOp::View,
            inputs: [input].into_iter().collect(),
            output,
            epilogue: Epilogue::NONE,
        });
        Ok(output)
    }

    /// Adds the transposition of `input`, or gives what is there already: the input itself, its constant permuted, or a view
    /// where no element moves.
    pub fn add_transpose(&mut self, name: Arc<str>, input: ValueId, permutation: &[usize]) -> LoadResult<ValueId> {
        if permutation.iter().enumerate().all(|(index, &axis)| index == axis)
            && permutation.len() == self.tensor(input).dims.len()
        {
            return Ok(input);
        }
        let op = Op::Transpose { permutation: permutation.into() };
        let dims = shape_inference::permuted(&self.tensor(input).dims, permutation)?;
        if !moves_elements(&self.tensor(input).dims, permutation) {
            return self.add_view(name, input, dims);
        }
        let bytes = self.constant(input).map(|constant| constant.bytes().len());
        if bytes.is_some_and(|bytes| self.charge_derived(bytes))
            && let Some(constant) = self.constant(input)
        {
            let permuted = constant.transposed(permutation)?;
            return self.add_constant(name, permuted);
        }
        self.add_compute(name, op, &[input])
    }

    fn add_value(&mut self, name: Arc<str>, tensor: TensorType, source: ValueSource) -> LoadResult<ValueId> {
        let id = ValueId(u32::try_from(self.values.len()).map_err(|_| too_many("values"))?);
        self.values.push(Value { name, tensor, source });
        Ok(id)
    }
}

/// Whether transposing a tensor of `dims` moves any element, and not only dimensions of size 1.
pub fn moves_elements(dims: &[Dim], permutation: &[usize]) -> bool {
    !permutation.iter().filter(|&&axis| dims.get(axis).is_some_and(|dim| *dim != Dim::Fixed(1))).is_sorted()
}

fn too_many(what: &str) -> LoadError {
    LoadError::limit(format!("the model has more than {} {what}", u32::MAX))
}
