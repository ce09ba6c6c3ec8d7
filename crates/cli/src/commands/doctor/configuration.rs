//! The configuration that a server would be started with: settings, tenants' documents, folders. It reads what a start
//! would read and changes nothing on disk.

use std::path::Path;

use insula_server::settings::{Overrides, Settings};
use rustix::fs::{Access, access};

use super::finding::Finding;

/// The settings, when they are without fault, and the findings about them and what they name.
pub fn check(overrides: &Overrides) -> (Option<Settings>, Vec<Finding>) {
    match Settings::load(overrides) {
        Ok(settings) => {
            let findings = findings(&settings);
            (Some(settings), findings)
        }
        Err(faults) => {
            let advice = "`insula serve --help` lists what can be set";
            (None, faults.faults().iter().map(|fault| Finding::bad("settings", fault, advice)).collect())
        }
    }
}

fn findings(settings: &Settings) -> Vec<Finding> {
    let source = settings
        .file
        .as_ref()
        .map_or("defaults, environment and options".to_owned(), |file| file.display().to_string());
    let mut findings = vec![Finding::ok("settings", source)];
    findings.extend(settings.notes.iter().map(|note| Finding::warn("settings", note, "correct the name, or unset it")));
    let report = settings.check();
    if report.is_ok() {
        findings.push(Finding::ok("tenants", format_args!("{} in {}", report.found.len(), settings.tenants.display())));
        findings.push(Finding::ok("models", settings.models.display()));
    }
    let advice = "correct it; `insula serve --check` then says the same as a start would";
    findings.extend(report.faults.iter().map(|fault| Finding::bad("tenants", fault, advice)));
    findings.push(state_folder(&settings.state));
    findings
}

/// Whether the state folder can be written, or made where its parent can.
fn state_folder(folder: &Path) -> Finding {
    let shown = folder.display();
    let existing = folder
        .ancestors()
        .map(|path| if path.as_os_str().is_empty() { Path::new(".") } else { path })
        .find(|path| path.exists());
    match existing {
        Some(path) if !path.is_dir() => Finding::bad(
            "state folder",
            shown,
            format_args!("{} is not a folder: name another with `--state DIR`", path.display()),
        ),
        Some(path) if access(path, Access::WRITE_OK | Access::EXEC_OK).is_err() => Finding::bad(
            "state folder",
            shown,
            format_args!("{} cannot be written: name another with `--state DIR`", path.display()),
        ),
        Some(path) if path == folder => Finding::ok("state folder", shown),
        _ => Finding::ok("state folder", format_args!("{shown} will be made")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    fn overrides(folder: &Path) -> Overrides {
        Overrides {
            tenants: Some(folder.join("tenants")),
            models: Some(folder.join("models")),
            state: Some(folder.join("state")),
            ..Overrides::default()
        }
    }

    #[test]
    fn all_faults_of_the_settings_are_told() {
        let wrong = Overrides { http: Some("here".into()), workers: Some("none".into()), ..Overrides::default() };
        let (settings, findings) = check(&wrong);
        assert!(settings.is_none());
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert!(findings.iter().all(|finding| finding.level == Level::Bad));
        assert!(findings[0].value.starts_with("--http: server.http:"), "{findings:?}");
    }

    #[test]
    fn folders_that_are_not_there_are_bad_and_a_state_folder_can_be_made() {
        let folder = tempfile::tempdir().unwrap();
        let (settings, findings) = check(&overrides(folder.path()));
        assert!(settings.is_some());
        let bad: Vec<_> = findings.iter().filter(|finding| finding.level == Level::Bad).collect();
        assert_eq!(bad.len(), 2, "{findings:?}");
        assert!(findings.last().unwrap().value.ends_with("will be made"), "{findings:?}");
    }

    #[test]
    fn a_state_folder_that_is_a_file_is_bad() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("state"), "").unwrap();
        assert_eq!(state_folder(&folder.path().join("state")).level, Level::Bad);
        assert_eq!(state_folder(&folder.path().join("state/inner")).level, Level::Bad);
    }
}
