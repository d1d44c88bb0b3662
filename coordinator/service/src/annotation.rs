//! Annotation of the lines of a result on a page, which shows what is learned from them: for `grammaton annotate`, and for the pages of a service.
//!
//! ```text
//! GET  …/               the page, its style and its script
//! GET  …/state          all lines, with their boundaries and probabilities, and which are suggested
//! POST …/annotations    a line is annotated, or no longer: the file is written before the answer
//! POST …/learned        a field learns from the file; answers with the new state
//! GET  …/segmented.txt  the text as it is segmented now
//! GET  …/annotated.txt  the file of annotations
//! ```
//!
//! An answer of status 202 says that work goes on, and that the page is to ask again; each request may be repeated.
//!
//! Invariants: all that was said is in the file of annotations, which is read anew for every request: the program may be killed at any time, the file
//! edited, and two pages be open. Of two changes of a line the last one counts; the answer to a page that did not know the version of the file says so.
//! `maud` and the script escape all text of lines.

pub mod page;
pub mod session;
