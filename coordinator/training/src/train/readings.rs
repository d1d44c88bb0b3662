//! The corpus as every decoder and whatever else decides reads it, scored and written, block by block.

use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::{Arc, mpsc};
use std::thread;

use anyhow::{Result, anyhow};
use fleet::{Map, Stage};
use grammaton::data::corpus::{Analyses, Corpus, Unit};
use grammaton::data::eval::segmentation::{Scorer, closest};
use grammaton::models::Model;
use grammaton::models::decode::{Decode, Decoded, Decoder};
use grammaton::models::segments::Segments;
use grammaton::saved::Segmenter;
use rayon::prelude::*;

use super::ballots::Ballots;
use super::deciders::Deciders;
use super::decodings::Decodings;
use super::found::Found;
use super::input::Input;
use super::plan::Plan;
use super::rounds::FinishedPoint;
use super::segment_lengths::SegmentLengths;
use super::sentence::{Reading, Sentence};
use super::text::Block;
use crate::boundary::{Boundary, BoundaryRow};
use crate::certainty::Certainty;
use crate::errors::{Counter, Errors};
use crate::input::segmented_file::Annotated;
use crate::job::Job;
use crate::lexicon;
use crate::metrics::{SAMPLE_AVERAGE, Scores, ScoresByDecoder, decoder_name, recommended};
use crate::outcome::{Decoding, Lines, Sample, Samples};

/// Sentences that are read and written together; their texts are in memory.
const SENTENCES: usize = 1 << 13;

/// Results of decoding.
#[derive(Default)]
pub struct Readings {
    /// Results of every decoder for each line; empty unless they are kept.
    pub decodings: Vec<Decoding>,
    /// Distinct segments of the recommended decoder; `None` without segments, and unless they are kept.
    pub lexicon: Option<Vec<lexicon::Entry>>,
    /// A table of the positions between symbols; `None` without segments, and unless it is kept.
    pub boundaries: Option<Lines>,
    /// How sure the boundaries are; `None` if their probabilities are unknown, and unless they are kept.
    pub certainty: Option<Certainty>,
    /// Errors of the recommended decoder; `None` without gold, and unless they are kept.
    pub errors: Option<Errors>,
    /// What decides on the segments of new text beside models.
    pub segmenter: Segmenter,
    /// Sentences to show.
    pub samples: Vec<Sample>,
    /// Against gold; empty without.
    pub scores: ScoresByDecoder,
    /// Notice that the segments are mostly single symbols, if they are.
    pub notice: Option<String>,
}

