//! Compiles `v1/*.proto` in pure Rust, without a system protoc, and keeps their description.

/// Messages of the coordinator's status that are also printed as JSON, under the names of the .proto file.
const PRINTED: [&str; 8] = [
    "Snapshot",
    "JobSnapshot",
    "CheckpointSnapshot",
    "FleetSnapshot",
    "LeaseSnapshot",
    "MemberSnapshot",
    "JobInfo",
    "LogLine",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=v1");
    let files = protox::compile(["work.proto", "status.proto", "jobs.proto"], ["v1"])?;
    let descriptors = std::path::Path::new(&std::env::var("OUT_DIR")?).join("descriptors.bin");
    std::fs::write(descriptors, prost::Message::encode_to_vec(&files))?;
    let mut code = tonic_prost_build::configure().bytes(".").btree_map(".");
    for message in PRINTED {
        code = code.type_attribute(format!("grammaton.v1.{message}"), "#[derive(serde::Serialize)]");
    }
    code.compile_fds(files)?;
    Ok(())
}
