//! The plans that are kept for models whose inputs vary, by model and shape class, within a bound of bytes. A tenant may fill a
//! part of it; over that, and over the bound, the plans that were used longest ago go first. Plans in use stay alive in their
//! requests. Tenants' loops look here; the planner adds.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use insula_model::ShapeClass;
use parking_lot::RwLock;

use crate::fair_queue::{PlanKey, TenantSlot};
use crate::plans::ClassPlans;

/// A tenant may fill this part of the cache.
const TENANT_PART: u64 = 4;

/// A model and a class of its requests.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClassKey {
    /// The model, by its key in route tables.
    pub model: PlanKey,
    /// The class.
    pub class: ShapeClass,
}

/// Plans by class.
pub struct PlanCache<P = ClassPlans> {
    kept: RwLock<HashMap<ClassKey, Kept<P>>>,
    clock: AtomicU64,
    bound: u64,
}

struct Kept<P> {
    plans: Arc<P>,
    tenant: TenantSlot,
    bytes: u64,
    used: AtomicU64,
}

impl<P> PlanCache<P> {
    /// One that keeps up to `bound` bytes.
    pub fn new(bound: u64) -> PlanCache<P> {
        PlanCache { kept: RwLock::default(), clock: AtomicU64::new(0), bound }
    }

    /// The plans of `key`, if they are kept.
    pub fn get(&self, key: &ClassKey) -> Option<Arc<P>> {
        let kept = self.kept.read();
        let found = kept.get(key)?;
        found.used.store(self.tick(), Ordering::Relaxed);
        Some(found.plans.clone())
    }

    /// Keeps `plans` of `bytes` bytes, which `tenant` had built; gives up what does not fit beside them.
    pub fn insert(&self, key: ClassKey, plans: Arc<P>, bytes: u64, tenant: TenantSlot) {
        let bytes = bytes.saturating_add(key.class.memory_bytes() as u64);
        let mut kept = self.kept.write();
        kept.insert(key, Kept { plans, tenant, bytes, used: AtomicU64::new(self.tick()) });
        while sum(&kept, |other| other.tenant == tenant) > self.bound / TENANT_PART {
            if !evict(&mut kept, |other| other.tenant == tenant) {
                break;
            }
        }
        while sum(&kept, |_| true) > self.bound {
            if !evict(&mut kept, |_| true) {
                break;
            }
        }
    }

    /// Gives up the plans that were used longest ago, half of all bytes; says whether there were any.
    pub fn give_up_half(&self) -> bool {
        let mut kept = self.kept.write();
        let half = sum(&kept, |_| true) / 2;
        let mut any = false;
        while !kept.is_empty() && (!any || sum(&kept, |_| true) > half) {
            any |= evict(&mut kept, |_| true);
        }
        any
    }

    /// Gives up all plans of `model`.
    pub fn forget(&self, model: PlanKey) {
        self.kept.write().retain(|key, _| key.model != model);
    }

    /// Bytes of all plans that are kept.
    pub fn bytes(&self) -> u64 {
        sum(&self.kept.read(), |_| true)
    }

    /// How many classes have plans.
    pub fn classes(&self) -> usize {
        self.kept.read().len()
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }
}

fn sum<P>(kept: &HashMap<ClassKey, Kept<P>>, counted: impl Fn(&Kept<P>) -> bool) -> u64 {
    kept.values().filter(|plans| counted(plans)).map(|plans| plans.bytes).sum()
}

/// Removes the one of those `considered` that was used longest ago.
fn evict<P>(kept: &mut HashMap<ClassKey, Kept<P>>, considered: impl Fn(&Kept<P>) -> bool) -> bool {
    let oldest = kept.iter().filter(|(_, plans)| considered(plans));
    let oldest = oldest.min_by_key(|(_, plans)| plans.used.load(Ordering::Relaxed)).map(|(key, _)| key.clone());
    oldest.is_some_and(|key| kept.remove(&key).is_some())
}

impl<P> fmt::Debug for PlanCache<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlanCache").field("classes", &self.classes()).field("bytes", &self.bytes()).finish()
    }
}

#[cfg(test)]
mod tests;
