//! The corpus as every decoder reads it, and, of samplers, as most samples do; block by block.

use std::ops::Range;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread;

use anyhow::{Result, anyhow};
use fleet::{Map, Stage};
use grammaton::data::corpus::Corpus;
use grammaton::data::eval::segmentation::{Scorer, closest};
use grammaton::grammar::tree::Tree;
use grammaton::models::Model;
use grammaton::models::crf::{Crf, Evidence};
use grammaton::models::decode::{Decode, Decoded, Decoder};
use grammaton::models::segments::Segments;
use grammaton::models::tally::Tally;
use grammaton::models::vote::{Vote, vote_with};
use grammaton::saved::Segmenter;

use super::annotations::Sentences;
use super::contexts::ByContexts;
use super::found::Found;
use super::input::Input;
use super::plan::Plan;
use super::posterior::{Posterior, Probabilities};
use super::rounds::FinishedPoint;
use super::segment_lengths::SegmentLengths;
use super::text::{Block, Text};
use crate::boundary::{Boundary, BoundaryRow};
use crate::certainty::Certainty;
use crate::errors::{Counter, Errors};
use crate::job::{Job, KeptModels};
use crate::lexicon;
use crate::metrics::{
    BOUNDARY_VOTE, CONTEXTS, CRF, MAXIMUM_MARGINAL, MBR_VOTE, SAMPLE_AVERAGE, Scores, ScoresByDecoder,
    decoder_name, recommended,
};
use crate::outcome::{Decoding, Lines, Sample, Samples, percents};
use crate::row::{Gaps, Row, Status};

/// The probability of a boundary by contexts that decide in the place of a vote.
const HALF: f64 = 0.5;

/// Segmentations of every sentence of the corpus by several models, which vote.
#[derive(Default)]
pub struct Ballots {
    /// By sentence and model.
    segmentations: Vec<Vec<Vec<u32>>>,
    /// Probabilities of segments by sentence: sums over the models.
    probabilities: Vec<Segments>,
    /// The samples of the chains whose models vote.
    posterior: Posterior,
}

impl Ballots {
    /// Adds the segmentation that `model` finds by MBR, and its probabilities.
    pub fn add(&mut self, input: &Input, plan: &Plan, fleet: &dyn Map, model: &Model) -> Result<()> {
        self.segmentations.resize(input.text.n_sentences, Vec::new());
        self.probabilities.resize(input.text.n_sentences, Segments::default());
        let parser = plan.parser(model, &[Decoder::Mbr], false, true)?;
        input.text.blocks(|sentences, shards, block| {
            let decoded = parser.parse(fleet, Stage::Decode, plan.shards(shards))?;
            for (at, decoded) in sentences.zip(block.by_sentence(&decoded)?) {
                let ends = decoded.segmentations.first().cloned().unwrap_or_default();
                let segments = match decoded.log_z {
                    f64::NEG_INFINITY => Segments::certain(&ends),
                    _ => Segments::new(ends.last().copied().unwrap_or_default(), decoded.spans.clone()),
                };
                self.probabilities[at].add(&segments, 1.0);
                self.segmentations[at].push(ends);
            }
            Ok(())
        })
    }

    /// What the models, the job's baselines and contexts vote for.
    fn vote(&mut self, job: &Job, input: &Input) -> Result<Vote> {
        let mut sentences = Vec::new();
        // With a threshold they have a segmentation of their own.
        let with_contexts = job.output.contexts && job.output.threshold == 0.0;
        if with_contexts || !job.model.baselines.is_empty() {
            input.text.blocks(|_, _, block| {
                sentences.extend(block.corpus.sentences.iter().cloned());
                Ok(())
            })?;
        }
        let n_models = self.segmentations.first().map_or(1, Vec::len) as f64;
        let means =
            std::mem::take(&mut self.probabilities).into_iter().map(|sum| sum.over(n_models)).collect();
        Ok(vote_with(&job.model.baselines, with_contexts, &sentences, means))
    }

