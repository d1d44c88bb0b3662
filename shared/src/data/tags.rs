//! Sets of tags: lists of them by name and class, and families of them.

pub mod classes;
pub mod families;
