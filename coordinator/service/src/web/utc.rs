//! Formatting of times, in UTC.

use jiff::Timestamp;
use maud::{Markup, html};

use crate::record::Millis;

/// Formats date, hour and minute, as an element.
pub fn minute(at: Millis) -> Markup {
    let at = timestamp(at);
    let (machine, text) = (at.strftime("%Y-%m-%dT%H:%MZ"), at.strftime("%Y-%m-%d %H:%M"));
    html! { time datetime=(machine) { (text) } }
}

/// Formats hour, minute and second.
pub fn second(at: Millis) -> String {
    timestamp(at).strftime("%H:%M:%S").to_string()
}

/// Converts to a timestamp, at most the last one of the calendar, in the year 9999.
fn timestamp(Millis(millis): Millis) -> Timestamp {
    let millis = i64::try_from(millis).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_date_of_the_calendar() {
        for (seconds, date) in [
            (0, "1970-01-01 00:00"),
            (951_782_399, "2000-02-28 23:59"),
            (951_782_400, "2000-02-29 00:00"),
            (951_868_800, "2000-03-01 00:00"),
            (1_000_000_000, "2001-09-09 01:46"),
            (1_709_164_800, "2024-02-29 00:00"),
            (1_798_761_600, "2027-01-01 00:00"),
            (4_107_542_399, "2100-02-28 23:59"),
            (4_107_542_400, "2100-03-01 00:00"),
        ] {
            let html = minute(Millis(seconds * 1000 + 999)).into_string();
            let machine = format!("{}Z", date.replace(' ', "T"));
            assert_eq!(html, format!("<time datetime=\"{machine}\">{date}</time>"));
        }
        assert_eq!(second(Millis(1_000_000_000_000)), "01:46:40");
        assert_eq!(second(Millis(86_399_999)), "23:59:59");
    }

    #[test]
    fn times_beyond_the_calendar_are_its_last() {
        assert!(minute(Millis(u64::MAX)).0.contains(">9999-12-30 "));
    }
}
