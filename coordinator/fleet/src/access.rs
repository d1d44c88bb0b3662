//! Access control: tokens, each with a name and a role.
//!
//! In: a file with one token per line (name, role, SHA-256 of the secret), or one secret with all roles, or nothing, if only this
//! machine can connect. Out: for the `authorization` header of a request, an [`Identity`], or the reason of a refusal. Invariants: no
//! secret is kept or printed, and the time of a refusal does not depend on how close a secret is to a valid one. The file is read again
//! when it changes, so that tokens are added and removed without a restart.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};
use basics::nearest::nearest;
use proto::token::Token;
use sha2::{Digest, Sha256};
use tokio::sync::watch;

/// Role of a token.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Role {
    /// Computing tasks, for workers.
    Work,
    /// Viewing jobs and downloading their results.
    Read,
    /// The rights of [`Role::Read`], and submitting, cancelling, resuming and deleting one's own jobs.
    Submit,
    /// The rights of [`Role::Submit`], for the jobs of all users.
    Operate,
}

impl Role {
    /// All roles with their names.
    const NAMES: [(&'static str, Role); 4] =
        [("work", Role::Work), ("read", Role::Read), ("submit", Role::Submit), ("operate", Role::Operate)];

    /// Whether this role includes `needed`. The role of workers includes no other, and no other includes it.
    pub fn allows(self, needed: Role) -> bool {
        match needed {
            Role::Work => self == Role::Work,
            _ => self >= needed,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Role::NAMES.iter().find(|(_, role)| role == self).map_or("", |(name, _)| name);
        out.write_str(name)
    }
}

impl std::str::FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Role, String> {
        let names = Role::NAMES.map(|(name, _)| name);
        let found = Role::NAMES.iter().find(|(name, _)| *name == text);
        found.map(|&(_, role)| role).ok_or_else(|| match nearest(text, names) {
            Some(name) => format!("\"{text}\" is not a role; did you mean \"{name}\"?"),
            None => format!("\"{text}\" is not a role; the roles are {}", names.join(", ")),
        })
    }
}

/// Identity of a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Name of the token.
    pub name: String,
    /// Role of the token; `None`: all roles.
    role: Option<Role>,
}

impl Identity {
    /// An identity with all roles.
    pub fn anyone(name: &str) -> Identity {
        Identity { name: name.to_owned(), role: None }
    }

    /// Whether the identity has the role `needed`.
    pub fn may(&self, needed: Role) -> bool {
        self.role.is_none_or(|role| role.allows(needed))
    }
}

/// Reason of a refusal.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Denied {
    /// There is no token.
    #[error("a token is needed; give it with --token-file FILE, or in {}", proto::token::TOKEN_VARIABLE)]
    Missing,
    /// The token is unknown.
    #[error(
        "the token is not the coordinator's; give one with --token-file FILE, or in {}",
        proto::token::TOKEN_VARIABLE
    )]
    Unknown,
    /// Too many wrong tokens came from the same address.
    #[error("too many wrong tokens came from this address; try again in a minute")]
    TooMany,
    /// The token has another role.
    #[error("token \"{name}\" lacks the role {needed}, which this needs")]
    Role {
        /// Name of the token.
        name: String,
        /// The role needed.
        needed: Role,
    },
}

impl From<Denied> for tonic::Status {
    fn from(denied: Denied) -> tonic::Status {
        match denied {
            Denied::Missing | Denied::Unknown => tonic::Status::unauthenticated(denied.to_string()),
            Denied::TooMany => tonic::Status::resource_exhausted(denied.to_string()),
            Denied::Role { .. } => tonic::Status::permission_denied(denied.to_string()),
        }
    }
}

/// Source of access rights.
#[derive(Clone, Debug, Default)]
pub enum Access {
    /// Every client has all roles.
    #[default]
    Open,
    /// A client with this token has all roles.
    One(Token),
    /// Roles by token, from a file.
    Roles(Arc<Tokens>),
}

