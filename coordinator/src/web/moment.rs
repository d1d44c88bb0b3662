//! Moments as people read them, in UTC.

use crate::service::record::Millis;

/// Day and minute.
pub fn minute(at: Millis) -> String {
    let (year, month, day) = date(at.0 / DAY);
    let (hour, minute) = (at.0 % DAY / 3_600_000, at.0 % 3_600_000 / 60_000);
    let iso = format!("{year:04}-{month:02}-{day:02}");
    format!("<time datetime=\"{iso}T{hour:02}:{minute:02}Z\">{iso} {hour:02}:{minute:02}</time>")
}

/// Second of the day.
pub fn second(at: Millis) -> String {
    let of_day = at.0 % DAY / 1000;
    format!("{:02}:{:02}:{:02}", of_day / 3600, of_day / 60 % 60, of_day % 60)
}

const DAY: u64 = 86_400_000;

/// Year, month and day of so many days after 1970-01-01; months are counted from March, so that leap days come last
/// (Hinnant 2013, "chrono-compatible low-level date algorithms", `civil_from_days`).
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!(date(0), (1970, 1, 1));
        assert_eq!(date(11_016), (2000, 2, 29));
        assert_eq!(date(11_017), (2000, 3, 1));
        assert_eq!(date(20_819), (2027, 1, 1));
        assert!(minute(Millis(1_000_000_000_000)).contains(">2001-09-09 01:46<"));
        assert_eq!(second(Millis(1_000_000_000_000)), "01:46:40");
    }
}
