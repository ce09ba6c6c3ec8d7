//! The ONNX node tests through the engine as the server uses it: reads the cases that `conformance/onnx_node_cases.py` wrote,
//! runs each and compares its outputs. It keeps no state between cases. The binary `onnx_node_tests` calls it.

pub mod cases;
pub mod compare;
pub mod counts;
pub mod engine;
pub mod operators_document;
pub mod report;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use bytes::Bytes;
use insula_core::DType;

use cases::{Case, Declared, Scope, Tests};
use compare::compare;

/// How the reason begins when a case has tensors of a type that the protocol does not carry; the type follows.
const NO_TYPE: &str = "the protocol has no type ";

/// A tensor of a case: row-major, little-endian.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// The element type.
    pub dtype: DType,
    /// The dimensions, outermost first; none for a scalar.
    pub dims: Vec<usize>,
    /// Its bytes.
    pub bytes: Bytes,
}

/// What came of a case in scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// All outputs are as expected.
    Pass,
    /// The engine refused to load it, saying that something is not supported.
    Unsupported(String),
    /// Other outputs than expected, another error, or a panic.
    Wrong(String),
}

/// A case in scope with its outcome.
#[derive(Debug)]
pub struct Verdict<'a> {
    /// The case.
    pub case: &'a Case,
    /// What came of it.
    pub outcome: Outcome,
}

/// Runs every case in scope whose name contains `only`.
pub fn run_all<'a>(tests: &'a Tests, only: &str) -> Result<Vec<Verdict<'a>>, String> {
    let chosen = tests.cases.iter().filter(|case| matches!(case.scope, Scope::In { .. }) && case.name.contains(only));
    chosen.map(|case| Ok(Verdict { case, outcome: run_case(&tests.folder, case)? })).collect()
}

/// Runs one case in scope. Fails when its files cannot be read.
fn run_case(folder: &Path, case: &Case) -> Result<Outcome, String> {
    let Scope::In { tolerance, inputs, outputs, .. } = &case.scope else {
        return Err(format!("{} is out of scope", case.name));
    };
    let folder = folder.join(&case.name);
    let (inputs, expected) = match (read_all(&folder, inputs)?, read_all(&folder, outputs)?) {
        (Ok(inputs), Ok(outputs)) => (inputs, outputs),
        (Err(dtype), _) | (_, Err(dtype)) => {
            return Ok(Outcome::Unsupported(format!("{NO_TYPE}{dtype}")));
        }
    };
    let onnx = Bytes::from(read(&folder, "model.onnx")?);
    let found = match catch_unwind(AssertUnwindSafe(|| engine::run(onnx, &inputs))) {
        Ok(Ok(found)) => found,
        Ok(Err(error)) if error.unsupported => return Ok(Outcome::Unsupported(error.message)),
        Ok(Err(error)) => return Ok(Outcome::Wrong(error.message)),
        Err(panic) => return Ok(Outcome::Wrong(format!("panic: {}", panic_message(&*panic)))),
    };
    if found.len() != expected.len() {
        return Ok(Outcome::Wrong(format!("{} outputs, expected {}", found.len(), expected.len())));
    }
    for ((found, expected), declared) in found.iter().zip(&expected).zip(outputs) {
        if let Err(difference) = compare(found, expected, *tolerance) {
            return Ok(Outcome::Wrong(format!("output `{}`: {difference}", declared.name)));
        }
    }
    Ok(Outcome::Pass)
}

/// The tensors, or the name of the first type that the protocol does not have.
fn read_all(folder: &Path, declared: &[Declared]) -> Result<Result<Vec<Tensor>, String>, String> {
    let mut tensors = Vec::new();
    for declared in declared {
        let Some(dtype) = DType::from_name(&declared.dtype) else { return Ok(Err(declared.dtype.clone())) };
        let bytes = Bytes::from(read(folder, &declared.file)?);
        tensors.push(Tensor { dtype, dims: declared.dims.clone(), bytes });
    }
    Ok(Ok(tensors))
}

fn read(folder: &Path, file: &str) -> Result<Vec<u8>, String> {
    let path = folder.join(file);
    std::fs::read(&path).map_err(|error| format!("{} could not be read: {error}", path.display()))
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}
