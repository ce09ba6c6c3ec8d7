//! Plans by shape class: how they are built, which are kept, and the lane on which those that are missing are made while only
//! the requests that need them wait. The loader and tenants' loops come here; workers run what they find.

pub mod cache;
pub mod class_plans;
pub mod planner;
pub mod waiting;

pub use cache::PlanCache;
pub use class_plans::{ClassPlans, OutputRoom, PlanBuilder};
pub use planner::{Planner, PlannerThread};
