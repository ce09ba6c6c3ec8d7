//! A tenant's state and how it changes: life cycle, quota in force, models. Pure: no actor, no clock, no await. The
//! tenant's actor is its only writer and publishes a [`TenantSnapshot`] of it after each change.

use std::collections::BTreeMap;
use std::sync::Arc;

use insula_core::{Error, ModelName, Quota, Refusal, Result, TenantId, Version};

use crate::admission::gcra::Rate;
use crate::fair_queue::Weight;
use crate::model::{LoadedModel, ModelVersions, ServedModel};

/// Where a tenant stands in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LifeCycle {
    /// Its actor runs, its models are being loaded.
    Starting,
    /// Requests are taken.
    Serving,
    /// Its owner suspended it: new requests get 403, admitted ones end normally.
    Suspended,
    /// Stopping: no new requests, admitted ones end normally.
    Draining,
    /// Its domain is closed.
    Stopped,
    /// Its actor died too often; requests get 503.
    Failed,
}

impl LifeCycle {
    /// The word in metrics and messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            LifeCycle::Starting => "starting",
            LifeCycle::Serving => "serving",
            LifeCycle::Suspended => "suspended",
            LifeCycle::Draining => "draining",
            LifeCycle::Stopped => "stopped",
            LifeCycle::Failed => "failed",
        }
    }

    /// Whether new requests are taken; the refusal says why not.
    pub fn check_serving(self, tenant: &TenantId) -> Result<()> {
        let unavailable = |limit: &'static str, why: &str| {
            let retry_after = std::time::Duration::from_secs(1);
            let refusal = Refusal { limit, value: 0.0, used: 0.0, window: std::time::Duration::ZERO, retry_after };
            Err(Error::unavailable(format!("tenant `{tenant}` {why}"), refusal))
        };
        match self {
            LifeCycle::Serving => Ok(()),
            LifeCycle::Starting => unavailable("starting", "is still starting: try again"),
            LifeCycle::Draining => {
                unavailable("draining", "is being drained because the server stops: try another server")
            }
            LifeCycle::Stopped => unavailable("stopped", "has been stopped"),
            LifeCycle::Failed => {
                unavailable("tenant_failed", "failed too often and is set aside: its operator has to look")
            }
            LifeCycle::Suspended => Err(Error::new(
                insula_core::Code::PermissionDenied,
                format!("tenant `{tenant}` is suspended: ask its operator"),
            )),
        }
    }
}

/// What admission and metadata answers read without asking the tenant's loop.
#[derive(Debug, Clone)]
pub struct TenantSnapshot {
    /// Where the tenant stands.
    pub life: LifeCycle,
    /// Its limits in force.
    pub quota: Quota,
    /// Its request rate in force.
    pub rate: Rate,
    /// Its share of contended shards.
    pub weight: Weight,
    /// Its models by the name it calls them.
    pub models: BTreeMap<ModelName, ModelVersions>,
    /// Why models that should be there are not.
    pub failures: BTreeMap<ModelName, Error>,
}

impl TenantSnapshot {
    /// The version that answers for `model`: the highest ready one, or exactly the one named.
    pub fn find(&self, model: &str, version: Option<&str>) -> Result<&Arc<ServedModel>> {
        let shown: String = model.chars().take(80).collect();
        let Some(versions) = self.models.get(model) else {
            return Err(Error::not_found(format!(
                "there is no model {shown:?} for this key: see POST /v2/repository/index"
            )));
        };
        let Some(version) = version else { return Ok(versions.newest()) };
        let number: Version = version.parse()?;
        versions.get(number).ok_or_else(|| {
            Error::not_found(format!("model {shown:?} has no version {number}; its versions are {}", versions.listed()))
        })
    }
}

/// The tenant's state proper.
#[derive(Debug)]
pub struct TenantState {
    snapshot: TenantSnapshot,
}

