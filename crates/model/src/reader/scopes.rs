//! Which names of the file are in sight, and what they stand for: those of the graph, and of the branches that are being read.
//! The reader alone uses it.

use std::collections::HashMap;

use crate::operators::Item;

/// Names by scope, the innermost last.
#[derive(Debug)]
pub(super) struct Scopes<'a> {
    scopes: Vec<HashMap<&'a str, Item>>,
}

impl Default for Scopes<'_> {
    fn default() -> Self {
        Scopes { scopes: vec![HashMap::new()] }
    }
}

impl<'a> Scopes<'a> {
    /// What `name` stands for.
    pub(super) fn get(&self, name: &str) -> Option<&Item> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name))
    }

    /// Has `name` stand for `item` in the innermost scope.
    pub(super) fn set(&mut self, name: &'a str, item: Item) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, item);
        }
    }

    /// How many branches are being read.
    pub(super) fn depth(&self) -> usize {
        self.scopes.len() - 1
    }

    /// Enters a branch.
    pub(super) fn enter(&mut self) {
        self.scopes.push(HashMap::new());
    }

    /// Leaves the branch that was entered last.
    pub(super) fn leave(&mut self) {
        self.scopes.pop();
    }
}
