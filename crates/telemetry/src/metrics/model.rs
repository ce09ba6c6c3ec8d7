//! The series of one tenant's model: outcomes, durations, time in queues, time on devices. A handle is made once when the
//! model is configured and cloned into requests; adding to it is an atomic addition.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use insula_core::{ModelName, Outcome};

use super::counter::Counter;
use super::histogram::TimeHistogram;

/// The label of models that are not configured.
pub(super) const UNKNOWN: &str = "unknown";

/// The series of one tenant's model. Clones share them.
#[derive(Clone)]
pub struct ModelMetrics(Arc<ModelSeries>);

pub(super) struct ModelSeries {
    name: Option<ModelName>,
    outcomes: [Counter; Outcome::ALL.len()],
    pub(super) duration: TimeHistogram,
    pub(super) queue: TimeHistogram,
    pub(super) device: Counter,
}

impl ModelMetrics {
    /// Series for `name`, or for all that are not configured.
    pub(super) fn new(name: Option<ModelName>) -> ModelMetrics {
        ModelMetrics(Arc::new(ModelSeries {
            name,
            outcomes: std::array::from_fn(|_| Counter::default()),
            duration: TimeHistogram::of_times(),
            queue: TimeHistogram::of_times(),
            device: Counter::default(),
        }))
    }

    /// Notes how long a request lay in a fair queue before a worker took it.
    pub fn observe_queue_time(&self, time: Duration) {
        self.0.queue.observe_time(time);
    }

    /// Adds measured device time, as charged for this model's rows.
    pub fn add_device_time(&self, time: Duration) {
        self.0.device.add_time(time);
    }

    /// Counts one request that ended after `duration`.
    pub(super) fn count(&self, outcome: Outcome, duration: Duration) {
        self.0.outcome(outcome).add(1);
        // Requests that were turned away or given up would make a busy server look fast.
        if matches!(outcome, Outcome::Success | Outcome::Failed | Outcome::Expired) {
            self.0.duration.observe_time(duration);
        }
    }

    /// The model's label.
    pub(super) fn label(&self) -> &str {
        self.0.name.as_ref().map_or(UNKNOWN, ModelName::as_str)
    }

    pub(super) fn name(&self) -> Option<&ModelName> {
        self.0.name.as_ref()
    }

    pub(super) fn series(&self) -> &ModelSeries {
        &self.0
    }

    pub(super) fn is_same_as(&self, other: &ModelMetrics) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl ModelSeries {
    fn outcome(&self, outcome: Outcome) -> &Counter {
        let [success, invalid, refused, failed, cancelled, expired] = &self.outcomes;
        match outcome {
            Outcome::Success => success,
            Outcome::Invalid => invalid,
            Outcome::Refused => refused,
            Outcome::Failed => failed,
            Outcome::Cancelled => cancelled,
            Outcome::Expired => expired,
        }
    }

    /// Every outcome with its count.
    pub(super) fn outcomes(&self) -> impl Iterator<Item = (Outcome, u64)> + '_ {
        Outcome::ALL.into_iter().map(|outcome| (outcome, self.outcome(outcome).get()))
    }

    /// Whether a request was ever counted.
    pub(super) fn is_used(&self) -> bool {
        self.outcomes().any(|(_, count)| count > 0)
    }
}

impl fmt::Debug for ModelMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ModelMetrics").field(&self.label()).finish()
    }
}
