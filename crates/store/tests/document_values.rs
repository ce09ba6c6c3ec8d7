//! What a document says is what the parser returns: written documents of any content come back field by field, silent
//! documents give the defaults, and no text at all makes the parser panic.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::time::Duration;

use insula_core::{KeyId, ModelName, Quota, TenantId, Version};
use insula_store::{
    EventLoop, Isolation, KeyRecord, ModelGrant, Precision, TenantDocument, TenantState, byte_size, hash_key,
};
use proptest::prelude::*;

fn write(document: &TenantDocument) -> String {
    let mut text = format!("version = 1\nid = \"{}\"\n", document.id);
    if let Some(uuid) = document.uuid {
        text += &format!("uuid = \"{uuid}\"\n");
    }
    text += &format!("display_name = {}\n", toml::Value::from(document.display_name.as_str()));
    text += match document.state {
        TenantState::Active => "state = \"active\"\n",
        TenantState::Suspended => "state = \"suspended\"\n",
    };
    text += &write_quota(&document.quota);
    for key in &document.keys {
        let hash: String = key.sha256.iter().map(|byte| format!("{byte:02x}")).collect();
        text += &format!("[[keys]]\nid = \"{}\"\nsha256 = \"{hash}\"\ncreated = {}\n", key.id, key.created);
        text += &key.expires.map(|end| format!("expires = {end}\n")).unwrap_or_default();
    }
    for model in &document.models {
        text += &format!("[[models]]\nname = \"{}\"\n", model.name);
        text += &model.catalog.as_ref().map(|name| format!("catalog = \"{name}\"\n")).unwrap_or_default();
        text += &model.version.map(|version| format!("version = {version}\n")).unwrap_or_default();
        text += match model.precision {
            None => "",
            Some(Precision::Fp16) => "precision = \"fp16\"\n",
            Some(Precision::Fp32) => "precision = \"fp32\"\n",
        };
    }
    text
}

fn write_quota(quota: &Quota) -> String {
    format!(
        "[quota]\nweight = {:?}\nrequests_per_second = {:?}\nburst = {}\nconcurrency = {}\nqueue = {}\nmemory = \"{}\"\n\
         request_bytes = {}\ntimeout_ms = {}\n",
        quota.weight,
        quota.requests_per_second,
        quota.burst,
        quota.concurrency,
        quota.queue,
        byte_size::format(quota.memory),
        quota.request_bytes,
        quota.timeout.as_millis(),
    )
}

fn quotas() -> impl Strategy<Value = Quota> {
    let counts = (1_u32..=10_000_000, 1_u32..=10_000_000, 1_u32..=10_000_000);
    (0.01_f64..=1000.0, 0.001_f64..=1e7, counts, 1_u64 << 20..=1 << 44, any::<u64>(), 1_u64..=86_400_000).prop_map(
        |(weight, requests_per_second, (burst, concurrency, queue), memory, part, timeout)| Quota {
            weight,
            requests_per_second,
            burst,
            concurrency,
            queue,
            memory,
            request_bytes: 1 + part % memory,
            timeout: Duration::from_millis(timeout),
        },
    )
}

fn keys() -> impl Strategy<Value = Vec<KeyRecord>> {
    let lives = prop::collection::vec((0_i64..4_000_000_000, prop::option::of(1_i64..1_000_000_000)), 0..4);
    lives.prop_map(|lives| {
        let key = |(index, (made, life)): (usize, (i64, Option<i64>))| KeyRecord {
            id: KeyId::new(&format!("k_{index}")).unwrap(),
            sha256: hash_key(&format!("ins_{index}_{made}")),
            created: jiff::Timestamp::from_second(made).unwrap(),
            expires: life.map(|life| jiff::Timestamp::from_second(made + life).unwrap()),
        };
        lives.into_iter().enumerate().map(key).collect()
    })
}

