//! The table of everything that can be set: key in the file, variable, flag, form and what it changes. It is the only
//! place that a new setting has to be added to. Sources look keys up here and apply them.

use std::fmt;
use std::path::PathBuf;

use insula_telemetry::{AccessLogTarget, LogFormat};

use super::fault::Faults;
use super::value;
use super::{DeviceChoice, Settings};

/// One thing that can be set.
#[derive(Debug)]
pub(super) struct Key {
    /// Its key in the file: `table.key`.
    pub(super) path: &'static str,
    /// Its environment variable.
    pub(super) variable: &'static str,
    /// How its value is written.
    form: &'static str,
    set: fn(&mut Settings, &str) -> Result<(), Wrong>,
}

/// Why a value was not taken.
#[derive(Debug)]
pub(super) enum Wrong {
    /// It is not of the key's form.
    Form,
    /// It is of the form, and this is what is wrong.
    Because(String),
}

/// A value for a key with the place it comes from.
#[derive(Debug)]
pub(super) struct Given {
    pub(super) key: &'static Key,
    pub(super) value: String,
    pub(super) place: String,
}

impl Given {
    /// Puts the value into `settings` or notes what is wrong with it.
    pub(super) fn apply(&self, settings: &mut Settings, faults: &mut Faults) {
        let message = match (self.key.set)(settings, &self.value) {
            Ok(()) => return,
            Err(Wrong::Form) => format!("{:?} is not {}", Shown(&self.value), self.key.form),
            Err(Wrong::Because(message)) => message,
        };
        faults.note(&self.place, self.key.path, message);
    }
}

/// A value as it is repeated in messages: its first characters.
struct Shown<'a>(&'a str);

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0.chars().take(80).collect::<String>())
    }
}

const DURATION: &str = "a time such as \"500ms\", \"10s\" or \"2m\", more than 0 and at most a day";
const ADDRESS: &str = "an address and port such as \"127.0.0.1:8000\" (port 0 takes a free one)";
const FOLDER: &str = "the path of a folder";

macro_rules! key {
    ($path:literal, $variable:literal, $form:expr, $set:expr) => {
        Key { path: $path, variable: $variable, form: $form, set: $set }
    };
}

/// A setter that puts what `parse` makes of the text into a field.
macro_rules! put {
    ($parse:expr => $($field:ident).+) => {
        |settings, text| {
            settings.$($field).+ = $parse(text).ok_or(Wrong::Form)?;
            Ok(())
        }
    };
}

