//! `insula serve --check`: reads what a start would read and reports what is wrong, without starting. It changes
//! nothing on disk. The command line prints the report.

use std::fmt;
use std::path::Path;

use insula_store::{TenantsFolder, is_demo_key};

use super::Settings;

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// What is right: one line a tenant.
    pub found: Vec<String>,
    /// What would keep the server, or one tenant, from starting.
    pub faults: Vec<String>,
}

impl CheckReport {
    /// Whether a start would succeed for every tenant.
    pub fn is_ok(&self) -> bool {
        self.faults.is_empty()
    }
}

impl fmt::Display for CheckReport {
    /// The lines, the faults last.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.found {
            writeln!(f, "{line}")?;
        }
        for fault in &self.faults {
            writeln!(f, "fault: {fault}")?;
        }
        let verdict = if self.is_ok() { "the configuration is good" } else { "the configuration has faults" };
        f.write_str(verdict)
    }
}

impl Settings {
    /// Reads the tenant documents and looks at the folders, without starting anything.
    pub fn check(&self) -> CheckReport {
        let mut report = CheckReport::default();
        report.faults.extend(self.missing_folders());
        if !self.tenants.is_dir() {
            return report;
        }
        match TenantsFolder::read(&self.tenants) {
            Ok(folder) => {
                self.report_tenants(&folder, &mut report);
                report.faults.extend(folder.faults.iter().map(ToString::to_string));
            }
            Err(error) => report.faults.push(error.to_string()),
        }
        report
    }

    /// One message for each folder that must be there and is not.
    pub(crate) fn missing_folders(&self) -> Vec<String> {
        let advice = |folder: &Path, what: &str, name: &str| {
            (!folder.is_dir()).then(|| {
                format!(
                    "the {what} folder `{}` does not exist: run in a clone of the project, or name yours with \
                     --{name} DIR, INSULA_{} or server.{name}",
                    folder.display(),
                    name.to_uppercase()
                )
            })
        };
        advice(&self.tenants, "tenants", "tenants")
            .into_iter()
            .chain(advice(&self.models, "models", "models"))
            .collect()
    }

    /// The tenants among `folder` whose keys everybody knows, if the HTTP port is open to others.
    pub(crate) fn exposed_demo_keys(&self, folder: &TenantsFolder) -> Vec<String> {
        if !self.is_public() {
            return Vec::new();
        }
        let keys = folder.tenants.iter().flat_map(|(_, tenant)| tenant.keys.iter().map(move |key| (tenant, key)));
        keys.filter(|(_, key)| is_demo_key(&key.sha256))
            .map(|(tenant, key)| {
                format!(
                    "key `{}` of tenant `{}` is a published demo key, and server.http {} is open to other machines: \
                     replace the key, or listen on 127.0.0.1",
                    key.id, tenant.id, self.http
                )
            })
            .collect()
    }

    fn report_tenants(&self, folder: &TenantsFolder, report: &mut CheckReport) {
        for (file, tenant) in &folder.tenants {
            let models: Vec<_> = tenant.models.iter().map(|model| model.name.as_str()).collect();
            report.found.push(format!("{}: tenant {}: models {}", file.display(), tenant.id, models.join(", ")));
            for grant in &tenant.models {
                let Some(catalog) = &grant.catalog else { continue };
                if !self.models.join(catalog.as_str()).is_dir() {
                    report.faults.push(format!(
                        "{}: model `{}`: the catalog {} has no model `{catalog}`",
                        file.display(),
                        grant.name,
                        self.models.display()
                    ));
                }
            }
        }
        if folder.tenants.is_empty() && folder.faults.is_empty() {
            report.faults.push(format!(
                "the tenants folder `{}` holds no document: nobody could call the server",
                self.tenants.display()
            ));
        }
        report.faults.extend(self.exposed_demo_keys(folder));
    }
}
