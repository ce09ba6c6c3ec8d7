//! `If`: its condition is known before a request runs, so one branch is read in place of the node. A condition that depends
//! on a request's data makes the input it depends on part of what a plan is made for. The reader alone uses it.

use crate::error::{LoadError, LoadResult};
use crate::onnx::NodeProto;
use crate::operators::{Attributes, Item};

use super::Reading;

impl<'a> Reading<'a> {
    /// What the node's outputs are: those of the branch that is taken.
    pub(super) fn read_conditional(&mut self, node: &'a NodeProto, index: usize) -> LoadResult<Vec<Item>> {
        let attributes = Attributes::new(node)?;
        let (then_branch, else_branch) = (attributes.graph("then_branch")?, attributes.graph("else_branch")?);
        attributes.finish()?;
        let [condition] = &node.input[..] else {
            return Err(LoadError::malformed(format!("it has {} inputs, expected 1", node.input.len())));
        };
        let branch = match self.condition(condition)? {
            true => then_branch,
            false => else_branch,
        };
        if self.scopes.depth() > MAX_DEPTH {
            return Err(LoadError::limit(format!("node {index} lies in more than {MAX_DEPTH} branches")));
        }
        let values = self.read_branch(branch)?;
        Ok(values.into_iter().map(Item::Value).collect())
    }

    fn condition(&self, name: &str) -> LoadResult<bool> {
        let Some(Item::Value(value)) = self.scopes.get(name) else {
            return Err(LoadError::malformed("its condition is no tensor"));
        };
        let Some(constant) = self.graph.constant(*value) else {
            let inputs = self.graph.inputs_behind(*value);
            return Err(LoadError::needs_values("its condition must be known before a request runs", inputs));
        };
        match constant.bytes() {
            [condition] => Ok(*condition != 0),
            bytes => Err(LoadError::malformed(format!("its condition has {} bytes, expected one BOOL", bytes.len()))),
        }
    }
}

/// How deep branches may lie in branches.
const MAX_DEPTH: usize = 32;
