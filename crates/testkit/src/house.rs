//! A running house for tests: a runtime with the test models and tenants, on a device of the test's choice, and the few
//! calls that tests make of it. Everything lies in a temporary folder that goes with it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use insula_api::{ContentEncoding, RequestFormat, decoder};
use insula_core::{Code, Decode, Error, Result, TenantId};
use insula_exec::{Device, Topology};
use insula_runtime::runtime::{Runtime, StopReport};
use insula_runtime::settings::RuntimeSettings;
use insula_runtime::tenant::TenantHandle;
use insula_store::TenantDocument;

use crate::tidy::root;

static HOUSES: AtomicUsize = AtomicUsize::new(0);

/// A runtime with the test models.
#[derive(Debug)]
pub struct House {
    /// The runtime.
    pub runtime: Runtime,
    folder: PathBuf,
}

impl House {
    /// A house on `device` with `tenants` (ids), each of which may call every test model.
    #[expect(clippy::missing_panics_doc, clippy::panic, reason = "a test that cannot set up its house must fail there")]
    pub fn new(device: impl Device + 'static, tenants: &[&str]) -> House {
        let documents: Vec<_> = tenants.iter().map(|id| document(id, "")).collect();
        House::with_documents(device, &documents).unwrap_or_else(|error| panic!("{error:?}"))
    }

    /// A house on `device` with the tenants of `documents`.
    pub fn with_documents(device: impl Device + 'static, documents: &[TenantDocument]) -> Result<House> {
        let number = HOUSES.fetch_add(1, Ordering::SeqCst);
        let folder = std::env::temp_dir().join(format!("insula-house-{}-{number}", std::process::id()));
        let topology = Topology::of_machine();
        let mut settings = RuntimeSettings::new(Arc::new(device), topology, folder.clone());
        settings.models = Some(root().join("examples/test/models"));
        settings.workers = Some(1);
        let runtime = Runtime::start(settings)?;
        for report in runtime.add_tenants(documents) {
            if let Some(fault) = report.fault {
                return Err(fault);
            }
        }
        Ok(House { runtime, folder })
    }

    /// The tenant with this id.
    #[expect(
        clippy::missing_panics_doc,
        clippy::panic,
        reason = "a test that asks for a tenant it did not add must fail there"
    )]
    pub fn tenant(&self, id: &str) -> TenantHandle {
        let found = TenantId::new(id).ok().and_then(|id| self.runtime.directory().tenant(&id));
        found.unwrap_or_else(|| panic!("there is no tenant {id}"))
    }

    /// Stops the house in order.
    pub fn stop(self) -> StopReport {
        let report = self.runtime.stop(Duration::from_secs(10));
        // the folder is there only if a model was stored
        let _ = std::fs::remove_dir_all(&self.folder);
        report
    }
}

/// A document for tenant `id` that may call every test model, with `quota` as further lines of its quota.
#[expect(clippy::missing_panics_doc, clippy::panic, reason = "a fixture that is not a document must fail its test")]
pub fn document(id: &str, quota: &str) -> TenantDocument {
    let mut text = format!("version = 1\nid = \"{id}\"\n\n[quota]\n");
    for (key, value) in
        [("requests_per_second", "100000.0"), ("burst", "100000"), ("concurrency", "1024"), ("queue", "4096")]
    {
        if !quota.contains(key) {
            text.push_str(&format!("{key} = {value}\n"));
        }
    }
    text.push_str(quota);
    for model in ["identity_fp32", "identity_fp16", "identity_int64", "identity_bytes", "slow", "versions"] {
        text.push_str(&format!("\n[[models]]\nname = \"{model}\"\ncatalog = \"{model}\"\n"));
    }
    TenantDocument::parse(&text).unwrap_or_else(|faults| panic!("{text}\n{faults:?}"))
}

/// Sends `rows` rows of 16 values, all `value`, to an FP32 model of `tenant` in binary form and returns what comes back.
pub async fn infer(tenant: &TenantHandle, model: &str, rows: usize, value: f32) -> Result<Vec<f32>> {
    infer_with(tenant, model, &vec![value; rows * 16], |decode| decode).await
}

/// Sends `values` (rows of 16) in binary form; `wrap` may put something around the decoder.
pub async fn infer_with(
    tenant: &TenantHandle,
    model: &str,
    values: &[f32],
    wrap: impl FnOnce(Box<dyn Decode>) -> Box<dyn Decode>,
) -> Result<Vec<f32>> {
    let tensor: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let description = format!(
        r#"{{"inputs":[{{"name":"INPUT0","shape":[{},16],"datatype":"FP32","parameters":{{"binary_data_size":{}}}}}],"outputs":[{{"name":"OUTPUT0","parameters":{{"binary_data":true}}}}]}}"#,
        values.len() / 16,
        tensor.len()
    );
    let body = [description.as_bytes(), &tensor].concat();
    let format = RequestFormat::Binary { description_length: description.len() };
    let answer = send(tenant, model, &body, format, wrap).await?;
    let tail = answer.len().checked_sub(tensor.len());
    let tail = tail.ok_or_else(|| Error::new(Code::Internal, "the answer is shorter than its tensor"))?;
    Ok(answer[tail..].chunks_exact(4).map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect())
}

/// Sends `body` and returns the answer's bytes.
pub async fn send(
    tenant: &TenantHandle,
    model: &str,
    body: &[u8],
    format: RequestFormat,
    wrap: impl FnOnce(Box<dyn Decode>) -> Box<dyn Decode>,
) -> Result<Vec<u8>> {
    let admitted = tenant.admit(model, None, Some(body.len() as u64))?;
    let limit = usize::try_from(admitted.request_bytes()).unwrap_or(usize::MAX);
    let decode = decoder(format, ContentEncoding::Identity, admitted.signature().clone(), limit);
    let description = match format {
        RequestFormat::Binary { description_length } => Some(description_length),
        RequestFormat::Json => None,
    };
    let mut sink = admitted.body(Some(body.len()), description)?;
    sink.write(body)?;
    let mut reply = admitted.submit(sink, wrap(decode)).await?;
    reply.head()?;
    let (mut answer, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        match reply.step(&mut piece)? {
            0 => return Ok(answer),
            written => answer.extend_from_slice(&piece[..written]),
        }
    }
}
