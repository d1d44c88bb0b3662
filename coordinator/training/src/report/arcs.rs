//! Drawing of a dependency tree as SVG: words in a line, tags below them, and above them an arc from every head to its dependent.
//!
//! An arc is a horizontal line with two rounded corners. Longer arcs are higher, so that arcs do not overlap each other or the words.
//! With gold heads, wrong arcs are dashed, and missed arcs are dotted, below the tags.
//!
//! The drawing is as wide as its words; a page lets it scroll. It has the colour of the surrounding text. The `title` of an arc names
//! its head and dependent, so that colour carries no information of its own.

use maud::{Markup, html};
use unicode_width::UnicodeWidthStr as _;

use super::markup::Tenths;

/// Distance between two levels of arcs, in pixels, as all lengths here.
const LEVEL: f64 = 15.0;
/// Radius of the corners.
const CORNER: f64 = 7.0;
/// Width of a letter of a word.
const LETTER: f64 = 8.6;
const TAG_LETTER: f64 = 7.0;
const GAP: f64 = 18.0;
/// Height of words and tags, between the arcs above and below.
const TEXT: f64 = 46.0;
/// Maximum distance between two arcs that leave a word on the same side.
const PORT: f64 = 5.0;

/// An arc from a head to its dependent; words are numbered from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Arc {
    head: usize,
    word: usize,
    /// Level: 1 if no arc is below it; 0 for arcs of the root, which begin above all levels.
    level: usize,
}

/// Style of an arc.
struct Look {
    class: &'static str,
    dashes: Option<&'static str>,
    /// Note in its title.
    note: &'static str,
}

const PLAIN: Look = Look { class: "arc", dashes: None, note: "" };
const WRONG: Look = Look { class: "arc wrong", dashes: Some("6 3"), note: "wrong: " };
const MISSED: Look = Look { class: "arc missed", dashes: Some("1.5 3"), note: "missed: " };

/// Draws `heads` over `words` with `tags`. A head is the number of a word from 1, or 0 for the root; `gold` has the gold heads, if known.
///
/// # Panics
/// If lengths differ, or a head is the word itself or not in the sentence.
pub fn svg(words: &[String], tags: &[String], heads: &[u32], gold: Option<&[u32]>) -> Markup {
    let n = words.len();
    assert!(tags.len() == n && heads.len() == n, "a tag and a head for each word");
    assert!(gold.is_none_or(|gold| gold.len() == n), "a gold head for each word");
    let wrong = |word: usize| gold.is_some_and(|gold| gold[word - 1] != heads[word - 1]);
    let arcs = levels((1..=n).map(|word| (heads[word - 1] as usize, word)).collect());
    let missed = gold.map_or(Vec::new(), |gold| {
        levels((1..=n).filter(|&word| wrong(word)).map(|word| (gold[word - 1] as usize, word)).collect())
    });
    let columns = Columns::new(words, tags);
    let (above, below) = (room(&arcs), room(&missed));
    let (width, height) = (format!("{:.0}", columns.width), format!("{:.0}", above + TEXT + below));
    let name = |head: usize| if head == 0 { "root" } else { words[head - 1].as_str() };
    let over = arcs.iter().map(|arc| {
        let look = if wrong(arc.word) { &WRONG } else { &PLAIN };
        (arc, look, columns.line(arc, &arcs, above, -1.0))
    });
    let under = missed.iter().map(|arc| (arc, &MISSED, columns.line(arc, &missed, above + TEXT, 1.0)));
    html! {
        svg.arcs viewBox={ "0 0 " (width) " " (height) } width=(width) height=(height)
            role="img" aria-label="dependency tree" {
            @for (arc, Look { class, dashes, note }, (line, tip)) in over.chain(under) {
                g class=(class) {
                    title { (note) (name(arc.head)) " → " (words[arc.word - 1]) }
                    path d=(line) fill="none" stroke="currentColor" stroke-width="1.3" stroke-dasharray=[dashes] {}
                    path d=(tip) fill="currentColor" {}
                }
            }
            g fill="currentColor" text-anchor="middle" font-family="system-ui, sans-serif" {
                @for ((word, tag), &x) in words.iter().zip(tags).zip(&columns.middles) {
                    text.word font-size="15" x=(Tenths(x)) y=(Tenths(above + 18.0)) { (word) }
                    text.tag font-size="11.5" opacity=".75" x=(Tenths(x)) y=(Tenths(above + 36.0)) { (tag) }
                }
            }
        }
    }
}

