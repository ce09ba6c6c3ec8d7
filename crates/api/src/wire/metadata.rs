//! What the server and its models say of themselves. The signature is the source of a model's tensors.

use insula_core::{ModelSignature, TensorSpec};
use serde::{Deserialize, Serialize};

/// The body of `GET /v2`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerMetadata {
    /// The server's name.
    pub name: String,
    /// The server's version.
    pub version: String,
    /// The protocol's extensions that it speaks.
    pub extensions: Vec<String>,
}

/// The body of `GET /v2/models/{name}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelMetadata {
    /// The name by which the caller asked.
    pub name: String,
    /// The versions that are ready.
    #[serde(default)]
    pub versions: Vec<String>,
    /// What the model was made for, e.g. `onnx_onnxv1`.
    pub platform: String,
    /// Its inputs.
    pub inputs: Vec<TensorMetadata>,
    /// Its outputs.
    pub outputs: Vec<TensorMetadata>,
}

impl ModelMetadata {
    /// The metadata of the model called `name` with `signature`.
    pub fn new(name: String, versions: Vec<String>, platform: String, signature: &ModelSignature) -> ModelMetadata {
        let tensors = |specs: &[TensorSpec]| specs.iter().map(TensorMetadata::from).collect();
        ModelMetadata {
            name,
            versions,
            platform,
            inputs: tensors(&signature.inputs),
            outputs: tensors(&signature.outputs),
        }
    }
}

/// A model's input or output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorMetadata {
    /// Its name.
    pub name: String,
    /// Its datatype, e.g. `FP32`.
    pub datatype: String,
    /// Its dimensions; -1 for those that the request chooses.
    pub shape: Vec<i64>,
}

impl From<&TensorSpec> for TensorMetadata {
    fn from(spec: &TensorSpec) -> TensorMetadata {
        TensorMetadata {
            name: spec.name.to_string(),
            datatype: spec.dtype.name().to_owned(),
            shape: spec.protocol_shape(),
        }
    }
}

#[cfg(test)]
mod tests {
    use insula_core::{DType, Dimension};

    use super::*;

    #[test]
    fn a_variable_dimension_is_shown_as_minus_one() {
        let spec = |name: &str| TensorSpec {
            name: name.into(),
            dtype: DType::Fp32,
            dims: vec![Dimension::Symbolic("batch".into()), Dimension::Fixed(4)],
        };
        let signature =
            ModelSignature { inputs: vec![spec("x")], outputs: vec![spec("y")], batched: true, max_batch: 8 };
        let metadata = ModelMetadata::new("m".into(), vec!["1".into()], "onnx_onnxv1".into(), &signature);
        assert_eq!(
            serde_json::to_string(&metadata).unwrap(),
            "{\"name\":\"m\",\"versions\":[\"1\"],\"platform\":\"onnx_onnxv1\",\
             \"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[-1,4]}],\
             \"outputs\":[{\"name\":\"y\",\"datatype\":\"FP32\",\"shape\":[-1,4]}]}"
        );
    }
}
