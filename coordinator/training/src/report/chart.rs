//! Line charts as inline SVG: axes, ticks, and a line per series with its name at the end.
//!
//! In: points, and a scale for each axis. Points that are not finite, or not positive on a logarithmic axis, are left out, and so is a chart without a line, all of
//! whose series have one point. Quiet
//! series, such as runs other than the kept one, are thin and grey behind the others.
//!
//! Colours are in the style sheet of the page (`.s0`, `.s1`, …), so that one drawing serves the light and the dark scheme.

use basics::human::{number, whole};
use maud::{Markup, html};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::markup::Tenths;

/// A line of a chart.
#[derive(Default)]
pub struct Series {
    /// Name, at the end of the line.
    pub name: String,
    /// Points (x, y), with x ascending.
    pub points: Vec<(f64, f64)>,
    /// Whether the line is grey and behind the others.
    pub quiet: bool,
}

/// Scale of an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Scale {
    /// Linear scale.
    #[default]
    Linear,
    /// Logarithmic scale.
    Log,
}

/// A chart.
#[derive(Default)]
pub struct Chart<'a> {
    /// Title, also for screen readers.
    pub title: &'a str,
    /// Label of the x axis.
    pub x_label: &'a str,
    /// Scale of the x axis.
    pub x_scale: Scale,
    /// Scale of the y axis.
    pub y_scale: Scale,
    /// Values that the y axis shows even without points there.
    pub y_includes: &'a [f64],
    /// The lines.
    pub series: Vec<Series>,
    /// Horizontal lines: y and name.
    pub marks: Vec<(f64, &'a str)>,
}

/// [`Chart::y_includes`] of shares, such as F1: charts of them can be compared.
pub const SHARES: [f64; 2] = [0.0, 1.0];

const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 250.0;
/// Minimum width left of the y axis, in pixels, as all lengths here.
const LEFT: f64 = 50.0;
const LETTER: f64 = 6.8;
const BOLD_LETTER: f64 = 7.6;
/// Minimum width right of the x axis, for the names at line ends.
const RIGHT: f64 = 88.0;
/// Maximum length of a name at a line end in terminal columns; the tooltip of the line's end has the whole name.
const NAME: usize = 18;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 40.0;
/// Minimum distance between two names at line ends.
const LINE: f64 = 14.0;
/// Maximum number of quiet lines with names; if there are more, none has.
const QUIET_NAMES: usize = 8;
/// Number of colours in the style sheet.
const COLOURS: usize = 4;

impl Scale {
    /// Position of a value on the axis; `None` if it cannot be drawn.
    fn place(self, value: f64) -> Option<f64> {
        let place = match self {
            Scale::Linear => value,
            Scale::Log => libm::log10(value),
        };
        place.is_finite().then_some(place)
    }

    /// Value at a position.
    fn value(self, place: f64) -> f64 {
        match self {
            Scale::Linear => place,
            Scale::Log => libm::pow(10.0, place),
        }
    }

    /// Ticks of an axis over `range`: position and label.
    fn ticks(self, range: (f64, f64), wanted: usize, least: f64) -> Vec<(f64, String)> {
        let least = if self == Scale::Log { 1.0 } else { least };
        let places = ticks(range, wanted, least);
        let label = |place: f64| match self {
            Scale::Log if place.fract() == 0.0 => power_of_ten(place),
            // A single tick on an axis of whole numbers is labelled as a whole number too.
            Scale::Linear if least >= 1.0 => whole(place),
            _ => number(self.value(place), &places),
        };
        places.iter().map(|&place| (place, label(place))).collect()
    }
}

