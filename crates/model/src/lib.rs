//! ONNX files to graphs, passes and logical plans, and the model repository on disk. It never executes anything: constant
//! folding goes through a [`ConstantFolder`] handed in. Devices lower a [`LogicalPlan`]; the runtime loads a model here.
#![forbid(unsafe_code)]

#[cfg(target_endian = "big")]
compile_error!(
    "ONNX and the protocol are little-endian, and tensors are used as they come: big-endian machines are not supported"
);

pub mod constant;
pub mod error;
pub mod external_data;
pub mod graph;
pub mod model;
pub mod model_file;
mod node_order;
pub mod onnx;
pub mod onnx_file;
pub mod op;
mod operators;
pub mod passes;
pub mod plan;
pub mod private_models;
pub mod reader;
pub mod repository;
pub mod settings;
pub mod shape_class;
pub mod shape_inference;
mod tensor_reader;
pub mod uploaded_model;
mod wire_scan;

pub use constant::{Constant, ConstantId};
pub use error::{LoadError, LoadErrorKind, LoadResult};
pub use external_data::{ExternalData, NoExternalData, UploadedData, VersionFolder};
pub use graph::{Dim, Graph, Node, NodeOp, TensorType, Value, ValueId, ValueSource};
pub use model::{DEFAULT_MAX_BATCH, LoadOptions, Model};
pub use model_file::ModelFile;
pub use op::{
    Activation, AveragePool, BinaryOp, Conv, ConvTranspose, DeformConv, GateFunction, LpPool, MaxPositions, Op, Pads,
    Recurrent, RecurrentCell, RecurrentDirection, RecurrentInputs, Reduce, Reduction, Window,
};
pub use operators::{NEWEST_OPSET, OLDEST_OPSET, supported_operators};
pub use passes::constant_folding::{ConstantFolder, NoFolding};
pub use passes::precision::Precision;
pub use plan::{
    ARENA_ALIGNMENT, Binding, Buffer, BufferId, Epilogue, LogicalPlan, Operand, PlanInput, PlanOutput, Source, Step,
};
pub use private_models::PrivateModels;
pub use repository::{Repository, VersionFingerprint};
pub use settings::ModelSettings;
pub use shape_class::{ClassInput, ShapeClass};
pub use uploaded_model::{VersionFiles, versions_of_files};
