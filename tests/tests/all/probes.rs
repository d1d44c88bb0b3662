//! The standard gRPC services: health for probes, reflection for tools. Neither needs a token.

use fleet::access::Access;
use fleet::{Fleet, FleetConfig, Listen};
use grammaton_tests::{SOON, eventually};
use proto::token::Token;
use proto::v1::work_client::WorkClient;
use proto::v1::{self, FromWorker, from_coordinator, from_worker};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{ServerReflectionRequest, ServerReflectionResponse};

const SECRET: &str = "s3cret";

fn fleet() -> Fleet {
    let access = Access::One(Token::new(SECRET, "test").unwrap());
    let listen = Listen { access, ..Listen::at("127.0.0.1:0".parse().unwrap()) };
    Fleet::start(FleetConfig { local_workers: 0, listen: Some(listen), ..FleetConfig::default() }).unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

async fn channel(fleet: &Fleet) -> Channel {
    let url = format!("http://{}", fleet.address().unwrap());
    Endpoint::from_shared(url).unwrap().timeout(SOON).connect().await.unwrap()
}

async fn health(channel: &Channel, service: &str) -> Result<ServingStatus, Code> {
    let request = HealthCheckRequest { service: service.into() };
    let response = HealthClient::new(channel.clone()).check(request).await.map_err(|status| status.code())?;
    Ok(response.into_inner().status())
}

async fn ask(channel: &Channel, question: MessageRequest) -> ServerReflectionResponse {
    let request = ServerReflectionRequest { host: String::new(), message_request: Some(question) };
    let mut client = ServerReflectionClient::new(channel.clone());
    let answers = client.server_reflection_info(tokio_stream::iter([request])).await.unwrap();
    answers.into_inner().message().await.unwrap().expect("each question has an answer")
}

#[test]
fn a_coordinator_serves_until_its_job_is_finished() {
    let fleet = fleet();
    let runtime = runtime();
    let channel = runtime.block_on(async {
        let channel = channel(&fleet).await;
        for service in ["", "grammaton.v1.Work"] {
            assert_eq!(health(&channel, service).await, Ok(ServingStatus::Serving), "{service:?}");
        }
        assert_eq!(health(&channel, "grammaton.v2.Work").await, Err(Code::NotFound));
        channel
    });
    // A member that does not leave after the job delays the end of the coordinator.
    let (outgoing, _incoming) = runtime.block_on(async {
        let (outgoing, stream) = mpsc::channel(4);
        let hello = v1::Hello { version: proto::VERSION, slots: 1, ..v1::Hello::default() };
        let hello = FromWorker { message: Some(from_worker::Message::Hello(hello)) };
        outgoing.send(hello).await.unwrap();
        let mut request = Request::new(ReceiverStream::new(stream));
        request.metadata_mut().insert("authorization", format!("Bearer {SECRET}").parse().unwrap());
        let mut incoming = WorkClient::new(channel.clone()).join(request).await.unwrap().into_inner();
        let welcome = incoming.message().await.unwrap().unwrap().message;
        assert!(matches!(welcome, Some(from_coordinator::Message::Welcome(_))), "{welcome:?}");
        (outgoing, incoming)
    });
    let ending = std::thread::spawn(move || fleet.shutdown());
    for service in ["", "grammaton.v1.Work"] {
        let status = || runtime.block_on(health(&channel, service));
        eventually(&|| format!("{:?}", status()), || status() == Ok(ServingStatus::NotServing));
    }
    drop(outgoing);
    ending.join().unwrap();
}

#[test]
fn reflection_describes_the_services() {
    let fleet = fleet();
    runtime().block_on(async {
        let channel = channel(&fleet).await;
        let listed = ask(&channel, MessageRequest::ListServices(String::new())).await;
        let Some(MessageResponse::ListServicesResponse(listed)) = listed.message_response else {
            panic!("{listed:?}")
        };
        let names: Vec<&str> = listed.service.iter().map(|service| &service.name[..]).collect();
        for name in ["grammaton.v1.Work", "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"] {
            assert!(names.contains(&name), "{names:?}");
        }
        let file = ask(&channel, MessageRequest::FileContainingSymbol("grammaton.v1.Work".into())).await;
        let Some(MessageResponse::FileDescriptorResponse(file)) = file.message_response else {
            panic!("{file:?}")
        };
        let described = file.file_descriptor_proto.concat();
        assert!(described.windows(9).any(|bytes| bytes == b"LeaseHead"), "its messages are described");
    });
}

#[test]
fn long_requests_are_refused() {
    let fleet = fleet();
    runtime().block_on(async {
        let channel = channel(&fleet).await;
        let long = health(&channel, &"x".repeat(1 << 20)).await;
        assert_eq!(long, Err(Code::OutOfRange));
        // Only this connection is lost.
        assert_eq!(health(&channel, "").await, Ok(ServingStatus::Serving));
    });
}
