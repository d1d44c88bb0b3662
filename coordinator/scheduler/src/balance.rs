//! Balance of a batch: which tasks are to leave the member that has their shard, so that no member has much more to do than another.
//!
//! In: how long tasks take, and the members that have their shards. A task that moves has its forests built once
//! more, and stays where it then is. So a batch moves few tasks, and the next one goes on.

use std::collections::BTreeMap;
use std::time::Duration;

use grammaton::work::lease::TaskIndex;

use super::MemberId;

/// A task moves only if that saves this share of the time of a batch on equally busy members.
const GAIN: f64 = 0.1;

/// The tasks to move, each with its new member, at most one for each member. `slots` are all members, with the number of tasks
/// that each computes at a time; `owned` are tasks with the members that they prefer, and their times.
///
/// Each move shortens the time of the member that is busy for longest, by at least [`GAIN`] of the mean.
pub(super) fn moves(
    slots: &BTreeMap<MemberId, usize>,
    owned: impl Iterator<Item = (TaskIndex, MemberId, Duration)>,
) -> Vec<(TaskIndex, MemberId)> {
    let mut tasks: BTreeMap<MemberId, Vec<(Duration, TaskIndex)>> = BTreeMap::new();
    owned.filter(|(_, member, _)| slots.contains_key(member)).for_each(|(task, member, time)| {
        tasks.entry(member).or_default().push((time, task));
    });
    let n_slots = |member: &MemberId| slots[member].max(1) as f64;
    let time = |member: &MemberId| {
        let tasks = tasks.get(member).into_iter().flatten();
        tasks.map(|(time, _)| time.as_secs_f64()).sum::<f64>() / n_slots(member)
    };
    let mut busy: BTreeMap<MemberId, f64> = slots.keys().map(|member| (*member, time(member))).collect();
    let work: f64 = busy.iter().map(|(member, busy)| busy * n_slots(member)).sum();
    let least = GAIN * work / slots.values().sum::<usize>().max(1) as f64;
    let mut moves = Vec::new();
    while moves.len() < slots.len() {
        let by_time = |a: &(&MemberId, &f64), b: &(&MemberId, &f64)| a.1.total_cmp(b.1);
        let (Some((&from, &longest)), Some((&to, &shortest))) =
            (busy.iter().max_by(by_time), busy.iter().min_by(by_time))
        else {
            break;
        };
        let after = |time: &Duration| {
            let time = time.as_secs_f64();
            (longest - time / n_slots(&from)).max(shortest + time / n_slots(&to))
        };
        let own = tasks.entry(from).or_default();
        let by_result = |a: &usize, b: &usize| after(&own[*a].0).total_cmp(&after(&own[*b].0));
        let Some(best) = (0..own.len()).min_by(by_result) else { break };
        if after(&own[best].0) > longest - least || least <= 0.0 {
            break;
        }
        let (time, task) = own.swap_remove(best);
        busy.insert(from, longest - time.as_secs_f64() / n_slots(&from));
        busy.insert(to, shortest + time.as_secs_f64() / n_slots(&to));
        tasks.entry(to).or_default().push((time, task));
        moves.push((task, to));
    }
    moves
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(slots: &[usize], owned: &[(u64, u64)]) -> Vec<(u32, u64)> {
        let slots = (0..).map(MemberId).zip(slots.iter().copied()).collect();
        let owned = owned.iter().zip(0..);
        let owned = owned.map(|(&(member, micros), task)| {
            (TaskIndex(task), MemberId(member), Duration::from_micros(micros))
        });
        moves(&slots, owned).into_iter().map(|(task, member)| (task.0, member.0)).collect()
    }

    #[test]
    fn a_member_with_two_long_tasks_gives_one_away() {
        // As found in rounds of two workers: equal numbers of tasks, and one worker busy for five times as long.
        let owned = [(1, 1400), (1, 1400), (0, 300), (0, 150), (0, 180), (1, 240)];
        assert_eq!(found(&[1, 1], &owned), [(0, 0)]);
        assert_eq!(found(&[1, 2], &owned), []);
        assert_eq!(found(&[1], &[(0, 1400), (0, 300)]), []);
        // A member that is gone, times that are not known.
        assert_eq!(found(&[1, 1], &[(7, 1400), (0, 300)]), []);
        assert_eq!(found(&[1, 1], &[(0, 0), (0, 0)]), []);
        assert_eq!(found(&[], &[(0, 5)]), []);
    }

    /// The times of the members that are busy.
    fn busy(slots: &[usize], owned: &[(u64, u64)]) -> Vec<f64> {
        let mut busy = vec![0.0; slots.len()];
        owned.iter().for_each(|&(member, time)| {
            busy[member as usize] += time as f64 / slots[member as usize] as f64;
        });
        busy
    }

    proptest! {
        /// Law: with every move the longest time of a member does not rise, and the last batch of a row moves nothing.
        #[test]
        fn moves_shorten_a_batch_and_end(
            slots in prop::collection::vec(1..5usize, 1..6),
            owned in prop::collection::vec((0..6u64, 0..2000u64), 0..30),
        ) {
            let n = slots.len() as u64;
            let mut owned: Vec<(u64, u64)> = owned.iter().map(|(member, time)| (member % n, *time)).collect();
            let longest = |owned: &[(u64, u64)]| busy(&slots, owned).into_iter().fold(0.0, f64::max);
            let mut n_batches = 0;
            loop {
                let moves = found(&slots, &owned);
                prop_assert!(moves.len() <= slots.len());
                if moves.is_empty() {
                    break;
                }
                for (task, member) in moves {
                    let before = longest(&owned);
                    owned[task as usize].0 = member;
                    prop_assert!(longest(&owned) <= before + 1e-9);
                }
                n_batches += 1;
                prop_assert!(n_batches < 200, "{slots:?} {owned:?}");
            }
        }
    }
}
