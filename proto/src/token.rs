//! Bearer tokens: who may join a fleet.
//!
//! In: a file, or the environment variable [`TOKEN_VARIABLE`]. Clients send the token as `authorization: Bearer …`.
//! Invariants: a token is never printed, not even by `Debug`, and is compared in constant time.

use std::path::{Path, PathBuf};

use subtle::ConstantTimeEq;
use tonic::metadata::{Ascii, MetadataValue};

use crate::secret;

/// Environment variable that holds the token if no file is given.
pub const TOKEN_VARIABLE: &str = "GRAMMATON_TOKEN";

/// A secret that coordinator and workers share.
#[derive(Clone)]
pub struct Token(String);

/// An error in reading a token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read.
    #[error("{}: cannot read the token: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The token is empty, or has characters that a header cannot hold.
    #[error("{origin}: a token must be visible ASCII without spaces, at least one character")]
    Unusable {
        /// The file or variable.
        origin: String,
    },
}

impl Token {
    /// Makes a token of `secret` without surrounding white space; `origin` names its source in errors.
    pub fn new(secret: &str, origin: &str) -> Result<Token, TokenError> {
        let secret = secret.trim();
        if secret.is_empty() || !secret.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError::Unusable { origin: origin.into() });
        }
        Ok(Token(secret.into()))
    }

    /// Reads the token from `file` if it is given, else from [`TOKEN_VARIABLE`] if it is set; else returns `None`.
    pub fn find(file: Option<&Path>) -> Result<Option<Token>, TokenError> {
        if let Some(path) = file {
            let text =
                secret::read(path).map_err(|source| TokenError::Unreadable { path: path.into(), source })?;
            return Token::new(&text, &path.display().to_string()).map(Some);
        }
        match std::env::var(TOKEN_VARIABLE) {
            Ok(secret) => Token::new(&secret, TOKEN_VARIABLE).map(Some),
            Err(std::env::VarError::NotPresent) => Ok(None),
            Err(std::env::VarError::NotUnicode(_)) => {
                Err(TokenError::Unusable { origin: TOKEN_VARIABLE.into() })
            }
        }
    }

    /// The secret itself, to be passed on and never printed.
    pub fn secret(&self) -> &str {
        &self.0
    }

    /// Value of the `authorization` header, marked as sensitive so that libraries do not log it.
    pub fn header(&self) -> MetadataValue<Ascii> {
        let header = self.bearer().parse();
        let mut header: MetadataValue<Ascii> = header.expect("visible ASCII is what headers are made of");
        header.set_sensitive(true);
        header
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.0)
    }

    /// Whether `header` carries this token; the time does not depend on where the two differ.
    pub fn admits(&self, header: Option<&str>) -> bool {
        let expected = self.bearer();
        header.is_some_and(|header| expected.as_bytes().ct_eq(header.as_bytes()).into())
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_token_is_admitted() {
        let token = Token::new(" s3cret\n", "test").unwrap();
        assert!(token.admits(Some("Bearer s3cret")));
        for other in [None, Some(""), Some("Bearer s3cre"), Some("s3cret"), Some("Bearer s3cret ")] {
            assert!(!token.admits(other), "{other:?}");
        }
        assert_eq!(format!("{token:?}"), "Token(..)");
        assert_eq!(token.header().to_str().unwrap(), "Bearer s3cret");
        assert!(!format!("{:?}", token.header()).contains("s3cret"));
    }

    #[test]
    fn an_empty_token_is_refused() {
        let error = Token::new(" \n", "token.txt").unwrap_err();
        assert!(error.to_string().starts_with("token.txt: "), "{error}");
    }
}
