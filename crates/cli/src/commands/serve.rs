//! `insula serve`: puts the settings together, then starts the server or only checks.

use insula_api::status::ExitCode;
use insula_server::settings::Settings;

use crate::args::serve::ServeArgs;
use crate::failure::Failure;
use crate::printer::Printer;

/// Runs the command. With faults in the settings themselves nothing is tried, and they count as wrong use.
pub fn run(args: &ServeArgs, printer: &mut Printer) -> Result<ExitCode, Failure> {
    let settings = Settings::load(&args.settings.overrides())
        .map_err(|faults| Failure::several(ExitCode::Misused, faults.faults()))?;
    if args.check {
        return check(&settings, printer);
    }
    insula_server::serve(settings).map(|()| ExitCode::Done).map_err(|error| {
        let detail = error.detail().map_or(String::new(), |detail| format!(" ({detail})"));
        Failure::several(ExitCode::Failed, [format!("{error}{detail}")])
    })
}

fn check(settings: &Settings, printer: &mut Printer) -> Result<ExitCode, Failure> {
    for note in &settings.notes {
        printer.words(format_args!("note: {note}"));
    }
    let report = settings.check();
    for line in &report.found {
        printer.data(format!("{line}\n"));
    }
    if !report.is_ok() {
        return Err(Failure::several(ExitCode::Failed, &report.faults));
    }
    printer.words("the configuration is good");
    Ok(ExitCode::Done)
}
