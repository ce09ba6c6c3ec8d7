//! Whether an output is what a node test expects: type and shape exactly, integers and booleans exactly, floats within the
//! case's tolerance, NaN only for NaN. The rule is that of ONNX's own runner, which allows bfloat16 two units in the last place; halves
//! are allowed as many, since the expected ones were rounded at every step too.

use half::{bf16, f16};
use insula_core::DType;

use super::Tensor;
use super::cases::Tolerance;

/// What ONNX's runner allows bfloat16, relative to the expected value: two units in the last place.
const BF16_RELATIVE: f64 = 1.0 / 64.0;

/// Two units in the last place of a half, relative to the expected value.
const F16_RELATIVE: f64 = 1.0 / 512.0;

/// Fails with what differs: the type, the shape, or the first element that is off and how many are.
pub fn compare(found: &Tensor, expected: &Tensor, tolerance: Tolerance) -> Result<(), String> {
    if found.dtype != expected.dtype {
        return Err(format!("its type is {}, expected {}", found.dtype, expected.dtype));
    }
    if found.dims != expected.dims {
        return Err(format!("its shape is {:?}, expected {:?}", found.dims, expected.dims));
    }
    if found.bytes.len() != expected.bytes.len() {
        return Err(format!("it has {} bytes, expected {}", found.bytes.len(), expected.bytes.len()));
    }
    match (floats(found), floats(expected)) {
        (Some(found), Some(expected_values)) => compare_floats(&found, &expected_values, expected.dtype, tolerance),
        _ => compare_exactly(found, expected),
    }
}

/// The elements of a tensor of floats.
fn floats(tensor: &Tensor) -> Option<Vec<f64>> {
    let bytes = &tensor.bytes[..];
    let values = match tensor.dtype {
        DType::Fp16 => bytes.as_chunks().0.iter().map(|bytes| f16::from_le_bytes(*bytes).to_f64()).collect(),
        DType::Bf16 => bytes.as_chunks().0.iter().map(|bytes| bf16::from_le_bytes(*bytes).to_f64()).collect(),
        DType::Fp32 => bytes.as_chunks().0.iter().map(|bytes| f64::from(f32::from_le_bytes(*bytes))).collect(),
        DType::Fp64 => bytes.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect(),
        _ => return None,
    };
    Some(values)
}

fn compare_floats(found: &[f64], expected: &[f64], dtype: DType, tolerance: Tolerance) -> Result<(), String> {
    let relative = tolerance.relative.max(match dtype {
        DType::Bf16 => BF16_RELATIVE,
        DType::Fp16 => F16_RELATIVE,
        _ => 0.0,
    });
    let close = |found: f64, expected: f64| {
        found == expected
            || (found.is_nan() && expected.is_nan())
            || (expected.is_finite() && (found - expected).abs() <= tolerance.absolute + relative * expected.abs())
    };
    let pairs = found.iter().zip(expected).enumerate();
    let off: Vec<_> = pairs.filter(|(_, (found, expected))| !close(**found, **expected)).collect();
    match off.first() {
        Some((index, (first, wanted))) => {
            Err(format!("element {index} is {first}, expected {wanted}; {} of {} are off", off.len(), found.len()))
        }
        None => Ok(()),
    }
}

fn compare_exactly(found: &Tensor, expected: &Tensor) -> Result<(), String> {
    let size = expected.dtype.size().unwrap_or(1);
    let pairs = found.bytes.chunks(size).zip(expected.bytes.chunks(size)).enumerate();
    let off: Vec<_> = pairs.filter(|(_, (found, expected))| found != expected).collect();
    match off.first() {
        Some((index, (first, wanted))) => Err(format!(
            "element {index} is {}, expected {}; {} of {} are off",
            shown(first, expected.dtype),
            shown(wanted, expected.dtype),
            off.len(),
            expected.bytes.len() / size
        )),
        None => Ok(()),
    }
}

/// A little-endian integer for a message.
fn shown(bytes: &[u8], dtype: DType) -> String {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let value = u64::from_le_bytes(wide);
    match dtype {
        DType::Int8 | DType::Int16 | DType::Int32 | DType::Int64 => {
            let unused = 64 - 8 * bytes.len() as u32;
            (((value << unused) as i64) >> unused).to_string()
        }
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLERANCE: Tolerance = Tolerance { relative: 1e-3, absolute: 1e-7 };

    fn singles(dims: &[usize], values: &[f32]) -> Tensor {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Tensor { dtype: DType::Fp32, dims: dims.to_vec(), bytes: bytes.into() }
    }

    fn agree(found: f32, expected: f32) -> bool {
        compare(&singles(&[1], &[found]), &singles(&[1], &[expected]), TOLERANCE).is_ok()
    }

    #[test]
    fn floats_may_be_off_by_the_tolerance_of_the_expected_value() {
        assert!(agree(1000.9, 1000.0) && agree(5e-8, 0.0));
        assert!(!agree(1001.1, 1000.0) && !agree(2e-7, 0.0));
    }

    #[test]
    fn nan_and_infinities_equal_only_themselves() {
        assert!(agree(f32::NAN, f32::NAN) && agree(f32::INFINITY, f32::INFINITY));
        assert!(!agree(0.0, f32::NAN) && !agree(f32::NAN, 0.0));
        assert!(!agree(f32::NEG_INFINITY, f32::INFINITY) && !agree(1.0, f32::INFINITY) && !agree(f32::INFINITY, 1.0));
    }

    #[test]
    fn bfloat16_may_be_off_by_two_units_in_the_last_place() {
        let tensor = |value: f32| {
            let bytes = bf16::from_f32(value).to_le_bytes().to_vec();
            Tensor { dtype: DType::Bf16, dims: vec![], bytes: bytes.into() }
        };
        assert!(compare(&tensor(1.0 + 1.0 / 64.0), &tensor(1.0), TOLERANCE).is_ok());
        assert!(compare(&tensor(1.0 + 3.0 / 128.0), &tensor(1.0), TOLERANCE).is_err());
    }

    #[test]
    fn types_and_shapes_must_match() {
        let expected = singles(&[2, 1], &[1.0, 2.0]);
        let turned = compare(&singles(&[1, 2], &[1.0, 2.0]), &expected, TOLERANCE);
        assert_eq!(turned.unwrap_err(), "its shape is [1, 2], expected [2, 1]");
        let integers = Tensor { dtype: DType::Int32, ..expected.clone() };
        assert_eq!(compare(&integers, &expected, TOLERANCE).unwrap_err(), "its type is INT32, expected FP32");
        assert!(compare(&singles(&[2, 1], &[1.0]), &expected, TOLERANCE).unwrap_err().contains("4 bytes, expected 8"));
    }

    #[test]
    fn integers_must_be_equal_and_are_shown_with_their_sign() {
        let tensor = |values: [i16; 3]| {
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            Tensor { dtype: DType::Int16, dims: vec![3], bytes: bytes.into() }
        };
        assert!(compare(&tensor([1, 2, 3]), &tensor([1, 2, 3]), TOLERANCE).is_ok());
        let error = compare(&tensor([1, -2, 3]), &tensor([1, -3, 4]), TOLERANCE).unwrap_err();
        assert_eq!(error, "element 1 is -2, expected -3; 2 of 3 are off");
    }
}
