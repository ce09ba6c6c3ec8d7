//! Requests that wait for plans: one order a model and class, and whose is built next: a tenant has a few builds a second, and
//! the lane's time goes round by what each tenant has used of it, so that slow builds of one do not keep others from theirs. It
//! is pure: no thread, no clock. The planner's thread takes from it what is due.
//!
//! Source: start-time fair queueing, with equal weights and one server.

use std::collections::HashMap;
use std::time::Duration;

use insula_core::Nanos;

use crate::admission::gcra::{Gcra, Rate};
use crate::fair_queue::TenantSlot;
use crate::plans::cache::ClassKey;

/// Plan builds that a tenant may have a second.
pub const BUILDS_PER_SECOND: u32 = 4;

/// Orders that wait, with the jobs `J` that wait for each.
#[derive(Debug)]
pub struct Waiting<J> {
    orders: HashMap<ClassKey, Order<J>>,
    line: Vec<ClassKey>,
    tenants: HashMap<TenantSlot, Lane>,
    /// The start of the latest build, in lane time used.
    virtual_time: u64,
}

/// What a tenant has had of the lane.
#[derive(Debug, Default)]
struct Lane {
    rate: Gcra,
    /// Nanoseconds used, or the virtual time when it came back after doing without.
    used: u64,
}

#[derive(Debug)]
struct Order<J> {
    tenant: TenantSlot,
    jobs: Vec<J>,
    charged: bool,
}

/// What is to be done next.
#[derive(Debug)]
pub enum Next<J> {
    /// To build the plans of this class for `tenant`; all these jobs wait for them.
    Build(ClassKey, TenantSlot, Vec<J>),
    /// To wait this long, unless something comes.
    Wait(Duration),
    /// To wait until something comes.
    Nothing,
}

impl<J> Default for Waiting<J> {
    fn default() -> Self {
        Waiting { orders: HashMap::new(), line: Vec::new(), tenants: HashMap::new(), virtual_time: 0 }
    }
}

impl<J> Waiting<J> {
    /// Has `job` of `tenant` wait for `key`. An order that is there already is joined, whoever left it. One that goes on from
    /// another that was charged is not `charged` again.
    pub fn add(&mut self, key: ClassKey, tenant: TenantSlot, job: J, charged: bool) {
        let line = &mut self.line;
        let order = self.orders.entry(key).or_insert_with_key(|key| {
            line.push(key.clone());
            Order { tenant, jobs: Vec::new(), charged }
        });
        order.jobs.push(job);
    }

    /// The first order whose tenant may have one built at `now`. Jobs that are no longer `alive` are dropped, and orders that
    /// nobody waits for with them.
    pub fn next(&mut self, now: Nanos, mut alive: impl FnMut(&mut J) -> bool) -> Next<J> {
        self.orders.retain(|_, order| {
            order.jobs.retain_mut(&mut alive);
            !order.jobs.is_empty()
        });
        self.line.retain(|key| self.orders.contains_key(key));
        let rate = Rate::new(f64::from(BUILDS_PER_SECOND), BUILDS_PER_SECOND);
        let mut shortest: Option<Duration> = None;
        for index in self.by_use() {
            let Some(order) = self.orders.get(&self.line[index]) else { continue };
            let lane = self.tenants.entry(order.tenant).or_default();
            let allowed = match order.charged {
                true => Ok(()),
                false => lane.rate.take(rate, now),
            };
            match allowed {
                Ok(()) => {
                    lane.used = lane.used.max(self.virtual_time);
                    self.virtual_time = lane.used;
                    let key = self.line.remove(index);
                    return match self.orders.remove(&key) {
                        Some(order) => Next::Build(key, order.tenant, order.jobs),
                        None => Next::Nothing,
                    };
                }
                Err(wait) => shortest = Some(shortest.map_or(wait, |shortest| shortest.min(wait))),
            }
        }
        match shortest {
            Some(wait) => Next::Wait(wait),
            None => {
                // nobody waits: what is no news any more is forgotten
                let virtual_time = self.virtual_time;
                self.tenants.retain(|_, lane| !lane.rate.is_idle(now) || lane.used > virtual_time);
                Next::Nothing
            }
        }
    }

