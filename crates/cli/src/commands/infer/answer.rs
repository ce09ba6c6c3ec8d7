//! A server's JSON answer as values: outputs with their types, shapes and elements. Reading only; the table shows it.

use insula_core::DType;
use serde::Deserialize;
use serde_json::Value;

use crate::failure::Failure;

/// The JSON answer to an inference request.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct InferAnswer {
    /// The model that answered.
    pub model_name: String,
    /// Its version.
    #[serde(default)]
    pub model_version: Option<String>,
    /// The outputs.
    pub outputs: Vec<OutputTensor>,
}

/// One output.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct OutputTensor {
    /// Its name.
    pub name: String,
    /// The protocol's name of its type.
    pub datatype: String,
    /// Its dimensions.
    pub shape: Vec<usize>,
    /// Its elements, flat or nested as its shape.
    #[serde(default)]
    data: Vec<Value>,
}

impl InferAnswer {
    /// Reads the answer.
    pub fn read(json: &[u8]) -> Result<InferAnswer, Failure> {
        serde_json::from_slice(json)
            .map_err(|error| Failure::new(format_args!("the server's answer cannot be read: {error}")))
    }
}

impl OutputTensor {
    /// The elements in order, whatever their nesting.
    pub fn elements(&self) -> Vec<&Value> {
        let mut elements = Vec::new();
        flatten(&self.data, &mut elements);
        elements
    }

    /// Whether its elements are real numbers.
    pub fn is_real(&self) -> bool {
        let dtype = DType::from_name(&self.datatype);
        matches!(dtype, Some(DType::Fp16 | DType::Bf16 | DType::Fp32 | DType::Fp64))
    }

    /// The rows of the last dimension, when each of them is a distribution over at least two classes: real numbers from 0 to 1
    /// whose sum is 1 within a hundredth.
    pub fn distributions(&self) -> Option<Vec<Vec<f64>>> {
        let classes = self.shape.last().copied().filter(|classes| *classes >= 2 && self.is_real())?;
        let elements: Vec<f64> = self.elements().into_iter().map(Value::as_f64).collect::<Option<_>>()?;
        let is_distribution = |row: &[f64]| {
            row.len() == classes
                && row.iter().all(|share| (0.0..=1.0).contains(share))
                && (row.iter().sum::<f64>() - 1.0).abs() < 0.01
        };
        let rows: Vec<Vec<f64>> = elements.chunks(classes).map(<[f64]>::to_vec).collect();
        (!rows.is_empty() && rows.iter().all(|row| is_distribution(row))).then_some(rows)
    }
}

/// serde_json refuses a nesting of more than 128, so the recursion ends.
fn flatten<'a>(values: &'a [Value], elements: &mut Vec<&'a Value>) {
    for value in values {
        match value {
            Value::Array(inner) => flatten(inner, elements),
            element => elements.push(element),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(datatype: &str, shape: &[usize], data: &str) -> OutputTensor {
        OutputTensor {
            name: "y".into(),
            datatype: datatype.into(),
            shape: shape.into(),
            data: serde_json::from_str(data).unwrap(),
        }
    }

    #[test]
    fn nested_and_flat_data_are_the_same() {
        let (flat, nested) = (output("INT64", &[2, 2], "[1,2,3,4]"), output("INT64", &[2, 2], "[[1,2],[3,4]]"));
        assert_eq!(flat.elements(), nested.elements());
    }

    #[test]
    fn only_rows_that_sum_to_one_are_distributions() {
        assert_eq!(
            output("FP32", &[2, 2], "[0.25,0.75,1,0]").distributions(),
            Some(vec![vec![0.25, 0.75], vec![1.0, 0.0]])
        );
        for (datatype, shape, data) in [
            ("FP32", &[1, 2][..], "[0.5,0.6]"),
            ("FP32", &[1, 2], "[1.5,-0.5]"),
            ("FP32", &[2, 1], "[1,1]"),
            ("FP32", &[2, 2], "[0.5,0.5,1]"),
            ("FP32", &[1, 2], "[null,1]"),
            ("INT64", &[1, 2], "[0,1]"),
            ("FP32", &[], "[1]"),
            ("FP32", &[0, 2], "[]"),
        ] {
            assert_eq!(output(datatype, shape, data).distributions(), None, "{datatype} {shape:?} {data}");
        }
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        assert!(InferAnswer::read(b"<html>").is_err());
        assert!(InferAnswer::read(br#"{"outputs": []}"#).is_err());
    }
}