impl Readings {
    /// By `model`, which is that of `point`. The models of its chains vote with the `ballots`. What only a result that is written down has is there if it is `kept`.
    pub fn of(
        job: &Job,
        input: &Input,
        plan: &Plan,
        fleet: &dyn Map,
        (point, model): (&FinishedPoint, &Model),
        ballots: Ballots,
        kept: bool,
    ) -> Result<Readings> {
        let (text, decoders) = (&input.text, &job.output.decoders);
        let deciders = Deciders::of(job, input, plan, fleet, (point, model), ballots)?;
        let grammar = &plan.language()?.grammar.value;
        let labels: Vec<&str> = input.segments.iter().map(|&symbol| grammar.name(symbol)).collect();
        let names: Vec<&'static str> =
            decoders.iter().map(|&decoder| decoder_name(decoder)).chain(deciders.names()).collect();
        let best = recommended(names.iter().copied());
        let best = names.iter().position(|name| Some(*name) == best).unwrap_or_default();
        let by_decoders = decoders.iter().map(|decoder| decoder.gives_trees());
        let by_deciders = names[decoders.len()..].iter().map(|name| *name == SAMPLE_AVERAGE);
        let has_trees = by_decoders.chain(by_deciders).collect();
        let is_exact = kept && !deciders.has_samples() && !labels.is_empty();
        let reader = Reader { decoders, deciders, labels: &labels, has_trees, best, is_exact, kept };
        let unit = job.corpus.options().effective_unit();
        let annotated = input.annotated.as_ref().filter(|_| !labels.is_empty());
        let found = || {
            let header = if annotated.is_some() { BoundaryRow::HEADER } else { Boundary::HEADER };
            Found::new(&labels, unit, text.has_gold, header, &job.output.dir)
        };
        let found = (kept && !labels.is_empty()).then(found).transpose()?;
        let of_names = names.iter().copied().zip(reader.has_trees.iter().copied());
        let decodings = || Decodings::new(of_names, found, &job.output.dir);
        let mut written = kept.then(decodings).transpose()?;
        let mut scored = Scored::new(names.len(), annotated, unit);
        let parser = plan.parser(model, decoders, kept, is_exact)?;
        // As with any text that was not trained on, sentences may need strings that are not on the sticks.
        let of_held_out = plan.parser_with(
            model,
            Decode {
                weights: model.decoding_weights(),
                segments: model.segments.clone(),
                decoders: decoders.to_vec(),
                trees: true,
                spans: is_exact,
                open: true,
            },
        )?;
        let mut add = |parsed: Parsed| -> Result<()> {
            for part in parsed.sentences()?.chunks(SENTENCES) {
                let sentences: Vec<Sentence<'_>> =
                    part.par_iter().map(|decoded| reader.read(decoded)).collect::<Result<_>>()?;
                let write = || written.as_mut().map_or(Ok(()), |written| written.add(&sentences));
                rayon::join(write, || scored.add(&sentences, &reader)).0?;
            }
            Ok(())
        };
        // A block is written while the fleet parses the next one.
        thread::scope(|scope| {
            let (blocks, parsed) = mpsc::sync_channel(0);
            let writer = scope.spawn(move || parsed.into_iter().try_for_each(&mut add));
            let all = text.blocks_with_held_out(|places, shards, block, held_out| {
                let decoded = parser.parse(fleet, Stage::Decode, plan.shards(shards))?;
                let held_out = held_out.filter(|_| kept).map(|held_out| -> Result<_> {
                    let decoded = of_held_out.parse(fleet, Stage::Decode, held_out.shards.clone())?;
                    Ok((held_out.block.value()?, decoded))
                });
                let parsed = Parsed { places, block, decoded, held_out: held_out.transpose()? };
                blocks.send(parsed).map_err(|_| anyhow!("writing has ended"))
            });
            drop(blocks);
            // If writing has failed, that is why there are no more blocks.
            writer.join().unwrap_or_else(|panic| resume_unwind(panic)).and(all)
        })?;
        let (decodings, found) = match written {
            Some(written) => written.finish(text.n_lines)?,
            None => Default::default(),
        };
        let (lexicon, boundaries) = found.map(|found| found.finish(model)).unzip();
        let Scored { scorers, lengths, gold_lengths, errors, certainty, samples, .. } = scored;
        let is_scored = text.has_gold && !labels.is_empty();
        let scores = names.iter().zip(&scorers).filter(|_| is_scored);
        let scores =
            scores.map(|(&name, scorer)| (name.to_owned(), Scores::from(&scorer.scores()))).collect();
        let notice = (!labels.is_empty()).then(|| {
            let n_symbols = grammar.symbols.len() - grammar.n_nonterminals as usize;
            lengths.notice(names[0], n_symbols, text.has_gold.then_some(gold_lengths))
        });
        Ok(Readings {
            decodings,
            lexicon,
            certainty: boundaries.as_ref().map(|_| certainty),
            boundaries,
            errors: (kept && is_scored).then(|| errors.finish()),
            segmenter: if kept { reader.deciders.segmenter(job, text) } else { Segmenter::default() },
            samples: samples.chosen(),
            scores,
            notice: notice.flatten(),
        })
    }
}

/// A block, and what was found in it.
struct Parsed {
    /// Positions of its sentences among all.
    places: Range<usize>,
    block: Arc<Block>,
    /// By shard.
    decoded: Vec<Vec<Decoded>>,
    /// The held-out sentences of the same lines.
    held_out: Option<(Arc<Block>, Vec<Vec<Decoded>>)>,
}

/// A sentence that was decoded.
struct DecodedSentence<'t> {
    corpus: &'t Corpus,
    /// Its position in there.
    at: usize,
    /// Its position among all that are trained on; `None` if it is not.
    place: Option<usize>,
    /// `None` if it was skipped.
    decoded: Option<&'t Decoded>,
}

impl Parsed {
    /// The sentences of both blocks in the order of their lines.
    fn sentences(&self) -> Result<Vec<DecodedSentence<'_>>> {
        let Parsed { places, block, decoded, held_out } = self;
        let trained_on = block.by_sentence(decoded)?.into_iter().enumerate().zip(places.clone());
        let mut sentences: Vec<DecodedSentence<'_>> = trained_on
            .map(|((at, decoded), place)| DecodedSentence {
                corpus: &block.corpus,
                at,
                place: Some(place),
                decoded: Some(decoded),
            })
            .collect();
        if let Some((block, decoded)) = held_out {
            let held_out = block.by_sentence_in_shards(decoded).into_iter().enumerate();
            sentences.extend(held_out.map(|(at, decoded)| DecodedSentence {
                corpus: &block.corpus,
                at,
                place: None,
                decoded,
            }));
        }
        sentences.sort_by_key(|sentence| sentence.corpus.lines[sentence.at]);
        Ok(sentences)
    }
}

