//! The page of `grammaton annotate` in a real browser: by clicks, by keys, reloaded, in a narrow window.

use std::path::PathBuf;

use grammaton_tests::browser::Browser;
use grammaton_tests::folder::{Folder, examples};
use grammaton_tests::{Process, requirement};

/// Folder for screenshots, if one is set.
fn picture(browser: &Browser, name: &str) {
    if let Some(folder) = std::env::var_os("PAGE_PICTURES").map(PathBuf::from) {
        browser.picture(&folder.join(name));
    }
}

#[test]
fn lines_are_annotated_by_clicks_and_by_keys_and_learned_from() {
    let browser = match Browser::open() {
        Ok(browser) => browser,
        Err(why) => return requirement::missing("browser", &why),
    };
    let words = std::fs::read_to_string(examples().join("morphemes/words.txt")).unwrap();
    let folder = Folder::new(&[("words.txt", &words)]);
    folder.grammaton(&[
        "morphemes",
        "words.txt",
        "--chains",
        "2",
        "--sweeps",
        "6",
        "--out",
        "results",
        "--quiet",
    ]);
    let (_process, lines) = Process::spawn_read(&mut folder.command(&["annotate", "results"]));
    let url = lines.next().unwrap();
    browser.look(1200, 900, false);
    browser.go(&url);
    browser.until_text("Ready.");
    let file = || folder.read("results/annotated.txt");

    // A click makes or takes away a boundary, and keeps the line.
    let pressed = "document.querySelector('#lines li .gap').getAttribute('aria-pressed')";
    let before = browser.run(&format!("return {pressed}"));
    browser.click("#lines li .gap");
    browser.until(&format!("{pressed} !== '{}'", before.as_str().unwrap()));
    browser.until_text("1 lines are annotated");
    let said = file();
    assert_eq!(said.lines().count(), 1);
    browser.click("#undo");
    browser.until_text("0 lines are annotated");
    assert_eq!(file(), "");

    // The same by keys: the first gap, a boundary, the next line, "it is right".
    let press = |key: &str| {
        let event = format!("new KeyboardEvent('keydown', {{ key: '{key}', bubbles: true }})");
        browser.run(&format!("document.activeElement.dispatchEvent({event})"));
    };
    let is_at = |gap: u32| {
        let gap = format!("document.activeElement.matches('li.current .gap[data-gap=\"{gap}\"]')");
        browser.run(&format!("return {gap}")) == true
    };
    press("ArrowRight");
    assert!(is_at(2));
    press("ArrowLeft");
    assert!(is_at(1));
    browser.run("document.activeElement.click()"); // as space and enter do on a button
    browser.until_text("1 lines are annotated");
    assert_eq!(file(), said);
    assert!(
        browser.run("return document.activeElement.matches('li.current .gap')") == true,
        "the caret stays"
    );
    for n in 2..=12 {
        press("n");
        press("r");
        browser.until_text(&format!("{n} lines are annotated"));
    }
    press("u");
    browser.until_text("11 lines are annotated");
    picture(&browser, "annotate.png");

    // Two tabs and a reload: all that was said is there.
    let kept = file();
    browser.go(&url);
    browser.until_text("Ready.");
    assert_eq!(browser.run("return document.querySelectorAll('li.said').length"), 11);
    assert_eq!(file(), kept);

    // A word shows its lines; what is learned is shown.
    browser.click("#words button");
    browser.until_text("Lines with ");
    browser.click("#learn");
    browser.until_text("Learned in ");
    browser.until_text("lines have changed");
    picture(&browser, "annotate-learned.png");
    browser.look(390, 844, true);
    picture(&browser, "annotate-phone.png");
    let wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth";
    assert!(browser.run(&format!("return {wide}")) == false, "a phone has to scroll sideways");
}