/// Arcs of edges (head, word), each above all arcs that it overlaps.
fn levels(mut edges: Vec<(usize, usize)>) -> Vec<Arc> {
    edges.sort_by_key(|&(head, word)| (head.abs_diff(word), head.min(word)));
    // The highest level so far between each word and the next.
    let mut heights = vec![0; edges.iter().map(|&(head, word)| head.max(word)).max().unwrap_or(0)];
    let mut arcs = Vec::new();
    for (head, word) in edges {
        let mut level = 0;
        if head > 0 {
            let spanned = &mut heights[head.min(word)..head.max(word)];
            level = 1 + spanned.iter().max().expect("an arc spans at least one gap");
            spanned.fill(level);
        }
        arcs.push(Arc { head, word, level });
    }
    arcs
}

/// Height of the arcs.
fn room(arcs: &[Arc]) -> f64 {
    let highest = arcs.iter().map(|arc| arc.level).max();
    highest.map_or(0.0, |highest| (highest + 2) as f64 * LEVEL)
}

/// Horizontal positions of the words.
struct Columns {
    middles: Vec<f64>,
    halves: Vec<f64>,
    width: f64,
}

impl Columns {
    fn new(words: &[String], tags: &[String]) -> Columns {
        let mut columns = Columns { middles: Vec::new(), halves: Vec::new(), width: 0.0 };
        for (word, tag) in words.iter().zip(tags) {
            let half = ((word.width() as f64 * LETTER).max(tag.width() as f64 * TAG_LETTER) + GAP) / 2.0;
            columns.middles.push(columns.width + half);
            columns.halves.push(half);
            columns.width += 2.0 * half;
        }
        columns
    }

