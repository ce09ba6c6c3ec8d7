//! The lowered plans for requests of one shape class, one a bucket, and what is known of their outputs before they run.
//! Immutable once built. The loader builds them for models that have one class, the planner for the others.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use insula_core::{DType, Error, ModelSignature, Result, Shape};
use insula_exec::{Device, LoweredPlan, Weights};
use insula_memory::{BudgetShare, HostBudget};
use insula_model::{Binding, LogicalPlan, Model};

use crate::fair_queue::PlanKey;

/// The plans of one model for one shape class.
pub struct ClassPlans {
    key: PlanKey,
    plans: Vec<Arc<dyn LoweredPlan>>,
    outputs: Vec<OutputRoom>,
    max_rows: usize,
    bytes: u64,
    _share: BudgetShare,
}

/// What is known of an output's room before a request runs.
#[derive(Debug, Clone)]
pub struct OutputRoom {
    /// The output's name.
    pub name: Arc<str>,
    /// The element type.
    pub dtype: DType,
    /// The input that it passes through unchanged, if it does.
    pub passes_through: Option<usize>,
    /// The shape with one row.
    shape: Shape,
    batched: bool,
}

impl OutputRoom {
    /// The output's shape in a request of `rows` rows.
    pub fn shape(&self, rows: usize) -> Result<Shape> {
        match self.batched {
            true => self.shape.with_rows(rows),
            false => Ok(self.shape.clone()),
        }
    }
}

impl ClassPlans {
    /// Its name in fair queues.
    pub fn key(&self) -> PlanKey {
        self.key
    }

    /// What is known of each output's room.
    pub fn outputs(&self) -> &[OutputRoom] {
        &self.outputs
    }

    /// The most rows of a request and of a batch.
    pub fn max_rows(&self) -> usize {
        self.max_rows
    }

    /// Bytes of the plans, without weights.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The plan of the smallest bucket that holds `rows` rows, or the largest there is.
    pub fn plan_for(&self, rows: usize) -> &Arc<dyn LoweredPlan> {
        let fitting = self.plans.iter().find(|plan| plan.bucket() >= rows);
        fitting.unwrap_or(&self.plans[self.plans.len() - 1])
    }
}

impl fmt::Debug for ClassPlans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClassPlans").field("key", &self.key).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// Builds plans on a device and counts them in the host budget.
#[derive(Debug)]
pub struct PlanBuilder {
    device: Arc<dyn Device>,
    budget: Arc<HostBudget>,
    keys: AtomicU64,
}

impl PlanBuilder {
    /// For `device`; bytes are counted in `budget`.
    pub fn new(device: Arc<dyn Device>, budget: Arc<HostBudget>) -> PlanBuilder {
        PlanBuilder { device, budget, keys: AtomicU64::new(1) }
    }

    /// The device.
    pub fn device(&self) -> &dyn Device {
        &*self.device
    }

    /// The host budget.
    pub fn budget(&self) -> &Arc<HostBudget> {
        &self.budget
    }

    /// A key that no other model and no other class has.
    pub fn next_key(&self) -> PlanKey {
        PlanKey(self.keys.fetch_add(1, Ordering::Relaxed))
    }

    /// Packs what of `model`'s weights nobody has yet and lowers a plan for each bucket.
    pub fn build(&self, model: &Model) -> Result<(ClassPlans, Arc<dyn Weights>)> {
        let weights = self.device.load_weights(model)?;
        let logical = model.buckets().into_iter().map(|rows| model.logical_plan(rows)).collect::<Result<Vec<_>>>()?;
        let plans = logical.iter().map(|plan| self.device.lower(plan, &weights)).collect::<Result<Vec<_>>>()?;
        let Some(first) = logical.first().filter(|_| !plans.is_empty()) else {
            return Err(Error::internal("the model has no plan", "no bucket was lowered"));
        };
        let bytes = plans.iter().map(|plan| plan.memory_bytes()).sum::<usize>() as u64;
        let built = ClassPlans {
            key: self.next_key(),
            outputs: output_rooms(&model.signature(), first),
            plans,
            max_rows: model.max_rows(),
            bytes,
            _share: self.budget.reserve(bytes)?,
        };
        Ok((built, weights))
    }
}

fn output_rooms(signature: &ModelSignature, plan: &LogicalPlan) -> Vec<OutputRoom> {
    let passes_through = |binding: Binding| match binding {
        Binding::Input(input) => Some(input as usize),
        Binding::Buffer(_) | Binding::Constant(_) => None,
    };
    let outputs = signature.outputs.iter().zip(&plan.outputs).map(|(spec, output)| OutputRoom {
        name: Arc::from(&*spec.name),
        dtype: output.dtype,
        passes_through: passes_through(output.binding),
        shape: output.shape.clone(),
        batched: signature.batched,
    });
    outputs.collect()
}
