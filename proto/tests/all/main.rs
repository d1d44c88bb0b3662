//! Tests of the wire. One binary: each file is a module.

mod fit;
mod golden;
mod latent;
mod messages;