    /// Adds the samples of the chains of a point.
    pub fn add_samples(&mut self, point: &FinishedPoint) {
        self.posterior.add(point.runs.len(), point.tallies.clone());
    }
}

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
        mut ballots: Ballots,
        kept: bool,
    ) -> Result<Readings> {
        let (text, decoders) = (&input.text, &job.output.decoders);
        // Every sentence has a tree in every sample.
        let trees: Option<Vec<&str>> = point.tallies.iter().map(Tally::tree).collect();
        let of_samples = trees.filter(|trees| !trees.is_empty());
        let annotated = input.annotated.as_ref().filter(|_| !input.segments.is_empty());
        let mut vote = if of_samples.is_some() || annotated.is_some() {
            for other in &point.chains {
                ballots.add(input, plan, fleet, other)?;
            }
            ballots.add(input, plan, fleet, model)?;
            ballots.add_samples(point);
            Some(ballots.vote(job, input)?)
        } else {
            None
        };
        let threshold = Some(job.output.threshold).filter(|&least| least > 0.0 && of_samples.is_some());
        let by_threshold = threshold.map(|least| (&ballots.posterior, least));
        let in_place = vote.as_mut().and_then(|vote| vote.in_place.take());
        let by_contexts = match (in_place, by_threshold.filter(|_| job.output.contexts)) {
            (Some(contexts), _) => Some(ByContexts::read(text, contexts, HALF)?),
            (None, Some((posterior, least))) => Some(ByContexts::learn(text, posterior, least)?),
            (None, None) => None,
        };
        let learned = match (annotated, &vote) {
            (Some(annotated), Some(vote)) => {
                let of_sentence = |place: usize| {
                    let (shares, ends) = match (&by_contexts, by_threshold) {
                        (Some(by_contexts), _) => {
                            let reading = by_contexts.reading(place).clone();
                            (reading.probabilities, reading.ends)
                        }
                        (None, Some((posterior, least))) => {
                            let n_symbols = vote.winners[place].last().copied().unwrap_or_default();
                            let ends = posterior.ends(place, n_symbols, least);
                            (posterior.probabilities(place, &ends).boundaries, ends)
                        }
                        (None, None) => (vote.means[place].boundaries(), vote.winners[place].clone()),
                    };
                    // As they are printed, so that a field can be learned from the table as well.
                    (shares.into_iter().map(BoundaryRow::rounded).collect(), ends)
                };
                Some(Sentences::of(text, of_sentence)?.learned(annotated))
            }
            _ => None,
        };
        let voted = vote.as_ref().filter(|_| of_samples.is_some());
        let grammar = &plan.language()?.grammar.value;
        let labels: Vec<&str> = input.segments.iter().map(|&symbol| grammar.name(symbol)).collect();
        let is_segment = |label: &str| labels.contains(&label);
        let mut names: Vec<&'static str> = decoders.iter().map(|&decoder| decoder_name(decoder)).collect();
        if of_samples.is_some() {
            names.extend([SAMPLE_AVERAGE, MAXIMUM_MARGINAL]);
        }
        names.extend(voted.map(|_| MBR_VOTE));
        names.extend(threshold.map(|_| BOUNDARY_VOTE));
        names.extend(by_contexts.as_ref().map(|_| CONTEXTS));
        names.extend(learned.as_ref().map(|_| CRF));
        let mut scorers: Vec<Scorer<u32>> = names.iter().map(|_| Scorer::default()).collect();
        let (mut lengths, mut gold_lengths) = (SegmentLengths::default(), SegmentLengths::default());
        let (mut samples, mut certainty) = (Samples::default(), Certainty::default());
        let unit = job.corpus.options().effective_unit();
        let mut errors = Counter::new(unit);
        let mut written = Written::new(&names, decoders, &job.output.dir)?;
        if kept && !labels.is_empty() {
            let header = match &learned {
                Some(_) => BoundaryRow::HEADER,
                None => Boundary::HEADER,
            };
            let found = Found::new(labels.clone(), unit, text.has_gold, header, &job.output.dir)?;
            written.found = Some(found);
        }
        let is_exact = kept && of_samples.is_none() && !labels.is_empty();
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
        let mut write = |Parsed { sentences, block, decoded, held_out }: Parsed| -> Result<()> {
            let held_out = held_out.iter().flat_map(|(block, decoded)| {
                let decoded = block.by_sentence_in_shards(decoded).into_iter().enumerate();
                decoded.map(|(at, decoded)| (&block.corpus, at, decoded))
            });
            let mut held_out = held_out.peekable();
            for ((at, place), decoded) in sentences.enumerate().zip(block.by_sentence(&decoded)?) {
                let mut found = readings(decoders, decoded);
                if let Some(of_samples) = &of_samples {
                    let tree = of_samples[place];
                    let ends = Tree::parse(tree)?.segment_ends(is_segment);
                    found.push(Reading { ends, tree: Some(tree), log_probability: None, analysed: true });
                    let ends = point.tallies[place].segmentation().unwrap_or_default().to_vec();
                    found.push(Reading { ends, tree: None, log_probability: None, analysed: true });
                }
                if let Some(vote) = voted {
                    let ends = vote.winners[place].clone();
                    found.push(Reading { ends, tree: None, log_probability: None, analysed: true });
                }
                if let Some((posterior, least)) = by_threshold {
                    let n_symbols = block.corpus.sentences[at].len() as u32;
                    let ends = posterior.ends(place, n_symbols, least);
                    found.push(Reading { ends, tree: None, log_probability: None, analysed: true });
                }
                if let Some(by_contexts) = &by_contexts {
                    let ends = by_contexts.reading(place).ends.clone();
                    found.push(Reading { ends, tree: None, log_probability: None, analysed: true });
                }
                if let Some(learned) = &learned {
                    let ends = learned.ends(place).to_vec();
                    found.push(Reading { ends, tree: None, log_probability: None, analysed: true });
                }
                lengths.add(&found[0].ends);
                if let Some(gold) = &block.corpus.gold {
                    let sentence = &block.corpus.sentences[at];
                    gold[at].first().into_iter().for_each(|ends| gold_lengths.add(ends));
                    // What is learned from is not scored.
                    if !annotated.is_some_and(|annotated| annotated.contains_key(sentence)) {
                        let scored = scorers.iter_mut().zip(&found);
                        scored.for_each(|(scorer, reading)| scorer.add(sentence, &gold[at], &reading.ends));
                        let ends = &found[written.recommended].ends;
                        if kept && let Some(gold) = closest(&gold[at], ends) {
                            errors.add(&block.corpus, at, gold, ends);
                        }
                    }
                }
                if kept {
                    let line = block.corpus.lines[at];
                    while let Some((corpus, at, decoded)) =
                        held_out.next_if(|(corpus, at, _)| corpus.lines[*at] < line)
                    {
                        written.held_out(corpus, at, decoded, decoders)?;
                    }
                    let ends = &found[written.recommended].ends;
                    let probabilities = match (&learned, &by_contexts, by_threshold, voted) {
                        (Some(learned), ..) => Some(learned.probabilities(place)),
                        (None, Some(by_contexts), ..) => Some(by_contexts.reading(place).posterior()),
                        (None, None, Some((posterior, _)), _) => Some(posterior.probabilities(place, ends)),
                        (None, None, None, Some(vote)) => Some(vote.means[place].probabilities(ends)),
                        (None, None, None, None) if is_exact => {
                            let n_symbols = ends.last().copied().unwrap_or_default();
                            Some(Segments::new(n_symbols, decoded.spans.clone()).probabilities(ends))
                        }
                        (None, None, None, None) => None,
                    };
                    if let Some(probabilities) = &probabilities {
                        let by_chain = ballots.segmentations.get(place).map_or(&[][..], Vec::as_slice);
                        certainty.add(&probabilities.boundaries, by_chain);
                    }
                    let evidence = learned.as_ref().map(|learned| learned.evidence(place));
                    let with = (Status::Ok, probabilities.as_ref(), evidence);
                    let segmentations = written.sentence(&block.corpus, at, &found, with)?;
                    let corpus = &block.corpus;
                    let symbols = corpus.sentences[at].iter().map(|&at| &corpus.symbols[at as usize][..]);
                    samples.offer(&segmentations[0], || Sample {
                        line,
                        gold: corpus
                            .gold
                            .as_ref()
                            .and_then(|gold| closest(&gold[at], ends))
                            .map(|gold| corpus.line(at, gold)),
                        tree: found.iter().find_map(|reading| reading.tree).map(str::to_owned),
                        segmentations: segmentations.clone(),
                        probabilities: probabilities
                            .map(|found| percents(symbols, &found.boundaries))
                            .unwrap_or_default(),
                    });
                }
            }
            held_out.try_for_each(|(corpus, at, decoded)| written.held_out(corpus, at, decoded, decoders))
        };
        // A block is written while the fleet parses the next one.
        thread::scope(|scope| {
            let (blocks, parsed) = mpsc::sync_channel(0);
            let writer = scope.spawn(move || parsed.into_iter().try_for_each(&mut write));
            let all = text.blocks_with_held_out(|sentences, shards, block, held_out| {
                let decoded = parser.parse(fleet, Stage::Decode, plan.shards(shards))?;
                let held_out = held_out.filter(|_| kept).map(|held_out| -> Result<_> {
                    let decoded = of_held_out.parse(fleet, Stage::Decode, held_out.shards.clone())?;
                    Ok((held_out.block.value()?, decoded))
                });
                let parsed = Parsed { sentences, block, decoded, held_out: held_out.transpose()? };
                blocks.send(parsed).map_err(|_| anyhow!("writing has ended"))
            });
            drop(blocks);
            // If writing has failed, that is why there are no more blocks.
            writer.join().unwrap_or_else(|panic| resume_unwind(panic)).and(all)
        })?;
        let found = written.found.take().map(|found| found.finish(model));
        let (lexicon, boundaries) = found.unzip();
        let decodings = if kept { written.finish(text.n_lines)? } else { Vec::new() };
        let is_scored = text.has_gold && !input.segments.is_empty();
        let scored = names.iter().zip(&scorers).filter(|_| is_scored);
        let scores =
            scored.map(|(&name, scorer)| (name.to_owned(), Scores::from(&scorer.scores()))).collect();
        let gold_lengths = text.has_gold.then_some(gold_lengths);
        let notice = if input.segments.is_empty() {
            None
        } else {
            lengths.notice(names[0], grammar.symbols.len() - grammar.n_nonterminals as usize, gold_lengths)
        };
        let segmenter = if kept {
            segmenter(job, text, vote, by_contexts, learned.map(|learned| learned.crf))
        } else {
            Segmenter::default()
        };
        let certainty = boundaries.as_ref().map(|_| certainty);
        let errors = (kept && is_scored).then(|| errors.finish());
        let samples = samples.chosen();
        Ok(Readings { decodings, lexicon, boundaries, certainty, errors, segmenter, samples, scores, notice })
    }
}

