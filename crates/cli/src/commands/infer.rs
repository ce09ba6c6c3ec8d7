//! `insula infer`: sends one file to a model and shows the answer. An image is laid out as the model's metadata asks; a JSON
//! request goes as it stands.

pub mod answer;
pub mod answer_table;
pub mod image;
pub mod image_layout;
pub mod image_tensor;
pub mod input_file;
pub mod request;
pub mod scale;
pub mod server_timing;

use std::time::Instant;

use insula_api::status::ExitCode;
use insula_api::wire::{ModelMetadata, TensorMetadata};

use self::answer::InferAnswer;
use self::answer_table::Timings;
use self::image::Image;
use self::image_tensor::ImageTensor;
use self::input_file::InputFile;
use self::request::InferRequest;
use crate::args::infer::{InferArgs, Key};
use crate::args::output::OutputFormat;
use crate::failure::Failure;
use crate::http_client::HttpClient;
use crate::printer::Printer;

/// Runs the command.
pub fn run(args: &InferArgs, printer: &mut Printer) -> Result<ExitCode, Failure> {
    let key = args.key.as_ref().map(Key::text).transpose()?.flatten();
    let client = HttpClient::new(args.server.clone(), key, args.timeout);
    let path = model_path(args);
    let request = request(args, &client, &path, printer)?;
    let sent = Instant::now();
    let answer = client.post(&format!("{path}/infer"), &request.headers, &request.body)?;
    let round_trip = sent.elapsed();
    let outputs = InferAnswer::read(&answer.body)?;
    match args.output {
        OutputFormat::Json => {
            printer.data(&answer.body);
            printer.data(if answer.body.ends_with(b"\n") { "" } else { "\n" });
        }
        OutputFormat::Table => {
            let server = server_timing::read(answer.header("server-timing").unwrap_or_default());
            let request_id = answer.header("x-request-id");
            printer.data(answer_table::render(&outputs, request_id, &Timings { server, round_trip }));
        }
    }
    Ok(ExitCode::Done)
}

/// The request that the file stands for; an image is laid out as the model at `path` wants it.
fn request(args: &InferArgs, client: &HttpClient, path: &str, printer: &mut Printer) -> Result<InferRequest, Failure> {
    match InputFile::read(&args.file)? {
        InputFile::Png(png) => {
            let image = Image::decode(&png)?;
            let tensor = ImageTensor::new(&image, &only_input(client, path)?, args.scale)?;
            if args.scale.is_none() {
                let scale = tensor.scale;
                printer.words(format_args!(
                    "note: dark to light went as {scale}; if the model expects other values, give `--scale MIN:MAX`"
                ));
            }
            InferRequest::of_image(&tensor, &args.outputs)
        }
        InputFile::Json(_) if args.scale.is_some() => {
            Err(Failure::misused("`--scale` is for images, and the file is a JSON request"))
        }
        InputFile::Json(json) => InferRequest::of_json(json, &args.outputs),
    }
}

/// The path of the model, or of the version that was asked for. A model's name needs no escaping in it.
fn model_path(args: &InferArgs) -> String {
    match args.model_version {
        Some(version) => format!("/v2/models/{}/versions/{}", args.model, version.number()),
        None => format!("/v2/models/{}", args.model),
    }
}

/// The only input of the model at `path`. Fails when it has more or none.
fn only_input(client: &HttpClient, path: &str) -> Result<TensorMetadata, Failure> {
    let metadata: ModelMetadata = serde_json::from_slice(&client.get(path)?.body).map_err(|error| {
        Failure::new(format_args!("the server describes the model in a way that cannot be read: {error}"))
    })?;
    let names: Vec<_> = metadata.inputs.iter().map(|input| format!("`{}`", input.name)).collect();
    match <[TensorMetadata; 1]>::try_from(metadata.inputs) {
        Ok([input]) => Ok(input),
        Err(_) => Err(Failure::new(format_args!(
            "an image can be sent to a model with one input, this one has {} ({})",
            names.len(),
            names.join(", ")
        ))
        .hint("send a JSON request instead: it can hold any inputs")),
    }
}
