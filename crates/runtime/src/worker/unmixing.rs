//! How long a tenant's rows of a model stay out of mixed batches after a request of it made one fail: 60 s, doubled with
//! each failure that follows within the time, to 1 h. Pure state; workers note failures, the fair queue is told the result.

use std::collections::HashMap;
use std::time::Duration;

use insula_core::Nanos;

use crate::fair_queue::{PlanKey, TenantSlot};

const FIRST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(3600);

/// Who is kept apart, and for how long.
#[derive(Debug, Default)]
pub struct Unmixing {
    terms: HashMap<(TenantSlot, PlanKey), Term>,
}

#[derive(Debug, Clone, Copy)]
struct Term {
    span: Duration,
    until: Nanos,
}

impl Unmixing {
    /// Notes a failure at `now`; says until when the tenant's rows of `plan` stay apart.
    pub fn note(&mut self, tenant: TenantSlot, plan: PlanKey, now: Nanos) -> Nanos {
        // whoever kept still for as long again as it was kept apart begins anew
        self.terms.retain(|_, term| term.until + term.span > now);
        let span = self.terms.get(&(tenant, plan)).map_or(FIRST, |term| (term.span * 2).min(LONGEST));
        let until = now + span;
        self.terms.insert((tenant, plan), Term { span, until });
        until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_term_doubles_up_to_an_hour_and_is_forgotten_after_good_conduct() {
        let (mut unmixing, tenant, plan) = (Unmixing::default(), TenantSlot(1), PlanKey(2));
        let mut now = Nanos(0);
        let mut terms = Vec::new();
        for _ in 0..8 {
            let until = unmixing.note(tenant, plan, now);
            terms.push(until.since(now).as_secs());
            now = until;
        }
        assert_eq!(terms, [60, 120, 240, 480, 960, 1920, 3600, 3600]);
        let later = now + Duration::from_secs(7200);
        assert_eq!(unmixing.note(tenant, plan, later).since(later), FIRST);
    }
}
