// SPDX-License-Identifier: GPL-2.0

//! Errors that tell which step failed and what can be done about it.

use std::fmt;

/// A step that failed.
#[derive(Debug)]
pub struct Error {
    step: String,
    why: String,
    hint: Option<String>,
}

/// The usual result.
pub type Result<T = ()> = std::result::Result<T, Error>;

impl Error {
    /// `step` failed, because of `why`.
    pub fn new(step: impl Into<String>, why: impl fmt::Display) -> Self {
        Self {
            step: step.into(),
            why: why.to_string(),
            hint: None,
        }
    }

    /// What the user can do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.step, self.why)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

/// Names the step that an error of the system belongs to.
pub trait Step<T> {
    /// The error as one of the step that `step` words.
    ///
    /// # Errors
    ///
    /// The one that `self` is.
    fn step<S: Into<String>>(self, step: impl FnOnce() -> S) -> Result<T>;
}

impl<T, E: fmt::Display> Step<T> for std::result::Result<T, E> {
    fn step<S: Into<String>>(self, step: impl FnOnce() -> S) -> Result<T> {
        self.map_err(|error| Error::new(step(), error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line() {
        let failed: std::result::Result<(), _> = Err("no such file");
        let error = failed.step(|| "opening X").unwrap_err();
        assert_eq!(error.to_string(), "opening X: no such file");
        assert_eq!(
            error.hint("load the module").to_string(),
            "opening X: no such file (load the module)"
        );
    }
}
