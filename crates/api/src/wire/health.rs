//! The bodies of the health endpoints. Stock clients look at the status only; the protocol's text defines these bodies.

use serde::{Deserialize, Serialize};

/// The body of `/v2/health/live`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveBody {
    /// Whether the server runs.
    pub live: bool,
}

/// The body of `/v2/health/ready`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadyBody {
    /// Whether the server takes requests.
    pub ready: bool,
}

/// The body of a model's `ready`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelReadyBody {
    /// The name by which the caller asked.
    pub name: String,
    /// Whether the model takes requests.
    pub ready: bool,
}