/// What decides on the segments of new text: what votes, unless one model alone is kept, contexts that decide alone, and a field.
fn segmenter(
    job: &Job,
    text: &Text,
    vote: Option<Vote>,
    by_contexts: Option<ByContexts>,
    crf: Option<Crf>,
) -> Segmenter {
    let mut segmenter = Segmenter { crf, ..Segmenter::default() };
    if let Some(Vote { learned, price, contexts, .. }) = vote.filter(|_| job.output.models == KeptModels::All)
    {
        segmenter = Segmenter { baselines: learned, price, contexts, ..segmenter };
    }
    if let Some(ByContexts { contexts, threshold, .. }) = by_contexts {
        segmenter = Segmenter { contexts: Some(contexts), threshold, ..segmenter };
    }
    let Segmenter { baselines, contexts, crf, .. } = &segmenter;
    if !baselines.is_empty() || contexts.is_some() || crf.is_some() {
        segmenter.symbols = text.symbols.clone();
    }
    segmenter
}

/// A block, and what was found in it.
struct Parsed {
    /// Its sentences among all.
    sentences: Range<usize>,
    block: Arc<Block>,
    /// By shard.
    decoded: Vec<Vec<Decoded>>,
    /// The held-out sentences of the same lines.
    held_out: Option<(Arc<Block>, Vec<Vec<Decoded>>)>,
}