fn models() -> impl Strategy<Value = Vec<ModelGrant>> {
    let precision = prop::option::of(prop_oneof![Just(Precision::Fp16), Just(Precision::Fp32)]);
    let catalog = prop::option::of("[a-zA-Z0-9][a-zA-Z0-9_.-]{0,20}");
    let parts = (catalog, prop::option::of(1_u32..=i32::MAX as u32), precision);
    prop::collection::vec(parts, 0..4).prop_map(|parts| {
        let grant = |(index, (catalog, version, precision)): (usize, (Option<String>, Option<u32>, _))| ModelGrant {
            name: ModelName::new(&format!("model-{index}")).unwrap(),
            catalog: catalog.map(|name| ModelName::new(&name).unwrap()),
            version: version.map(|number| Version::new(number).unwrap()),
            precision,
        };
        parts.into_iter().enumerate().map(grant).collect()
    })
}

prop_compose! {
    fn documents()(
        id in "[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?".prop_filter("reserved", |id| id != "unknown"),
        uuid in prop::option::of(1..=u128::MAX),
        display_name in "[^\\p{Cc}]{1,60}",
        suspended in any::<bool>(),
        quota in quotas(),
        keys in keys(),
        models in models(),
    ) -> TenantDocument {
        TenantDocument {
            id: TenantId::new(&id).unwrap(),
            uuid: uuid.map(uuid::Uuid::from_u128),
            display_name,
            state: if suspended { TenantState::Suspended } else { TenantState::Active },
            isolation: Isolation::Shared,
            event_loop: EventLoop::Own,
            quota,
            keys,
            models,
        }
    }
}

proptest! {
    #[test]
    fn a_written_document_is_read_back(document in documents()) {
        let text = write(&document);
        prop_assert_eq!(TenantDocument::parse(&text).map_err(|faults| format!("{faults}\n{text}")), Ok(document));
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,200}") {
        let _ = TenantDocument::parse(&text);
    }

    #[test]
    fn no_damage_to_a_document_makes_the_parser_panic(
        document in documents(), at in any::<prop::sample::Index>(), cut in 0_usize..20, put in "[\\[\\]{}=\"'\\\\.,#\n a-z0-9:-]{0,8}",
    ) {
        let mut characters: Vec<char> = write(&document).chars().collect();
        let from = at.index(characters.len());
        let to = characters.len().min(from + cut);
        characters.splice(from..to, put.chars());
        let text: String = characters.into_iter().collect();
        if let Err(faults) = TenantDocument::parse(&text) {
            let lines = text.lines().count() + 1;
            prop_assert!(!faults.faults().is_empty());
            prop_assert!(faults.faults().iter().all(|fault| fault.line.is_none_or(|line| (1..=lines).contains(&line))));
        }
    }
}

#[test]
fn a_silent_document_gives_the_defaults() {
    let document = TenantDocument::parse("version = 1\nid = \"acme\"").unwrap();
    assert_eq!(document.display_name, "acme");
    assert_eq!(document.uuid, None);
    assert_eq!(document.state, TenantState::Active);
    assert_eq!(document.quota, Quota::default());
    assert!(document.keys.is_empty() && document.models.is_empty());
}

#[test]
fn the_default_request_size_never_exceeds_a_small_memory() {
    let document = TenantDocument::parse("version = 1\nid = \"a\"\n[quota]\nmemory = \"4MiB\"").unwrap();
    assert_eq!(document.quota.request_bytes, 4 << 20);
}

#[test]
fn whole_numbers_serve_as_weights_and_rates() {
    let text = "version = 1\nid = \"a\"\n[quota]\nweight = 2\nrequests_per_second = 1_000";
    let quota = TenantDocument::parse(text).unwrap().quota;
    assert_eq!((quota.weight, quota.requests_per_second), (2.0, 1000.0));
}

#[test]
fn a_mebibyte_of_nonsense_is_refused_and_not_chewed_on() {
    for pattern in ["[", "a.", "\"", "= ", "[[x]]\n", "{", "a=[", "\u{0}", "'''", "k=1\n"] {
        let text = pattern.repeat((1 << 20) / pattern.len());
        assert!(TenantDocument::parse(&text).is_err(), "{pattern:?}");
    }
}
