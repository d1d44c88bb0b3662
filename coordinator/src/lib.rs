//! Coordinator.
pub mod fleet;