    /// Path of an arc and of its tip, from a base line up (−1) or down (1). The arc ends at the middle of its dependent. It leaves its head
    /// on the side of the dependent, longer arcs nearer to the middle, so that arcs of a head do not cross.
    fn line(&self, arc: &Arc, all: &[Arc], base: f64, up: f64) -> (String, String) {
        let to = self.middles[arc.word - 1];
        let end = base + up * 3.0;
        let tip = format!("M{to:.1} {end:.1}l-3.5 {0:.1}h7z", up * 7.0);
        if arc.head == 0 {
            return (format!("M{to:.1} {:.1}V{end:.1}", base + up * room(all)), tip);
        }
        let side = if arc.word > arc.head { 1.0 } else { -1.0 };
        let siblings = || {
            let same_side = |other: &&Arc| (other.word > other.head) == (arc.word > arc.head);
            all.iter().filter(|other| other.head == arc.head).filter(same_side)
        };
        let longer = siblings().filter(|other| other.level > arc.level).count();
        let port = PORT.min(self.halves[arc.head - 1] / (siblings().count() + 1) as f64);
        let from = self.middles[arc.head - 1] + side * port * (longer + 1) as f64;
        let top = base + up * (arc.level + 1) as f64 * LEVEL;
        let corner = CORNER.min((to - from).abs() / 2.0);
        let (turned, bent) = (side * corner, top - up * corner);
        let line = format!(
            "M{from:.1} {:.1}V{bent:.1}Q{from:.1} {top:.1} {:.1} {top:.1}H{:.1}Q{to:.1} {top:.1} {to:.1} {bent:.1}V{end:.1}",
            base + up * 3.0,
            from + turned,
            to - turned,
        );
        (line, tip)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::report::markup::visible;

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    /// The drawing as HTML.
    fn text(words: &[String], tags: &[String], heads: &[u32], gold: Option<&[u32]>) -> String {
        visible(svg(words, tags, heads, gold))
    }

    /// A sentence of words `w` with these heads.
    fn drawn(heads: &[u32], gold: Option<&[u32]>) -> String {
        text(&vec!["w".to_owned(); heads.len()], &vec!["N".to_owned(); heads.len()], heads, gold)
    }

    /// Elements open and close in order, and attributes are quoted.
    fn is_well_formed(svg: &str) -> bool {
        let mut open = Vec::new();
        for part in svg.split('<').skip(1) {
            let Some((tag, text)) = part.split_once('>') else { return false };
            let fits = match tag.strip_prefix('/') {
                Some(name) => open.pop() == Some(name),
                None => {
                    let name = tag.split(' ').next().unwrap_or_default();
                    if !tag.ends_with('/') {
                        open.push(name);
                    }
                    tag.matches('"').count() % 2 == 0
                }
            };
            if !fits || text.contains('>') {
                return false;
            }
        }
        open.is_empty()
    }

    /// All numbers in values of an attribute.
    fn numbers(svg: &str, attribute: &str) -> Vec<f64> {
        let before = format!(" {attribute}=\"");
        let values = svg.split(&before).skip(1);
        values.map(|rest| rest.split('"').next().unwrap().parse().unwrap()).collect()
    }

    /// Points of the paths of arcs and tips.
    fn paths(svg: &str) -> Vec<Vec<(f64, f64)>> {
        let path = |path: &str| {
            let (mut at, mut points) = ((0.0, 0.0), Vec::new());
            let letters = |letter: char| letter.is_ascii_alphabetic();
            for (start, verb) in path.match_indices(letters) {
                let rest = &path[start + 1..];
                let rest = &rest[..rest.find(letters).unwrap_or(rest.len())];
                let numbers: Vec<f64> =
                    rest.split_whitespace().map(|number| number.parse().unwrap()).collect();
                match verb {
                    "V" => at.1 = numbers[0],
                    "H" => at.0 = numbers[0],
                    "h" => at.0 += numbers[0],
                    "l" => at = (at.0 + numbers[0], at.1 + numbers[1]),
                    "Q" => at = (numbers[2], numbers[3]),
                    "M" => at = (numbers[0], numbers[1]),
                    _ => {}
                }
                points.push(at);
            }
            points
        };
        svg.split(" d=\"").skip(1).map(|rest| path(rest.split('"').next().unwrap())).collect()
    }

    #[test]
    fn names_are_escaped() {
        let (words, tags) = (strings(&["<a>", "&\"", "\u{1}"]), strings(&["'", "<", ">"]));
        let svg = text(&words, &tags, &[2, 0, 2], Some(&[0, 1, 2]));
        assert!(is_well_formed(&svg), "{svg}");
        for shown in [">&lt;a&gt;</text>", ">&amp;&quot;</text>", ">\u{fffd}</text>", ">'</text>"] {
            assert!(svg.contains(shown), "{shown} is not in {svg}");
        }
        assert!(svg.contains("<title>wrong: &amp;&quot; → &lt;a&gt;</title>"), "{svg}");
    }

    #[test]
    fn wrong_arcs_are_dashed_and_missed_arcs_are_below() {
        let svg = drawn(&[2, 0, 2], Some(&[2, 0, 1]));
        assert_eq!(svg.matches("class=\"arc wrong\"").count(), 1);
        assert_eq!(svg.matches("stroke-dasharray=\"6 3\"").count(), 1);
        assert_eq!(svg.matches("class=\"arc missed\"").count(), 1);
        let labels = numbers(&svg, "y");
        let lowest_label = labels.iter().copied().fold(0.0, f64::max);
        let missed = paths(&svg[svg.find("missed").unwrap()..]);
        assert!(missed.iter().flatten().all(|&(_, y)| y > lowest_label), "{svg}");
        for without in [drawn(&[2, 0, 2], None), drawn(&[2, 0, 2], Some(&[2, 0, 2]))] {
            assert!(!without.contains("wrong") && !without.contains("missed"), "{without}");
        }
    }

    #[test]
    fn levels_follow_nesting() {
        // The arcs from 4 to 1, 2 and 3 are nested; the arc to 5 is beside them.
        let arcs = levels(vec![(4, 1), (4, 2), (4, 3), (0, 4), (4, 5)]);
        let level = |word| arcs.iter().find(|arc| arc.word == word).unwrap().level;
        assert_eq!([1, 2, 3, 4, 5].map(level), [3, 2, 1, 0, 1]);
    }

    #[test]
    fn words_of_long_sentences_do_not_overlap() {
        let heads: Vec<u32> = (0..40).collect();
        let words: Vec<String> = (0..40).map(|at| "x".repeat(at % 9 + 1)).collect();
        let svg = text(&words, &vec!["NOUN".to_owned(); 40], &heads, None);
        let letters: usize = words.iter().map(String::len).sum();
        assert!(numbers(&svg, "width")[0] > letters as f64 * LETTER);
        let (middles, right) = (numbers(&svg, "x"), numbers(&svg, "width")[0]);
        // Positions of each word and its tag.
        let half = |at: usize| words[at].len() as f64 * LETTER / 2.0;
        for at in 0..40 {
            let end = middles[2 * at] + half(at);
            let next = if at == 39 { right } else { middles[2 * at + 2] - half(at + 1) };
            assert!(end < next, "word {at} ends at {end}, the next begins at {next}");
        }
        let wide = |word: &str| numbers(&text(&strings(&[word]), &strings(&["N"]), &[0], None), "width")[0];
        assert!(wide("语言学家") > 4.0 * 15.0, "letters of East Asia are as wide as they are high");
        assert_eq!(wide("e\u{301}te\u{301}"), wide("ete"), "accents stand above their letters");
    }

    #[test]
    fn an_empty_sentence_has_no_drawing() {
        assert!(is_well_formed(&drawn(&[], None)));
        let one = drawn(&[0], Some(&[0]));
        assert!(is_well_formed(&one) && one.contains("<title>root → w</title>"), "{one}");
    }

    /// Heads smaller than the word's own number, so that there is no cycle.
    fn heads() -> impl Strategy<Value = (Vec<u32>, Vec<u32>)> {
        let tree = |n: usize| (0..n as u32).map(|at| 0..=at).collect::<Vec<_>>();
        (1..12usize).prop_flat_map(move |n| (tree(n), tree(n)))
    }

    proptest! {
        #[test]
        fn arcs_overlap_neither_words_nor_each_other((heads, gold) in heads()) {
            let svg = drawn(&heads, Some(&gold));
            prop_assert!(is_well_formed(&svg), "{}", svg);
            let (above, below) = svg.split_at(svg.find("<g class=\"arc missed\"").unwrap_or(svg.len()));
            let (above, _) = above.split_at(above.find("<text").unwrap_or(above.len()));
            let texts = numbers(&svg, "y");
            // A letter of 15 pixels is above its y.
            let top = texts.iter().copied().fold(f64::INFINITY, f64::min) - 15.0;
            prop_assert!(paths(above).iter().flatten().all(|&(_, y)| (0.0..=top).contains(&y)), "{}", svg);
            let height = numbers(&svg, "height")[0];
            prop_assert!(paths(below).iter().flatten().all(|&(_, y)| y <= height), "{}", svg);

            for edges in [&heads, &gold].map(|heads| heads.iter().map(|&head| head as usize).zip(1..)) {
                let arcs = levels(edges.collect());
                let ends = |arc: &Arc| (arc.head.min(arc.word), arc.head.max(arc.word));
                for (at, a) in arcs.iter().enumerate().filter(|(_, arc)| arc.head > 0) {
                    for b in arcs[..at].iter().filter(|arc| arc.head > 0) {
                        let overlap = ends(a).0 < ends(b).1 && ends(b).0 < ends(a).1;
                        prop_assert!(!overlap || a.level > b.level, "{a:?} and {b:?}");
                    }
                }
            }
        }
    }
}
