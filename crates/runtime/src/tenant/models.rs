//! Loading and unloading a tenant's models, and what is there. The loader thread does the work; the tenant's actor puts
//! the result in force, so a version goes on serving until the next one is ready.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use insula_core::{Code, Error, ModelName, Result, Version};
use insula_model::VersionFiles;

use crate::loader::{LoadOrder, LoadSource, LoadedVersions};
use crate::tenant::TenantHandle;
use crate::tenant::messages::{Install, Remove};

/// One line of the repository index.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelState {
    /// The name the tenant calls it.
    pub name: ModelName,
    /// The version; `None` when none could be loaded.
    pub version: Option<Version>,
    /// Whether it answers requests.
    pub ready: bool,
    /// Why it does not, or why the latest load failed.
    pub reason: String,
}

/// How long an unload waits for an actor that is being built again.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(5);

impl TenantHandle {
    /// Every version of every model the tenant has, failed ones included.
    pub fn models(&self) -> Vec<ModelState> {
        let snapshot = self.core().snapshot();
        let ready = snapshot.models.iter().flat_map(|(name, versions)| {
            let reason =
                snapshot.failures.get(name).map(|error| format!("the latest load failed: {error}")).unwrap_or_default();
            versions.all().map(move |served| ModelState {
                name: name.clone(),
                version: Some(served.version),
                ready: true,
                reason: reason.clone(),
            })
        });
        let failed = snapshot.failures.iter().filter(|(name, _)| !snapshot.models.contains_key(name.as_str()));
        let failed = failed.map(|(name, error)| ModelState {
            name: name.clone(),
            version: None,
            ready: false,
            reason: error.to_string(),
        });
        ready.chain(failed).collect()
    }

    /// Loads `model` from uploaded files (`"file:1/model.onnx"` and its bytes), which become versions of the tenant's own model, or
    /// again from where it came. Until the new versions are ready the old ones serve; if loading fails they stay.
    pub async fn load_model(&self, model: &str, upload: Option<Vec<(String, Bytes)>>) -> Result<()> {
        let name = ModelName::new(model)?;
        let core = self.core();
        core.services().check_open()?;
        let source = match (upload, self.source_of(&name)) {
            (Some(_), LoadSource::Catalog { .. }) => {
                let message = format!("model `{name}` is granted from the shared catalog: upload under another name");
                return Err(Error::new(Code::Conflict, message));
            }
            (Some(files), LoadSource::Private { precision, .. }) => {
                LoadSource::Upload { files: by_version(files)?, precision }
            }
            (_, source) => source,
        };
        let loaded =
            core.services().loader.load(LoadOrder { tenant: self.id().clone(), model: name.clone(), source }).await;
        self.install(name, loaded).await
    }

    /// Where `model` comes from: the catalog if its document says so, else the tenant's own files.
    pub(crate) fn source_of(&self, model: &ModelName) -> LoadSource {
        let grant = self.core().grants().get(model);
        let (version, precision) = (grant.and_then(|grant| grant.version), grant.and_then(|grant| grant.precision));
        match grant.and_then(|grant| grant.catalog.clone()) {
            Some(catalog) => LoadSource::Catalog { catalog, version, precision },
            None => LoadSource::Private { version, precision },
        }
    }

    /// Puts what the loader made of `model` in force, once the router has given each version a place.
    pub(crate) async fn install(&self, model: ModelName, loaded: Result<LoadedVersions>) -> Result<()> {
        let outcome = match loaded {
            Ok(loaded) => self.place(loaded).await,
            Err(error) => Err(error),
        };
        let mut waited = Duration::ZERO;
        loop {
            let message = Install { model: model.clone(), outcome: outcome.clone() };
            if let Some(address) = self.core().address()
                && let Ok(installed) = address.send(message).await
            {
                return installed;
            }
            self.pause(&mut waited).await?;
        }
    }

    async fn place(&self, loaded: LoadedVersions) -> Result<LoadedVersions> {
        for (_, model) in &loaded.versions {
            self.core().services().router.place(model).await?;
        }
        Ok(loaded)
    }

    /// Takes `model` out of service and, if it is the tenant's own, removes its files. Requests in flight are answered.
    pub async fn unload_model(&self, model: &str) -> Result<()> {
        let name = ModelName::new(model)?;
        let mut waited = Duration::ZERO;
        let removed = loop {
            if let Some(address) = self.core().address()
                && let Ok(removed) = address.send(Remove(name.clone())).await
            {
                break removed;
            }
            self.pause(&mut waited).await?;
        };
        let had_files = self.core().services().loader.forget(self.id(), &name).await?;
        if removed || had_files {
            return Ok(());
        }
        Err(Error::not_found(format!("there is no model `{name}` to unload")))
    }

    async fn pause(&self, waited: &mut Duration) -> Result<()> {
        if *waited >= PATIENCE {
            return Err(Error::new(Code::Unavailable, "the tenant's event loop does not answer: try again"));
        }
        tokio::time::sleep(PAUSE).await;
        *waited += PAUSE;
        Ok(())
    }
}

fn by_version(files: Vec<(String, Bytes)>) -> Result<BTreeMap<Version, VersionFiles>> {
    let versions = insula_model::versions_of_files(files)?;
    if versions.is_empty() {
        return Err(Error::invalid("no file was sent: send `file:<version>/model.onnx` with the model in base64"));
    }
    Ok(versions)
}
