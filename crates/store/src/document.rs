//! One tenant's document: its types, and the parser that checks all of a TOML text and reports every fault at once. It
//! touches no file. What this version does not offer is refused by name, never ignored; [`crate::folder`] and the fuzz
//! target call it.

use std::time::Duration;

use insula_core::{ModelName, Quota, TenantId, Version};
use toml::de::DeTable;
use uuid::Uuid;

use crate::key::KeyRecord;

mod checker;
mod fault;
mod keys;
mod models;
mod quota;
mod section;

use checker::Checker;
pub use fault::{DocumentFaults, Fault};
use section::Section;

/// The longest display name, in characters.
pub const DISPLAY_NAME_MAX: usize = 200;

/// The longest time that `quota.timeout_ms` may allow a request.
pub const TIMEOUT_MAX: Duration = Duration::from_hours(24);

/// The word that metrics show for a tenant or model that is not configured; no tenant or model may have it as its name.
pub(crate) const RESERVED_NAME: &str = "unknown";

/// A tenant as its document describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct TenantDocument {
    /// Who the tenant is.
    pub id: TenantId,
    /// The tenant's identity over renames and deletions; hand-written files may have none.
    pub uuid: Option<Uuid>,
    /// A name for people; the id where the document has none.
    pub display_name: String,
    /// Whether it is served.
    pub state: TenantState,
    /// How far it is kept apart from others on a device.
    pub isolation: Isolation,
    /// Where its actor runs.
    pub event_loop: EventLoop,
    /// What it may use.
    pub quota: Quota,
    /// Its keys, in the document's order; ids and hashes are unique.
    pub keys: Vec<KeyRecord>,
    /// The models it may call, in the document's order; names are unique.
    pub models: Vec<ModelGrant>,
}

/// Whether a tenant is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TenantState {
    /// It is.
    Active,
    /// Its requests are refused; its keys, models and figures stay.
    Suspended,
}

/// How far a tenant is kept apart from others on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// Its rows may run in one batch with others' rows; its memory is its own.
    Shared,
}

/// Where a tenant's actor runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventLoop {
    /// On a thread of its own.
    Own,
}

/// A model that a tenant may call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelGrant {
    /// The name by which the tenant calls it.
    pub name: ModelName,
    /// The catalog's name for it; `None`: it is the tenant's own.
    pub catalog: Option<ModelName>,
    /// The only version the tenant may call; `None`: all, the newest by default.
    pub version: Option<Version>,
    /// What it is computed in; `None`: as the model says.
    pub precision: Option<Precision>,
}

/// The number format that a model's weights and activations are kept in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// IEEE binary16, accumulated in binary32.
    Fp16,
    /// IEEE binary32.
    Fp32,
}

/// The lines of a document that [`crate::folder`] may have to name when two documents contradict each other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lines {
    pub(crate) id: Option<usize>,
    pub(crate) uuid: Option<usize>,
    /// One for each of the document's keys.
    pub(crate) keys: Vec<usize>,
}

impl TenantDocument {
    /// Reads and checks a document. Fails with all of its faults, in the order of their lines.
    pub fn parse(text: &str) -> Result<TenantDocument, DocumentFaults> {
        parse_with_lines(text).map(|(document, _)| document)
    }
}

/// [`TenantDocument::parse`], with the lines of what must be unique among documents.
pub(crate) fn parse_with_lines(text: &str) -> Result<(TenantDocument, Lines), DocumentFaults> {
    let mut checker = Checker::new(text);
    let (root, syntax) = DeTable::parse_recoverable(text);
    if !syntax.is_empty() {
        return Err(checker.syntax_faults(&syntax));
    }
    let root = Section::root(root.get_ref());
    let parsed = read(&root, &mut checker);
    match (parsed, checker.finish()) {
        (Some(parsed), None) => Ok(parsed),
        (_, Some(faults)) => Err(faults),
        (None, None) => Err(DocumentFaults::of_file("the document could not be read")),
    }
}

const KEYS: [&str; 10] =
    ["version", "id", "uuid", "display_name", "state", "isolation", "event_loop", "quota", "keys", "models"];

fn read(root: &Section<'_>, checker: &mut Checker<'_>) -> Option<(TenantDocument, Lines)> {
    root.refuse_others(checker, &KEYS, &["shared_memory"]);
    check_version(root, checker);
    let id = read_id(root, checker);
    let uuid = read_uuid(root, checker);
    let display_name = read_display_name(root, checker);
    let state = root.word(checker, "state", &[("active", TenantState::Active), ("suspended", TenantState::Suspended)]);
    let isolation = root.offered_word(checker, "isolation", ("shared", Isolation::Shared), "strict");
    let event_loop = root.offered_word(checker, "event_loop", ("own", EventLoop::Own), "shared");
    let quota = quota::read(root.table(checker, "quota"), checker);
    let (keys, key_lines) = keys::read(root, checker);
    let models = models::read(root, checker);
    let id = id?;
    let lines = Lines { id: root.line_of(checker, "id"), uuid: root.line_of(checker, "uuid"), keys: key_lines };
    let document = TenantDocument {
        display_name: display_name.unwrap_or_else(|| id.to_string()),
        id,
        uuid,
        state: state.unwrap_or(TenantState::Active),
        isolation: isolation.unwrap_or(Isolation::Shared),
        event_loop: event_loop.unwrap_or(EventLoop::Own),
        quota,
        keys,
        models,
    };
    Some((document, lines))
}

fn check_version(root: &Section<'_>, checker: &mut Checker<'_>) {
    if !root.require(checker, "version", "the document's format, `version = 1`") {
        return;
    }
    if root.whole(checker, "version", 0..=u64::MAX).is_some_and(|version| version != 1) {
        root.bad_value(checker, "version", "this version of insula reads documents of version 1 only");
    }
}

fn read_id(root: &Section<'_>, checker: &mut Checker<'_>) -> Option<TenantId> {
    root.require(checker, "id", "the tenant's id, such as `id = \"acme-corp\"`");
    let id = root.parsed::<TenantId>(checker, "id")?;
    if id.as_str() == RESERVED_NAME {
        root.bad_value(checker, "id", "metrics use this name for callers who are no tenant; choose another");
    }
    Some(id)
}

fn read_uuid(root: &Section<'_>, checker: &mut Checker<'_>) -> Option<Uuid> {
    let text = root.string(checker, "uuid")?;
    let uuid = Uuid::try_parse(text).ok().filter(|uuid| text.len() == 36 && !uuid.is_nil());
    if uuid.is_none() {
        root.bad_value(checker, "uuid", "must be a UUID in its form with hyphens, not all zero; or leave it out");
    }
    uuid
}

fn read_display_name(root: &Section<'_>, checker: &mut Checker<'_>) -> Option<String> {
    let text = root.string(checker, "display_name")?;
    let length = text.chars().count();
    if !(1..=DISPLAY_NAME_MAX).contains(&length) || text.chars().any(char::is_control) {
        root.bad_value(checker, "display_name", "must be 1 to 200 characters without control characters");
    }
    Some(text.to_owned())
}
