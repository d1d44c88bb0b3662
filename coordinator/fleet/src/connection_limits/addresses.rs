//! What the addresses of peers have done lately: wrong tokens, after which others are not tried for a while, and lines of the log, of which
//! each address gets a few. Memory is bounded, whatever addresses there are.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use blake3::Hash;

use crate::access::Denied;

/// Time after which an address begins anew.
const WINDOW: Duration = Duration::from_secs(60);
/// Wrong tokens of an address within this time, after which only tokens that were right before are looked at.
pub const MAX_WRONG: u32 = 20;
/// Lines of the log about an address within this time.
const MAX_LINES: u32 = 10;
/// Addresses that are remembered at a time; beyond that the one that began first is forgotten.
const MAX_ADDRESSES: usize = 4096;
/// Tokens that were right, at most; beyond that the first one is forgotten.
const MAX_RIGHT: usize = 4096;

/// Addresses of peers who did something wrong lately, and hashes of tokens that were right.
#[derive(Default)]
pub struct Addresses {
    lately: BTreeMap<IpAddr, Lately>,
    /// The addresses by the time at which they began.
    order: VecDeque<(Duration, IpAddr)>,
    right: BTreeSet<[u8; 32]>,
    right_order: VecDeque<[u8; 32]>,
}

#[derive(Clone, Copy)]
struct Lately {
    since: Duration,
    wrong: u32,
    lines: u32,
}

/// The address by which a peer is counted: of IPv6 the network, as a machine has all addresses in it.
fn counted(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        address @ IpAddr::V4(_) => address,
    }
}

impl Addresses {
    fn of(&mut self, address: IpAddr, now: Duration) -> &mut Lately {
        let is_over = |since: Duration| now.saturating_sub(since) >= WINDOW;
        while let Some(&(since, first)) = self.order.front()
            && (is_over(since) || self.order.len() >= MAX_ADDRESSES)
        {
            self.order.pop_front();
            self.lately.remove(&first);
        }
        let address = counted(address);
        self.lately.entry(address).or_insert_with(|| {
            self.order.push_back((now, address));
            Lately { since: now, wrong: 0, lines: 0 }
        })
    }

    /// Whether a line about the peer may go into the log.
    pub fn may_log(&mut self, address: IpAddr, now: Duration) -> bool {
        let lately = self.of(address, now);
        lately.lines = lately.lines.saturating_add(1);
        lately.lines <= MAX_LINES
    }

    /// Refuses to look at another token of this hash from an address with too many wrong ones.
    pub fn check(&self, address: IpAddr, token: Hash, now: Duration) -> Result<(), Denied> {
        let is_free = self
            .lately
            .get(&counted(address))
            .is_none_or(|lately| lately.wrong < MAX_WRONG || now.saturating_sub(lately.since) >= WINDOW);
        if is_free || self.right.contains(token.as_bytes()) { Ok(()) } else { Err(Denied::TooMany) }
    }

    /// Takes note of a right token.
    pub fn right(&mut self, token: Hash) {
        if self.right.insert(*token.as_bytes()) {
            self.right_order.push_back(*token.as_bytes());
            if self.right_order.len() > MAX_RIGHT
                && let Some(first) = self.right_order.pop_front()
            {
                self.right.remove(&first);
            }
        }
    }

    /// Takes note of a wrong token; returns how many there were lately.
    pub fn wrong(&mut self, address: IpAddr, now: Duration) -> u32 {
        let lately = self.of(address, now);
        lately.wrong = lately.wrong.saturating_add(1);
        lately.wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u32) -> IpAddr {
        IpAddr::V4(n.into())
    }

    fn token(text: &str) -> Hash {
        blake3::hash(text.as_bytes())
    }

    /// However many tokens an address tries, twenty a minute are looked at. A token that was right before is let in all the same, and
    /// so are other addresses.
    #[test]
    fn an_address_tries_a_bounded_number_of_tokens() {
        let mut addresses = Addresses::default();
        addresses.right(token("right"));
        let (mut looked_at, mut now) = (0, Duration::ZERO);
        for guess in 0..30_000 {
            now += Duration::from_millis(10);
            if addresses.check(address(1), token(&guess.to_string()), now).is_ok() {
                looked_at += 1;
                addresses.wrong(address(1), now);
            }
            assert_eq!(addresses.check(address(1), token("right"), now), Ok(()));
            assert_eq!(addresses.check(address(2), token("new"), now), Ok(()));
        }
        assert_eq!(looked_at, 5 * MAX_WRONG, "in five minutes");
    }

    #[test]
    fn addresses_and_tokens_take_bounded_memory_and_few_lines() {
        let mut addresses = Addresses::default();
        for n in 0..3 * MAX_ADDRESSES as u32 {
            addresses.wrong(address(n), Duration::ZERO);
            addresses.right(token(&n.to_string()));
        }
        assert!(addresses.lately.len() <= MAX_ADDRESSES && addresses.order.len() <= MAX_ADDRESSES);
        assert!(addresses.right.len() <= MAX_RIGHT && addresses.right_order.len() <= MAX_RIGHT);
        let lines = (0..1000).filter(|_| addresses.may_log(address(1), Duration::ZERO)).count();
        assert_eq!(lines, MAX_LINES as usize);
        assert!(addresses.may_log(address(1), WINDOW));
        assert_eq!(addresses.order.len(), addresses.lately.len());
    }

    #[test]
    fn a_network_of_version_six_counts_as_one_address() {
        let of = |text: &str| counted(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
    }
}