/// A sentence as one decoder reads it.
struct Reading<'t> {
    /// End positions of its segments; one segment if it was not analysed.
    ends: Vec<u32>,
    /// Its bracketed tree, from decoders that give trees.
    tree: Option<&'t str>,
    log_probability: Option<f64>,
    /// Whether it has an analysis.
    analysed: bool,
}

/// The tree of a sentence without an analysis.
const NO_TREE: &str = "()";

/// A sentence as each decoder reads it.
fn readings<'t>(decoders: &[Decoder], decoded: &'t Decoded) -> Vec<Reading<'t>> {
    let analysed = decoded.log_z > f64::NEG_INFINITY;
    let mut trees = decoded.trees.iter().map(String::as_str);
    let reading = |(decoder, ends): (&Decoder, &Vec<u32>)| Reading {
        ends: ends.clone(),
        tree: decoder
            .gives_trees()
            .then(|| trees.next())
            .flatten()
            .map(|tree| if analysed { tree } else { NO_TREE }),
        log_probability: analysed.then_some(decoded.log_z),
        analysed,
    };
    decoders.iter().zip(&decoded.segmentations).map(reading).collect()
}

/// The decodings of a corpus as they grow, line by line.
struct Written<'a> {
    decodings: Vec<Decoding>,
    /// By decoding, whether it has trees.
    has_trees: Vec<bool>,
    /// Position of the recommended decoding.
    recommended: usize,
    /// Its segments and boundaries, if there are segments.
    found: Option<Found<'a>>,
    gaps: Gaps,
}

