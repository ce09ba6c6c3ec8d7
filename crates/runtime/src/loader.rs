//! The lane on which models are loaded: one thread beside the serving ones, so that loading takes no worker's and no loop's
//! time. It reads files, runs the passes, lowers plans and keeps one copy of what several tenants have. Tenants leave
//! orders; it never puts anything in force itself.

mod work;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use insula_core::{Code, Error, ModelName, Refusal, Result, TenantId, Version};
use insula_model::{PrivateModels, VersionFiles};
use insula_store::Precision;
use tokio::sync::oneshot;

use crate::loader::work::LoaderWork;
use crate::model::LoadedModel;
use crate::plans::{PlanBuilder, PlanCache};
use crate::settings::RuntimeSettings;

/// Orders that may wait.
const ORDERS: usize = 256;

/// Where a model comes from.
#[derive(Debug, Clone)]
pub enum LoadSource {
    /// The shared catalog.
    Catalog {
        /// Its name there.
        catalog: ModelName,
        /// Only this version; `None` for all.
        version: Option<Version>,
        /// `None`: as the model says.
        precision: Option<Precision>,
    },
    /// The tenant's own files on disk.
    Private {
        /// Only this version; `None` for all.
        version: Option<Version>,
        /// `None`: as the model says.
        precision: Option<Precision>,
    },
    /// Files sent with the request, which become the tenant's own if they load.
    Upload {
        /// The files.
        files: BTreeMap<Version, VersionFiles>,
        /// `None`: as the model says.
        precision: Option<Precision>,
    },
}

/// An order to load a model.
#[derive(Debug, Clone)]
pub struct LoadOrder {
    /// For whom.
    pub tenant: TenantId,
    /// The name the tenant calls it.
    pub model: ModelName,
    /// Where it comes from.
    pub source: LoadSource,
}

/// What came of an order: at least one version that is ready.
#[derive(Debug, Clone)]
pub struct LoadedVersions {
    /// Whether other versions of the model go on serving beside these.
    pub beside_others: bool,
    /// The versions that are ready.
    pub versions: Vec<(Version, Arc<LoadedModel>)>,
    /// Versions that could not be loaded.
    pub failures: Vec<(Version, Error)>,
}

impl LoadedVersions {
    /// All versions to serve, where `kept` serve now: those loaded in their place, or beside the others.
    pub fn beside(self, kept: Vec<(Version, Arc<LoadedModel>)>) -> Vec<(Version, Arc<LoadedModel>)> {
        let mut all = self.versions;
        if self.beside_others {
            let others: Vec<_> =
                kept.into_iter().filter(|(number, _)| all.iter().all(|(loaded, _)| loaded != number)).collect();
            all.extend(others);
        }
        all
    }
}

type Answer = oneshot::Sender<Result<LoadedVersions>>;

enum Order {
    Load(Box<LoadOrder>, Answer),
    Forget(TenantId, ModelName, oneshot::Sender<Result<bool>>),
    Stop,
}

/// Leaves orders for the loader; cheap to clone.
#[derive(Clone)]
pub struct Loader {
    orders: SyncSender<Order>,
    state: PathBuf,
}

/// The running loader thread.
pub struct LoaderThread {
    loader: Loader,
    thread: Option<JoinHandle<()>>,
}

impl LoaderThread {
    /// Starts the thread. Plans are built by `builder`; those of models whose inputs vary are kept in `cache`.
    pub fn start(settings: &RuntimeSettings, builder: Arc<PlanBuilder>, cache: Arc<PlanCache>) -> Result<LoaderThread> {
        let (orders, inbox) = sync_channel(ORDERS);
        let mut work = LoaderWork::new(settings, builder, cache);
        let thread = std::thread::Builder::new()
            .name("insula-loader".into())
            .spawn(move || {
                while let Ok(order) = inbox.recv() {
                    match order {
                        // a receiver that is gone belongs to a caller that hung up: the work is done all the same
                        Order::Load(order, answer) => drop(answer.send(work.load(&order))),
                        Order::Forget(tenant, model, answer) => drop(answer.send(work.forget(&tenant, &model))),
                        Order::Stop => return,
                    }
                }
            })
            .map_err(|error| Error::internal("the model loader could not be started", error.to_string()))?;
        Ok(LoaderThread { loader: Loader { orders, state: settings.state.clone() }, thread: Some(thread) })
    }

    /// A handle for leaving orders.
    pub fn loader(&self) -> Loader {
        self.loader.clone()
    }

    /// Carries out what was ordered before, then ends the thread.
    pub fn stop(&mut self) {
        // a closed channel means the thread has ended already
        let _ = self.loader.orders.send(Order::Stop);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the loader thread panicked");
        }
    }
}

impl Loader {
    /// Loads what `order` says and answers when it is ready to be put in force. The error names model and node at fault.
    pub async fn load(&self, order: LoadOrder) -> Result<LoadedVersions> {
        let (answer, done) = oneshot::channel();
        self.leave(Order::Load(Box::new(order), answer))?;
        done.await.map_err(|_| stopped())?
    }

    /// Removes the tenant's own files of `model`; says whether there were any.
    pub async fn forget(&self, tenant: &TenantId, model: &ModelName) -> Result<bool> {
        let (answer, done) = oneshot::channel();
        self.leave(Order::Forget(tenant.clone(), model.clone(), answer))?;
        done.await.map_err(|_| stopped())?
    }

    /// The models of which `tenant` has files of its own.
    pub fn private_models(&self, tenant: &TenantId) -> Result<Vec<ModelName>> {
        Ok(PrivateModels::open(&self.state, tenant)?.repository().names()?)
    }

    fn leave(&self, order: Order) -> Result<()> {
        self.orders.try_send(order).map_err(|error| match error {
            TrySendError::Disconnected(_) => stopped(),
            TrySendError::Full(_) => {
                let (window, retry_after) = (std::time::Duration::ZERO, std::time::Duration::from_secs(1));
                let value = ORDERS as f64;
                let refusal = Refusal { limit: "model_loads", value, used: value, window, retry_after };
                Error::unavailable(format!("{ORDERS} models wait to be loaded: try again"), refusal)
            }
        })
    }
}

fn stopped() -> Error {
    Error::new(Code::Unavailable, "the server is stopping and loads no models any more")
}

impl fmt::Debug for Loader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Loader")
    }
}

impl fmt::Debug for LoaderThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LoaderThread")
    }
}
