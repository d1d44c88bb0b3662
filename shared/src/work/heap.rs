//! Bytes that answers take on the heap until they are taken in.

/// Bytes of a list whose elements hold nothing more.
pub fn flat<T>(values: &[T]) -> usize {
    size_of_val(values)
}

/// Bytes of a list whose elements hold as much more as `more` says.
pub fn rows<T>(values: &[T], more: impl Fn(&T) -> usize) -> usize {
    flat(values) + values.iter().map(more).sum::<usize>()
}
