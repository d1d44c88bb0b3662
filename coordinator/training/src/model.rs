//! The model folder: `model.bin` ([`grammaton::saved`]), which `parse` loads, and the texts `grammar.txt` and `sticks.tsv`.

pub use grammaton::saved::texts::{Entry, grammar_text, segment_weights, spell, top, write_sticks};
pub use grammaton::saved::{Model as SavedModel, ModelError, SEAL, parameters_sha256};

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;

    use grammaton::data::corpus::{Cleaning, Format, Marks, Normalise, Unit};
    use grammaton::data::treebank::{Classes, Treebank};
    use grammaton::decoding::Decoding;
    use grammaton::grammar::lexicon::Lexicon;
    use grammaton::grammar::lexicon::StickStrings;
    use grammaton::grammar::tree::Tree;
    use grammaton::grammar::{Adaptor, Grammar, ParamId, Rule, SymbolId, syntax};
    use grammaton::models::adaptor::{self, Stick};
    use grammaton::models::baselines::Baseline;
    use grammaton::models::crf::Crf;
    use grammaton::models::crf::contexts::Contexts;
    use grammaton::models::crf::statistics::Statistics;
    use grammaton::models::crf::words::Words;
    use grammaton::models::decode::Decoder;
    use grammaton::models::logistic_normal::{self, PointEstimate, Prior};
    use grammaton::models::{Model, Params, Trained, latent};
    use grammaton::saved::Segmenter;

    use super::*;

    /// The grammar S → Word | Word S over the letters a and b, with three words.
    pub(crate) fn small() -> SavedModel {
        let symbol = SymbolId;
        let rule = |parent: u32, children: &[u32]| Rule {
            parent: symbol(parent),
            children: children.iter().map(|&at| symbol(at)).collect(),
            alpha: 1.0,
        };
        let grammar = Grammar {
            symbols: ["Sentence", "Word", "Phon", "a", "b"].map(str::to_owned).to_vec(),
            n_nonterminals: 3,
            rules: vec![
                rule(0, &[1]),
                rule(0, &[1, 0]),
                rule(1, &[2]),
                rule(1, &[2, 1]),
                rule(2, &[3]),
                rule(2, &[4]),
            ],
            adaptors: vec![None, Some(Adaptor::default()), None],
            factors: None,
        };
        let strings = [vec![3], vec![3, 4], vec![4, 4, 3]];
        let strings = strings
            .map(|string: Vec<u32>| string.into_iter().map(symbol).collect::<Vec<_>>())
            .iter()
            .collect();
        let stick = Stick {
            symbol: symbol(1),
            order: vec![ParamId(8), ParamId(7), ParamId(9)],
            gamma1: vec![7.5, 3.5, 1.5],
            gamma2: vec![7.5, 3.5, 1.0],
            discount: 0.5,
            concentration: 1.0,
        };
        let (tau, alpha) = (vec![1.0, 3.0, 1.0, 1.0, 1.0, 1.0], vec![1.0; 6]);
        let params = Params::Adaptor(adaptor::Params { tau, alpha, sticks: vec![stick] });
        let lexicon = Lexicon { sticks: vec![StickStrings { symbol: symbol(1), strings }] };
        SavedModel {
            unit: Unit::Char,
            format: Format::Segmented,
            cleaning: Cleaning::default(),
            model: Trained::Grammar(Model { grammar, lexicon, params, segments: vec![symbol(1)] }),
            voters: Vec::new(),
            segmenter: Segmenter::default(),
        }
    }

    /// The grammar S → A | A S over the letters a and b, with one rule of A for each letter.
    fn normal() -> SavedModel {
        let text = "1 1 S --> A\n1 1 S --> A S\n1 1 A --> a\n1 1 A --> b\n";
        let (grammar, _) = syntax::parse(text, "g").unwrap();
        let prior = |mean: [f64; 2], variances: [f64; 2], covariance| {
            Prior::new(mean.to_vec(), vec![variances[0], covariance, covariance, variances[1]]).unwrap()
        };
        let priors = vec![prior([0.5, 0.5], [1.0, 1.0], 0.5), prior([0.0, -2.0], [0.25, 4.0], 0.0)];
        let params = Params::LogisticNormal(logistic_normal::Params { priors, estimate: PointEstimate::Raw });
        let model = Model { grammar, lexicon: Lexicon::default(), params, segments: Vec::new() };
        SavedModel {
            unit: Unit::Token,
            format: Format::Tokens,
            cleaning: Cleaning::default(),
            model: Trained::Grammar(model),
            voters: Vec::new(),
            segmenter: Segmenter::default(),
        }
    }

    /// A saved model that is one of a grammar.
    pub(crate) trait OfGrammar {
        /// The model.
        fn of_grammar(&mut self) -> &mut Model;
    }

    impl OfGrammar for SavedModel {
        fn of_grammar(&mut self) -> &mut Model {
            match &mut self.model {
                Trained::Grammar(model) => model,
                Trained::Treebank(_) => panic!("a model of a treebank"),
            }
        }
    }

    /// Two subtypes of each label of two trees.
    fn of_treebank() -> latent::parse::Model {
        let trees = ["(ROOT (S (N a) (V b)))", "(ROOT (N a))"].map(|text| Tree::parse(text).unwrap());
        let Treebank { rules, vocabulary, chains, .. } = Treebank::new(&trees, 0, Classes::Generic);
        let weights = vec![0.5; latent::Layout::new(&rules, 2).n_params()];
        latent::parse::Model { rules, vocabulary, chains, n_subtypes: 2, weights }
    }

    fn priors(model: &mut Model) -> &mut logistic_normal::Params {
        match &mut model.params {
            Params::LogisticNormal(params) => params,
            _ => panic!("no logistic-normal priors"),
        }
    }

    fn sticks(model: &mut Model) -> &mut adaptor::Params {
        match &mut model.params {
            Params::Adaptor(params) => params,
            _ => panic!("not an adaptor grammar"),
        }
    }

    fn refusal(bytes: &[u8]) -> String {
        SavedModel::from_bytes(bytes, Path::new("model.bin")).unwrap_err().to_string()
    }

    #[test]
    fn saved_models_load() {
        let cleaning = Cleaning {
            normalise: Normalise::Nfkc,
            lowercase: true,
            punctuation: Marks::Boundary,
            digraphs: vec!["sh".to_owned()],
        };
        let cleaned = SavedModel { unit: Unit::Grapheme, cleaning, ..small() };
        for saved in [small(), normal(), cleaned, voting()] {
            let loaded = SavedModel::from_bytes(&saved.to_bytes(), Path::new("model.bin")).unwrap();
            assert_eq!(loaded, saved);
        }
    }

    /// Two models and all baselines that vote, and what was learned from annotated sentences.
    fn voting() -> SavedModel {
        let mut other = small();
        sticks(other.of_grammar()).tau[1] = 2.0;
        let crf = Crf::learn(Statistics::default(), Words::found([(&[0, 1][..], &[1, 2][..])]), &[]);
        let symbols = ["a", "b"].map(str::to_owned).to_vec();
        let words = [[0, 1, 1], [1, 1, 1]];
        let contexts = Contexts::learn(words.iter().map(|word| (&word[..], &[0.25, 0.5][..])));
        let learned = Baseline::ALL.map(|baseline| baseline.learn(&[vec![0, 1], vec![0, 1, 1, 0, 1]]));
        let segmenter = Segmenter {
            symbols,
            baselines: learned.map(|learned| (learned, 0.25)).to_vec(),
            price: 0.375,
            contexts: Some(contexts),
            threshold: 0.25,
            crf: Some(crf),
        };
        SavedModel { voters: vec![other.of_grammar().clone()], segmenter, ..small() }
    }

    /// A file as it was written.
    fn golden(name: &str) -> Vec<u8> {
        std::fs::read(format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
    }

    #[test]
    fn models_are_written_as_they_always_were() {
        for (saved, name) in [(voting(), "model-9.bin"), (normal(), "model-9-logistic-normal.bin")] {
            assert_eq!(SavedModel::from_bytes(&golden(name), Path::new("model.bin")).unwrap(), saved);
            assert_eq!(saved.to_bytes(), golden(name));
        }
    }

    #[test]
    fn models_that_vote_are_checked() {
        let mut saved = voting();
        sticks(&mut saved.voters[0]).sticks[0].order[0] = ParamId(99);
        assert!(refusal(&saved.to_bytes()).contains("a stick has a string it lacks"));
        let mut weightless = voting();
        weightless.segmenter.baselines[1].1 = f64::NAN;
        assert!(refusal(&weightless.to_bytes()).contains("a baseline has no weight"));
        let mut dear = voting();
        dear.segmenter.price = 0.75;
        assert!(refusal(&dear.to_bytes()).contains("a segment has no price"));
        for threshold in [-0.5, f64::NAN, 1.5] {
            let mut saved = voting();
            saved.segmenter.threshold = threshold;
            assert!(refusal(&saved.to_bytes()).contains("a threshold is not between 0 and 1"));
        }
        let model = Trained::Treebank(of_treebank());
        let saved = SavedModel { model, ..voting() };
        assert!(refusal(&saved.to_bytes()).contains("there are votes beside a model of a treebank"));
    }

    #[test]
    fn a_model_of_a_treebank_is_written_with_a_grammar_that_nothing_reads() {
        let latent = of_treebank();
        let written = |grammar: Grammar| {
            let fields = (Unit::Token, Format::Tokens, grammar, Lexicon::default(), 2u32, &latent, [0u64; 1]);
            let no_segmenter = (0u64, 0u64, 0.0, 0u8, 0.0, 0u8);
            let fields = (Cleaning::default(), fields, 0u64, no_segmenter);
            SEAL.close(&bincode::serde::encode_to_vec(fields, bincode::config::legacy()).unwrap())
        };
        let model = Trained::Treebank(latent.clone());
        let saved = SavedModel::new(model, Format::Tokens, Unit::Token, Cleaning::default());
        assert_eq!(saved.to_bytes(), written(latent::grammar_in_formats()));
        assert_eq!(SavedModel::from_bytes(&saved.to_bytes(), Path::new("model.bin")).unwrap(), saved);
        let other = refusal(&written(small().of_grammar().grammar.clone()));
        assert!(other.contains("the model of a treebank has a grammar"), "{other}");
    }

    #[test]
    #[ignore = "writes what the tests above read"]
    fn by_hand_write_golden() {
        let path = format!("{}/tests/golden/model-{}", env!("CARGO_MANIFEST_DIR"), SEAL.version);
        std::fs::write(path.clone() + ".bin", voting().to_bytes()).unwrap();
        std::fs::write(path + "-logistic-normal.bin", normal().to_bytes()).unwrap();
    }

    #[test]
    fn every_cut_and_every_flipped_byte_is_refused() {
        let bytes = small().to_bytes();
        for length in 0..bytes.len() {
            refusal(&bytes[..length]);
        }
        for at in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x40;
            refusal(&bytes);
        }
    }

    #[test]
    fn refusals_name_the_reason() {
        let bytes = small().to_bytes();
        assert!(refusal(b"PK\x03\x04 something else").contains("not a model file"));
        assert!(refusal(&bytes[..bytes.len() - 1]).contains("cut short"));
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(refusal(&longer).contains("1 bytes too many"));
        let mut newer = bytes.clone();
        newer[8] = 200;
        assert!(refusal(&newer).contains("format 200 is newer than this build reads (9)"));
        let mut damaged = bytes;
        damaged[grammaton::sealed::HEADER + 9] ^= 1;
        assert!(refusal(&damaged).contains("checksum"));
    }

    #[test]
    fn inconsistent_model_is_refused_even_with_a_good_checksum() {
        let mut saved = small();
        sticks(saved.of_grammar()).sticks[0].order[0] = ParamId(99);
        assert!(refusal(&saved.to_bytes()).contains("a stick has a string it lacks"));
    }

    #[test]
    fn numbers_and_symbols_that_make_no_model_are_refused_even_with_a_good_checksum() {
        type Edit = fn(&mut Model);
        let edits: [(&str, Edit); 9] = [
            ("a rule has no weight", |model| sticks(model).tau[0] = f64::NAN),
            ("a rule has no weight", |model| sticks(model).alpha[1] = 0.0),
            ("a stick has a string twice", |model| sticks(model).sticks[0].order[0] = ParamId(7)),
            ("a string of a stick has no weight", |model| sticks(model).sticks[0].gamma1[2] = -1.0),
            ("a string of a stick has no weight", |model| sticks(model).sticks[0].gamma2[0] = f64::INFINITY),
            ("a stick has no prior", |model| sticks(model).sticks[0].discount = 1.0),
            ("a stick has no prior", |model| sticks(model).sticks[0].concentration = -0.5),
            ("not of the grammar's terminals", |model| {
                model.lexicon.sticks[0].strings.push(&[SymbolId(0)]);
            }),
            ("segments are not nonterminals", |model| model.segments[0] = SymbolId(3)),
        ];
        for (why, edit) in edits {
            let mut saved = small();
            edit(saved.of_grammar());
            let refusal = refusal(&saved.to_bytes());
            assert!(refusal.contains(why), "{refusal}, expected {why}");
        }
    }

    #[test]
    fn entries_show_uses_and_mean_weights() {
        let rows = top(&small(), 0, 10);
        let rows: Vec<_> = rows.iter().map(|e| (e.string.as_str(), e.uses, e.weight)).collect();
        assert_eq!(rows, [("ab", 7.0, 0.5), ("a", 3.0, 0.25), ("bba", 1.0, 0.25)]);
        let mut sticks = Vec::new();
        write_sticks(&small(), &mut sticks).unwrap();
        assert!(String::from_utf8(sticks).unwrap().contains("\nWord\t1\tab\t7.0000\t5.000000e-1\n"));
    }

    #[test]
    fn grammar_text_is_a_grammar() {
        let text = grammar_text(&small().model);
        let (grammar, _) = syntax::parse(&text, "grammar.txt").unwrap();
        assert_eq!(grammar.symbols, small().of_grammar().grammar.symbols);
        assert_eq!(grammar.adaptors[1], Some(Adaptor { discount: Some(0.5), concentration: Some(1.0) }));
        assert!(text.contains("# 2.500000e-1 Sentence --> Word\n"));
    }

    #[test]
    fn weights_of_logistic_normal_priors_are_described() {
        let mut saved = normal();
        let text = grammar_text(&saved.model);
        let (grammar, _) = syntax::parse(&text, "grammar.txt").unwrap();
        assert_eq!(grammar, saved.of_grammar().grammar);
        let weights = "\n# Weight of each rule, e^μ:\n# 1.648721e0 S --> A\n# 1.648721e0 S --> A S\n\
            # 1.000000e0 A --> a\n# 1.353353e-1 A --> b\n";
        assert!(text.ends_with(weights), "{text}");
        priors(saved.of_grammar()).estimate = PointEstimate::Softmax;
        let text = grammar_text(&saved.model);
        let weights = "\n# Probability of each rule, softmax(μ):\n# 5.000000e-1 S --> A\n# 5.000000e-1 S --> A S\n\
            # 8.807971e-1 A --> a\n# 1.192029e-1 A --> b\n";
        assert!(text.ends_with(weights), "{text}");
        priors(saved.of_grammar()).priors.truncate(1);
        assert!(refusal(&saved.to_bytes()).contains("1 priors, expected 2"));
    }

    #[test]
    fn digest_sees_every_parameter_and_the_order_of_strings() {
        let saved = small();
        let digest = parameters_sha256(&saved.model);
        assert_eq!(digest.len(), 64);
        assert_eq!(digest, parameters_sha256(&saved.model.clone()));
        let change = |edit: &dyn Fn(&mut Model)| {
            let mut other = saved.clone();
            edit(other.of_grammar());
            parameters_sha256(&other.model)
        };
        assert_ne!(digest, change(&|m| sticks(m).tau[0] = 1.0 + f64::EPSILON));
        assert_ne!(digest, change(&|m| sticks(m).sticks[0].order.swap(0, 1)));
        assert_ne!(digest, change(&|m| sticks(m).sticks[0].discount = 0.25));
        let (saved, mut other) = (normal(), normal());
        priors(other.of_grammar()).priors[1] = Prior::independent(vec![0.0, -2.0]).unwrap();
        assert_ne!(parameters_sha256(&saved.model), parameters_sha256(&other.model));
    }

    fn segmentation(decoder: Decoder, sentence: &str, closed: bool) -> Option<Vec<u32>> {
        let model = small().of_grammar().clone();
        let letter = |letter: char| model.grammar.symbol(&letter.to_string()).unwrap();
        let tokens: Vec<SymbolId> = sentence.chars().map(letter).collect();
        let decoded = Decoding::new(model, decoder, true, closed).all(&[Some(tokens)]).unwrap().remove(0);
        decoded.map(|decoded| decoded.segmentations[0].clone())
    }

    #[test]
    fn learned_strings_are_preferred() {
        for decoder in [Decoder::Viterbi, Decoder::Mbr, Decoder::MbrTree] {
            assert_eq!(segmentation(decoder, "ababbbaa", true), Some(vec![2, 4, 7, 8]));
        }
    }

    #[test]
    fn sentence_that_needs_new_strings_gets_them() {
        assert_eq!(segmentation(Decoder::Viterbi, "abbb", true), None);
        let ends = segmentation(Decoder::Viterbi, "abbb", false).unwrap();
        assert_eq!(ends.last(), Some(&4));
    }
}
