//! What a start tells people, on stderr: a line for each port, tenant and model, aligned, and what to try next. It only
//! formats.

use std::fmt;

use insula_runtime::runtime::{ModelReport, TenantReport};
use insula_store::{TenantsFolder, byte_size, hash_key};

use crate::cores::CorePlan;
use crate::start::Addresses;

/// The example tenants' keys, which stand in their documents for everybody to read.
const DEMO_KEYS: [&str; 2] = ["ins_demo_acme_corp_0000000000000000000000", "ins_demo_beta_llc_00000000000000000000000"];

/// The example request of the project's own model.
const EXAMPLE_MODEL: &str = "digits";
const EXAMPLE_BODY: &str = "examples/digits/seven.json";

/// What was started.
#[derive(Debug)]
pub(crate) struct StartReport {
    pub(crate) addresses: Addresses,
    pub(crate) cores: CorePlan,
    pub(crate) memory: u64,
    pub(crate) tenants: Vec<TenantReport>,
    pub(crate) folder: TenantsFolder,
    pub(crate) notes: Vec<String>,
}

/// One line: what it is about, and its columns.
struct Line<'r> {
    what: &'static str,
    columns: Vec<String>,
    reason: Option<&'r insula_core::Error>,
}

impl StartReport {
    fn lines(&self) -> Vec<Line<'_>> {
        self.tenants.iter().flat_map(tenant_lines).collect()
    }

    /// A curl command that works as it stands, or one with places to fill in.
    fn try_next(&self) -> String {
        let tenants = self.folder.tenants.iter().map(|(_, tenant)| tenant);
        let demo = tenants.clone().find_map(|tenant| {
            let key = DEMO_KEYS.into_iter().find(|key| tenant.keys.iter().any(|known| known.sha256 == hash_key(key)));
            key.filter(|_| tenant.models.iter().any(|model| model.name.as_str() == EXAMPLE_MODEL))
        });
        let http = self.addresses.http;
        match demo {
            Some(key) => format!(
                "curl -H 'Authorization: Bearer {key}' -d @{EXAMPLE_BODY} http://{http}/v2/models/{EXAMPLE_MODEL}/infer"
            ),
            None => {
                let model =
                    tenants.flat_map(|tenant| &tenant.models).next().map_or("MODEL", |model| model.name.as_str());
                format!("curl -H 'Authorization: Bearer KEY' http://{http}/v2/models/{model}")
            }
        }
    }
}

fn tenant_lines(tenant: &TenantReport) -> Vec<Line<'_>> {
    let name = tenant.tenant.to_string();
    if let Some(fault) = &tenant.fault {
        return vec![Line { what: "tenant", columns: vec![name, "failed".to_owned()], reason: Some(fault) }];
    }
    if tenant.models.is_empty() {
        return vec![Line { what: "tenant", columns: vec![name, "no models".to_owned()], reason: None }];
    }
    tenant.models.iter().map(|model| model_line(&name, model)).collect()
}

fn model_line<'r>(tenant: &str, model: &'r ModelReport) -> Line<'r> {
    let version = model.version.map_or("-".to_owned(), |version| version.to_string());
    let ready = model.outcome.is_ok();
    let size = if ready { rounded(model.bytes) } else { "-".to_owned() };
    let state = if ready { "ready" } else { "failed" };
    let columns = vec![
        tenant.to_owned(),
        format!("{}/{version}", model.name),
        model.precision.to_owned(),
        size,
        state.to_owned(),
    ];
    Line { what: "tenant", columns, reason: model.outcome.as_ref().err() }
}

/// `bytes` in the unit that leaves up to three digits before the point.
fn rounded(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.into_iter().find(|(shift, _)| bytes >> shift > 0) {
        Some((shift, unit)) => format!("{:.1} {unit}", bytes as f64 / (1u64 << shift) as f64),
        None => byte_size::format(bytes) + " B",
    }
}

impl fmt::Display for StartReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "insula {}", env!("CARGO_PKG_VERSION"))?;
        writeln!(f, "  cores   {}", self.cores)?;
        writeln!(f, "  memory  {} for tenants, weights and plans", rounded(self.memory))?;
        writeln!(f, "  http    {}", self.addresses.http)?;
        writeln!(f, "  admin   {}  (/metrics /livez /readyz)", self.addresses.admin)?;
        let lines = self.lines();
        let width = |column: usize| {
            lines.iter().filter_map(|line| line.columns.get(column)).map(String::len).max().unwrap_or(0)
        };
        for line in &lines {
            let mut text = format!("  {:<7}", line.what);
            for (index, column) in line.columns.iter().enumerate() {
                text.push_str(&format!(" {column:<width$} ", width = width(index)));
            }
            text.extend(line.reason.map(insula_core::Error::message));
            writeln!(f, "{}", text.trim_end())?;
        }
        for fault in &self.folder.faults {
            writeln!(f, "  left out: {fault}")?;
        }
        if lines.is_empty() {
            writeln!(f, "  no tenant is served: add a document to the tenants folder and start again")?;
        }
        for note in &self.notes {
            writeln!(f, "  note: {note}")?;
        }
        writeln!(f, "try: {}", self.try_next())
    }
}
