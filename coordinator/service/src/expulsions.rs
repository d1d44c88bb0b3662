//! Expelled workers, over restarts of a service: one object with a line of JSON for each.
//!
//! In: the expulsions of a fleet. Out: the object, and those that a fleet begins with. A line that is removed while no service runs lifts its expulsion.

use std::sync::Arc;
use std::sync::mpsc;

use anyhow::{Context, Result, ensure};
use basics::store::Store;
use fleet::{Expulsion, Expulsions};

use super::spawn;

/// The object.
const NAME: &str = "expelled.jsonl";

/// Maximum number of expulsions that are kept, the newest ones.
const MOST: usize = 4096;

/// Reads the expulsions that are kept in `store`, and keeps new ones there, on a thread. Must not be called within a runtime.
pub fn open(store: Store) -> Result<Expulsions> {
    let text = String::from_utf8(store.find(NAME)?.unwrap_or_default());
    let place = store.describe(NAME);
    let text = text.with_context(|| format!("{place}: not UTF-8; restore the file, or remove it"))?;
    let mut kept = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let parsed = serde_json::from_str::<Expulsion>(line);
        let advice = || format!("{place}:{}: not an expulsion; remove the line to lift it", at + 1);
        kept.push(parsed.with_context(advice)?);
    }
    ensure!(kept.len() <= MOST, "{place}: {} expulsions, at most {MOST} are kept; remove lines", kept.len());
    let (to_keep, received) = mpsc::channel();
    let earlier = kept.clone();
    spawn("expulsions", move || {
        for expulsion in received {
            kept.push(expulsion);
            kept.drain(..kept.len().saturating_sub(MOST));
            if let Err(error) = store.put(NAME, lines(&kept)) {
                tracing::warn!("an expulsion will be forgotten by the next service: {error:#}");
            }
        }
    })?;
    // The thread lives as long as the fleet does.
    Ok(Expulsions { earlier, keep: Arc::new(move |expulsion| drop(to_keep.send(expulsion))) })
}

fn lines(kept: &[Expulsion]) -> Vec<u8> {
    let line = |one| serde_json::to_string(one).expect("strings have a form in JSON") + "\n";
    kept.iter().map(line).collect::<String>().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_no_expulsion_is_named_with_the_way_out() {
        let folder = tempfile::tempdir().unwrap();
        let open = || open(Store::open(folder.path().to_str().unwrap()).unwrap());
        assert_eq!(open().unwrap().earlier, []);
        let one = Expulsion {
            machine: "10.0.0.7".into(),
            reason: "wrong".into(),
            process: Some("1f".into()),
            beside: vec![],
        };
        let mut text = lines(&[one.clone(), one.clone()]);
        std::fs::write(folder.path().join(NAME), &text).unwrap();
        assert_eq!(open().unwrap().earlier, [one.clone(), one]);
        text.extend(b"{}\n");
        std::fs::write(folder.path().join(NAME), &text).unwrap();
        let error = format!("{:#}", open().err().unwrap());
        assert!(error.contains("expelled.jsonl:3: not an expulsion; remove the line to lift it"), "{error}");
    }
}
