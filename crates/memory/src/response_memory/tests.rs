//! What workers and encoders rely on: one aligned, disjoint slice for each output, and the outputs as they were asked for.

use insula_core::Code;

use super::*;
use crate::test_domain::{MIB, lone_domain};

fn place(name: &str, bytes: usize) -> OutputPlace {
    OutputPlace { name: name.into(), dtype: DType::Uint8, shape: Shape::new(&[bytes]).unwrap(), bytes }
}

fn reserve(domain: &Arc<Domain>, places: Vec<OutputPlace>) -> Result<ResponseMemory> {
    ResponseMemory::reserve(domain, ModelName::new("digits").unwrap(), Version::new(3).unwrap(), places)
}

#[test]
fn every_output_has_its_own_aligned_bytes_in_one_lease() {
    let domain = lone_domain(MIB);
    let sizes = [10, 0, 64, 1, 1000];
    let places = sizes.iter().map(|bytes| place(&bytes.to_string(), *bytes)).collect();
    let mut memory = reserve(&domain, places).unwrap();
    assert_eq!((domain.usage().leases, memory.outputs_mut().len()), (1, 5));
    for (index, bytes) in memory.outputs_mut().enumerate() {
        assert_eq!(bytes.len(), sizes[index]);
        assert!(bytes.as_ptr().addr().is_multiple_of(64));
        bytes.fill(index as u8 + 1);
    }
    for (index, size) in sizes.iter().enumerate() {
        let output = memory.output(index).unwrap();
        assert_eq!((output.name, output.dtype, output.shape.dims()), (&*size.to_string(), DType::Uint8, &[*size][..]));
        assert_eq!(output.bytes, vec![index as u8 + 1; *size]);
    }
    assert_eq!((memory.model_name(), memory.model_version(), memory.outputs()), ("digits", 3, 5));
    assert!(memory.output(5).is_none());
}

#[test]
fn a_truncated_output_keeps_its_place_and_leaves_the_others_alone() {
    let mut memory = reserve(&lone_domain(MIB), vec![place("a", 100), place("b", 5)]).unwrap();
    memory.outputs_mut().for_each(|bytes| bytes.fill(9));
    memory.truncate(0, 7).unwrap();
    assert_eq!(memory.outputs_mut().map(|bytes| bytes.to_vec()).collect::<Vec<_>>(), [vec![9; 7], vec![9; 5]]);
    assert_eq!((memory.output(0).unwrap().bytes.len(), memory.output(1).unwrap().bytes), (7, &[9; 5][..]));
    assert!(memory.truncate(0, 8).is_err() && memory.truncate(2, 0).is_err());
}

#[test]
fn outputs_that_do_not_fit_are_refused() {
    let domain = lone_domain(MIB);
    let error = reserve(&domain, vec![place("a", 2 << 20)]).unwrap_err();
    assert_eq!(error.code(), Code::QuotaExceeded);
    let huge = OutputPlace { bytes: usize::MAX - 10, ..place("huge", 1) };
    let error = reserve(&domain, vec![place("a", 100), huge]).unwrap_err();
    assert!(error.message().contains("`huge`"), "{error}");
    assert_eq!(reserve(&domain, vec![]).unwrap().outputs_mut().len(), 0);
}
