//! A tenant's gauges as they are read at a scrape: nothing is counted twice, and nothing on the hot path keeps them up.

use std::sync::{Arc, Weak};

use insula_telemetry::metrics::{ModelReady, TenantGauges, TenantLifecycle};

use crate::tenant::TenantCore;
use crate::tenant::state::LifeCycle;

impl TenantCore {
    /// Shows this tenant's gauges for as long as it lives.
    pub(crate) fn show_gauges(self: &Arc<Self>) {
        let core: Weak<TenantCore> = Arc::downgrade(self);
        self.metrics().set_gauges(move || core.upgrade().map(|core| core.read_gauges()).unwrap_or_else(nothing_left));
    }

    fn read_gauges(&self) -> TenantGauges {
        let (snapshot, memory) = (self.snapshot(), self.domain().usage());
        let versions = snapshot.models.values().flat_map(|versions| versions.all());
        let models = versions
            .map(|served| ModelReady { model: served.metrics.clone(), version: served.version, ready: true })
            .collect();
        TenantGauges {
            lifecycle: shown(snapshot.life),
            inflight_requests: u64::from(self.usage().inflight()),
            queued_requests: u64::from(self.usage().queued()),
            domain_used: memory.in_use,
            domain_committed: memory.committed,
            domain_limit: memory.limit,
            models,
        }
    }
}

fn nothing_left() -> TenantGauges {
    TenantGauges {
        lifecycle: TenantLifecycle::Stopped,
        inflight_requests: 0,
        queued_requests: 0,
        domain_used: 0,
        domain_committed: 0,
        domain_limit: 0,
        models: Vec::new(),
    }
}

fn shown(life: LifeCycle) -> TenantLifecycle {
    match life {
        LifeCycle::Starting => TenantLifecycle::Starting,
        LifeCycle::Serving => TenantLifecycle::Serving,
        LifeCycle::Suspended => TenantLifecycle::Suspended,
        LifeCycle::Draining => TenantLifecycle::Draining,
        LifeCycle::Stopped => TenantLifecycle::Stopped,
        LifeCycle::Failed => TenantLifecycle::Failed,
    }
}
