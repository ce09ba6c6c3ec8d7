//! A small strict reader of both exposition formats, written from their descriptions: it fails on what a scraper would
//! refuse or misread. Only the metrics tests use it.

#![allow(clippy::panic, reason = "a test fails by it")]

use std::collections::{BTreeMap, BTreeSet};

use insula_telemetry::Exposition;

/// A scrape that was read: each sample's name and labels, `name{label=value,...}`, with its value.
pub struct Scrape(BTreeMap<String, f64>);

struct Family {
    name: String,
    kind: String,
}

impl Scrape {
    pub fn of_prometheus(exposition: &Exposition) -> Scrape {
        assert_eq!(exposition.content_type, "text/plain; version=0.0.4; charset=utf-8");
        assert!(!exposition.body.contains("# EOF"));
        read(&exposition.body, false)
    }

    pub fn of_openmetrics(exposition: &Exposition) -> Scrape {
        assert_eq!(exposition.content_type, "application/openmetrics-text; version=1.0.0; charset=utf-8");
        let body = exposition.body.strip_suffix("# EOF\n").expect("it must end with `# EOF`");
        read(body, true)
    }

    pub fn value(&self, key: &str) -> f64 {
        *self.0.get(key).unwrap_or_else(|| panic!("no sample {key}; there are {:#?}", self.0.keys()))
    }

    pub fn keys(&self) -> BTreeSet<&str> {
        self.0.keys().map(String::as_str).collect()
    }

    pub fn keys_with(&self, part: &str) -> Vec<&str> {
        self.0.keys().map(String::as_str).filter(|key| key.contains(part)).collect()
    }
}

fn read(body: &str, openmetrics: bool) -> Scrape {
    assert!(body.ends_with('\n'));
    let mut families = BTreeSet::new();
    let mut samples = BTreeMap::new();
    let mut family: Option<Family> = None;
    for line in body.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, sentence) = help.split_once(' ').expect("a help line has a sentence");
            assert!(!sentence.is_empty());
            assert!(families.insert(name.to_owned()), "the family {name} comes twice");
            family = Some(Family { name: name.to_owned(), kind: String::new() });
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').expect("a type line has a type");
            let family = family.as_mut().expect("help comes before type");
            assert_eq!(family.name, name, "help and type name one family");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            family.kind = kind.to_owned();
        } else {
            let family = family.as_ref().expect("a sample belongs to a family");
            let (name, key, value) = read_sample(line);
            check_name(family, &name, openmetrics);
            assert!(family.kind != "counter" || value >= 0.0, "{line}");
            assert!(samples.insert(key, value).is_none(), "the series comes twice: {line}");
        }
    }
    check_histograms(&samples);
    Scrape(samples)
}

/// The sample's name must be its family's, with the suffix of its kind.
fn check_name(family: &Family, name: &str, openmetrics: bool) {
    let rest = name.strip_prefix(&family.name).unwrap_or_else(|| panic!("{name} stands in {}", family.name));
    let allowed: &[&str] = match (family.kind.as_str(), openmetrics) {
        ("histogram", _) => &["_sum", "_count", "_bucket"],
        ("counter", true) => &["_total"],
        _ => &[""],
    };
    assert!(allowed.contains(&rest), "{name} is no sample of the {} {}", family.kind, family.name);
    assert!(family.kind != "counter" || name.ends_with("_total"), "{name}");
}

/// Name, key and value of a sample line.
fn read_sample(line: &str) -> (String, String, f64) {
    let name_end = line.find(['{', ' ']).unwrap_or_else(|| panic!("no value: {line}"));
    let name = &line[..name_end];
    let word = |text: &str| {
        let mut bytes = text.bytes();
        bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    assert!(word(name), "{line}");
    let (labels, rest) = match line[name_end..].strip_prefix('{') {
        Some(inside) => inside.split_once("} ").unwrap_or_else(|| panic!("labels do not end: {line}")),
        None => ("", &line[name_end + 1..]),
    };
    let mut seen = BTreeSet::new();
    let mut labels: Vec<String> = labels
        .split_terminator(',')
        .map(|label| {
            let (key, value) = label.split_once('=').unwrap_or_else(|| panic!("{label:?} in {line}"));
            assert!(word(key) && seen.insert(key), "{line}");
            let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).expect("a value in quotes");
            // All label values of insula are plain words, so quotes, commas or escapes within them are a fault.
            assert!(!value.is_empty() && !value.contains(['"', '\\', '\n', ',', '{', '}']), "{line}");
            format!("{key}={value}")
        })
        .collect();
    // The formats differ in where and how they put a bucket's bound.
    labels.sort_by_key(|label| label.starts_with("le="));
    if let Some(bound) = labels.last_mut().filter(|label| label.starts_with("le=") && !label.ends_with("+Inf")) {
        *bound = format!("le={}", bound["le=".len()..].parse::<f64>().expect("a bound is a number"));
    }
    let key = if labels.is_empty() { name.to_owned() } else { format!("{name}{{{}}}", labels.join(",")) };
    (name.to_owned(), key, rest.parse().unwrap_or_else(|_| panic!("the value of {line}")))
}

/// Buckets must not fall, and the last one must be the count.
fn check_histograms(samples: &BTreeMap<String, f64>) {
    let mut histograms = BTreeMap::<String, Vec<(f64, f64)>>::new();
    for (key, value) in samples {
        let Some((head, bound)) = key.rsplit_once(",le=").or_else(|| key.rsplit_once("{le=")) else { continue };
        let bound = bound.trim_end_matches('}');
        let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().expect("a bound is a number") };
        histograms.entry(format!("{}}}", head.replace("_bucket", "_count"))).or_default().push((bound, *value));
    }
    for (count, mut buckets) in histograms {
        buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
        assert!(buckets.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{count} falls: {buckets:?}");
        let last = buckets.last().expect("an entry has a bucket");
        assert_eq!((last.0, Some(&last.1)), (f64::INFINITY, samples.get(&count)), "{count}");
        assert!(samples.contains_key(&count.replace("_count", "_sum")), "{count} has no sum");
    }
}