impl Chart<'_> {
    /// Positions of the points on the axes.
    fn placed<'s>(&'s self, series: &'s Series) -> impl Iterator<Item = (f64, f64)> + 's {
        series.points.iter().filter_map(|&(x, y)| self.x_scale.place(x).zip(self.y_scale.place(y)))
    }

    /// Draws the chart; `None` if no series has two points.
    pub fn svg(&self) -> Option<Markup> {
        self.series.iter().find(|series| self.placed(series).nth(1).is_some())?;
        let points = || self.series.iter().flat_map(|series| self.placed(series));
        let marks =
            || self.marks.iter().filter_map(|&(value, name)| Some((self.y_scale.place(value)?, name)));
        let x_range = range(points().map(|point| point.0))?;
        let included = self.y_includes.iter().filter_map(|&value| self.y_scale.place(value));
        let y_range = range(points().map(|point| point.1).chain(marks().map(|mark| mark.0)).chain(included))?;
        let is_whole = points().all(|(x, _)| x.fract() == 0.0);
        let x_ticks = self.x_scale.ticks(x_range, 6, f64::from(u8::from(is_whole)));
        let y_ticks = self.y_scale.ticks(y_range, 5, 0.0);
        let longest = y_ticks.iter().map(|(_, label)| label.width()).max().unwrap_or(0);
        let left = LEFT.max(14.0 + LETTER * longest as f64);
        let names = self.series.iter().map(|series| short(&series.name).width());
        let margin = RIGHT.max(14.0 + BOLD_LETTER * names.max().unwrap_or(0) as f64);
        let (x_low, x_high) = x_range;
        let (y_low, y_high) = spread(y_range, &y_ticks);
        let x_span = if x_high > x_low { x_high - x_low } else { 1.0 };
        let x = |value: f64| left + (value - x_low) / x_span * (WIDTH - left - margin);
        let y = |value: f64| HEIGHT - BOTTOM - (value - y_low) / (y_high - y_low) * (HEIGHT - TOP - BOTTOM);

        let (right, floor) = (WIDTH - margin, HEIGHT - BOTTOM);
        let n_quiet = self.series.iter().filter(|series| series.quiet).count();
        let (behind, front): (Vec<&Series>, Vec<&Series>) =
            self.series.iter().partition(|series| series.quiet);
        let colours = (0..front.len()).map(|at| format!("s{}", at % COLOURS));
        let classes = vec!["behind".to_owned(); n_quiet].into_iter().chain(colours);
        let lines = behind.into_iter().chain(front).zip(classes).filter_map(|(series, class)| {
            let end = self.placed(series).last().map(|(at, value)| (x(at), y(value), value))?;
            let verbs = std::iter::once('M').chain(std::iter::repeat('L'));
            let step = |((at, value), verb)| format!("{verb}{:.1} {:.1}", x(at), y(value));
            let path = self.placed(series).zip(verbs).map(step).collect();
            let is_named = !series.quiet || n_quiet <= QUIET_NAMES;
            Some(Line { name: &series.name, class, path, end, is_named })
        });
        let lines: Vec<Line<'_>> = lines.collect();
        let named: Vec<&Line<'_>> = lines.iter().filter(|line| line.is_named).collect();
        let ends = named.iter().enumerate().map(|(index, line)| (line.end.1, index)).collect();
        Some(html! {
            svg.chart viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label=(self.title) {
                @for (place, label) in &y_ticks {
                    @let at = y(*place);
                    line.grid x1=(left) x2=(right) y1=(Tenths(at)) y2=(Tenths(at)) {}
                    text.tick x=(Tenths(left - 8.0)) y=(Tenths(at + 4.0)) text-anchor="end" { (label) }
                }
                line.axis x1=(left) x2=(right) y1=(floor) y2=(floor) {}
                @for (place, label) in &x_ticks {
                    @let at = x(*place);
                    line.axis x1=(Tenths(at)) x2=(Tenths(at)) y1=(floor) y2=(Tenths(floor + 4.0)) {}
                    text.tick x=(Tenths(at)) y=(Tenths(floor + 17.0)) text-anchor="middle" { (label) }
                }
                text.tick x=(Tenths((left + right) / 2.0)) y=(Tenths(HEIGHT - 5.0)) text-anchor="middle" {
                    (self.x_label)
                }
                @for (place, name) in marks() {
                    @let at = y(place);
                    line.mark x1=(left) x2=(right) y1=(Tenths(at)) y2=(Tenths(at)) {}
                    text.tick x=(Tenths(left + 4.0)) y=(Tenths(at - 4.0)) { (name) }
                }
                @for Line { name, class, path, end: (at, height, value), .. } in &lines {
                    path class={ "line " (class) } d=(path) {}
                    circle class={ "dot " (class) } cx=(Tenths(*at)) cy=(Tenths(*height)) r="3" {
                        title { (name) ": " (number(self.y_scale.value(*value), &[])) }
                    }
                }
                @for (at, index) in apart(ends, floor) {
                    @let Line { name, class, .. } = named[index];
                    text class={ "name " (class) } x=(Tenths(right + 8.0)) y=(Tenths(at + 4.0)) { (short(name)) }
                }
            }
        })
    }

    /// Draws the chart below its title; `None` if no series has two points.
    pub fn figure(&self) -> Option<Markup> {
        let svg = self.svg()?;
        Some(html! { figure { figcaption { (self.title) } (svg) } })
    }
}

