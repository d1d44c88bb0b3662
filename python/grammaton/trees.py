"""Trees: constituents in brackets, and heads of words. Both draw themselves in a notebook."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import _lib

# The drawings of reports, in the colour of the text around them.
_STYLE = (
    "<style>svg.tree .edge{fill:none;stroke:currentColor;stroke-opacity:.45;stroke-width:1.3}"
    "svg.tree text{font:12px system-ui,sans-serif;fill:currentColor}svg.tree .leaf{font-size:15px}</style>"
)
_ESCAPED = "()%'\\"


@dataclass(frozen=True, repr=False)
class Tree:
    """A tree of constituents; a leaf has no children.

    >>> tree = Tree.parse("(Sentence (Word h i))")
    >>> tree
    Tree.parse('(Sentence (Word h i))')
    >>> tree.leaves
    ['h', 'i']
    >>> print(tree)
    (Sentence (Word h i))
    >>> tree.to_tuple()
    ('Sentence', [('Word', ['h', 'i'])])
    """

    label: str
    children: tuple[Tree, ...] = ()
    #: Labels of the nodes that a drawing shows besides the root and the leaves; `None`: all.
    drawn: frozenset[str] | None = field(default=None, compare=False, repr=False)
    #: What a drawing has between neighbouring leaves.
    separator: str = field(default=" ", compare=False, repr=False)

    @staticmethod
    def parse(text: str, *, drawn: frozenset[str] | None = None, separator: str = " ") -> Tree:
        """Reads brackets; `( ) % ' \\` and white space inside of names are preceded by a backslash. `ValueError` if they are unbalanced."""
        nodes: list[tuple[str | None, list[Tree]]] = [(None, [])]
        for token in _tokens(text):
            if token == "(":
                nodes.append((None, []))
            elif token == ")" and len(nodes) > 1:
                label, children = nodes.pop()
                nodes[-1][1].append(Tree(label or "", tuple(children), drawn, separator))
            elif token == ")":
                raise ValueError(f"a closing bracket too many in the tree {text!r}")
            elif len(nodes) > 1 and nodes[-1][0] is None and not nodes[-1][1]:
                nodes[-1] = (token[1:], [])
            else:
                nodes[-1][1].append(Tree(token[1:], (), drawn, separator))
        if len(nodes) != 1 or len(nodes[0][1]) != 1:
            raise ValueError(f"expected one tree in balanced brackets, found {text!r}")
        return nodes[0][1][0]

    @property
    def leaves(self) -> list[str]:
        """Labels of the leaves, left to right."""
        return [node.label for node in self if not node.children]

    def __iter__(self) -> Iterator[Tree]:
        """All nodes, parents before children, left to right."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))

    def __str__(self) -> str:
        written: list[str] = []
        waiting: list[Tree | str] = [self]
        while waiting:
            node = waiting.pop()
            if isinstance(node, str):
                written.append(node)
            elif not node.children:
                written.append(" " + _escape(node.label))
            else:
                written.append(" (" + _escape(node.label))
                waiting.append(")")
                waiting.extend(reversed(node.children))
        return "".join(written).lstrip()

    def __repr__(self) -> str:
        return f"Tree.parse({str(self)!r})" if self.children else f"Tree({self.label!r})"

    def to_tuple(self) -> tuple[str, list[Any]]:
        """Nested `(label, children)` with leaves as text."""
        found = self._built(lambda label, children: (label, children))
        return found if isinstance(found, tuple) else (found, [])

    def to_nltk(self) -> Any:
        """The tree as an `nltk.Tree`; NLTK has to be installed."""
        import nltk

        return nltk.Tree(self.label, []) if not self.children else self._built(nltk.Tree)

    def _built(self, node_of: Callable[[str, list[Any]], Any]) -> Any:
        """The tree with nodes that `node_of` makes of label and children, and with leaves as text."""
        built: dict[int, Any] = {}
        # Children are built before their parents.
        for node in reversed(list(self)):
            built[id(node)] = node_of(node.label, [built[id(child)] for child in node.children]) if node.children else node.label
        return built[id(self)]

    def _repr_html_(self) -> str:
        try:
            keep = None if self.drawn is None else sorted(self.drawn)
            return _STYLE + _lib.tree_svg(str(self), self.separator, keep)
        except ValueError:  # too deep
            return f"<pre>{html.escape(str(self))}</pre>"


