//! One request being counted: it has exactly one outcome. Whoever ends the request consumes the value, so it cannot be
//! counted twice; dropping it uncounted means that nobody waits for the answer any more and counts as cancelled, or as
//! failed if a panic drops it.

use std::time::Duration;

use insula_core::{Error, Nanos, Outcome};

use super::model::ModelMetrics;
use super::tenant::TenantMetrics;

/// A request that has not ended. Made by [`TenantMetrics::begin_request`]; travels with the request.
#[derive(Debug)]
#[must_use = "dropping it counts the request as cancelled"]
pub struct PendingRequest {
    tenant: TenantMetrics,
    model: ModelMetrics,
    begun: Nanos,
    counted: bool,
}

impl PendingRequest {
    pub(super) fn new(tenant: TenantMetrics, model: ModelMetrics) -> PendingRequest {
        let begun = tenant.clock().now();
        PendingRequest { tenant, model, begun, counted: false }
    }

    /// Says which of the tenant's models the request is for.
    pub fn set_model(&mut self, model: &ModelMetrics) {
        self.model = model.clone();
    }

    /// How long ago the request began.
    pub fn elapsed(&self) -> Duration {
        self.tenant.clock().now().since(self.begun)
    }

    /// It ended with `outcome`.
    pub fn finish(mut self, outcome: Outcome) {
        self.count(outcome);
    }

    /// It ended with `error`: counts the error's outcome, and the limit if it is a refusal. Returns the outcome.
    pub fn fail(mut self, error: &Error) -> Outcome {
        if let Some(refusal) = error.refusal() {
            self.tenant.count_refusal(refusal);
        }
        let outcome = Outcome::of(error);
        self.count(outcome);
        outcome
    }

    fn count(&mut self, outcome: Outcome) {
        self.counted = true;
        self.model.count(outcome, self.elapsed());
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        if !self.counted {
            self.count(if std::thread::panicking() { Outcome::Failed } else { Outcome::Cancelled });
        }
    }
}
