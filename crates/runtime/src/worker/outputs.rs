//! How much room the outputs of a request need, known before it runs. Submission asks; nothing here touches memory.

use insula_core::{CheckedRequest, Error, Result};
use insula_memory::OutputPlace;
use smallvec::SmallVec;

use crate::model::ServedModel;

/// Places of a request's outputs; few models have more than two.
pub type OutputPlaces = SmallVec<[OutputPlace; 2]>;

/// A place for each output that `request` wants, in the order it wants them.
pub fn output_places(model: &ServedModel, request: &CheckedRequest) -> Result<OutputPlaces> {
    let signature = model.loaded.signature();
    let place = |output: usize| {
        let known = signature.outputs.get(output).zip(model.loaded.output_rooms().get(output));
        let (spec, room) = known.ok_or_else(|| {
            Error::internal("an output of the model is missing", format!("output {output} of model {}", model.name))
        })?;
        let shape = spec.shape_for(request.rows())?;
        let bytes = match (shape.bytes(spec.dtype)?, room.passes_through) {
            (Some(bytes), _) => bytes,
            (None, Some(input)) => request.inputs().get(input).map_or(0, |tensor| tensor.bytes()),
            (None, None) => {
                let detail = format!("BYTES output `{}` is no input passed through", spec.name);
                return Err(Error::internal("the size of an output is not known", detail));
            }
        };
        Ok(OutputPlace { name: room.name.clone(), dtype: spec.dtype, shape, bytes })
    };
    request.outputs().iter().map(|wanted| place(wanted.output)).collect()
}
