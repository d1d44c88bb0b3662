//! Streams that end when the token of their client is removed.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio_stream::Stream;

use crate::access::{Access, Role};

/// A stream that ends when its client's token is removed, with a last item if there is one.
pub struct Revocable<S: Stream> {
    stream: Pin<Box<S>>,
    last: Option<S::Item>,
    /// The removal of the token; `None` once the stream has ended.
    revoked: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl<S: Stream> Revocable<S> {
    /// `stream`, for the client with this `authorization` header, as long as it has the role `needed`; then `last`.
    pub fn new(
        stream: S,
        access: &Access,
        header: Option<&str>,
        needed: Role,
        last: Option<S::Item>,
    ) -> Revocable<S> {
        let (access, header) = (access.clone(), header.map(str::to_owned));
        let revoked = async move { access.revoked(header.as_deref(), needed).await };
        Revocable { stream: Box::pin(stream), last, revoked: Some(Box::pin(revoked)) }
    }
}

impl<S: Stream> Stream for Revocable<S>
where
    S::Item: Unpin,
{
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let Some(revoked) = &mut self.revoked else { return Poll::Ready(None) };
        if revoked.as_mut().poll(context).is_ready() {
            self.revoked = None;
            return Poll::Ready(self.last.take());
        }
        self.stream.as_mut().poll_next(context)
    }
}

#[cfg(test)]
mod tests {

    use tokio_stream::StreamExt as _;

    use super::*;
    use crate::access::{Tokens, line};

    #[tokio::test]
    async fn a_stream_ends_with_its_token_and_others_go_on() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (ann, bob) = (line("ann", Role::Read, "one"), line("bob", Role::Read, "two"));
        std::fs::write(&file, format!("{ann}{bob}")).unwrap();
        let access = Access::Roles(Tokens::read(file.path()).unwrap());
        let stream = |header| {
            let forever = tokio_stream::iter([1]).chain(tokio_stream::pending());
            Revocable::new(forever, &access, Some(header), Role::Read, Some(-1))
        };
        let (mut of_ann, mut of_bob) = (stream("Bearer one"), stream("Bearer two"));
        assert_eq!((of_ann.next().await, of_bob.next().await), (Some(1), Some(1)));
        std::fs::write(&file, &bob).unwrap();
        assert_eq!((of_ann.next().await, of_ann.next().await), (Some(-1), None));
        let more = tokio::time::timeout(std::time::Duration::from_millis(20), of_bob.next()).await;
        assert!(more.is_err(), "{more:?}");
        assert_eq!(stream("Bearer one").next().await, Some(-1));
    }
}
