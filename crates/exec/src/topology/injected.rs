//! A topology from a JSON text, checked: what tests and trial runs use instead of the machine's own.

use std::collections::BTreeSet;

use insula_core::{Error, Result};
use serde::Deserialize;

use super::{Node, Topology};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    nodes: Vec<DocumentNode>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DocumentNode {
    id: u32,
    #[serde(default)]
    cpus: Vec<usize>,
    #[serde(default)]
    devices: Vec<String>,
}

pub(super) fn parse(text: &str) -> Result<Topology> {
    let document: Document = serde_json::from_str(text).map_err(|error| {
        Error::invalid(format!(
            "the topology is not understood: {error}; expected {{\"nodes\":[{{\"id\":0,\"cpus\":[0,1],\"devices\":[]}}]}}"
        ))
    })?;
    let (mut ids, mut cpus, mut devices) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for node in &document.nodes {
        if !ids.insert(node.id) {
            return Err(Error::invalid(format!("node {} is described twice", node.id)));
        }
        for cpu in &node.cpus {
            if !cpus.insert(*cpu) {
                return Err(Error::invalid(format!("processor {cpu} of node {} is listed twice", node.id)));
            }
        }
        for device in &node.devices {
            if device.is_empty() || !devices.insert(device) {
                return Err(Error::invalid(format!("device {device:?} of node {} is empty or listed twice", node.id)));
            }
        }
    }
    let processors = cpus.len();
    if processors == 0 {
        return Err(Error::invalid("no node has processors: give at least one node a list `cpus`"));
    }
    let node = |node: DocumentNode| {
        let mut cpus = node.cpus;
        cpus.sort_unstable();
        Node { id: node.id, cpus, devices: node.devices }
    };
    Ok(Topology { nodes: document.nodes.into_iter().map(node).collect(), processors })
}
