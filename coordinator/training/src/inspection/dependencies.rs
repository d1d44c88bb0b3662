//! Parameters of a dependency model as tables: tab-separated values, with a line of names.
//!
//! In: a model of `dmv` without adapted constituents, of any prior. Out: one of the tables [`Table`]. Probabilities are those of new sentences: the
//! estimate, or its mean, without the factors of rules. The children of a head and side are in descending order of probability.

use anyhow::{Result, bail};
use grammaton::grammar::ParamId;
use grammaton::models::dmv::constraint::layout_of;
use grammaton::models::dmv::{Event, Layout, Side, Valence};
use grammaton::models::logistic_normal::Multinomials;
use grammaton::models::{Params, Trained};

use crate::model::SavedModel;

/// A table of the parameters of a dependency model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Table {
    /// By head, side and child: its probability.
    Attachments,
    /// By head, side, and whether there is a child on it: the probability of no further child.
    Stops,
    /// By tag: its probability as root.
    Roots,
    /// By event: mean and variance of its logistic-normal prior.
    Means,
    /// By two events of a multinomial: covariance and correlation of its logistic-normal prior.
    Covariances,
}

/// The table of a model.
///
/// # Errors
/// If the model has no such table.
pub fn table(saved: &SavedModel, table: Table) -> Result<String> {
    let model = match &saved.model {
        Trained::Grammar(model) => Some(model),
        Trained::Treebank(_) => None,
    };
    let found = model.and_then(|model| Some((model, layout_of(&model.grammar)?)));
    let Some((model, (layout, tags))) = found else {
        bail!("expected a dependency model (dmv) without adapted constituents, found another model");
    };
    let names = Names { layout, tags: &tags };
    if let Table::Means | Table::Covariances = table {
        let Params::LogisticNormal(params) = &model.params else {
            bail!("means and covariances are of logistic-normal priors, and this model has Dirichlet priors");
        };
        let multinomials = Multinomials::new(&model.grammar)?;
        let mut text = if table == Table::Means { MEANS.to_owned() } else { COVARIANCES.to_owned() };
        for (range, prior) in multinomials.iter().zip(&params.priors) {
            let (n, covariance) = (prior.n_outcomes(), prior.covariance());
            let name = |at: usize| names.parameter(ParamId((range.start + at) as u32));
            for one in 0..n {
                let variance = covariance[one * n + one];
                if table == Table::Means {
                    text += &format!("{}\t{:.6}\t{variance:.6}\n", name(one), prior.mean()[one]);
                    continue;
                }
                for other in one + 1..n {
                    let both = covariance[other * n + one];
                    let correlation = both / (variance * covariance[other * n + other]).sqrt();
                    text += &format!("{}\t{}\t{both:.6}\t{correlation:.4}\n", name(one), name(other));
                }
            }
        }
        return Ok(text);
    }
    let weights = model.predictive_weights();
    let probability = |event: Event| weights[layout.param(event).index()].to_f64();
    let mut rows: Vec<(Event, f64)> = layout
        .events()
        .filter(|event| is_in(table, event))
        .map(|event| (event, probability(event)))
        .collect();
    // Stable, so that equal probabilities stay in the order of the tags.
    rows.sort_by(|(one, p), (other, q)| group(one).cmp(&group(other)).then(q.total_cmp(p)));
    let header = match table {
        Table::Attachments => ATTACHMENTS,
        Table::Stops => STOPS,
        _ => ROOTS,
    };
    let row = |(event, probability): (Event, f64)| format!("{}\t{probability:.6}\n", names.event(event));
    Ok(header.to_owned() + &rows.into_iter().map(row).collect::<String>())
}

const ATTACHMENTS: &str = "head\tside\tchild\tprobability\n";
const STOPS: &str = "head\tside\tchildren\tprobability\n";
const ROOTS: &str = "root\tprobability\n";
const MEANS: &str = "event\tmean\tvariance\n";
const COVARIANCES: &str = "event\tother\tcovariance\tcorrelation\n";

fn is_in(table: Table, event: &Event) -> bool {
    match event {
        Event::Root(_) => table == Table::Roots,
        Event::Stop { .. } => table == Table::Stops,
        Event::Attach { .. } | Event::AttachFirst { .. } => table == Table::Attachments,
        Event::Continue { .. } => false,
    }
}

/// The rows among which an event is sorted by its probability.
fn group(event: &Event) -> (u32, Option<Side>, Option<Valence>) {
    match *event {
        Event::Root(_) => (0, None, None),
        Event::Stop { head, side, valence } | Event::Continue { head, side, valence } => {
            (head, Some(side), Some(valence))
        }
        Event::AttachFirst { head, side, .. } => (head, Some(side), Some(Valence::NoChild)),
        Event::Attach { head, side, .. } => (head, Some(side), None),
    }
}

/// Names of events.
struct Names<'a> {
    layout: Layout,
    tags: &'a [String],
}

impl Names<'_> {
    /// The fields of an event, without its kind.
    fn event(&self, event: Event) -> String {
        let tag = |tag: u32| &self.tags[tag as usize];
        match event {
            Event::Root(root) => tag(root).clone(),
            Event::Stop { head, side, valence } | Event::Continue { head, side, valence } => {
                let children = match valence {
                    Valence::NoChild => "none",
                    Valence::HasChild if self.layout.is_extended() => "one",
                    Valence::HasChild => "some",
                    Valence::HasChildren => "more",
                };
                format!("{}\t{}\t{children}", tag(head), name(side))
            }
            Event::Attach { head, side, child } => {
                format!("{}\t{}\t{}", tag(head), name(side), tag(child))
            }
            Event::AttachFirst { head, side, child } => {
                format!("{}\t{}-outermost\t{}", tag(head), name(side), tag(child))
            }
        }
    }

    /// The kind of a parameter's event and its fields, with spaces between them.
    fn parameter(&self, param: ParamId) -> String {
        let Some(event) = self.layout.event(param) else { return "one".to_owned() };
        let kind = match event {
            Event::Root(_) => "root",
            Event::Stop { .. } => "stop",
            Event::Continue { .. } => "continue",
            Event::Attach { .. } | Event::AttachFirst { .. } => "attach",
        };
        format!("{kind} {}", self.event(event).replace('\t', " "))
    }
}

fn name(side: Side) -> &'static str {
    match side {
        Side::Left => "left",
        Side::Right => "right",
    }
}
