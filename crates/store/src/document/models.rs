//! The `[[models]]` tables: which models a tenant may call and by which name. Whether the catalog has them is for the
//! server to find out.

use std::collections::HashMap;

use insula_core::{ModelName, Version};

use super::checker::Checker;
use super::section::Section;
use super::{ModelGrant, Precision, RESERVED_NAME};

const KEYS: [&str; 4] = ["name", "catalog", "version", "precision"];

pub(super) fn read(root: &Section<'_>, checker: &mut Checker<'_>) -> Vec<ModelGrant> {
    let mut names: HashMap<ModelName, usize> = HashMap::new();
    let mut models = Vec::new();
    for (index, section) in root.tables(checker, "models").into_iter().enumerate() {
        let Some(model) = read_one(&section, checker) else { continue };
        if let Some(first) = names.insert(model.name.clone(), index) {
            let wanted = format!("is also the name of models[{first}]; names must differ");
            section.bad_value(checker, "name", wanted);
        }
        models.push(model);
    }
    models
}

fn read_one(section: &Section<'_>, checker: &mut Checker<'_>) -> Option<ModelGrant> {
    section.refuse_others(checker, &KEYS, &[]);
    section.require(checker, "name", "the name by which the tenant calls the model, such as `name = \"digits\"`");
    let name = section.parsed::<ModelName>(checker, "name");
    if name.as_ref().is_some_and(|name| name.as_str() == RESERVED_NAME) {
        section.bad_value(checker, "name", "metrics use this name for models that are not there; choose another");
    }
    let catalog = section.parsed::<ModelName>(checker, "catalog");
    let version = section.whole(checker, "version", 1..=u64::from(i32::MAX.unsigned_abs()));
    let version = version.and_then(|number| Version::new(u32::try_from(number).ok()?).ok());
    let precisions = [("fp16", Precision::Fp16), ("fp32", Precision::Fp32)];
    let precision = section.word(checker, "precision", &precisions);
    Some(ModelGrant { name: name?, catalog, version, precision })
}