    /// Notes that a build for `tenant` took `time`.
    pub fn note(&mut self, tenant: TenantSlot, time: Duration) {
        let lane = self.tenants.entry(tenant).or_default();
        lane.used = lane.used.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Positions in the line: those of the tenant that has used least first, a tenant's own in the order they came.
    fn by_use(&self) -> Vec<usize> {
        let used = |index: &usize| {
            let tenant = self.orders.get(&self.line[*index]).map(|order| order.tenant);
            let used = tenant.and_then(|tenant| self.tenants.get(&tenant)).map_or(0, |lane| lane.used);
            used.max(self.virtual_time)
        };
        let mut positions: Vec<usize> = (0..self.line.len()).collect();
        positions.sort_by_key(used);
        positions
    }

    /// All jobs that wait.
    pub fn drain(&mut self) -> Vec<J> {
        self.line.clear();
        self.orders.drain().flat_map(|(_, order)| order.jobs).collect()
    }
}

#[cfg(test)]
mod tests {
    use insula_model::ShapeClass;

    use super::*;
    use crate::fair_queue::PlanKey;

    fn key(model: u64) -> ClassKey {
        ClassKey { model: PlanKey(model), class: ShapeClass::default() }
    }

    fn built(waiting: &mut Waiting<u32>, now: Nanos) -> Vec<Vec<u32>> {
        let mut built = Vec::new();
        while let Next::Build(_, _, jobs) = waiting.next(now, |_| true) {
            built.push(jobs);
        }
        built
    }

    #[test]
    fn a_tenants_fifth_build_of_a_second_waits_and_nobody_elses_does() {
        let (mut waiting, start) = (Waiting::default(), Nanos(0));
        for model in 0..6 {
            waiting.add(key(model), TenantSlot(1), model as u32, false);
        }
        waiting.add(key(100), TenantSlot(2), 100, false);
        assert_eq!(built(&mut waiting, start), [vec![0], vec![1], vec![2], vec![3], vec![100]]);
        let Next::Wait(wait) = waiting.next(start, |_| true) else { panic!("the fifth waits") };
        assert_eq!(wait, Duration::from_millis(250));
        assert_eq!(built(&mut waiting, start + wait), [vec![4]]);
        assert_eq!(built(&mut waiting, start + wait + wait), [vec![5]]);
    }

    #[test]
    fn slow_builds_of_one_tenant_do_not_keep_another_from_its_own() {
        let (mut waiting, start) = (Waiting::default(), Nanos(0));
        for model in 0..4 {
            waiting.add(key(model), TenantSlot(1), 1, false);
        }
        waiting.add(key(100), TenantSlot(2), 2, false);
        waiting.add(key(101), TenantSlot(2), 2, false);
        let mut order = Vec::new();
        while let Next::Build(_, tenant, _) = waiting.next(start, |_| true) {
            waiting
                .note(tenant, if tenant == TenantSlot(1) { Duration::from_secs(1) } else { Duration::from_millis(1) });
            order.push(tenant.0);
        }
        assert_eq!(order, [1, 2, 2, 1, 1, 1]);
    }

    #[test]
    fn requests_of_one_class_wait_for_one_build() {
        let mut waiting = Waiting::default();
        waiting.add(key(1), TenantSlot(1), 1, false);
        waiting.add(key(1), TenantSlot(2), 2, false);
        assert_eq!(built(&mut waiting, Nanos(0)), [vec![1, 2]]);
        assert!(matches!(waiting.next(Nanos(0), |_| true), Next::Nothing));
    }

    #[test]
    fn what_nobody_waits_for_any_more_costs_its_tenant_nothing() {
        let mut waiting = Waiting::default();
        for model in 0..10 {
            waiting.add(key(model), TenantSlot(1), model as u32, false);
        }
        let Next::Build(_, _, jobs) = waiting.next(Nanos(0), |job| *job == 9) else { panic!("one is alive") };
        assert_eq!(jobs, [9]);
        assert!(matches!(waiting.next(Nanos(0), |_| true), Next::Nothing));
    }

    #[test]
    fn an_order_that_goes_on_is_not_charged_twice() {
        let mut waiting = Waiting::default();
        for model in 0..10 {
            waiting.add(key(model), TenantSlot(1), 0, true);
        }
        assert_eq!(built(&mut waiting, Nanos(0)).len(), 10);
    }
}
