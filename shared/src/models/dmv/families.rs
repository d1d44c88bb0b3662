//! Families of tags, whose attachments the initial prior correlates (Cohen, Gimpel & Smith 2008, §5).

use super::layout::{Event, Layout};
use crate::data::tags::families::Families;

/// The family of each parameter, `[n_params]`: that of the child, for attachments; none for roots and stops, which stay alone.
pub fn of_params(layout: Layout, tags: &[String], families: &Families) -> Vec<Option<usize>> {
    let mut found = vec![None; layout.n_params()];
    for event in layout.events() {
        if let Event::Attach { child, .. } = event {
            found[layout.param(event).index()] = families.family(&tags[child as usize]);
        }
    }
    found
}
