//! Makes the plan of an optimised graph for a number of rows: steps, buffers and their places, and has it verified.

use std::sync::Arc;

use insula_core::{Result, Shape};

use crate::constant::Constant;
use crate::error::{LoadError, LoadResult, quoted};
use crate::graph::{Graph, Node, NodeOp, ValueId, ValueSource};
use crate::plan::arena::{self, Lifetime};
use crate::plan::{
    Binding, Buffer, BufferId, Epilogue, LogicalPlan, Operand, PlanInput, PlanOutput, Source, Step, verify,
};

impl LogicalPlan {
    /// The plan of `graph` for `rows` rows. Fails when its tensors are too large to be addressed.
    pub fn new(graph: &Graph, rows: usize) -> LoadResult<LogicalPlan> {
        let mut build = Build {
            graph,
            rows,
            sources: sources(graph),
            buffers: Vec::new(),
            steps: Vec::new(),
            lifetimes: Vec::new(),
        };
        for node in &graph.nodes {
            build.add(node)?;
        }
        let inputs = graph.inputs.iter().map(|&input| build.input(input)).collect::<LoadResult<_>>()?;
        let outputs = graph.outputs.iter().map(|output| build.output(output.value)).collect::<LoadResult<_>>()?;
        let Build { mut buffers, steps, lifetimes, .. } = build;
        let (offsets, arena_bytes) = arena::place(&lifetimes)?;
        for (buffer, offset) in buffers.iter_mut().zip(offsets) {
            buffer.offset = offset;
        }
        let plan = LogicalPlan { rows, inputs, buffers, steps, outputs, arena_bytes };
        plan.verify(&graph.constants)?;
        Ok(plan)
    }

    /// Proves that every operand and output is whole when it is read and that nothing is overwritten too early; `constants` are
    /// the model's. [`LogicalPlan::new`] has done it; a device may do it again on a plan it was handed.
    pub fn verify(&self, constants: &[Constant]) -> Result<()> {
        verify::verify(self, constants)
    }
}

struct Build<'a> {
    graph: &'a Graph,
    rows: usize,
    /// Where each value's bytes are; `None` until its node has been added.
    sources: Vec<Option<Source>>,
    buffers: Vec<Buffer>,
    steps: Vec<Step>,
    lifetimes: Vec<Lifetime>,
}

fn sources(graph: &Graph) -> Vec<Option<Source>> {
    let source = |source: &ValueSource| match source {
        ValueSource::Input(index) => Some(Source::Input(*index as u32)),
        ValueSource::Constant(id) => Some(Source::Constant(*id)),
        ValueSource::Node => None,
    };
    graph.values.iter().map(|value| source(&value.source)).collect()
}

impl Build<'_> {
    fn add(&mut self, node: &Node) -> LoadResult<()> {
        let NodeOp::Compute(op) = &node.op else {
            self.sources[node.output.index()] = self.sources[node.inputs[0].index()];
            return Ok(());
        };
        let inputs = node.inputs.iter().map(|&input| self.operand(input)).collect::<LoadResult<_>>()?;
        let residual = node.epilogue.residual.map(|residual| self.operand(residual)).transpose()?;
        let epilogue = Epilogue { bias: node.epilogue.bias, residual, activation: node.epilogue.activation };
        let (shape, bytes) = self.shape(node.output)?;
        let dtype = self.graph.tensor(node.output).dtype;
        let bytes = bytes
            .ok_or_else(|| LoadError::internal("the plan does not hold together", format!("{node:?} writes BYTES")))?;
        let output = BufferId(self.buffers.len() as u32);
        let step = self.steps.len();
        self.buffers.push(Buffer { dtype, shape, offset: 0, bytes });
        self.lifetimes.push(Lifetime { first: step, last: step, bytes });
        self.sources[node.output.index()] = Some(Source::Buffer(output));
        self.steps.push(Step { name: Arc::clone(&node.name), op: op.clone(), inputs, output, epilogue });
        Ok(())
    }

    /// The value as the step that is being added reads it.
    fn operand(&mut self, value: ValueId) -> LoadResult<Operand> {
        let source = self.source(value)?;
        if let Source::Buffer(buffer) = source {
            self.lifetimes[buffer.index()].last = self.steps.len();
        }
        Ok(Operand { source, dtype: self.graph.tensor(value).dtype, shape: self.shape(value)?.0 })
    }

    fn input(&self, value: ValueId) -> LoadResult<PlanInput> {
        let (shape, bytes) = self.shape(value)?;
        Ok(PlanInput { dtype: self.graph.tensor(value).dtype, shape, bytes })
    }

    fn output(&mut self, value: ValueId) -> LoadResult<PlanOutput> {
        let binding = match self.source(value)? {
            Source::Input(index) => Binding::Input(index),
            Source::Constant(id) => Binding::Constant(id),
            Source::Buffer(buffer) => {
                self.lifetimes[buffer.index()].last = usize::MAX;
                Binding::Buffer(buffer)
            }
        };
        let (shape, bytes) = self.shape(value)?;
        Ok(PlanOutput { binding, dtype: self.graph.tensor(value).dtype, shape, bytes })
    }

    fn source(&self, value: ValueId) -> LoadResult<Source> {
        self.sources[value.index()].ok_or_else(|| {
            let name = quoted(&self.graph.values[value.index()].name);
            LoadError::internal("the plan does not hold together", format!("{name} is read before it is written"))
        })
    }

    fn shape(&self, value: ValueId) -> LoadResult<(Shape, Option<usize>)> {
        let tensor = self.graph.tensor(value);
        let about = |error: insula_core::Error| {
            let name = quoted(&self.graph.values[value.index()].name);
            LoadError::limit(format!("{name} with {} rows: {}", self.rows, error.message()))
        };
        let shape = tensor.shape(self.rows).map_err(about)?;
        let bytes = shape.bytes(tensor.dtype).map_err(about)?;
        Ok((shape, bytes))
    }
}
