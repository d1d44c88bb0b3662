//! The published JSON Schemas of `summary.json` and `metrics.jsonl`. Law: the output of every kind of model agrees with them, and
//! has no field that they lack.

use std::fs;
use std::path::Path;

use grammaton_tests::folder::{Folder, examples};
use serde_json::{Value, json};

fn schema(name: &str) -> Value {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference");
    serde_json::from_str(&fs::read_to_string(docs.join(name)).unwrap()).unwrap()
}

/// Problems of a value under a schema with the keywords of ours; an object has no properties but the ones listed.
fn problems(value: &Value, schema: &Value, root: &Value, path: &str, found: &mut Vec<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = root.pointer(reference.strip_prefix('#').expect("a reference within the file"));
        return problems(value, target.expect("the definition exists"), root, path, found);
    }
    for keyword in schema.as_object().expect("a schema is an object").keys() {
        assert!(
            [
                "$schema",
                "$defs",
                "title",
                "description",
                "type",
                "properties",
                "required",
                "items",
                "enum",
                "additionalProperties",
                "minimum",
                "pattern"
            ]
            .contains(&keyword.as_str()),
            "this check does not know the keyword {keyword}"
        );
    }
    let is_of = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => panic!("not a type: {other}"),
    };
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().map(|one| one.as_str().unwrap()).collect(),
        _ => vec![],
    };
    if !types.is_empty() && !types.iter().any(|name| is_of(name)) {
        found.push(format!("{path}: {value} is not {types:?}"));
        return;
    }
    if schema["minimum"].as_f64().is_some_and(|minimum| value.as_f64().is_some_and(|it| it < minimum)) {
        found.push(format!("{path}: {value} is too small"));
    }
    if schema["enum"].as_array().is_some_and(|values| !values.contains(value)) {
        found.push(format!("{path}: {value} is not in {}", schema["enum"]));
    }
    if schema["pattern"] == "^[0-9a-f]{64}$" {
        let text = value.as_str().unwrap();
        if text.len() != 64 || !text.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f')) {
            found.push(format!("{path}: {value} is not a digest"));
        }
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        if value.get(name.as_str().unwrap()).is_none() {
            found.push(format!("{path}: {name} is missing"));
        }
    }
    for (name, inner) in value.as_object().into_iter().flatten() {
        let path = format!("{path}/{name}");
        match (schema["properties"].get(name), &schema["additionalProperties"]) {
            (Some(schema), _) => problems(inner, schema, root, &path, found),
            (None, Value::Bool(true)) => {}
            (None, Value::Object(_)) => {
                problems(inner, &schema["additionalProperties"], root, &path, found);
            }
            (None, _) => found.push(format!("{path}: the schema lacks it")),
        }
    }
    for (at, inner) in value.as_array().into_iter().flatten().enumerate() {
        problems(inner, &schema["items"], root, &format!("{path}/{at}"), found);
    }
}

fn checked(value: &Value, schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    problems(value, schema, schema, "", &mut found);
    found
}

/// A job of the examples with settings, and fields that its output has.
const RUNS: [(&str, &[&str], &[&str]); 6] = [
    (
        "segmentation/job.toml",
        &[
            "inference.max_rounds=3",
            "output.score_every=1",
            "corpus.held_out_share=0.1",
            "inference.restarts=2",
        ],
        &["scores", "held_out", "strings", "hyper"],
    ),
    (
        "segmentation/job.toml",
        &[
            "inference.method=hastings",
            "inference.max_rounds=10",
            "inference.restarts=2",
            "inference.keep_every=1",
            "inference.anneal_from=2",
            "inference.anneal_rounds=2",
        ],
        &["r_hat", "effective_sample_size", "acceptance", "temperature"],
    ),
    ("morphemes/job.toml", &["inference.max_rounds=2", "inference.alpha=1e-5,1"], &["points", "settings"]),
    ("treebank/vb.toml", &["inference.subtypes=2", "inference.max_rounds=2"], &["brackets"]),
    ("dependency/em.toml", &["inference.max_rounds=2"], &["attachment", "test", "predicted"]),
    ("dependency/mixture.toml", &["inference.max_rounds=1"], &["components"]),
];

#[test]
#[ignore = "slow"]
fn output_of_every_kind_of_model_agrees_with_the_schemas() {
    let (summary_schema, round_schema) = (schema("summary.schema.json"), schema("metrics.schema.json"));
    for (job, settings, fields) in RUNS {
        let folder = Folder::new(&[]);
        let job = examples().join(job).display().to_string();
        let settings = settings.iter().flat_map(|setting| ["--set", setting]);
        let args: Vec<&str> =
            ["train", &job, "--quiet", "--out", "out"].into_iter().chain(settings).collect();
        folder.grammaton(&args);
        let (summary, metrics) = (folder.read("out/summary.json"), folder.read("out/metrics.jsonl"));
        for field in fields {
            let name = format!("\"{field}\":");
            assert!(summary.contains(&name) || metrics.contains(&name), "{job}: {field} is not there");
        }
        let summary: Value = serde_json::from_str(&summary).unwrap();
        assert_eq!(checked(&summary, &summary_schema), [""; 0], "{job}");
        assert!(metrics.lines().count() > 0);
        for line in metrics.lines() {
            let round: Value = serde_json::from_str(line).unwrap();
            assert_eq!(checked(&round, &round_schema), [""; 0], "{job}: {line}");
        }
    }
}

#[test]
fn the_check_finds_what_a_schema_excludes() {
    let schema = json!({
        "type": "object", "required": ["a"],
        "properties": {"a": {"type": ["integer", "null"], "minimum": 1}, "b": {"$ref": "#/$defs/b"}},
        "$defs": {"b": {"type": "array", "items": {"enum": ["x"]}}}
    });
    for (value, n_problems) in [
        (json!({"a": 1, "b": ["x"]}), 0),
        (json!({"a": null}), 0),
        (json!({}), 1),
        (json!({"a": 0}), 1),
        (json!({"a": 1.5}), 1),
        (json!({"a": 1, "b": ["x", "y"]}), 1),
        (json!({"a": 1, "c": 1}), 1),
        (json!([]), 1),
    ] {
        assert_eq!(checked(&value, &schema).len(), n_problems, "{value}");
    }
}
