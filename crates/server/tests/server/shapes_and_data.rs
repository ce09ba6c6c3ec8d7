//! Shapes that lie, data that does not fit them, and neighbours that must not notice.

use serde_json::{Value, json};

use crate::running_server::{JSON, SHARED};
use crate::tensors::{binary, binary_input, bytes_of, output, request, values};

const MODEL: &str = "identity_fp32";

fn with_shape(shape: Value) -> Value {
    json!({"inputs": [{"name": "INPUT0", "shape": shape, "datatype": "FP32", "data": values(1, 16, 0)}]})
}

#[test]
fn negative_dimensions_are_refused_by_name() {
    for shape in [json!([-1, 16]), json!([1, -16]), json!([-1, -16]), json!([i64::MIN, 16])] {
        let message = SHARED.infer(MODEL, &with_shape(shape)).error(400);
        assert!(message.contains("INPUT0"), "{message}");
    }
}

#[test]
fn data_that_does_not_fill_the_shape_is_refused() {
    let good: Vec<Value> = values(1, 16, 0).into_iter().map(Value::from).collect();
    let longer: Vec<Value> = good.iter().cloned().chain([json!(0)]).collect();
    let texts: Vec<Value> = good.iter().map(|_| json!("1")).collect();
    let nulls = vec![Value::Null; good.len()];
    let wrong = [
        json!([]),
        json!([1]),
        json!(good[..15]),
        json!(longer),
        json!([good, good]),
        json!("text"),
        json!({"a": 1}),
        json!(nulls),
        json!(texts),
    ];
    for data in wrong {
        let mut body = with_shape(json!([1, 16]));
        body["inputs"][0]["data"] = data;
        SHARED.infer(MODEL, &body).error(400);
    }
}

#[test]
fn nested_arrays_of_the_right_count_are_taken() {
    let data = values(2, 16, 3);
    let mut body = request(2, 16, &data);
    body["inputs"][0]["data"] = json!([data[..16], data[16..]]);
    let answer = SHARED.infer(MODEL, &body);
    assert_eq!(output(&answer.json()), data);
}

#[test]
fn zero_sized_shapes_are_refused_alike_in_json_and_binary() {
    for shape in [json!([0, 16]), json!([1, 0]), json!([])] {
        let mut body = with_shape(shape.clone());
        body["inputs"][0]["data"] = json!([]);
        SHARED.infer(MODEL, &body).error(400);
        let dims: Vec<i64> = serde_json::from_value(shape).unwrap();
        let (body, length) = binary(&json!({"inputs": [binary_input("FP32", &dims, 0)]}), b"");
        let headers = [("inference-header-content-length", length.as_str())];
        SHARED.ask("POST", "/v2/models/identity_fp32/infer", &headers, &body).error(400);
    }
}

#[test]
fn a_request_with_more_bytes_than_its_shape_never_reaches_a_neighbour() {
    let mine = values(1, 16, 100);
    let longer = [values(1, 16, 0), vec![55.0; 3]].concat();
    let (liar, length) =
        binary(&json!({"inputs": [binary_input("FP32", &[1, 16], longer.len() * 4)]}), &bytes_of(&longer));
    let honest = request(1, 16, &mine).to_string();
    std::thread::scope(|scope| {
        for turn in 0..8 {
            let (liar, length, honest, mine) = (&liar, &length, &honest, &mine);
            scope.spawn(move || {
                let mut connection = SHARED.connect();
                for _ in 0..12 {
                    if turn % 2 == 0 {
                        let headers = [("inference-header-content-length", length.as_str())];
                        connection.ask("POST", "/v2/models/identity_fp32/infer", &headers, liar).error(400);
                    } else {
                        let answer =
                            connection.ask("POST", "/v2/models/identity_fp32/infer", &[JSON], honest.as_bytes());
                        assert_eq!(&output(&answer.json()), mine);
                    }
                }
            });
        }
    });
}

#[test]
fn an_empty_request_does_not_spoil_the_batch_it_came_with() {
    let mine = values(2, 16, 7);
    let honest = request(2, 16, &mine).to_string();
    let empty = json!({"inputs": [{"name": "INPUT0", "shape": [0, 16], "datatype": "FP32", "data": []}]}).to_string();
    std::thread::scope(|scope| {
        for turn in 0..4 {
            let (honest, empty, mine) = (&honest, &empty, &mine);
            scope.spawn(move || {
                let mut connection = SHARED.connect();
                for _ in 0..10 {
                    let body = if turn % 2 == 0 { honest } else { empty };
                    let answer = connection.ask("POST", "/v2/models/identity_fp32/infer", &[JSON], body.as_bytes());
                    if turn % 2 == 0 {
                        assert_eq!(&output(&answer.json()), mine);
                    } else {
                        answer.error(400);
                    }
                }
            });
        }
    });
}
