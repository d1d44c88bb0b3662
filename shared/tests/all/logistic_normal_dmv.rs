//! Logistic-normal training of a dependency model with valence on eight short sentences, against reference values of another program.
//!
//! Needs data that is not part of the repository, and says so where it is not there. Trees are enumerated, the sentences having six words
//! at most; and then read as forests, as workers do.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use grammaton::models::dmv::{Event, Side, Valence};
use grammaton::models::logistic_normal::{
    Multinomials, PointEstimate, Prior, SentenceFitter, Statistics, StopRule,
};
use grammaton::num::Wide;
use grammaton::num::special::{exp, ln};
use grammaton::train::logistic_normal::{Settings, State, Trainer};
use grammaton::train::round::Step;
use grammaton::train::trainer::{self, Collect};
use grammaton::work::engine::Engine;

use crate::support::dependencies::Model;
use crate::support::reference_fit;

/// Outcomes by name, as grammar files write them without spaces around the value: `root NN`, `leftattach DT <- NN`, `leftstop NN nochild`.
/// (multinomial, outcome)
type Events = BTreeMap<String, (u32, usize)>;

struct Dmv {
    events: Events,
    /// Outcomes of every multinomial.
    sizes: Vec<usize>,
}

impl Dmv {
    /// Root, then for each head and side: attach, and for each valence, stop against continue.
    fn new(tags: &[&str]) -> Dmv {
        let mut dmv = Dmv { events: Events::new(), sizes: Vec::new() };
        dmv.add(tags.iter().map(|tag| format!("root {tag}")));
        for head in tags {
            for (side, arrow) in [("left", "<-"), ("right", "->")] {
                dmv.add(tags.iter().map(|child| match side {
                    "left" => format!("leftattach {child} {arrow} {head}"),
                    _ => format!("rightattach {head} {arrow} {child}"),
                }));
                for valence in ["nochild", "haschild"] {
                    dmv.add(["stop", "continue"].map(|what| format!("{side}{what} {head} {valence}")));
                }
            }
        }
        dmv
    }

    fn add(&mut self, names: impl IntoIterator<Item = String>) {
        let multinomial = self.sizes.len() as u32;
        let mut n = 0;
        for name in names {
            self.events.insert(name, (multinomial, n));
            n += 1;
        }
        self.sizes.push(n);
    }

    fn event(&self, name: &str) -> (u32, usize) {
        *self.events.get(name).unwrap_or_else(|| panic!("{name} is no event"))
    }

    /// The multinomials that a sentence can use: root and all those of its tags.
    fn multinomials(&self, tags: &[&str]) -> Vec<u32> {
        let of_head = |head: &&str| self.event(&format!("leftattach {head} <- {head}")).0;
        let mut found: Vec<u32> = tags.iter().map(of_head).flat_map(|first| first..first + 6).collect();
        found.push(0);
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Log weights of a grammar file, by multinomial.
    fn read(&self, path: &Path) -> Vec<Vec<f64>> {
        let mut weights: Vec<Vec<f64>> = self.sizes.iter().map(|&n| vec![f64::NAN; n]).collect();
        for line in fs::read_to_string(path).unwrap().lines().filter(|line| !line.is_empty()) {
            let (name, value) = line.rsplit_once(" : ").unwrap();
            let (multinomial, outcome) = self.event(name);
            weights[multinomial as usize][outcome] = value.parse().unwrap();
        }
        weights
    }

    /// Every projective tree with one root, as the events that it uses.
    fn derivations(&self, tags: &[&str]) -> Vec<Vec<(u32, usize)>> {
        let n = tags.len();
        let mut found = Vec::new();
        // heads[i] = n stands for the root
        let mut heads = vec![0; n];
        loop {
            if is_tree(&heads) {
                found.push(self.uses(tags, &heads));
            }
            let Some(word) = (0..n).find(|&word| heads[word] < n) else { break };
            heads[word] += 1;
            heads[..word].fill(0);
        }
        found
    }

    fn uses(&self, tags: &[&str], heads: &[usize]) -> Vec<(u32, usize)> {
        let root = heads.iter().position(|&head| head == heads.len()).expect("a tree has a root");
        let mut names = vec![format!("root {}", tags[root])];
        for (head, tag) in tags.iter().enumerate() {
            let children = |side: &str| {
                let on_side = |child: &usize| (*child < head) == (side == "left");
                (0..heads.len())
                    .filter(move |&child| heads[child] == head)
                    .filter(on_side)
                    .collect::<Vec<_>>()
            };
            for side in ["left", "right"] {
                let children = children(side);
                for (nth, &child) in children.iter().enumerate() {
                    let valence = if nth == 0 { "nochild" } else { "haschild" };
                    names.push(format!("{side}continue {tag} {valence}"));
                    names.push(match side {
                        "left" => format!("leftattach {} <- {tag}", tags[child]),
                        _ => format!("rightattach {tag} -> {}", tags[child]),
                    });
                }
                let valence = if children.is_empty() { "nochild" } else { "haschild" };
                names.push(format!("{side}stop {tag} {valence}"));
            }
        }
        names.iter().map(|name| self.event(name)).collect()
    }
}

/// Whether heads are a projective tree with one root.
fn is_tree(heads: &[usize]) -> bool {
    let n = heads.len();
    if heads.iter().filter(|&&head| head == n).count() != 1 {
        return false;
    }
    let reaches = |word: usize, above: usize| {
        let mut at = word;
        for _ in 0..=n {
            if at == above {
                return true;
            }
            if at == n {
                return false;
            }
            at = heads[at];
        }
        false
    };
    (0..n).all(|word| {
        reaches(word, n)
            && (heads[word] == n || {
                let (low, high) = (word.min(heads[word]), word.max(heads[word]));
                (low + 1..high).all(|between| reaches(between, heads[word]))
            })
    })
}

/// A sentence with its trees, each by the positions of its events among the outcomes of the sentence's multinomials.
struct Toy {
    multinomials: Vec<u32>,
    derivations: Vec<Vec<usize>>,
}

impl Toy {
    fn new(dmv: &Dmv, tags: &[&str]) -> Toy {
        let multinomials = dmv.multinomials(tags);
        let mut starts = BTreeMap::new();
        let mut start = 0;
        for &multinomial in &multinomials {
            starts.insert(multinomial, start);
            start += dmv.sizes[multinomial as usize];
        }
        let derivations = dmv.derivations(tags);
        let at =
            |events: Vec<(u32, usize)>| events.iter().map(|(of, outcome)| starts[of] + outcome).collect();
        Toy { multinomials, derivations: derivations.into_iter().map(at).collect() }
    }

