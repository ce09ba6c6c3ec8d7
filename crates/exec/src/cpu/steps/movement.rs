//! Operations that move elements: each to the step that does it.

use insula_core::Result;
use insula_model::op::Movement;

use crate::cpu::lower::Lowering;
use crate::cpu::step::Step;
use crate::cpu::steps::{concat, found, gather, one_hot, remap, reverse, scatter, top, triangle};

pub(in crate::cpu) fn lower(lowering: &Lowering<'_>, movement: &Movement) -> Result<Box<dyn Step>> {
    match movement {
        Movement::Slice(slices) => remap::slice(lowering, slices),
        Movement::Concat { axis } => concat::lower(lowering, *axis),
        Movement::Pad(pad) => remap::pad(lowering, pad),
        Movement::Expand { .. } => remap::expand(lowering),
        Movement::Gather { axis } => gather::slices(lowering, *axis),
        Movement::GatherElements { axis } => gather::elements(lowering, *axis),
        Movement::GatherNd { batch_dims } => gather::vectors(lowering, *batch_dims),
        Movement::ScatterElements { axis, combine } => scatter::elements(lowering, *axis, *combine),
        Movement::ScatterNd { combine } => scatter::vectors(lowering, *combine),
        Movement::CacheUpdate { axis, circular } => scatter::cache(lowering, *axis, *circular),
        Movement::Top(top) => top::lower(lowering, top),
        Movement::OneHot { axis, depth } => one_hot::lower(lowering, *axis, *depth),
        Movement::Triangle { upper } => triangle::lower(lowering, *upper),
        Movement::ReverseSequence { time_axis, .. } => reverse::lower(lowering, *time_axis == 0),
        Movement::NonZero(wanted) => found::non_zero(lowering, *wanted),
        Movement::Unique(unique) => found::unique(lowering, unique),
        Movement::NonMaxSuppression(suppression) => found::non_max_suppression(lowering, suppression),
    }
}
