//! Writes the seeds of every target into `corpus/<target>`, from which the fuzzer reads them.

use std::fs;
use std::path::Path;

fn main() -> std::io::Result<()> {
    for (name, _, seeds) in grammaton_fuzz::TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
        fs::create_dir_all(&folder)?;
        for (at, seed) in seeds().iter().enumerate() {
            fs::write(folder.join(format!("seed-{at:02}")), seed)?;
        }
    }
    Ok(())
}
