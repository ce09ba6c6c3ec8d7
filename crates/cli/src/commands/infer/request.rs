//! The body and the headers of an inference request: an image as a binary tensor behind its JSON description, or a JSON
//! file as it stands. Answers are asked for as JSON. It sends nothing.

use std::collections::BTreeMap;

use insula_api::INFERENCE_HEADER_CONTENT_LENGTH;
use serde::Serialize;
use serde_json::value::RawValue;

use super::image_tensor::ImageTensor;
use crate::failure::Failure;

/// A request, ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InferRequest {
    /// Names and values.
    pub headers: Vec<(&'static str, String)>,
    /// The whole body.
    pub body: Vec<u8>,
}

#[derive(Serialize)]
struct Description<'a> {
    inputs: [DescribedInput<'a>; 1],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    outputs: Vec<WantedOutput<'a>>,
}

#[derive(Serialize)]
struct DescribedInput<'a> {
    name: &'a str,
    shape: &'a [usize],
    datatype: &'static str,
    parameters: InputParameters,
}

#[derive(Serialize)]
struct InputParameters {
    binary_data_size: usize,
}

#[derive(Serialize)]
struct WantedOutput<'a> {
    name: &'a str,
}

impl InferRequest {
    /// A request with `tensor` for `outputs` (all of them when empty).
    pub fn of_image(tensor: &ImageTensor, outputs: &[String]) -> Result<InferRequest, Failure> {
        let input = DescribedInput {
            name: &tensor.name,
            shape: &tensor.shape,
            datatype: tensor.dtype.name(),
            parameters: InputParameters { binary_data_size: tensor.bytes.len() },
        };
        let mut body = serialized(&Description { inputs: [input], outputs: wanted(outputs) })?.into_bytes();
        let headers = vec![
            ("content-type", "application/octet-stream".to_owned()),
            (INFERENCE_HEADER_CONTENT_LENGTH, body.len().to_string()),
        ];
        body.extend_from_slice(&tensor.bytes);
        Ok(InferRequest { headers, body })
    }

    /// The request that `json` is. With `outputs` they take the place of those that it asks for; everything else stays to
    /// the byte.
    pub fn of_json(json: Vec<u8>, outputs: &[String]) -> Result<InferRequest, Failure> {
        let headers = vec![("content-type", "application/json".to_owned())];
        if outputs.is_empty() {
            return Ok(InferRequest { headers, body: json });
        }
        let mut fields: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(&json)
            .map_err(|error| Failure::misused(format_args!("the request is not valid JSON: {error}")))?;
        let wanted = RawValue::from_string(serialized(&wanted(outputs))?)
            .map_err(|error| Failure::new(format_args!("the outputs cannot be written as JSON: {error}")))?;
        fields.insert("outputs".to_owned(), wanted);
        Ok(InferRequest { headers, body: serialized(&fields)?.into_bytes() })
    }
}

fn wanted(outputs: &[String]) -> Vec<WantedOutput<'_>> {
    outputs.iter().map(|name| WantedOutput { name }).collect()
}

fn serialized(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value)
        .map_err(|error| Failure::new(format_args!("the request cannot be written as JSON: {error}")))
}

#[cfg(test)]
mod tests {
    use insula_core::DType;

    use super::super::scale::Scale;
    use super::*;

    #[test]
    fn an_image_goes_behind_its_description() {
        let tensor = ImageTensor {
            name: "image".into(),
            dtype: DType::Uint8,
            shape: vec![1, 1, 2],
            scale: Scale::BYTE,
            bytes: vec![7, 9],
        };
        let request = InferRequest::of_image(&tensor, &["digit".to_owned()]).unwrap();
        let description = br#"{"inputs":[{"name":"image","shape":[1,1,2],"datatype":"UINT8","parameters":{"binary_data_size":2}}],"outputs":[{"name":"digit"}]}"#;
        assert_eq!(request.body, [&description[..], &[7, 9]].concat());
        assert_eq!(request.headers[1], (INFERENCE_HEADER_CONTENT_LENGTH, description.len().to_string()));
        let all = InferRequest::of_image(&tensor, &[]).unwrap();
        assert!(!String::from_utf8_lossy(&all.body).contains("outputs"));
    }

    #[test]
    fn a_json_request_is_sent_as_it_stands() {
        let json = b"{ \"inputs\" : [] }\n".to_vec();
        assert_eq!(InferRequest::of_json(json.clone(), &[]).unwrap().body, json);
    }

    #[test]
    fn chosen_outputs_replace_those_of_the_file_and_nothing_else() {
        let json = br#"{"inputs": [{"data": [1.10, 18446744073709551615]}], "outputs": [{"name": "old"}]}"#.to_vec();
        let body = InferRequest::of_json(json, &["new".to_owned()]).unwrap().body;
        assert_eq!(body, br#"{"inputs":[{"data": [1.10, 18446744073709551615]}],"outputs":[{"name":"new"}]}"#);
        assert!(
            InferRequest::of_json(b"{".to_vec(), &["new".to_owned()]).unwrap_err().messages()[0]
                .contains("not valid JSON")
        );
    }
}
