//! Passes over a graph, one file each: they change the graph so that devices have less to do and less to know. None executes
//! an operation; folding constants asks a [`ConstantFolder`](constant_folding::ConstantFolder). [`optimise`] runs them in order and checks what comes out.

pub mod constant_folding;
pub mod dead_nodes;
pub mod flatten_weights;
pub mod fusion;
pub mod graph_check;
pub mod layout;
pub mod patterns;
pub mod precision;
pub mod views;

use crate::error::LoadResult;
use crate::graph::Graph;
use crate::passes::constant_folding::Folding;
use crate::passes::precision::Precision;

/// Runs every pass on `graph`.
pub fn optimise(graph: &mut Graph, folding: &Folding<'_>, precision: Precision) -> LoadResult<()> {
    constant_folding::run(graph, folding)?;
    views::run(graph)?;
    layout::run(graph)?;
    views::run(graph)?;
    flatten_weights::run(graph)?;
    patterns::run(graph)?;
    dead_nodes::run(graph)?;
    fusion::run(graph)?;
    precision::run(graph, precision)?;
    views::run(graph)?;
    dead_nodes::run(graph)?;
    graph_check::run(graph)
}
