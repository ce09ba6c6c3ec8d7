//! How movements of elements and resizing work on what is stored in another order of axes: their axes are renamed, constants
//! permuted, and the output owes what the input does.

use std::sync::Arc;

use super::{Layout, Stored, inverse};
use crate::error::LoadResult;
use crate::graph::{Node, TensorType, ValueId, moves_elements};
use crate::op::movement::{AxisSlice, Movement, Pad, Top};
use crate::op::sampling::{Resize, Sampling};
use crate::op::{Axes, Op};
use crate::shape_inference::{self, Dims};

impl Layout<'_> {
    /// `movement` on what is stored; `None` when it needs the old order.
    pub(super) fn movement(&mut self, node: &Node, movement: Movement) -> LoadResult<Option<Stored>> {
        let Some(owed) = self.owed_by_first(node) else {
            return match movement {
                Movement::Concat { axis } => self.concat(node, axis),
                _ => Ok(None),
            };
        };
        let movement = match movement {
            Movement::Slice(slices) => {
                let moved = |slice: AxisSlice| AxisSlice { axis: owed[slice.axis], ..slice };
                Movement::Slice(slices.into_iter().map(moved).collect())
            }
            Movement::Concat { axis } => return self.concat(node, axis),
            Movement::Pad(Pad { before, after, mode }) => {
                Movement::Pad(Pad { before: stored_order(&before, &owed), after: stored_order(&after, &owed), mode })
            }
            Movement::Expand { dims } if dims.len() == owed.len() => {
                let back = inverse(&owed);
                Movement::Expand { dims: back.iter().map(|&axis| dims[axis]).collect::<Dims>() }
            }
            Movement::Gather { axis } if self.graph.tensor(node.inputs[1]).dims.len() == 1 => {
                Movement::Gather { axis: owed[axis] }
            }
            Movement::Top(top) => Movement::Top(Top { axis: owed[top.axis], ..top }),
            _ => return Ok(None),
        };
        self.on_first(node, Op::Move(movement), owed)
    }

    /// `sampling` on what is stored; `None` when it needs the old order.
    pub(super) fn sampling(&mut self, node: &Node, sampling: Sampling) -> LoadResult<Option<Stored>> {
        match (self.owed_by_first(node), sampling) {
            (Some(owed), Sampling::Resize(resize)) => {
                let resize = Resize { axis: owed[resize.axis], ..resize };
                self.on_first(node, Op::Sample(Sampling::Resize(resize)), owed)
            }
            _ => Ok(None),
        }
    }

    fn owed_by_first(&self, node: &Node) -> Option<Axes> {
        self.stored[node.inputs[0].index()].owed.clone()
    }

    /// `op`, already with stored axes, on the first input as it is stored and the others as they were; the output owes `owed`.
    /// `None` when the output would owe a movement of elements that are not floats.
    fn on_first(&mut self, node: &Node, op: Op, owed: Axes) -> LoadResult<Option<Stored>> {
        let mut inputs: Vec<ValueId> = vec![self.stored[node.inputs[0].index()].value];
        for &other in &node.inputs[1..] {
            inputs.push(self.settle(other, &node.name)?);
        }
        let types: Vec<&TensorType> = inputs.iter().map(|&input| self.graph.tensor(input)).collect();
        let TensorType { dtype, dims } = shape_inference::infer(&op, &types)?;
        if !shape_inference::is_arithmetic(dtype) && moves_elements(&dims, &owed) {
            return Ok(None);
        }
        let value = self.graph.add_compute(Arc::clone(&node.name), op, &inputs)?;
        Ok(Some(Stored::new(value, owed)))
    }

    /// In the order of axes that most inputs owe; the others join it.
    fn concat(&mut self, node: &Node, axis: usize) -> LoadResult<Option<Stored>> {
        let owing = |input: &ValueId| self.stored[input.index()].owed.clone();
        let Some(owed) = node.inputs.iter().find_map(owing) else { return Ok(None) };
        let same = node.inputs.iter().filter(|input| owing(input).as_ref() == Some(&owed)).count();
        if 2 * same < node.inputs.len() || owed.len() <= axis {
            return Ok(None);
        }
        let back = inverse(&owed);
        let mut inputs = Vec::with_capacity(node.inputs.len());
        for &input in &node.inputs {
            let stored = self.stored[input.index()].clone();
            inputs.push(self.transposed(stored.transposed(&back), &node.name)?);
        }
        let op = Op::Move(Movement::Concat { axis: owed[axis] });
        let value = self.graph.add_compute(Arc::clone(&node.name), op, &inputs)?;
        Ok(Some(Stored::new(value, owed)))
    }
}

/// What belongs to each old axis, in the order in which the axes are stored.
fn stored_order(values: &Axes, owed: &Axes) -> Axes {
    inverse(owed).iter().map(|&axis| values[axis]).collect()
}