    fn parse(&self, weights: &[f64], counts: &mut [f64]) -> f64 {
        let weight = |derivation: &Vec<usize>| exp(derivation.iter().map(|&event| weights[event]).sum());
        let all: Vec<f64> = self.derivations.iter().map(weight).collect();
        let z: f64 = all.iter().sum();
        counts.fill(0.0);
        for (derivation, weight) in self.derivations.iter().zip(all) {
            derivation.iter().for_each(|&event| counts[event] += weight / z);
        }
        ln(z)
    }
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/dmv-parity")
}

#[test]
fn numbers_of_trees_are_known() {
    let dmv = Dmv::new(&["A", "B"]);
    let counts = [1, 2, 3, 4].map(|n| dmv.derivations(&vec!["A"; n]).len());
    assert_eq!(counts, [1, 2, 7, 30]);
}

/// Of the first five iterations.
const BOUNDS: [f64; 5] = [-127.828000, -121.468770, -116.079198, -111.550100, -107.728219];

/// Where sentences end depends on the schedule and their tolerance, so bounds of different programs agree to about 10⁻⁴.
const SHARE: f64 = 1e-4;

/// The model of JDageem's example, its sentences, and the priors that it begins with.
fn begin(folder: &Path) -> (Dmv, Vec<Toy>, Vec<Prior>) {
    let text = fs::read_to_string(folder.join("ln8.tags")).unwrap();
    let sentences: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
    let mut tags = sentences.concat();
    tags.sort_unstable();
    tags.dedup();
    let dmv = Dmv::new(&tags);
    let sentences = sentences.iter().map(|tags| Toy::new(&dmv, tags)).collect();
    let start = dmv.read(&folder.join("ln8.harmonic.gra"));
    let priors = start.into_iter().map(|mean| Prior::independent(mean).unwrap()).collect();
    (dmv, sentences, priors)
}

/// With a tolerance of 10⁻⁵ within sentences, as JDageem.
#[test]
#[ignore = "needs corpora that the repository does not have"]
fn with_corpora_bounds_and_means_are_those_of_jdageem() {
    let folder = data();
    let (dmv, sentences, mut priors) = begin(&folder);
    let mut sentence = SentenceFitter::default();
    for (iteration, expected) in (1..).zip(BOUNDS) {
        let mut statistics = Statistics::new(priors.len());
        for toy in &sentences {
            let parse = |weights: &[f64], counts: &mut [f64]| toy.parse(weights, counts);
            let fit = sentence.fit(&priors, &toy.multinomials, StopRule::default(), parse);
            statistics.add(&priors, &sentence, fit, 1);
        }
        let bound = statistics.total_bound(&priors);
        assert!(
            (bound - expected).abs() < SHARE * expected.abs(),
            "{iteration}: {bound}, expected {expected}"
        );
        priors = statistics.maximise(&priors).unwrap();
        let path = folder.join(format!("ln8.iter{iteration}.repaired.gra"));
        if path.exists() {
            let found = priors.iter().flat_map(|prior| prior.ln_weights(PointEstimate::Raw));
            for (found, expected) in found.zip(dmv.read(&path).concat()) {
                assert!((found - expected).abs() < 1e-2, "{iteration}: mean {found}, expected {expected}");
            }
        }
    }
}

/// The reference of other tests is JDageem's schedule: its bound of the first iteration, to all digits that are known.
#[test]
#[ignore = "needs corpora that the repository does not have"]
fn with_corpora_the_reference_is_jdageem() {
    let folder = data();
    let (_, sentences, priors) = begin(&folder);
    let of_sentence = |toy: &Toy| {
        let own: Vec<&Prior> = toy.multinomials.iter().map(|&at| &priors[at as usize]).collect();
        reference_fit::bound(&own, StopRule::default(), |weights, counts| toy.parse(weights, counts))
    };
    // without events the divergence from an independent prior is 0
    let bound: f64 = sentences.iter().map(of_sentence).sum();
    assert!((bound - BOUNDS[0]).abs() < 1e-8 * bound.abs(), "{bound}, expected {}", BOUNDS[0]);
}

/// Multinomials without events in any tree of a sentence are left out there, and the bounds are the same.
#[test]
#[ignore = "needs corpora that the repository does not have"]
fn with_corpora_bounds_of_forests_are_those_of_jdageem() {
    let folder = data();
    let text = fs::read_to_string(folder.join("ln8.tags")).unwrap();
    let mut tags: Vec<&str> = text.split_whitespace().collect();
    tags.sort_unstable();
    tags.dedup();
    let model = Model::new(&tags.iter().map(|&tag| tag.to_owned()).collect::<Vec<_>>());
    let number = |line: &str| line.split(' ').map(|tag| model.tag(tag).unwrap()).collect();
    let sentences: Vec<Vec<u32>> = text.lines().map(number).collect();
    let dmv = Dmv::new(&tags);
    let start = dmv.read(&folder.join("ln8.harmonic.gra"));
    let weight = |event: Event| {
        let (multinomial, outcome) = dmv.event(&name(&tags, event));
        Wide::from_ln(start[multinomial as usize][outcome])
    };
    let weights: Vec<Wide> = std::iter::once(Wide::ONE).chain(model.layout.events().map(weight)).collect();
    let multinomials = Multinomials::new(&model.prepared.grammar).unwrap();
    let state = State::new(&multinomials, &weights, &vec![None; weights.len()]).unwrap();
    let settings = Settings {
        until: StopRule::default(),
        estimate: PointEstimate::Raw,
        tolerance: 0.0,
        constrained: None,
    };
    let mut trainer = Trainer::new(settings, state);
    let (run, engine) = (model.run(&sentences, 20), Engine::default());
    for (iteration, expected) in (1..).zip(BOUNDS) {
        let indexes = vec![Arc::default(); run.shards.len()];
        let answer = |shard: usize, work| run.answer(&engine, &run.shards[shard], work);
        let step = trainer::round(&mut trainer, &indexes, Collect::default(), answer);
        let Ok(Step::Next(report)) = step else { panic!("a round counts") };
        let bound = report.bound.unwrap();
        assert!(
            (bound - expected).abs() < SHARE * expected.abs(),
            "{iteration}: {bound}, expected {expected}"
        );
    }
}

/// As grammar files write it.
fn name(tags: &[&str], event: Event) -> String {
    let tag = |tag: u32| tags[tag as usize];
    let of = |side: Side| if side == Side::Left { "left" } else { "right" };
    let with = |valence: Valence| if valence == Valence::NoChild { "nochild" } else { "haschild" };
    match event {
        Event::Root(root) => format!("root {}", tag(root)),
        Event::Stop { head, side, valence } => format!("{}stop {} {}", of(side), tag(head), with(valence)),
        Event::Continue { head, side, valence } => {
            format!("{}continue {} {}", of(side), tag(head), with(valence))
        }
        Event::Attach { head, side: Side::Left, child } => {
            format!("leftattach {} <- {}", tag(child), tag(head))
        }
        Event::AttachFirst { .. } => unreachable!("no valence is extended"),
        Event::Attach { head, side: Side::Right, child } => {
            format!("rightattach {} -> {}", tag(head), tag(child))
        }
    }
}