/// All keys, in the order of the documentation.
pub(super) static KEYS: [Key; 28] = [
    key!("server.http", "INSULA_HTTP", ADDRESS, put!(value::address => http)),
    key!("server.grpc", "INSULA_GRPC", "\"-\"", refuse_grpc),
    key!("server.admin", "INSULA_ADMIN", ADDRESS, put!(value::address => admin)),
    key!("server.tenants", "INSULA_TENANTS", FOLDER, put!(folder => tenants)),
    key!("server.models", "INSULA_MODELS", FOLDER, put!(folder => models)),
    key!("server.state", "INSULA_STATE", FOLDER, put!(folder => state)),
    key!("server.device", "INSULA_DEVICE", "auto or cpu", set_device),
    key!("server.workers", "INSULA_WORKERS", "a whole number from 1 to 1024", |settings, text| {
        settings.workers = Some(value::count(text, 1024).ok_or(Wrong::Form)?);
        Ok(())
    }),
    key!("server.http_workers", "INSULA_HTTP_WORKERS", "a whole number from 1 to 256", |settings, text| {
        settings.http_workers = Some(value::count(text, 256).ok_or(Wrong::Form)?);
        Ok(())
    }),
    key!(
        "server.memory",
        "INSULA_MEMORY",
        "a share such as \"75%\" or a size such as \"8GiB\"",
        put!(value::memory => memory)
    ),
    key!(
        "server.max_queue_delay",
        "INSULA_MAX_QUEUE_DELAY",
        "a time such as \"2ms\", at most a day; 0ms never holds a request back",
        put!(value::duration => max_queue_delay)
    ),
    key!("server.max_connections", "INSULA_MAX_CONNECTIONS", "a whole number from 1 to 1000000", |settings, text| {
        settings.max_connections = value::count(text, 1_000_000).ok_or(Wrong::Form)?;
        Ok(())
    }),
    key!(
        "server.drain_delay",
        "INSULA_DRAIN_DELAY",
        "a time such as \"500ms\" or \"10s\", at most a day",
        put!(value::duration => drain_delay)
    ),
    key!("server.drain_timeout", "INSULA_DRAIN_TIMEOUT", DURATION, put!(value::positive_duration => drain_timeout)),
    key!("server.half_closed", "INSULA_HALF_CLOSED", "true or false", put!(value::flag => half_closed)),
    key!(
        "requests.header_timeout",
        "INSULA_REQUESTS_HEADER_TIMEOUT",
        DURATION,
        put!(value::positive_duration => requests.header_timeout)
    ),
    key!(
        "requests.keep_alive",
        "INSULA_REQUESTS_KEEP_ALIVE",
        DURATION,
        put!(value::positive_duration => requests.keep_alive)
    ),
    key!(
        "requests.body_idle",
        "INSULA_REQUESTS_BODY_IDLE",
        DURATION,
        put!(value::positive_duration => requests.body_idle)
    ),
    key!(
        "requests.body_total",
        "INSULA_REQUESTS_BODY_TOTAL",
        DURATION,
        put!(value::positive_duration => requests.body_total)
    ),
    key!(
        "requests.response_stall",
        "INSULA_REQUESTS_RESPONSE_STALL",
        DURATION,
        put!(value::positive_duration => requests.response_stall)
    ),
    key!(
        "requests.response_total",
        "INSULA_REQUESTS_RESPONSE_TOTAL",
        DURATION,
        put!(value::positive_duration => requests.response_total)
    ),
    key!(
        "requests.load_bytes",
        "INSULA_REQUESTS_LOAD_BYTES",
        "a size from 1KiB to 16GiB",
        put!(load_bytes => requests.load_bytes)
    ),
    key!(
        "log.level",
        "INSULA_LOG_LEVEL",
        "off, error, warn, info, debug or trace, with `part=level` for parts of the program, commas between",
        put!(log_level => log.level)
    ),
    key!("log.format", "INSULA_LOG_FORMAT", "text or json", put!(log_format => log.format)),
    key!("log.access", "INSULA_LOG_ACCESS", "off, stderr or the path of a file", |settings, text| {
        settings.log.access = match text {
            "" => return Err(Wrong::Form),
            "off" => None,
            "stderr" => Some(AccessLogTarget::Stderr),
            path => Some(AccessLogTarget::File(path.into())),
        };
        Ok(())
    }),
    key!(
        "otlp.endpoint",
        "INSULA_OTLP_ENDPOINT",
        "an address such as \"http://127.0.0.1:4318\" (https is not available in this version)",
        |settings, text| {
            settings.otlp.endpoint = Some(endpoint(text).ok_or(Wrong::Form)?);
            Ok(())
        }
    ),
    key!("otlp.timeout", "INSULA_OTLP_TIMEOUT", DURATION, put!(value::positive_duration => otlp.timeout)),
    key!(
        "otlp.sample_ratio",
        "INSULA_OTLP_SAMPLE_RATIO",
        "a number from 0 to 1",
        put!(value::ratio => otlp.sample_ratio)
    ),
];

/// The key that stands at `path` in the file.
pub(super) fn by_path(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

/// The key that the variable `name` sets.
pub(super) fn by_variable(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.variable == name)
}

/// The path that looks most like `path`, in whole or in what follows the table's name.
pub(super) fn nearest_path(path: &str) -> &'static str {
    let short: String = path.chars().take(80).collect();
    let last = |path: &str| path.rsplit('.').next().map(str::to_owned).unwrap_or_default();
    let distance = |key: &&Key| {
        let whole = strsim::osa_distance(&short, key.path);
        whole.min(1 + strsim::osa_distance(&last(&short), &last(key.path)))
    };
    KEYS.iter().min_by_key(distance).map_or("", |key| key.path)
}

fn refuse_grpc(_: &mut Settings, text: &str) -> Result<(), Wrong> {
    if text == "-" {
        return Ok(());
    }
    Err(Wrong::Because("gRPC is not available in this version: leave it out, or say `-`".to_owned()))
}

fn set_device(settings: &mut Settings, text: &str) -> Result<(), Wrong> {
    settings.device = match text {
        "auto" => DeviceChoice::Auto,
        "cpu" => DeviceChoice::Cpu,
        "cuda" => {
            return Err(Wrong::Because("the device cuda is not available in this version: say auto or cpu".to_owned()));
        }
        _ => return Err(Wrong::Form),
    };
    Ok(())
}

fn folder(text: &str) -> Option<PathBuf> {
    (!text.is_empty()).then(|| text.into())
}

fn load_bytes(text: &str) -> Option<u64> {
    insula_store::byte_size::parse(text).filter(|bytes| (1 << 10..=16 << 30).contains(bytes))
}

fn log_level(text: &str) -> Option<String> {
    let is_level = |text: &str| ["off", "error", "warn", "info", "debug", "trace"].contains(&text);
    let is_good = |part: &str| is_level(part.rsplit_once('=').map_or(part, |(_, level)| level));
    text.split(',').map(str::trim).all(is_good).then(|| text.to_owned())
}

fn log_format(text: &str) -> Option<LogFormat> {
    match text {
        "text" => Some(LogFormat::Text),
        "json" => Some(LogFormat::Json),
        _ => None,
    }
}

fn endpoint(text: &str) -> Option<String> {
    let host = text.strip_prefix("http://")?;
    let plain = !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_graphic());
    plain.then(|| text.to_owned())
}