/// Charts side by side, as the width allows; empty without charts.
pub fn all(figures: Vec<Markup>) -> Markup {
    html! {
        @if !figures.is_empty() { div.charts { @for figure in figures { (figure) } } }
    }
}

/// A drawn series.
struct Line<'a> {
    name: &'a str,
    class: String,
    /// Attribute `d` of its path.
    path: String,
    /// The x and y of its last point in the drawing, and its position on the y axis.
    end: (f64, f64, f64),
    /// Whether its name is shown at its end.
    is_named: bool,
}

fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |range, value| match range {
        None => Some((value, value)),
        Some((low, high)) => Some((low.min(value), high.max(value))),
    })
}

/// About `wanted` round numbers over a range, at least `least` apart (0 for any distance).
fn ticks((low, high): (f64, f64), wanted: usize, least: f64) -> Vec<f64> {
    let span = high - low;
    if is_flat((low, high)) {
        return vec![low];
    }
    let rough = span / wanted as f64;
    let power = libm::pow(10.0, libm::log10(rough).floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|&step| step >= rough);
    let step = step.unwrap_or(10.0 * power).max(least);
    let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
    (first..=last).map(|at| at as f64 * step).collect()
}

/// Whether the values differ by less than labels can show.
fn is_flat((low, high): (f64, f64)) -> bool {
    high - low <= 1e-6 * low.abs().max(high.abs())
}

/// Widens a range by a margin; a flat line is in the middle.
fn spread((low, high): (f64, f64), ticks: &[(f64, String)]) -> (f64, f64) {
    let room = if is_flat((low, high)) { (0.05 * low.abs()).max(0.5) } else { 0.06 * (high - low) };
    let (first, last) = (ticks.first().map_or(low, |tick| tick.0), ticks.last().map_or(high, |tick| tick.0));
    (low.min(first) - room, high.max(last) + room)
}

/// A name, with an ellipsis if it is longer than [`NAME`].
fn short(name: &str) -> String {
    if name.width() <= NAME {
        return name.to_owned();
    }
    let mut columns = 0;
    let kept = name.chars().take_while(|&letter| {
        columns += letter.width().unwrap_or(0);
        columns < NAME
    });
    kept.chain(['…']).collect()
}

/// Formats a power of 10 with a superscript.
fn power_of_ten(power: f64) -> String {
    let raised = |c: char| match c.to_digit(10) {
        Some(digit) => ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][digit as usize],
        None => '⁻',
    };
    let power = format!("{power:.0}");
    format!("10{}", power.chars().map(raised).collect::<String>())
}

