//! From the server's settings to a running house: the one place that fills the runtime's settings.

use std::sync::Arc;

use insula_core::{Clock, Result};
use insula_runtime::runtime::Runtime;
use insula_runtime::settings::RuntimeSettings;
use insula_telemetry::Metrics;

use crate::settings::{DeviceChoice, Settings};

/// Starts a house that may use `memory` bytes. It has no tenants yet.
pub(crate) fn start(settings: &Settings, memory: u64, metrics: Metrics, clock: Arc<dyn Clock>) -> Result<Runtime> {
    let mut house = match settings.device {
        // there is no other device in this version
        DeviceChoice::Auto | DeviceChoice::Cpu => {
            RuntimeSettings::for_machine(settings.state.clone(), settings.workers)?
        }
    };
    house.models = Some(settings.models.clone());
    house.memory = memory;
    house.max_queue_delay = settings.max_queue_delay;
    house.metrics = metrics;
    house.clock = clock;
    Runtime::start(house)
}
