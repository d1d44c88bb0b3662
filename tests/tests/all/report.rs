//! `report.html` in a real browser, from its file: the verdict first, sentences sorted and filtered, nothing wider than the window.

use std::path::PathBuf;

use grammaton_tests::browser::Browser;
use grammaton_tests::folder::{Folder, examples};
use grammaton_tests::requirement;
use serde_json::Value;

/// A screenshot, if a folder for them is set.
fn picture(browser: &Browser, name: &str) {
    if let Some(folder) = std::env::var_os("PAGE_PICTURES").map(PathBuf::from) {
        browser.picture(&folder.join(name));
    }
}

/// Values of a data attribute of the visible rows, in their order.
fn shown(browser: &Browser, attribute: &str) -> Vec<i64> {
    let rows = "[...document.querySelectorAll('ol.sentences li')].filter((row) => row.checkVisibility())";
    let values = browser.run(&format!("return {rows}.map((row) => Number(row.dataset.{attribute}))"));
    values.as_array().unwrap().iter().map(|value| value.as_i64().unwrap()).collect()
}

/// Sets a field as a user does.
fn set(browser: &Browser, field: &str, value: &str) {
    let event = "new Event('input', { bubbles: true })";
    browser.run(&format!("{field}.{value}; {field}.dispatchEvent({event})"));
}

#[test]
fn a_report_concludes_and_its_sentences_are_sorted_and_filtered() {
    let browser = match Browser::open() {
        Ok(browser) => browser,
        Err(why) => return requirement::missing("browser", &why),
    };
    let words = std::fs::read_to_string(examples().join("morphemes/words.txt")).unwrap();
    let folder = Folder::new(&[("words <1>.txt", &words)]);
    let args =
        ["morphemes", "words <1>.txt", "--chains", "2", "--sweeps", "12", "--out", "results", "--quiet"];
    folder.grammaton(&args);
    browser.look(1200, 1400, false);
    browser.go(&format!("file://{}", folder.path("results/report.html").display()));
    picture(&browser, "report-1200.png");

    // The title is the user's file; the verdict comes before all sections, the words first among them.
    assert_eq!(browser.run("return document.querySelector('h1').innerText"), "words <1>.txt");
    let verdict = browser.run("return document.querySelector('h1 + .verdict').innerText");
    let verdict = verdict.as_str().unwrap();
    assert!(
        verdict.starts_with("Token F1 is 0.") && verdict.contains("(every symbol as a segment)"),
        "{verdict}"
    );
    let summary: Value = serde_json::from_str(&folder.read("results/summary.json")).unwrap();
    assert!(verdict.starts_with(summary["verdict"]["text"].as_str().unwrap()), "{verdict}");
    assert_eq!(browser.run("return document.querySelector('h2').innerText"), "Words found");
    for title in ["Wrong cuts: ", "Wrong joins: "] {
        browser.until_text(title);
    }

    // All rows in the order of the text; sorted by errors and by doubt, and back.
    let [errors, doubts] = ["errors", "doubt"].map(|attribute| shown(&browser, attribute));
    assert_eq!(errors.len(), 100);
    assert!(!errors.is_sorted_by(|a, b| a >= b) && errors.iter().any(|n| *n > 0));
    set(&browser, "document.querySelector('#order')", "value = 'errors'");
    assert!(shown(&browser, "errors").is_sorted_by(|a, b| a >= b));
    set(&browser, "document.querySelector('#order')", "value = 'unsure'");
    assert!(shown(&browser, "doubt").is_sorted_by(|a, b| a >= b));
    set(&browser, "document.querySelector('#order')", "value = 'sure'");
    assert!(shown(&browser, "doubt").is_sorted());
    set(&browser, "document.querySelector('#order')", "value = 'text'");
    assert_eq!((shown(&browser, "errors"), shown(&browser, "doubt")), (errors.clone(), doubts));

    // Only rows with errors, and those with a text, whatever its segmentation.
    browser.click("#wrong");
    let wrong: Vec<i64> = errors.iter().copied().filter(|n| *n > 0).collect();
    assert_eq!(shown(&browser, "errors"), wrong);
    browser.until_text(&format!("{} of 100 shown", wrong.len()));
    browser.click("#wrong");
    let first = "document.querySelector('ol.sentences li .found').textContent";
    let text = browser.run(&format!("return {first}.replace(/\\s/g, '')"));
    browser.fill("#search", text.as_str().unwrap());
    let n = shown(&browser, "errors").len();
    assert!((1..100).contains(&n), "{n} rows have {text}");
    assert_eq!(browser.run(&format!("return {first}.replace(/\\s/g, '')")), text);
    browser.fill("#search", "no word has this");
    browser.until_text("0 of 100 shown");

    // The probability of an unsure boundary, for the keyboard and for screen readers.
    set(&browser, "document.querySelector('#search')", "value = ''");
    browser.run("document.querySelector('.gap[tabindex]').focus()");
    let label = browser.run("return document.activeElement.getAttribute('aria-label')");
    assert!(
        label.as_str().unwrap().contains("boundary, ") && label.as_str().unwrap().ends_with('%'),
        "{label}"
    );
    let tip = browser.run("return getComputedStyle(document.activeElement, '::after').content");
    assert!(tip.as_str().unwrap().contains('%'), "{tip}");

    browser.look(390, 844, false);
    browser.run("scrollTo(0, 0)");
    picture(&browser, "report-390.png");
    let wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth";
    assert!(browser.run(&format!("return {wide}")) == false, "a phone has to scroll sideways");
    let clipped = "[...document.querySelectorAll('main > *')].some((part) => part.getBoundingClientRect().right > innerWidth + 1)";
    assert!(browser.run(&format!("return {clipped}")) == false, "a part is wider than the window");
}