/// Heights at which names do not overlap, near the ends of their lines and not below `floor`.
fn apart(mut ends: Vec<(f64, usize)>, floor: f64) -> Vec<(f64, usize)> {
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    for at in 1..ends.len() {
        ends[at].0 = ends[at].0.max(ends[at - 1].0 + LINE);
    }
    let mut lowest = floor;
    for end in ends.iter_mut().rev() {
        end.0 = end.0.min(lowest);
        lowest = end.0 - LINE;
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(ticks((0.0, 1.0), 5, 0.0), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
        assert_eq!(ticks((1.0, 4.0), 6, 1.0), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(ticks((-23410.0, -20122.0), 5, 0.0), [-23000.0, -22000.0, -21000.0]);
        assert_eq!(ticks((3.0, 3.0), 5, 0.0), [3.0]);
        assert_eq!(ticks((3.0, 3.000_000_1), 5, 0.0), [3.0]);
    }

    #[test]
    fn names_do_not_overlap() {
        let placed = apart(vec![(100.0, 0), (101.0, 1), (199.0, 2), (200.0, 3)], 200.0);
        assert_eq!(placed, [(100.0, 0), (114.0, 1), (186.0, 2), (200.0, 3)]);
    }

    #[test]
    fn names_at_line_ends_fit_into_the_drawing() {
        for name in ["Word", "StemSuffixMorph", "AVeryLongNameOfANonterminal", "語語語語語語語語語語語語"]
        {
            let series =
                vec![Series { name: name.to_owned(), points: vec![(1.0, 2.0), (2.0, 3.0)], quiet: false }];
            let svg = Chart { series, ..Chart::default() }.svg().unwrap().into_string();
            let (_, text) = svg.rsplit_once("<text class=\"name s0\" x=\"").expect(&svg);
            let (x, text) = text.split_once('"').unwrap();
            let (shown, _) = text.split_once('>').unwrap().1.split_once("</text>").unwrap();
            let end = x.parse::<f64>().unwrap() + BOLD_LETTER * shown.width() as f64;
            assert!(end <= WIDTH && shown.width() <= NAME, "{shown}: {end}");
            assert_eq!(shown == name, name.width() <= NAME);
        }
    }

    fn chart(points: Vec<(f64, f64)>) -> Chart<'static> {
        let series = vec![Series { name: "a&b".to_owned(), points, quiet: false }];
        Chart { title: "bound <1>", x_label: "round", series, ..Chart::default() }
    }

    #[test]
    fn a_chart_without_a_line_is_not_drawn() {
        assert!(chart(vec![(1.0, 2.0), (2.0, f64::NAN)]).svg().is_none());
        assert!(chart(vec![(1.0, 2.0)]).svg().is_none() && chart(Vec::new()).svg().is_none());
        let svg = chart(vec![(1.0, 2.0), (2.0, 2.0)]).svg().unwrap().into_string();
        assert!(svg.contains(">1</text>") && svg.contains(">2.000</text>"), "{svg}");
        assert!(svg.contains("a&amp;b") && svg.contains("bound &lt;1&gt;"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn logarithmic_axes_have_powers_of_ten() {
        let scale = |points| Chart { x_scale: Scale::Log, ..chart(points) };
        let svg = scale(vec![(1e-10, 0.5), (1e-5, 0.6), (1.0, 0.7)]).svg().unwrap().into_string();
        for label in [">10⁻¹⁰<", ">10⁻²<", ">10⁰<"] {
            assert!(svg.contains(label), "{label} is not in {svg}");
        }
        assert!(scale(vec![(0.0, 1.0), (-1.0, 1.0)]).svg().is_none(), "no value is positive");
        assert!(scale(vec![(20.0, 1.0), (20.0, 2.0)]).svg().unwrap().into_string().contains(">20.000<"));
    }

    #[test]
    fn weaker_lines_are_behind_and_unnamed_if_many() {
        let series = |n: usize| -> Vec<Series> {
            let run = |at: usize| Series {
                name: format!("run {at}"),
                points: vec![(1.0, at as f64), (2.0, 1.0)],
                quiet: at > 0,
            };
            (0..=n).map(run).collect()
        };
        let svg = |n| Chart { series: series(n), ..Chart::default() }.svg().unwrap().into_string();
        let few = svg(2);
        assert!(few.find("line behind").unwrap() < few.find("line s0").unwrap());
        assert!(few.contains(">run 0</text>") && few.contains(">run 2</text>"));
        let many = svg(QUIET_NAMES + 1);
        assert!(many.contains(">run 0</text>") && !many.contains(">run 2</text>"));
    }

    #[test]
    fn an_axis_of_shares_goes_from_0_to_1() {
        let svg = |y_includes| {
            let chart = Chart { y_includes, ..chart(vec![(1.0, 0.82), (2.0, 0.83)]) };
            chart.svg().unwrap().into_string()
        };
        let shares = svg(&SHARES);
        assert!(shares.contains(">0.0<") && shares.contains(">1.0<"), "{shares}");
        assert!(!svg(&[]).contains(">1.0<"));
    }

    #[test]
    fn marks_are_within_the_chart_for_all_points() {
        let svg = Chart { marks: vec![(9.0, "<9")], ..chart(vec![(1.0, 2.0), (2.0, 3.0)]) }
            .svg()
            .unwrap()
            .into_string();
        assert!(svg.contains("class=\"mark\"") && svg.contains(">&lt;9</text>") && svg.contains(">8<"));
    }
}
