//! Compiles `v1/work.proto` in pure Rust, without a system protoc, and keeps its description.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=v1");
    let files = protox::compile(["work.proto"], ["v1"])?;
    let descriptors = std::path::Path::new(&std::env::var("OUT_DIR")?).join("descriptors.bin");
    std::fs::write(descriptors, prost::Message::encode_to_vec(&files))?;
    tonic_prost_build::configure().bytes(".").compile_fds(files)?;
    Ok(())
}
