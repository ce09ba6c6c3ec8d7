//! The cache against what it promises, with plans that are only numbers.

use insula_core::Shape;
use proptest::prelude::*;

use super::*;

/// The class of requests with `size` columns.
fn key(model: u64, size: usize) -> ClassKey {
    let file = any_width();
    let shape = Shape::new(&[1, size]).unwrap();
    let class = file.class(&[insula_model::ClassInput { shape: &shape, bytes: &[] }]).unwrap();
    ClassKey { model: PlanKey(model), class }
}

/// A model for rows of any width.
fn any_width() -> insula_model::ModelFile {
    use insula_model::onnx::*;
    use prost::Message;
    let dim = |name: &str| DimensionProto { value: Some(dimension_proto::Value::DimParam(name.into())) };
    let shape = Some(TensorShapeProto { dim: vec![dim("n"), dim("width")] });
    let tensor = Some(TensorTypeProto { elem_type: data_type::FLOAT, shape });
    let value =
        |name: &str| ValueInfoProto { name: name.into(), r#type: Some(TypeProto { tensor_type: tensor.clone() }) };
    let node =
        NodeProto { input: vec!["x".into()], output: vec!["y".into()], op_type: "Relu".into(), ..NodeProto::default() };
    let graph =
        GraphProto { node: vec![node], input: vec![value("x")], output: vec![value("y")], ..GraphProto::default() };
    let opset = vec![OperatorSetIdProto { version: 17, ..OperatorSetIdProto::default() }];
    let model = ModelProto { ir_version: 8, graph: Some(graph), opset_import: opset, ..ModelProto::default() };
    let options = insula_model::LoadOptions::new(&insula_model::NoFolding);
    insula_model::ModelFile::load(model.encode_to_vec().into(), &insula_model::NoExternalData, &options).unwrap()
}

#[test]
fn what_was_used_last_stays() {
    let own = key(1, 1).class.memory_bytes() as u64;
    let cache = PlanCache::<u32>::new(4 * (2 * own + 20));
    let tenant = TenantSlot(0);
    cache.insert(key(1, 1), Arc::new(1), 10, tenant);
    cache.insert(key(1, 2), Arc::new(2), 10, tenant);
    assert_eq!(cache.get(&key(1, 1)).as_deref(), Some(&1));
    cache.insert(key(1, 3), Arc::new(3), 10, tenant);
    assert_eq!(cache.get(&key(1, 2)), None, "used longest ago, and its tenant is over its part");
    assert_eq!(cache.get(&key(1, 1)).as_deref(), Some(&1));
}

#[test]
fn one_tenant_cannot_push_out_what_others_have() {
    let own = key(1, 1).class.memory_bytes() as u64;
    let cache = PlanCache::<u32>::new(8 * (own + 10));
    cache.insert(key(1, 1), Arc::new(1), 10, TenantSlot(1));
    for size in 0..100 {
        cache.insert(key(2, size + 2), Arc::new(0), 10, TenantSlot(2));
    }
    assert!(cache.get(&key(1, 1)).is_some());
    assert!(cache.bytes() <= 8 * (own + 10));
    cache.forget(PlanKey(2));
    assert_eq!(cache.classes(), 1);
}

proptest! {
    #[test]
    fn the_bound_and_each_tenants_part_hold(inserts in proptest::collection::vec((0u32..4, 1usize..20, 0u64..300), 1..60)) {
        let cache = PlanCache::<u32>::new(2000);
        for (tenant, size, bytes) in inserts {
            cache.insert(key(u64::from(tenant), size), Arc::new(0), bytes, TenantSlot(tenant));
            prop_assert!(cache.bytes() <= 2000);
            let of_tenant = sum(&cache.kept.read(), |kept| kept.tenant == TenantSlot(tenant));
            prop_assert!(of_tenant <= 500);
        }
    }
}
