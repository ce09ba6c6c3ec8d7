//! Which version answers.

use serde_json::json;

use crate::running_server::{JSON, SHARED};
use crate::tensors::{output, request, values};

#[test]
fn without_a_version_the_highest_answers_and_says_so() {
    let answer = SHARED.infer("versions", &request(1, 4, &values(1, 4, 1)));
    assert_eq!(answer.json()["model_version"], "10");
    let metadata = SHARED.ask("GET", "/v2/models/versions", &[], b"").json();
    assert_eq!(metadata["versions"], json!(["1", "2", "10"]));
}

#[test]
fn a_version_that_is_named_answers_itself_also_among_others() {
    let data = values(1, 4, 1);
    let body = request(1, 4, &data).to_string();
    std::thread::scope(|scope| {
        for version in [1u8, 2, 10, 1, 2, 10] {
            let (body, data) = (&body, &data);
            scope.spawn(move || {
                let mut connection = SHARED.connect();
                let path = format!("/v2/models/versions/versions/{version}/infer");
                for _ in 0..20 {
                    let answer = connection.ask("POST", &path, &[JSON], body.as_bytes()).json();
                    assert_eq!(answer["model_version"], version.to_string());
                    let expected: Vec<f32> = data.iter().map(|value| value * f32::from(version)).collect();
                    assert_eq!(output(&answer), expected);
                }
            });
        }
    });
}

#[test]
fn what_is_no_version_of_the_model_is_refused() {
    let body = request(1, 4, &values(1, 4, 0)).to_string();
    for version in ["999999", "-1", "0", "latest", "1.0", "01", "18446744073709551615"] {
        let answer =
            SHARED.ask("POST", &format!("/v2/models/versions/versions/{version}/infer"), &[JSON], body.as_bytes());
        assert!(matches!(answer.status, 400 | 404), "{version}: {}", answer.text());
        answer.error(answer.status);
    }
}