impl Access {
    /// The identity of a client with this `authorization` header, if it has the role `needed`.
    pub fn admit(&self, header: Option<&str>, needed: Role) -> Result<Identity, Denied> {
        let unknown = if header.is_some() { Denied::Unknown } else { Denied::Missing };
        let identity = match self {
            Access::Open => Identity::anyone("anyone"),
            Access::One(token) if token.admits(header) => Identity::anyone("anyone"),
            Access::One(_) => return Err(unknown),
            Access::Roles(tokens) => {
                let secret = header.and_then(|header| header.strip_prefix("Bearer "));
                secret.and_then(|secret| tokens.find(secret)).ok_or(unknown)?
            }
        };
        if !identity.may(needed) {
            return Err(Denied::Role { name: identity.name, needed });
        }
        Ok(identity)
    }

    /// Waits until a client with this `authorization` header does not have the role `needed` any more.
    pub async fn revoked(&self, header: Option<&str>, needed: Role) {
        let Access::Roles(tokens) = self else { return std::future::pending().await };
        let mut current = tokens.current.subscribe();
        while self.admit(header, needed).is_ok() {
            if current.changed().await.is_err() {
                return;
            }
        }
    }

    /// Whether clients must show a token.
    pub fn is_guarded(&self) -> bool {
        !matches!(self, Access::Open)
    }
}

/// The tokens of a file, which a thread reads again when it changes, so that requests never wait for a disk.
pub struct Tokens {
    path: PathBuf,
    current: watch::Sender<Vec<Entry>>,
}

/// Time from one look at the file to the next.
const LOOK: Duration = Duration::from_millis(300);

struct Entry {
    identity: Identity,
    sha256: [u8; 32],
}

impl fmt::Debug for Tokens {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Tokens({})", self.path.display())
    }
}

impl Tokens {
    /// Reads the file at `path`; an error names the wrong line. If it becomes unreadable or invalid later, the previous tokens stay.
    pub fn read(path: &Path) -> Result<Arc<Tokens>> {
        let mut seen = version(path);
        let tokens = Arc::new(Tokens { path: path.to_owned(), current: watch::Sender::new(load(path)?) });
        let (path, read) = (path.to_owned(), Arc::downgrade(&tokens));
        let body = move || {
            loop {
                std::thread::sleep(LOOK);
                let Some(tokens) = read.upgrade() else { return };
                let now = version(&path);
                if now.is_none() || now == seen {
                    continue;
                }
                seen = now;
                match load(&path) {
                    Ok(entries) => drop(tokens.current.send_replace(entries)),
                    Err(error) => tracing::warn!("{error:#}; keeping the previous tokens"),
                }
            }
        };
        std::thread::Builder::new().name("tokens".into()).spawn(body).context("cannot start a thread")?;
        Ok(tokens)
    }

    /// The identity with this secret.
    fn find(&self, secret: &str) -> Option<Identity> {
        // The time depends on digests alone, whose beginning a client cannot choose.
        let sha256: [u8; 32] = Sha256::digest(secret.as_bytes()).into();
        let current = self.current.borrow();
        current.iter().find(|entry| entry.sha256 == sha256).map(|entry| entry.identity.clone())
    }
}

fn load(path: &Path) -> Result<Vec<Entry>> {
    let place = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("{place}: cannot read the tokens"))?;
    parse(&text, &place.to_string())
}

/// Version of a file: its time and its size.
fn version(path: &Path) -> Option<(SystemTime, u64)> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.modified().ok()?, found.len()))
}

fn parse(text: &str, place: &str) -> Result<Vec<Entry>> {
    let mut entries: Vec<Entry> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let [name, role, digest] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            bail!(
                "{place}:{number}: expected a name, a role and the SHA-256 of a token; make the line with `grammaton token`"
            );
        };
        let role: Role = role.parse().map_err(|error| anyhow::anyhow!("{place}:{number}: {error}"))?;
        let Some(sha256) = unhex(digest) else {
            bail!(
                "{place}:{number}: expected the SHA-256 of a token, 64 hexadecimal digits; make the line with `grammaton token`"
            );
        };
        if entries.iter().any(|entry| entry.sha256 == sha256) {
            bail!("{place}:{number}: duplicate token; remove the line, or make another token");
        }
        entries.push(Entry { identity: Identity { name: name.to_owned(), role: Some(role) }, sha256 });
    }
    Ok(entries)
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(bytes)
}

