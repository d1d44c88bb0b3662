"""Types of the keys of `train`. Made by `grammaton keys --python`; do not edit."""

from __future__ import annotations

import os
from typing import Any, Literal, TypedDict


class Keys(TypedDict, total=False):
    """Keys of a job file, which are arguments of `train`; `None` is the default."""

    kind: Literal["adaptor", "pcfg", "pcfg-la", "dmv"] | None
    """The kind of model: an adaptor grammar, a PCFG, a PCFG with latent annotations on a treebank, or the dependency model with valence over tags."""

    voters: list[str] | tuple[str, ...] | None
    """Further grammars made from the corpus. Each has chains of its own with the same settings, and their models vote with those of `grammar` (`mbr-vote`); the model that is written is of `grammar`."""

    voter_chains: int | None
    """Number of chains of each voter; 0: as many as `inference.restarts`, and half as many with `grammar = "auto"`."""

    baselines: list[Literal["tp", "mi", "dibs", "puddle"]] | tuple[Literal["tp", "mi", "dibs", "puddle"], ...] | None
    """Segmentations without training that vote too (`mbr-vote`): `puddle`, `dibs`, `tp`, `mi` of `grammaton eval baselines`. Each has the weight of all models, times the square of its agreement with what they vote for (F1 of segments), and with less where they are sure."""

    vowels: str | None
    """Vowels, with spaces between them, for a grammar with syllables; if empty, they are found by letters and their neighbours (Sukhotin 1962)."""

    inner_vowels: bool | None
    """Whether vowels with which hardly an utterance begins, though ten or more would if they began with any symbol, begin no word inside of one (see below)."""

    stress: str | None
    """Symbols that mark stress, with spaces between them, for a grammar with stress. A mark stands behind the nucleus of a stressed syllable: `bˈ` is no stressed syllable, `beˈt` is."""

    prefixes: str | os.PathLike[str] | None
    """File of known prefixes, one per line, which a grammar of morphemes gets as rules; its prefixes are not adapted then."""

    suffixes: str | os.PathLike[str] | None
    """File of known suffixes, likewise."""

    stems: str | os.PathLike[str] | None
    """File of known stems, one per line, which a grammar of morphemes gets as rules beside what it learns."""

    words: str | os.PathLike[str] | None
    """File of known words, one per line, which a grammar of utterances gets as rules beside what it learns."""

    cascade: int | None
    """Number of prefixes and of suffixes, the most used ones of a first run with `auto:morph15`, that the run knows (a *cascade*; Eskander, Rambow & Yang 2016); 0: no first run. The first run has a quarter of the chains and half the rounds."""

    adapted: list[str] | tuple[str, ...] | None
    """Tags, or the classes `noun`, `proper`, `verb`, whose constituents are adapted."""

    format: Literal["segmented", "tokens"] | None
    """Format of the lines. `segmented`: gold segmentation with marked words; `tokens`: symbols between spaces, without gold."""

    unit: Literal["char", "token", "grapheme", "ipa"] | None
    """Unit of the symbols of a segmented text. `char`: `yu want tu`; `grapheme`: the same, and combining marks belong to the character before them; `ipa`: segments of the IPA, with their modifiers, tones and tie bars; `token`: `y u | w a n t | t u`."""

    layout: Literal["text", "plain", "hex", "chat"] | None
    """Kind of the lines. `text`: sentences, with a notice if a sample looks like something else; `plain`: sentences, whatever they look like; `hex`: hexadecimal code points, as MorphAGram writes words; `chat`: a transcript in CHAT, whose speakers and codes are left out."""

    column: int | str | None
    """The column with the sentence, if tabs separate columns: its number from 1, or its name in the first line. If empty, a tab is white space."""

    counts: Literal["none", "ones", "log", "full"] | None
    """Meaning of a number at the begin or end of each line, or in another column than `column`. `none`: there is none; `ones`: it is left out, and a sentence occurs once; `full`: the sentence occurs as often; `log`: log₂(n + 1) times, rounded. Scores count each line once."""

    phone_separator: str | None
    """Separator of phones, such as `_` in `h_ə_l_oʊ`; words are then between spaces, unless `word_separator` is set. If empty, white space."""

    syllable_separator: str | None
    """Separator of syllables, such as `;esyll`, which is left out."""

    word_separator: str | None
    """Separator of words, such as `;eword`. If empty, the one of the unit."""

    normalise: Literal["none", "nfc", "nfkc"] | None
    """Unicode normal form of the text: `nfc` makes one character of a letter and its mark, `nfkc` also replaces ligatures and full-width letters."""

    lowercase: bool | None
    """Whether the text is read in lower case."""

    punctuation: Literal["keep", "drop", "boundary"] | None
    """Punctuation, as Unicode defines it: `keep` it as symbols, `drop` it, or read it as a word `boundary` of the gold segmentation."""

    digraphs: list[str] | tuple[str, ...] | None
    """Sequences of characters that are one symbol, as in `["sh", "ch"]`; the longest one wins."""

    on_unparsable: Literal["error", "skip"] | None
    """Sentences that the grammar cannot derive, or in too many ways, and of a treebank or of tagged sentences what cannot be read: an `error`, or `skip` them. Results have skipped sentences unsegmented, without an analysis."""

    max_symbols: int | None
    """Maximum length of a sentence, in symbols."""

    shard_symbols: int | None
    """Number of symbols in a shard, the unit of work, at most 4194304; 0: all sentences in one shard, with which `cvb` and `hastings` are the published algorithms."""

    gold: str | os.PathLike[str] | None
    """Gold segmentation, to score with, in place of the boundaries of the corpus: segmented sentences of the corpus, or words with their analyses, as in `gladly<TAB>glad ly, gladly`, of which the best counts. Sentences that it lacks are not scored."""

    annotated: str | os.PathLike[str] | None
    """Sentences of the corpus with their segmentation, in the forms of `gold`, from which a conditional random field learns to correct what the model finds (`segmentation.crf.txt`). They are not scored."""

    boundary_mark: str | None
    """Symbol that marks a boundary in a line of `annotated` of which not all is known: in `un|likely` one position is, and of the others nothing. Lines without a mark are known whole."""

    joined_mark: str | None
    """Symbol that marks a position without a boundary in a line of `annotated`, as in `li~kely`; otherwise as `boundary_mark`."""

    brackets: str | os.PathLike[str] | None
    """Sentences of the corpus with constituents that are known, as `(the dog) sees (NP the cat)`: their trees are those without constituents that cross a bracket, and with one over each bracket that has the name of a nonterminal, of this name."""

    held_out: str | os.PathLike[str] | None
    """Held-out sentences, to measure with: a file in the format of the corpus. Of `dmv` it may be the corpus itself, and then heads of its sentences of every length are found, and nothing is measured."""

    held_out_share: float | None
    """Share of the corpus that is held out, if `held_out` is empty."""

    held_out_seed: int | None
    """Seed of the choice of the held-out share; separate from `inference.seed`, so that runs with different seeds measure with the same sentences."""

    test: str | os.PathLike[str] | None
    """Test sentences, which are scored at the end and affect neither training nor the choice of a round, run or setting: a file in the format of the corpus."""

    max_length: int | None
    """Maximum number of words: longer trees are skipped, and longer sentences of a dependency model are not used in training."""

    tags: Literal["upos", "xpos"] | None
    """The column of the tags in a CoNLL-U file."""

    keep_punctuation: bool | None
    """Whether punctuation is kept. If not, its dependents are attached to its nearest ancestor that is kept."""

    heads: Literal["score", "constrain"] | None
    """Use of the heads that the corpus and held-out sentences have: to `score` with, if all words have one, or to `constrain` trees to those with these heads; words whose head is `_` may then have any."""

    unknown_threshold: int | None
    """Words that occur at most this often are unknown."""

    unknown: Literal["generic", "signatures"] | None
    """Classes of unknown words: by capitals, digits and suffixes, or one class."""

    adaptor: Literal["pitman-yor", "dirichlet"] | None
    """The prior over an adapted nonterminal's strings; `dirichlet` has discount 0."""

    truncation: int | None
    """Number of strings of each adapted nonterminal."""

    rho: float | None
    """Penalty on the length of candidate strings in their ranking (Cohen, Blei & Smith 2010, Eq. 3); a bonus if negative."""

    max_rounds: int | None
    """Maximum number of rounds; 0: the start of a PCFG is the result."""

    tolerance: float | None
    """Relative change of the bound below which training has converged. If not set, 0.00001, and 0 with `pcfg-la`."""

    seed: int | None
    """Seed of all random choices except the held-out share."""

    selection: Literal["bound", "sorted", "fixed"] | None
    """Choice and order of the strings of sticks during training. `bound`: strings whose removal raises the bound are dropped, and sticks are sorted; `sorted`: sticks are only sorted; `fixed`: the paper's setting."""

    drop_share: float | None
    """Maximum share of a stick's strings that a round may drop."""

    fit: list[Literal["concentration", "discount", "alpha"]] | tuple[Literal["concentration", "discount", "alpha"], ...] | None
    """Hyper-parameters that are fitted; `[]`: none. Of `hastings` only the concentration is; the discount only with the Pitman–Yor adaptor."""

    concentration: float | None
    """Initial concentration of a stick or restaurant, unless the grammar gives it."""

    discount: float | None
    """Initial discount of a stick or restaurant, unless the grammar gives it."""

    max_string: int | None
    """Maximum length of a candidate string, or with `<substrings>` of a substring, in symbols."""

    grow_from: int | None
    """Number of strings of a stick in the first round, if sticks grow; 0: all from the start."""

    grow_by: int | None
    """Number of strings added to each stick after every round."""

    restarts: int | None
    """Number of runs from different starts, of which the best is kept; for a sampler, number of chains."""

    jitter: float | None
    """Maximum |ln| of the noise on the initial weights of runs after the first, and with `start = "jitter"` of the first too."""

    alpha: float | None
    """Pseudo-count of every rule and string, instead of the grammar's; with `pcfg-la`, of every split rule (0.01 if not set)."""

    start: Literal["uniform", "jitter", "noise", "trees", "incremental", "model", "harmonic"] | None
    """Start of training. `uniform`: equal weights; `jitter` and `noise`: with much or little noise; `trees`: counts of given trees, or with `hastings` these trees; `incremental`: trees drawn one after the other; `model`: counts of a trained model, or with `hastings` its most probable trees; `harmonic`: weights of heads fall with distance (Klein & Manning 2004)."""

    start_from: str | os.PathLike[str] | None
    """File of bracketed trees, one per line, or a model, to start from."""

    noise: float | None
    """Maximum relative noise on the weights of the first round."""

    anneal_from: float | None
    """Temperature of the first round."""

    anneal_to: float | None
    """Temperature at the end of annealing and afterwards."""

    anneal_rounds: int | None
    """Number of rounds of annealing; 0: no annealing."""

    burn_in: float | None
    """Share of a sampler's rounds before the first kept sample."""

    keep_every: int | None
    """Number of rounds between kept samples."""

    sweeps: int | None
    """Number of sweeps of a round."""

    relabel: bool | None
    """Whether a sweep resamples the labels of tables."""

    gamma_shape: float | None
    """Shape of the Gamma prior of concentrations."""

    gamma_scale: float | None
    """Scale of the Gamma prior of concentrations."""

    patience: int | None
    """Number of measurements on held-out sentences (every `output.score_every` rounds) without improvement after which a run ends; 0: unlimited."""

    sample_shards: int | None
    """Number of shards of sentences in the sample of a round."""

    first_rounds: int | None
    """Number of rounds with the initial weights; 0: one pass over the corpus."""

    forget_power: float | None
    """Exponent κ of the learning rate (round + τ)^−κ."""

    forget_delay: float | None
    """Delay τ of the learning rate (round + τ)^−κ."""

    select_every: int | None
    """Number of rounds between changes of the strings in use; 0: one pass over the corpus."""

    subtypes: int | None
    """Number of subtypes of every label."""

    harmonic_offset: float | None
    """Offset in the weight of a head at distance d: 1 / (d + offset)."""

    harmonic_per_child: bool | None
    """Whether the weights of a word's heads are scaled to sum to 1 minus the root's share."""

    harmonic_stops: Literal["expected", "fixed", "even"] | None
    """Initial probabilities of stopping: from the expected numbers of children, from `harmonic_stop`, or 1/2 each."""

    harmonic_stop: list[float] | tuple[float, float] | None
    """Probabilities of stopping before the first child and before further children."""

    harmonic_smoothing: float | None
    """Number added to every count of the harmonic start."""

    prior: Literal["dirichlet", "logistic-normal"] | None
    """The prior of the rules of a nonterminal: Dirichlet, or a fitted logistic-normal (Cohen, Gimpel & Smith 2008; with `vb`)."""

    families: str | os.PathLike[str] | None
    """Families of tags whose attachments the initial prior correlates: `none`, the built-in families of the Penn Treebank (`ptb`) or of universal tags (`ud`), or a file with lines `family: TAG TAG …`."""

    estimate: Literal["softmax", "raw"] | None
    """Point estimate for decoding after training: softmax(μ), or e^μ, which need not sum to 1."""

    backoff: float | None
    """Pseudo-counts of the children of a head on a side with extended valence (Headden, Johnson & McClosky 2009): stops tell no child, one, and more apart, and the outermost child has probabilities of its own; the priors of both kinds of children have the proportions of all together. 0: the model of Klein & Manning (2004)."""

    rules: dict[str, Any] | None
    """Rules that say which dependency trees are probable, before training and beside it: `none`, those of universal tags (`ud`), or a list of tables with a `weight` and `head`, `child`, `side`; or `leaf`; or `root`; or `longest_arc`; or `across`. Each multiplies a tree by e^(`rules_weight` · `weight`) as often as the tree obeys it, in every round and when sentences are parsed."""

    rules_weight: float | None
    """Strength of the rules."""

    components: list[dict[str, Any]] | tuple[dict[str, Any], ...] | None
    """Components that are mixed with the model itself (`base`) during training, each restricted to some of its trees (Cohen & Smith 2009): names, or tables with `name`, `roots`, `longest_arc`, `phrases`, `forbid`."""

    mixture: list[str] | tuple[str, ...] | None
    """Constraints on the weights of `base` and the components: `["right-attach = short-dep", "base >= 0.5"]`."""

    base_from: float | None
    """Maximum weight of the base in the first round."""

    base_by: float | None
    """Increase of the base's maximum weight in every later round."""

    base_to: float | None
    """Final maximum weight of the base."""

    title: str | None
    """Title of the report; if empty, the name of the corpus."""

    decoders: list[Literal["viterbi", "mbr", "mbr-tree", "mbr-arcs"]] | tuple[Literal["viterbi", "mbr", "mbr-tree", "mbr-arcs"], ...] | None
    """Decoders whose output is scored and written: for text `viterbi`, `mbr` and `mbr-tree`; for dependencies `viterbi` and `mbr-arcs` (highest expected number of correct heads)."""

    segments: list[str] | tuple[str, ...] | None
    """Nonterminals whose constituents are the segments; if empty, `Word`."""

    models: Literal["all", "one"] | None
    """Models in `model.bin`: those of `all` chains, which vote on new text (eight at most, and beside the first one 256 MiB), or the best `one`."""

    threshold: float | None
    """Share of the samples that must have a boundary for it to be in a further segmentation, `boundary-vote`, which is the recommended one; the lower, the more boundaries. 0: without it, the models vote on segments (`mbr-vote`)."""

    contexts: bool | None
    """Boundaries by the symbols around them, as these are learned from what samples and models find in all sentences; of new text as well. They vote, with as much weight as models and baselines together; with a `threshold` they have a segmentation of their own, `contexts`, which is the recommended one: boundaries whose probability is at least that. Where all that vote are unsure, as in languages with many affixes, they have one as well, from .5 on, learned with how sentences begin and end."""

    score_every: int | None
    """Number of rounds between evaluations on gold or held-out sentences; 0: only at the end."""

    checkpoints: str | os.PathLike[str] | None
    """Folder or URL (`s3://`, `gs://`, `az://`) of the checkpoints; if empty, `checkpoints` in `dir`."""

    checkpoint_seconds: float | None
    """Seconds between checkpoints; 0: a checkpoint after every round."""

    keep_checkpoints: int | None
    """Number of latest checkpoints to keep, besides the one with the best bound; 0: no checkpoints."""

    sweep: dict[str, Any] | list[dict[str, Any]] | None
    """Lists of values of keys, whose combinations are trained."""
