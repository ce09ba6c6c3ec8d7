//! How much room the outputs of a request need, known before it runs. Submission asks; nothing here touches memory.

use insula_core::{CheckedRequest, Error, Result};
use insula_memory::OutputPlace;
use smallvec::SmallVec;

use crate::plans::ClassPlans;

/// Places of a request's outputs; few models have more than two.
pub type OutputPlaces = SmallVec<[OutputPlace; 2]>;

/// A place for each output that `request` wants, in the order it wants them, once it has `plans`.
pub fn output_places(plans: &ClassPlans, request: &CheckedRequest) -> Result<OutputPlaces> {
    let place = |output: usize| {
        let room = plans
            .outputs()
            .get(output)
            .ok_or_else(|| Error::internal("an output of the model is missing", format!("output {output}")))?;
        let shape = room.shape(request.rows())?;
        let bytes = match (shape.bytes(room.dtype)?, room.passes_through) {
            (Some(bytes), _) => bytes,
            (None, Some(input)) => request.inputs().get(input).map_or(0, |tensor| tensor.bytes()),
            (None, None) => {
                let detail = format!("BYTES output `{}` is no input passed through", room.name);
                return Err(Error::internal("the size of an output is not known", detail));
            }
        };
        Ok(OutputPlace { name: room.name.clone(), dtype: room.dtype, shape, bytes })
    };
    request.outputs().iter().map(|wanted| place(wanted.output)).collect()
}