@dataclass(frozen=True)
class Dependencies:
    """A sentence with heads: for each word the number of its head from 1, or 0 for the root.

    >>> sentence = Dependencies(("dogs", "bark"), ("NOUN", "VERB"), (2, 0))
    >>> sentence.to_tuples()
    [('dogs', 'NOUN', 2), ('bark', 'VERB', 0)]
    >>> sentence.spacy_heads()
    [1, 1]
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]
    heads: tuple[int, ...]

    def to_tuples(self) -> list[tuple[str, str, int]]:
        """Rows of word, tag and head."""
        return list(zip(self.words, self.tags, self.heads, strict=True))

    def spacy_heads(self) -> list[int]:
        """Heads as spaCy takes them: counted from 0, the root its own head."""
        return [head - 1 if head else at for at, head in enumerate(self.heads)]

    def to_spacy(self, vocab: Any) -> Any:
        """The sentence as a `spacy.tokens.Doc`, with tags and heads, and `dep` as the label of every head; spaCy has to be installed."""
        from spacy.tokens import Doc

        return Doc(vocab, words=list(self.words), tags=list(self.tags), heads=self.spacy_heads(), deps=["dep"] * len(self.words))

    def __str__(self) -> str:
        rows = enumerate(self.to_tuples(), 1)
        return "\n".join(f"{at}\t{word}\t_\t{tag}\t_\t_\t{head}\t_\t_\t_" for at, (word, tag, head) in rows)

    def _repr_html_(self) -> str:
        return _lib.arcs_svg(list(self.words), list(self.tags), list(self.heads))


def read_conllu(lines: Sequence[str]) -> list[Dependencies | None]:
    r"""Sentences of CoNLL-U. Words without a head are left out, as punctuation that was removed; a sentence of nothing else is `None`, as one that was too
    long to be analysed.

    >>> rows = ["1\tgo\t_\tX\t_\t_\t0\t_\t_\t_", "2\t.\t_\tPUNCT\t_\t_\t_\t_\t_\t_", "3\tnow\t_\tY\t_\t_\t1\t_\t_\t_", ""]
    >>> read_conllu(rows)
    [Dependencies(words=('go', 'now'), tags=('X', 'Y'), heads=(0, 1))]
    >>> read_conllu(rows[1:2])
    [None]
    """
    sentences: list[Dependencies | None] = []
    rows: list[list[str]] = []
    for line in [*lines, ""]:
        columns = line.rstrip("\n").split("\t")
        if len(columns) >= 7 and columns[0].isdigit():
            rows.append(columns)
        elif not line.strip() and rows:
            kept = [row for row in rows if row[6].isdigit()]
            place = {row[0]: at for at, row in enumerate(kept, 1)}
            heads = tuple(place.get(row[6], 0) for row in kept)
            found = Dependencies(tuple(row[1] for row in kept), tuple(row[3] for row in kept), heads)
            sentences.append(found if kept else None)
            rows = []
    return sentences


def _tokens(text: str) -> Iterator[str]:
    """Brackets, and words with a space before them."""
    word, at = "", 0
    while at < len(text):
        letter = text[at]
        if letter == "\\" and at + 1 < len(text):
            at += 1
            word += text[at]
        elif letter in "()" or letter.isspace():
            if word:
                yield " " + word
            word = ""
            if letter in "()":
                yield letter
        else:
            word += letter
        at += 1
    if word:
        yield " " + word


def _escape(label: str) -> str:
    return "".join("\\" + letter if letter in _ESCAPED or letter.isspace() else letter for letter in label)
