//! The ceiling: a bare actix-web handler that parses and answers the same protocol's JSON, or echoes bytes, with no
//! tenants, no admission, no queue and no model. Run in a process of its own.

use actix_web::{App, HttpResponse, HttpServer, web};
use serde::{Deserialize, Serialize};

#[derive(Debug, Deserialize, Serialize)]
struct Tensor {
    name: String,
    datatype: String,
    shape: Vec<i64>,
    data: Vec<f32>,
}

#[derive(Debug, Deserialize)]
struct Request {
    id: Option<String>,
    inputs: Vec<Tensor>,
}

#[derive(Debug, Serialize)]
struct Answer {
    model_name: &'static str,
    model_version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    outputs: Vec<Tensor>,
}

async fn json(body: web::Bytes) -> HttpResponse {
    match serde_json::from_slice::<Request>(&body) {
        Ok(Request { id, inputs }) => {
            HttpResponse::Ok().json(Answer { model_name: "identity_fp32", model_version: "1", id, outputs: inputs })
        }
        Err(error) => HttpResponse::BadRequest().body(error.to_string()),
    }
}

async fn bytes(body: web::Bytes) -> HttpResponse {
    HttpResponse::Ok().content_type("application/octet-stream").body(body)
}

/// Serves `/json` and `/bytes` on a free port of loopback with `workers` workers, and prints `ready ADDRESS`.
#[expect(clippy::print_stdout, reason = "the parent process reads the address from standard output")]
pub fn serve(workers: usize) -> std::io::Result<()> {
    actix_web::rt::System::new().block_on(async move {
        let server =
            HttpServer::new(|| App::new().route("/json", web::post().to(json)).route("/bytes", web::post().to(bytes)))
                .workers(workers)
                .bind(("127.0.0.1", 0))?;
        for address in server.addrs() {
            println!("ready {address}");
        }
        server.run().await
    })
}