/// The line of a tokens file for a secret.
pub fn line(name: &str, role: Role, secret: &str) -> String {
    let digest: String = Sha256::digest(secret.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{name} {role} {digest}\n")
}

/// 128 random bits, in hexadecimal.
pub fn secret() -> std::io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(lines: &[(&str, Role, &str)]) -> (Access, tempfile::NamedTempFile) {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text: String = lines.iter().map(|(name, role, secret)| line(name, *role, secret)).collect();
        std::fs::write(&file, format!("# tokens\n\n{text}")).unwrap();
        (Access::Roles(Tokens::read(file.path()).unwrap()), file)
    }

    #[test]
    fn each_role_is_for_its_own() {
        let all = [Role::Work, Role::Read, Role::Submit, Role::Operate];
        let allowed = |role: Role| all.map(|needed| role.allows(needed));
        assert_eq!(allowed(Role::Work), [true, false, false, false]);
        assert_eq!(allowed(Role::Read), [false, true, false, false]);
        assert_eq!(allowed(Role::Submit), [false, true, true, false]);
        assert_eq!(allowed(Role::Operate), [false, true, true, true]);
    }

    #[test]
    fn a_token_has_the_name_and_role_of_its_line() {
        let (access, _file) = access(&[("ann", Role::Submit, "s3cret"), ("node", Role::Work, "w0rk")]);
        let admit = |secret: &str, role| access.admit(Some(&format!("Bearer {secret}")), role);
        assert_eq!(admit("s3cret", Role::Read).unwrap().name, "ann");
        assert_eq!(
            admit("s3cret", Role::Operate).unwrap_err().to_string(),
            "token \"ann\" lacks the role operate, which this needs"
        );
        assert!(admit("w0rk", Role::Work).is_ok() && admit("w0rk", Role::Read).is_err());
        assert_eq!(access.admit(None, Role::Read), Err(Denied::Missing));
        for header in [Some("Bearer s3cre"), Some("s3cret"), Some("Bearer ")] {
            assert_eq!(access.admit(header, Role::Read), Err(Denied::Unknown), "{header:?}");
        }
        assert!(!format!("{access:?}").contains("s3cret"));
    }

    #[test]
    fn tokens_follow_the_token_file() {
        let (access, file) = access(&[("ann", Role::Read, "one")]);
        let admitted = |secret: &str| access.admit(Some(&format!("Bearer {secret}")), Role::Read).is_ok();
        assert!(admitted("one") && !admitted("two"));
        let rewrite = |text: String, seconds| {
            std::fs::write(&file, text).unwrap();
            let later = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
            std::fs::File::options().write(true).open(&file).unwrap().set_modified(later).unwrap();
        };
        let eventually = |is: &dyn Fn() -> bool| {
            while !is() {
                std::thread::sleep(LOOK / 10)
            }
        };
        rewrite(line("bob", Role::Read, "two"), 1);
        eventually(&|| !admitted("one") && admitted("two"));
        rewrite("half a li".into(), 2);
        std::thread::sleep(LOOK * 2);
        assert!(admitted("two"), "an invalid file changes nothing");
        rewrite(line("bob", Role::Work, "two"), 3);
        eventually(&|| !admitted("two"));
    }

    #[test]
    fn bad_lines_are_named() {
        let error = |text: &str| parse(text, "tokens").err().unwrap().to_string();
        assert!(error("ann submit").starts_with("tokens:1: expected a name"));
        assert!(
            error("\nann sumbit 00")
                .starts_with("tokens:2: \"sumbit\" is not a role; did you mean \"submit\"?")
        );
        assert!(error("ann read 00").starts_with("tokens:1: expected the SHA-256"));
        let twice = line("ann", Role::Read, "x") + &line("bob", Role::Operate, "x");
        assert!(error(&twice).starts_with("tokens:2: duplicate token"));
    }
}
