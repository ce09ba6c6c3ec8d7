//! Bodies of loads: each may be hundreds of MiB and lies outside of any tenant's memory, so a tenant sends one at a time
//! and the server takes in few at once. It counts; the repository's handlers ask it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use insula_core::{Error, Refusal, Result, TenantId};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// Bodies that are taken in at once.
const AT_ONCE: usize = 2;

/// How long a load waits for its turn.
const PATIENCE: Duration = Duration::from_secs(10);

/// When a refused load has a good chance.
const RETRY: Duration = Duration::from_secs(5);

/// The loads that are going on.
#[derive(Debug)]
pub(crate) struct Uploads {
    turns: Semaphore,
    tenants: Arc<Mutex<HashSet<TenantId>>>,
}

/// A tenant's load: no other of the same tenant begins until it is dropped.
#[derive(Debug)]
pub(crate) struct TenantUpload {
    tenant: TenantId,
    tenants: Arc<Mutex<HashSet<TenantId>>>,
}

impl Uploads {
    /// None are going on.
    pub(crate) fn new() -> Uploads {
        Uploads { turns: Semaphore::new(AT_ONCE), tenants: Arc::default() }
    }

    /// Begins a load of `tenant`, or refuses it while another one of the same tenant is going on.
    pub(crate) fn begin(&self, tenant: &TenantId) -> Result<TenantUpload> {
        if lock(&self.tenants).insert(tenant.clone()) {
            return Ok(TenantUpload { tenant: tenant.clone(), tenants: self.tenants.clone() });
        }
        let message =
            "the tenant is loading a model already, it loads one at a time (uploads): try again when that is done";
        Err(Error::quota(message, refusal(1.0)))
    }

    /// Waits for a turn to take in a body.
    pub(crate) async fn turn(&self) -> Result<SemaphorePermit<'_>> {
        match timeout(PATIENCE, self.turns.acquire()).await {
            Ok(Ok(turn)) => Ok(turn),
            Ok(Err(_)) | Err(_) => {
                let message = format!("the server is taking in {AT_ONCE} models already (uploads): try again");
                Err(Error::unavailable(message, refusal(AT_ONCE as f64)))
            }
        }
    }
}

impl Drop for TenantUpload {
    fn drop(&mut self) {
        lock(&self.tenants).remove(&self.tenant);
    }
}

fn lock(tenants: &Mutex<HashSet<TenantId>>) -> MutexGuard<'_, HashSet<TenantId>> {
    tenants.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refusal(value: f64) -> Refusal {
    Refusal { limit: "uploads", value, used: value, window: Duration::ZERO, retry_after: RETRY }
}

#[cfg(test)]
mod tests {
    use insula_core::Code;

    use super::*;

    #[test]
    fn a_tenant_loads_one_model_at_a_time_and_others_are_free() {
        let (uploads, one) = (Uploads::new(), TenantId::new("one").unwrap());
        let going_on = uploads.begin(&one).unwrap();
        assert_eq!(uploads.begin(&one).unwrap_err().code(), Code::QuotaExceeded);
        assert!(uploads.begin(&TenantId::new("other").unwrap()).is_ok());
        drop(going_on);
        assert!(uploads.begin(&one).is_ok());
    }
}
