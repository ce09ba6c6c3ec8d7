//! The digit classifier: accuracy on the held-out images, agreement with the stored answers, and the same bits for a row
//! in every batch.

use insula_model::Precision;

use crate::loaded_model::{Loaded, elements, example, run_entries, stored_floats};

const PIXELS: usize = 64;
const CLASSES: usize = 10;

/// Right answers of 360 in the model card.
const RIGHT: usize = 359;

fn images() -> Vec<f32> {
    std::fs::read(example("digits/heldout_images.u8")).unwrap().into_iter().map(f32::from).collect()
}

fn labels() -> Vec<u8> {
    std::fs::read(example("digits/heldout_labels.u8")).unwrap()
}

/// Probabilities and digits of all `images`, in batches of up to `bucket`.
fn classify(loaded: &Loaded, bucket: usize, images: &[f32]) -> (Vec<f32>, Vec<i64>) {
    let (mut probabilities, mut digits) = (Vec::new(), Vec::new());
    for batch in images.chunks(bucket * PIXELS) {
        let rows = batch.len() / PIXELS;
        let answer = loaded.answer(bucket, rows, &[bytemuck::cast_slice(batch)]);
        probabilities.extend(elements::<f32>(&answer[0]));
        digits.extend(elements::<i64>(&answer[1]));
    }
    (probabilities, digits)
}

fn right(digits: &[i64]) -> usize {
    digits.iter().zip(labels()).filter(|(digit, label)| **digit == i64::from(*label)).count()
}

#[test]
fn single_precision_is_as_accurate_as_the_model_card_says() {
    let loaded = Loaded::new("models/digits/1", Precision::Fp32);
    let (_, digits) = classify(&loaded, 32, &images());
    assert_eq!((digits.len(), right(&digits)), (360, RIGHT));
}

#[test]
fn single_precision_agrees_with_the_stored_answers() {
    let loaded = Loaded::new("models/digits/1", Precision::Fp32);
    let stored = stored_floats("test/reference/digits_probabilities.f32");
    let (found, _) = classify(&loaded, 32, &images()[..64 * PIXELS]);
    assert_eq!(found.len(), stored.len());
    for (index, (found, stored)) in found.iter().zip(&stored).enumerate() {
        assert!(
            (found - stored).abs() <= 1e-3 * stored.abs() + 1e-9,
            "probability {index} is {found}, stored {stored}"
        );
    }
}

#[test]
fn half_precision_is_nearly_as_accurate() {
    let (single, half) =
        (Loaded::new("models/digits/1", Precision::Fp32), Loaded::new("models/digits/1", Precision::Fp16));
    assert!(half.weights.bytes() < single.weights.bytes());
    let (expected, _) = classify(&single, 32, &images());
    let (found, digits) = classify(&half, 32, &images());
    assert!(right(&digits).abs_diff(RIGHT) as f64 <= 0.005 * 360.0, "{} of 360", right(&digits));
    // Measured 0.0011: a few layers that each store with a relative error of 2^-11.
    let worst = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(worst <= 0.005, "probabilities differ by up to {worst}");
}

#[test]
fn a_row_gives_the_same_bits_in_every_batch() {
    for precision in [Precision::Fp32, Precision::Fp16] {
        let loaded = Loaded::new("models/digits/1", precision);
        let images = &images()[..32 * PIXELS];
        let (alone, digits) = classify(&loaded, 1, images);
        for bucket in [2, 7, 8, 16, 32] {
            let (found, found_digits) = classify(&loaded, bucket, images);
            assert_eq!(bits(&found), bits(&alone), "{precision} in batches of {bucket}");
            assert_eq!(found_digits, digits);
        }
    }
}

#[test]
fn requests_of_several_rows_share_a_batch_and_each_gets_its_own_answer() {
    let loaded = Loaded::new("models/digits/1", Precision::Fp32);
    let images = images();
    let (expected, expected_digits) = classify(&loaded, 1, &images[..20 * PIXELS]);
    let plan = loaded.lower(32);
    let counts = [3, 1, 7, 1, 8];
    let mut first = 0;
    let inputs: Vec<&[u8]> = counts
        .iter()
        .map(|rows| {
            first += rows;
            bytemuck::cast_slice(&images[(first - rows) * PIXELS..first * PIXELS])
        })
        .collect();
    let lists: Vec<[&[u8]; 1]> = inputs.iter().map(|input| [*input]).collect();
    let requests: Vec<(usize, &[&[u8]])> = counts.iter().zip(&lists).map(|(rows, list)| (*rows, &list[..])).collect();
    let mut outputs: Vec<Vec<Vec<u8>>> = counts.iter().map(|rows| loaded.rooms(*rows, &[])).collect();
    run_entries(&*plan, &requests, &mut outputs.iter_mut().collect::<Vec<_>>()).unwrap();
    let probabilities: Vec<u8> = outputs.iter().flat_map(|outputs| outputs[0].clone()).collect();
    let digits: Vec<u8> = outputs.iter().flat_map(|outputs| outputs[1].clone()).collect();
    assert_eq!(bits(&elements::<f32>(&probabilities)), bits(&expected[..20 * CLASSES]));
    assert_eq!(elements::<i64>(&digits), expected_digits);
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| x.to_bits()).collect()
}
