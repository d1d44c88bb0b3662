//! Compiles `v1/work.proto` in pure Rust, without a system protoc.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=v1");
    let files = protox::compile(["work.proto"], ["v1"])?;
    tonic_prost_build::configure().bytes(".").compile_fds(files)?;
    Ok(())
}