impl TenantState {
    /// A tenant that has just begun to start.
    pub fn new(quota: Quota) -> TenantState {
        let rate = Rate::new(quota.requests_per_second, quota.burst);
        let weight = Weight::new(quota.weight);
        let (models, failures) = (BTreeMap::new(), BTreeMap::new());
        TenantState { snapshot: TenantSnapshot { life: LifeCycle::Starting, quota, rate, weight, models, failures } }
    }

    /// The state that an actor which died had published last.
    pub fn from_snapshot(snapshot: &TenantSnapshot) -> TenantState {
        TenantState { snapshot: snapshot.clone() }
    }

    /// What to publish.
    pub fn snapshot(&self) -> TenantSnapshot {
        self.snapshot.clone()
    }

    /// Where the tenant stands.
    pub fn life(&self) -> LifeCycle {
        self.snapshot.life
    }

    /// Moves to `next` if that is a step life can take; says whether it did. Stopped and Failed are final.
    pub fn advance(&mut self, next: LifeCycle) -> bool {
        use LifeCycle::{Draining, Failed, Serving, Starting, Stopped, Suspended};
        let legal = match self.snapshot.life {
            Starting => matches!(next, Serving | Suspended | Draining | Stopped | Failed),
            Serving => matches!(next, Suspended | Draining | Stopped | Failed),
            Suspended => matches!(next, Serving | Draining | Stopped | Failed),
            Draining => matches!(next, Stopped | Failed),
            Stopped | Failed => false,
        };
        if legal {
            self.snapshot.life = next;
        }
        legal
    }

    /// The versions of `model` that serve now.
    pub fn versions(&self, model: &ModelName) -> Vec<(Version, Arc<LoadedModel>)> {
        let versions = self.snapshot.models.get(model).into_iter().flat_map(|versions| versions.all());
        versions.map(|served| (served.version, served.loaded.clone())).collect()
    }

    /// Puts `versions` in force for `model`, in place of what was there.
    pub fn install(&mut self, model: ModelName, versions: ModelVersions) {
        self.snapshot.failures.remove(&model);
        self.snapshot.models.insert(model, versions);
    }

    /// Notes why `model` could not be loaded. A version that serves goes on serving.
    pub fn note_failure(&mut self, model: ModelName, error: Error) {
        self.snapshot.failures.insert(model, error);
    }

    /// Takes `model` out; says whether it was there.
    pub fn remove(&mut self, model: &ModelName) -> bool {
        let failed = self.snapshot.failures.remove(model).is_some();
        self.snapshot.models.remove(model).is_some() || failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn life_goes_forward_and_ends_for_good() {
        let mut state = TenantState::new(Quota::default());
        assert!(state.advance(LifeCycle::Serving));
        assert!(state.advance(LifeCycle::Suspended));
        assert!(state.advance(LifeCycle::Serving));
        assert!(state.advance(LifeCycle::Draining));
        assert!(!state.advance(LifeCycle::Serving));
        assert!(state.advance(LifeCycle::Stopped));
        for next in [LifeCycle::Serving, LifeCycle::Failed, LifeCycle::Starting] {
            assert!(!state.advance(next), "left Stopped for {next:?}");
        }
    }

    #[test]
    fn only_a_serving_tenant_takes_requests() {
        let tenant = TenantId::new("acme").unwrap();
        assert!(LifeCycle::Serving.check_serving(&tenant).is_ok());
        let code = |life: LifeCycle| life.check_serving(&tenant).unwrap_err().code();
        assert_eq!(code(LifeCycle::Suspended), insula_core::Code::PermissionDenied);
        for life in [LifeCycle::Starting, LifeCycle::Draining, LifeCycle::Stopped, LifeCycle::Failed] {
            assert_eq!(code(life), insula_core::Code::Unavailable);
        }
    }

    #[test]
    fn an_unknown_model_and_an_odd_version_are_told_apart() {
        let state = TenantState::new(Quota::default());
        let error = state.snapshot().find("nope", None).unwrap_err();
        assert_eq!(error.code(), insula_core::Code::NotFound);
    }
}