/// Reads sentences by all decoders and deciders.
struct Reader<'a> {
    decoders: &'a [Decoder],
    deciders: Deciders<'a>,
    /// Names of the nonterminals whose constituents are segments.
    labels: &'a [&'a str],
    /// By decoding, whether it has trees.
    has_trees: Vec<bool>,
    /// Position of the recommended decoding.
    best: usize,
    /// Whether the probabilities of segments come from the decoder.
    is_exact: bool,
    /// Whether probabilities are wanted.
    kept: bool,
}

impl Reader<'_> {
    fn read<'t>(&'t self, sentence: &DecodedSentence<'t>) -> Result<Sentence<'t>> {
        let Reader { decoders, deciders, labels, has_trees, .. } = self;
        let &DecodedSentence { corpus, at, place, decoded } = sentence;
        let n_symbols = corpus.sentences[at].len() as u32;
        let mut readings = decoded.map_or_else(Vec::new, |decoded| Reading::by(decoders, decoded));
        match place {
            Some(place) => readings.extend(deciders.readings(place, n_symbols, labels)?),
            // No decider knows a sentence that is held out, and no decoder one that was skipped.
            None => {
                let rest = has_trees[readings.len()..].iter();
                readings.extend(rest.map(|&has_trees| Reading::none(n_symbols, has_trees)));
            }
        }
        let ends = &readings[self.best].ends;
        let by_deciders = || deciders.probabilities(place?, ends);
        let exact = || {
            let spans = &decoded.filter(|_| self.is_exact)?.spans;
            let is_known = place.is_some() || !spans.is_empty();
            is_known.then(|| Segments::new(n_symbols, spans.clone()).probabilities(ends))
        };
        let probabilities = self.kept.then(|| by_deciders().or_else(exact)).flatten();
        let evidence = place.and_then(|place| deciders.evidence(place));
        Ok(Sentence { corpus, at, place, readings, best: self.best, probabilities, evidence })
    }
}

/// What is counted over the sentences that are trained on.
struct Scored<'a> {
    /// By decoding.
    scorers: Vec<Scorer<u32>>,
    /// By the first decoding.
    lengths: SegmentLengths,
    gold_lengths: SegmentLengths,
    errors: Counter,
    certainty: Certainty,
    samples: Samples,
    /// What is learned from is not scored.
    annotated: Option<&'a Annotated>,
}

impl<'a> Scored<'a> {
    fn new(n_decodings: usize, annotated: Option<&'a Annotated>, unit: Unit) -> Scored<'a> {
        Scored {
            scorers: (0..n_decodings).map(|_| Scorer::default()).collect(),
            lengths: SegmentLengths::default(),
            gold_lengths: SegmentLengths::default(),
            errors: Counter::new(unit),
            certainty: Certainty::default(),
            samples: Samples::default(),
            annotated,
        }
    }

    fn add(&mut self, sentences: &[Sentence<'_>], reader: &Reader<'_>) {
        let Scored { scorers, lengths, gold_lengths, errors, certainty, samples, annotated } = self;
        let trained_on: Vec<(&Sentence<'_>, usize)> =
            sentences.iter().filter_map(|sentence| Some((sentence, sentence.place?))).collect();
        let is_scored =
            |sentence: &Sentence<'_>| annotated.is_none_or(|known| !known.contains_key(sentence.symbols()));
        let with_gold = trained_on.iter().filter_map(|(sentence, _)| Some((*sentence, sentence.gold()?)));
        let with_gold: Vec<(&Sentence<'_>, &Analyses)> =
            with_gold.filter(|(sentence, _)| is_scored(sentence)).collect();
        let score = || {
            scorers.par_iter_mut().enumerate().for_each(|(decoding, scorer)| {
                for (sentence, gold) in &with_gold {
                    scorer.add(sentence.symbols(), gold, &sentence.readings[decoding].ends);
                }
            });
        };
        let count = || {
            for (sentence, place) in &trained_on {
                lengths.add(&sentence.readings[0].ends);
                let first = sentence.gold().and_then(|gold| gold.first());
                first.into_iter().for_each(|ends| gold_lengths.add(ends));
                if reader.kept {
                    let found = sentence.probabilities.iter();
                    found
                        .for_each(|found| certainty.add(&found.boundaries, reader.deciders.by_chain(*place)));
                    samples.offer(&sentence.segmented(&sentence.readings[0]), || sentence.sample());
                }
            }
            for (sentence, gold) in with_gold.iter().filter(|_| reader.kept) {
                let found = &sentence.best().ends;
                let gold = closest(gold, found).into_iter();
                gold.for_each(|gold| errors.add(sentence.corpus, sentence.at, gold, found));
            }
        };
        rayon::join(score, count);
    }
}
