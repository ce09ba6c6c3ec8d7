//! `insula doctor`: looks at this machine and the configuration as a server would, and says what is good, what deserves a
//! look and what is bad. It starts nothing and changes nothing.

pub mod configuration;
pub mod control_groups;
pub mod cores;
pub mod device;
pub mod finding;
pub mod limits;
pub mod machine_files;
pub mod memory;
pub mod ports;
pub mod report;

use insula_api::status::ExitCode;
use insula_server::settings::Settings;
use insula_store::TenantsFolder;

use self::finding::Finding;
use self::limits::Needs;
use self::machine_files::MachineFiles;
use self::report::Report;
use crate::args::doctor::DoctorArgs;
use crate::args::output::OutputFormat;
use crate::failure::Failure;
use crate::printer::Printer;

/// Runs the command.
pub fn run(args: &DoctorArgs, printer: &mut Printer) -> Result<ExitCode, Failure> {
    let (settings, configuration) = configuration::check(&args.settings.overrides());
    let mut findings = look_at_machine(&MachineFiles::of_this_machine(), settings.as_ref());
    findings.extend(configuration);
    findings.extend(settings.iter().flat_map(ports::check));
    let report = Report::new(findings);
    match args.output {
        OutputFormat::Table => printer.data(report.table()),
        OutputFormat::Json => printer.data(report.json()?),
    }
    printer.words(report.summary());
    Ok(if report.is_bad() { ExitCode::Failed } else { ExitCode::Done })
}

fn look_at_machine(machine: &MachineFiles, settings: Option<&Settings>) -> Vec<Finding> {
    let mut findings = cores::check(machine);
    findings.extend(memory::check(machine, settings.map(|settings| settings.memory)));
    findings.extend(limits::check(machine, needs(settings)));
    findings.extend(device::check(machine));
    findings
}

/// What a server of `settings` needs; without them, what one with the defaults does.
fn needs(settings: Option<&Settings>) -> Needs {
    let defaults = Settings::default();
    let settings = settings.unwrap_or(&defaults);
    let tenants = TenantsFolder::read(&settings.tenants).map_or(0, |folder| folder.tenants.len());
    Needs { connections: settings.max_connections as u64, tenants: tenants as u64 }
}
