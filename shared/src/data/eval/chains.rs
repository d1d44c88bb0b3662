//! Agreement of chains: split R̂ and effective sample size of a quantity traced along several chains.
//!
//! In: the values after each sweep, a slice per chain, the first sweeps left out; all chains are cut to the length of the shortest.
//! Gelman et al. (2013), §11.4–11.5, in the form of Vehtari et al. (2021), Eqs. 1–4 and 10–13; their rank normalisation is
//! left out.

use crate::num::special::log10;

/// Split R̂: the pooled spread over that within half chains. Near 1 when chains agree; more means that they have not met yet.
/// `None` for less than four values a chain, or if nothing varies within chains.
pub fn split_r_hat(chains: &[&[f64]]) -> Option<f64> {
    let spread = Spread::of(&halves(chains)?);
    (spread.within > 0.0).then(|| (spread.pooled / spread.within).sqrt())
}

/// Effective sample size: as many independent draws would give the mean as precisely. `None` as for [`split_r_hat`].
pub fn effective_sample_size(chains: &[&[f64]]) -> Option<f64> {
    let halves = halves(chains)?;
    let spread = Spread::of(&halves);
    if spread.within <= 0.0 {
        return None;
    }
    let (n, m) = (halves[0].len(), halves.len() as f64);
    // ρ_t = 1 − (W − mean of s²ρ_t) / var⁺  (Vehtari et al., Eq. 10)
    let correlation = |lag: usize| {
        let covariances = halves.iter().zip(&spread.means).map(|(half, &mean)| {
            let products = half[lag..].iter().zip(&half[..n - lag]).map(|(a, b)| (a - mean) * (b - mean));
            products.sum::<f64>() / n as f64
        });
        let mean = covariances.sum::<f64>() / m;
        // s² has n − 1 for n
        1.0 - (spread.within - mean * n as f64 / (n - 1) as f64) / spread.pooled
    };
    // Sums of pairs ρ_{2t} + ρ_{2t+1} are positive and fall (Geyer 1992); where an estimate is not, the noise begins.
    let (mut sum, mut before) = (0.0, f64::INFINITY);
    for lag in (0..n - 1).step_by(2) {
        let even = if lag == 0 { 1.0 } else { correlation(lag) };
        let pair = even + correlation(lag + 1);
        if pair <= 0.0 {
            break;
        }
        before = pair.min(before);
        sum += before;
    }
    let draws = m * n as f64;
    // τ = −1 + 2 Σ pairs; at most S log₁₀ S draws are believed
    let tau = (2.0 * sum - 1.0).max(1.0 / log10(draws));
    Some(draws / tau)
}

/// Every chain cut in two, the odd value in the middle left out.
fn halves<'c>(chains: &[&'c [f64]]) -> Option<Vec<&'c [f64]>> {
    let length = chains.iter().map(|chain| chain.len()).min()?;
    let half = length / 2;
    let split = |chain: &&'c [f64]| [&chain[..half], &chain[length - half..length]];
    (half >= 2).then(|| chains.iter().flat_map(split).collect())
}

struct Spread {
    means: Vec<f64>,
    /// W, the mean variance within chains.
    within: f64,
    /// var⁺ = (n − 1)/n · W + B/n.
    pooled: f64,
}

impl Spread {
    fn of(chains: &[&[f64]]) -> Spread {
        let (n, m) = (chains[0].len() as f64, chains.len() as f64);
        let means: Vec<f64> = chains.iter().map(|chain| chain.iter().sum::<f64>() / n).collect();
        let variance = |values: &[f64], mean: f64, n: f64| {
            values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (n - 1.0)
        };
        let variances = chains.iter().zip(&means).map(|(chain, &mean)| variance(chain, mean, n));
        let within = variances.sum::<f64>() / m;
        let between = variance(&means, means.iter().sum::<f64>() / m, m); // B/n
        Spread { means, within, pooled: (n - 1.0) / n * within + between }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::num::random::{stream, uniform};

    /// x_t = φ x_{t−1} + noise of variance 1/12, from its own equilibrium, near enough.
    fn autoregressive(phi: f64, shift: f64, n: usize, chain: u64) -> Vec<f64> {
        let mut random = stream(5, chain, 0);
        let mut x = 0.0;
        let next = |_| {
            x = phi * x + uniform(&mut random) - 0.5;
            x + shift
        };
        (0..n + 100).map(next).skip(100).collect()
    }

    fn chains(phi: f64, shift: f64, n: usize) -> Vec<Vec<f64>> {
        (0..4).map(|chain| autoregressive(phi, shift * chain as f64, n, chain)).collect()
    }

    fn slices(chains: &[Vec<f64>]) -> Vec<&[f64]> {
        chains.iter().map(Vec::as_slice).collect()
    }

    #[test]
    fn by_hand() {
        // Halves 1 3 | 2 4 | 1 3 | 4 6: means 2, 3, 2, 5, each of variance 2; B/n = (1 + 0 + 1 + 4) / 3 = 2.
        let r_hat = split_r_hat(&[&[1.0, 3.0, 2.0, 4.0], &[1.0, 3.0, 4.0, 6.0]]).unwrap();
        assert!((r_hat - ((1.0 + 2.0) / 2.0f64).sqrt()).abs() < 1e-15, "{r_hat}");
        assert_eq!(split_r_hat(&[&[1.0, 2.0, 3.0]]), None);
        assert_eq!(split_r_hat(&[&[1.0; 10], &[1.0; 10]]), None);
        assert_eq!(effective_sample_size(&[&[1.0; 10]]), None);
        assert_eq!(split_r_hat(&[]), None);
    }

    #[test]
    fn chains_that_agree_have_one_and_others_more() {
        let same = chains(0.0, 0.0, 1000);
        assert!((split_r_hat(&slices(&same)).unwrap() - 1.0).abs() < 0.01);
        let apart = chains(0.0, 0.3, 1000);
        assert!(split_r_hat(&slices(&apart)).unwrap() > 1.3);
        // One chain that drifts is caught by its halves.
        let drifting: Vec<f64> = (0..1000).map(f64::from).collect();
        assert!(split_r_hat(&[&drifting]).unwrap() > 1.5);
    }

    #[test]
    fn draws_count_by_their_correlation() {
        // AR(1): n (1 − φ) / (1 + φ).
        for phi in [0.0, 0.5, 0.9] {
            let chains = chains(phi, 0.0, 5000);
            let expected = 20_000.0 * (1.0 - phi) / (1.0 + phi);
            let found = effective_sample_size(&slices(&chains)).unwrap();
            assert!((found / expected - 1.0).abs() < 0.15, "φ = {phi}: {found}, expected {expected}");
        }
    }
}
