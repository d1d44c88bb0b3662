//! Line charts as inline SVG: axes, ticks, a line per series, its name at the line's end.
//!
//! Colours come from the page's style sheet (`.s0`, `.s1`, …), so that one drawing serves light and dark.

use std::fmt::Write as _;

use super::html::escape;

/// A line of a chart.
pub struct Series {
    /// Shown at the line's end.
    pub name: String,
    /// (x, y), x ascending; points that are not finite are left out.
    pub points: Vec<(f64, f64)>,
}

/// A chart.
pub struct Chart<'a> {
    /// Said to those who cannot see it.
    pub title: &'a str,
    /// Under the x axis.
    pub x_label: &'a str,
    /// The lines.
    pub series: Vec<Series>,
}

const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 72.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 40.0;
/// Names at line ends stand at least this far apart.
const LINE: f64 = 14.0;

impl Chart<'_> {
    /// The drawing, or a sentence if there is nothing to draw.
    pub fn svg(&self) -> String {
        let points = || self.series.iter().flat_map(|series| finite(&series.points));
        let Some((x_range, y_range)) = range(points().map(|p| p.0)).zip(range(points().map(|p| p.1))) else {
            return format!("<p class=\"quiet\">{}: nothing to draw.</p>", escape(self.title));
        };
        let x_ticks = ticks(x_range, 6, 1.0);
        let y_ticks = ticks(y_range, 5, 0.0);
        let (x_low, x_high) = x_range;
        let (y_low, y_high) = spread(y_range, &y_ticks);
        let x_span = if x_high > x_low { x_high - x_low } else { 1.0 };
        let x = |value: f64| LEFT + (value - x_low) / x_span * (WIDTH - LEFT - RIGHT);
        let y = |value: f64| HEIGHT - BOTTOM - (value - y_low) / (y_high - y_low) * (HEIGHT - TOP - BOTTOM);

        let title = escape(self.title);
        let mut svg = format!(
            "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">"
        );
        let (right, floor) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for &tick in &y_ticks {
            let (at, label) = (y(tick), number(tick, &y_ticks));
            write!(
                svg,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
                 <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                LEFT - 8.0,
                at + 4.0,
            )
            .expect(TEXT);
        }
        write!(svg, "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{floor}\" y2=\"{floor}\"/>")
            .expect(TEXT);
        for &tick in &x_ticks {
            let (at, label) = (x(tick), number(tick, &x_ticks));
            write!(
                svg,
                "<line class=\"axis\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{floor}\" y2=\"{:.1}\"/>\
                 <text class=\"tick\" x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>",
                floor + 4.0,
                floor + 17.0,
            )
            .expect(TEXT);
        }
        write!(
            svg,
            "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            (LEFT + right) / 2.0,
            HEIGHT - 5.0,
            escape(self.x_label),
        )
        .expect(TEXT);

        let mut ends = Vec::new();
        for (index, series) in self.series.iter().enumerate() {
            let mut path = String::new();
            for (at, value) in finite(&series.points) {
                let verb = if path.is_empty() { 'M' } else { 'L' };
                write!(path, "{verb}{:.1} {:.1}", x(at), y(value)).expect(TEXT);
            }
            let Some((at, value)) = finite(&series.points).last() else { continue };
            ends.push((y(value), index));
            write!(
                svg,
                "<path class=\"line s{index}\" d=\"{path}\"/>\
                 <circle class=\"dot s{index}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"><title>{}: {}</title></circle>",
                x(at),
                y(value),
                escape(&series.name),
                number(value, &[]),
            )
            .expect(TEXT);
        }
        for (at, index) in apart(ends, floor) {
            let name = escape(&self.series[index].name);
            write!(
                svg,
                "<text class=\"name s{index}\" x=\"{:.1}\" y=\"{:.1}\">{name}</text>",
                right + 8.0,
                at + 4.0
            )
            .expect(TEXT);
        }
        svg.push_str("</svg>");
        svg
    }
}

const TEXT: &str = "a string takes all text";

fn finite(points: &[(f64, f64)]) -> impl Iterator<Item = (f64, f64)> + '_ {
    points.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite())
}

fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |range, value| match range {
        None => Some((value, value)),
        Some((low, high)) => Some((low.min(value), high.max(value))),
    })
}

/// Round numbers over `range`, about `wanted` of them, no nearer than `least` (0 for any).
fn ticks((low, high): (f64, f64), wanted: usize, least: f64) -> Vec<f64> {
    let span = high - low;
    if span <= 0.0 {
        return vec![low];
    }
    let rough = span / wanted as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|&step| step >= rough);
    let step = step.unwrap_or(10.0 * power).max(least);
    let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
    (first..=last).map(|at| at as f64 * step).collect()
}

/// A little room above and below; a flat line stands in the middle.
fn spread((low, high): (f64, f64), ticks: &[f64]) -> (f64, f64) {
    let room = if high > low { 0.06 * (high - low) } else { (0.05 * low.abs()).max(0.5) };
    let (first, last) = (ticks.first().copied().unwrap_or(low), ticks.last().copied().unwrap_or(high));
    (low.min(first) - room, high.max(last) + room)
}

/// Enough digits to tell the ticks apart, thousands in groups.
pub fn number(value: f64, ticks: &[f64]) -> String {
    let step = ticks.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
    let decimals = match step {
        step if step.is_finite() => (-step.log10().floor()).clamp(0.0, 6.0) as usize,
        _ if value.abs() >= 100.0 => 0,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    let text = if text.trim_start_matches('-').chars().all(|c| c == '0' || c == '.') {
        text.trim_start_matches('-').to_owned()
    } else {
        text
    };
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let (sign, digits) = whole.split_at(usize::from(whole.starts_with('-')));
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    let sign = if sign.is_empty() { "" } else { "−" };
    format!("{sign}{grouped}{rest}")
}

/// Heights at which the names do not overlap, near their lines' ends, none below `floor`.
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
    }

    #[test]
    fn numbers_are_grouped_and_signed() {
        assert_eq!(number(-21000.0, &[-22000.0, -21000.0]), "−21\u{202f}000");
        assert_eq!(number(0.4, &[0.2, 0.4]), "0.4");
        assert_eq!(number(0.0, &[-0.1, 0.0]), "0.0");
        assert_eq!(number(0.8421, &[]), "0.842");
    }

    #[test]
    fn names_do_not_overlap() {
        let placed = apart(vec![(100.0, 0), (101.0, 1), (199.0, 2), (200.0, 3)], 200.0);
        assert_eq!(placed, [(100.0, 0), (114.0, 1), (186.0, 2), (200.0, 3)]);
    }

    #[test]
    fn nothing_to_draw_is_said() {
        let chart = |points| Chart {
            title: "bound <1>",
            x_label: "round",
            series: vec![Series { name: "a&b".to_owned(), points }],
        };
        assert!(chart(vec![(1.0, f64::NAN)]).svg().contains("bound &lt;1&gt;: nothing to draw"));
        let svg = chart(vec![(1.0, 2.0)]).svg();
        assert!(svg.contains("a&amp;b") && !svg.contains("NaN") && !svg.contains("inf"));
    }
}