impl Written<'_> {
    /// No lines yet, of decodings with these names, the first of which are by `decoders`.
    fn new(names: &[&'static str], decoders: &[Decoder], folder: &Path) -> Result<Self> {
        let decoding = |&name| -> Result<Decoding> {
            let [segmentations, mut table, trees] = std::array::from_fn(|_| Lines::new_in(folder));
            table.push(Row::HEADER)?;
            Ok(Decoding { name, segmentations, table, trees })
        };
        let has_trees = |(at, &name): (usize, &&str)| {
            decoders.get(at).map_or(name == SAMPLE_AVERAGE, |decoder| decoder.gives_trees())
        };
        let best = recommended(names.iter().copied());
        Ok(Written {
            recommended: names.iter().position(|name| Some(*name) == best).unwrap_or_default(),
            found: None,
            decodings: names.iter().map(decoding).collect::<Result<_>>()?,
            has_trees: names.iter().enumerate().map(has_trees).collect(),
            gaps: Gaps::default(),
        })
    }

    /// Adds the sentence at a position of `corpus`, as each decoding reads it, after the empty lines before it, with the
    /// probabilities of the recommended one, if they are known, and what the models found before something was learned. Returns its segmentations.
    fn sentence(
        &mut self,
        corpus: &Corpus,
        at: usize,
        readings: &[Reading<'_>],
        (status, probabilities, evidence): (Status, Option<&Probabilities>, Option<Evidence<'_>>),
    ) -> Result<Vec<String>> {
        let line = corpus.lines[at];
        self.empty_before(line)?;
        let gold = corpus.gold_line(at);
        let mut segmentations = Vec::with_capacity(readings.len());
        for (decoding, reading) in self.decodings.iter_mut().zip(readings) {
            let segmentation = corpus.line(at, &reading.ends);
            decoding.segmentations.push(&segmentation)?;
            reading.tree.map_or(Ok(()), |tree| decoding.trees.push(tree))?;
            let row = Row {
                line,
                gold: gold.as_deref(),
                predicted: reading.analysed.then_some(&segmentation),
                log_probability: reading.log_probability,
                status: if reading.analysed { status } else { Status::NoAnalysis },
            };
            decoding.table.push(&row.to_string())?;
            segmentations.push(segmentation);
        }
        if let Some(found) = &mut self.found {
            found.gold(corpus, at);
            let Reading { ends, tree, analysed, .. } = &readings[self.recommended];
            if *analysed {
                found.sentence(corpus, at, ends, *tree, probabilities)?;
                if let (Status::Ok, Some(probabilities)) = (status, probabilities) {
                    found.boundaries(line, ends, probabilities, evidence)?;
                }
            }
        }
        Ok(segmentations)
    }

    /// Writes a sentence that is not trained on, which no sample has. A skipped one is not `decoded`.
    fn held_out(
        &mut self,
        corpus: &Corpus,
        at: usize,
        decoded: Option<&Decoded>,
        decoders: &[Decoder],
    ) -> Result<()> {
        let whole = || vec![corpus.sentences[at].len() as u32];
        let skipped = |decoder: &Decoder| Reading {
            ends: whole(),
            tree: decoder.gives_trees().then_some(NO_TREE),
            log_probability: None,
            analysed: false,
        };
        let mut readings = match decoded {
            Some(decoded) => readings(decoders, decoded),
            None => decoders.iter().map(skipped).collect(),
        };
        for &has_tree in &self.has_trees[decoders.len()..] {
            let tree = has_tree.then_some(NO_TREE);
            readings.push(Reading { ends: whole(), tree, log_probability: None, analysed: false });
        }
        let spans = decoded.filter(|decoded| !decoded.spans.is_empty()).map(|decoded| decoded.spans.clone());
        let probabilities = spans.map(|spans| {
            let segments = Segments::new(corpus.sentences[at].len() as u32, spans);
            segments.probabilities(&readings[self.recommended].ends)
        });
        self.sentence(corpus, at, &readings, (Status::HeldOut, probabilities.as_ref(), None)).map(drop)
    }

    /// Adds the empty lines before `line`.
    fn empty_before(&mut self, line: u32) -> Result<()> {
        for line in self.gaps.before(line) {
            for (decoding, &has_trees) in self.decodings.iter_mut().zip(&self.has_trees) {
                decoding.segmentations.push("")?;
                decoding.table.push(&Row::empty(line).to_string())?;
                if has_trees {
                    decoding.trees.push("")?;
                }
            }
        }
        Ok(())
    }

    /// The decodings of all lines of a corpus.
    fn finish(mut self, n_lines: u32) -> Result<Vec<Decoding>> {
        self.empty_before(n_lines + 1)?;
        Ok(self.decodings)
    }
}
