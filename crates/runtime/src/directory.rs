//! Who is who: keys to tenants and ids to tenants, read on every request without a lock that writers hold long. It stores
//! hashes of keys, never keys. The runtime fills it; the server asks it.

use dashmap::DashMap;
use insula_core::{Code, Error, Result, TenantId};
use insula_store::{KeyRecord, hash_key};
use insula_telemetry::metrics::{Metrics, PendingRequest};
use jiff::Timestamp;
use subtle::ConstantTimeEq;

use crate::tenant::TenantHandle;

#[derive(Debug, Clone)]
struct KeyEntry {
    record: KeyRecord,
    tenant: TenantHandle,
}

/// Keys and tenants of one runtime.
#[derive(Debug)]
pub struct Directory {
    keys: DashMap<[u8; 32], KeyEntry>,
    tenants: DashMap<TenantId, TenantHandle>,
    metrics: Metrics,
}

impl Directory {
    /// An empty directory that counts strangers' requests in `metrics`.
    pub fn new(metrics: Metrics) -> Directory {
        Directory { keys: DashMap::new(), tenants: DashMap::new(), metrics }
    }

    /// Enters `tenant` with its `keys`. Fails, entering nothing, when its id or one of the keys is there already.
    pub fn enter(&self, tenant: &TenantHandle, keys: &[KeyRecord]) -> Result<()> {
        if let Some(key) = keys.iter().find(|key| self.keys.contains_key(&key.sha256)) {
            let message =
                format!("key `{}` of tenant `{}` is also another tenant's: make a new key", key.id, tenant.id());
            return Err(Error::new(Code::Conflict, message));
        }
        if self.tenants.contains_key(tenant.id()) {
            return Err(Error::new(Code::Conflict, format!("tenant `{}` exists already", tenant.id())));
        }
        self.tenants.insert(tenant.id().clone(), tenant.clone());
        for record in keys {
            self.keys.insert(record.sha256, KeyEntry { record: record.clone(), tenant: tenant.clone() });
        }
        Ok(())
    }

    /// The tenant that the key names. Fails with 401's code when it is unknown or expired; the message does not say which keys exist.
    pub fn authenticate(&self, key: &str) -> Result<TenantHandle> {
        let hash = hash_key(key);
        let Some(entry) = self.keys.get(&hash) else {
            return Err(Error::new(
                Code::Unauthenticated,
                "the key is not known: check it with whoever runs this server",
            ));
        };
        // the map compared hashes; compare once more in constant time so that no timing of the map tells a prefix
        if !bool::from(entry.record.sha256.ct_eq(&hash)) {
            return Err(Error::new(
                Code::Unauthenticated,
                "the key is not known: check it with whoever runs this server",
            ));
        }
        if entry.record.is_expired(Timestamp::now()) {
            let message = format!("key `{}` has expired: ask for a new one", entry.record.id);
            return Err(Error::new(Code::Unauthenticated, message));
        }
        Ok(entry.tenant.clone())
    }

    /// The tenant with this id.
    pub fn tenant(&self, id: &TenantId) -> Option<TenantHandle> {
        self.tenants.get(id).map(|tenant| tenant.clone())
    }

    /// All tenants, by id.
    pub fn tenants(&self) -> Vec<TenantHandle> {
        let mut tenants: Vec<TenantHandle> = self.tenants.iter().map(|tenant| tenant.clone()).collect();
        tenants.sort_by(|a, b| a.id().cmp(b.id()));
        tenants
    }

    /// Counts a request whose tenant is not known.
    pub fn unknown(&self) -> PendingRequest {
        self.metrics.unknown_tenant().begin_request()
    }

    /// Forgets everybody, so that nothing keeps tenants alive after a stop.
    pub fn clear(&self) {
        self.keys.clear();
        self.tenants.clear();
    }
}
