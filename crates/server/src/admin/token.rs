//! The admin token: from `INSULA_ADMIN_TOKEN`, or from `admin.token` in the state folder, which is made at the first start
//! and readable by its owner alone. The token itself is kept nowhere; its hash is.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use insula_core::{Code, Error, Result};
use insula_store::hash_key;

/// The variable that gives the token.
pub(crate) const VARIABLE: &str = "INSULA_ADMIN_TOKEN";
/// The file's name in the state folder.
const FILE: &str = "admin.token";
/// Random bytes of a token.
const BYTES: usize = 32;
/// The shortest token that is taken from outside.
const SHORTEST: usize = 16;

/// The hash of the token that is in force: `given`, or that of the file in `state`, which is made if it is not there.
pub(crate) fn load(state: &Path, given: Option<String>) -> Result<[u8; 32]> {
    if let Some(given) = given.filter(|given| !given.is_empty()) {
        return check(&given, VARIABLE).map(hash_key);
    }
    let path = state.join(FILE);
    let unusable = |error: io::Error| {
        let message = format!("the admin token {} cannot be read or made: {error}", path.display());
        Error::new(Code::Conflict, message)
    };
    let text = match fs::read_to_string(&path) {
        Ok(text) => {
            refuse_readable_by_others(&path).map_err(unusable)?;
            text
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => make(&path).map_err(unusable)?,
        Err(error) => return Err(unusable(error)),
    };
    check(text.trim(), &path.display().to_string()).map(hash_key)
}

fn check<'t>(token: &'t str, place: &str) -> Result<&'t str> {
    let good = token.len() >= SHORTEST && token.bytes().all(|byte| byte.is_ascii_graphic());
    good.then_some(token).ok_or_else(|| {
        Error::invalid(format!("{place} holds no admin token: it must be {SHORTEST} or more visible ASCII characters"))
    })
}

fn refuse_readable_by_others(path: &Path) -> io::Result<()> {
    let mode = fs::metadata(path)?.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    let shown = mode & 0o777;
    Err(io::Error::other(format!(
        "its mode is {shown:o}, others can read it: make it 600, or delete it to get a new one"
    )))
}

/// Makes a token and its file. The file appears whole or not at all.
fn make(path: &Path) -> io::Result<String> {
    let mut random = [0u8; BYTES];
    fs::File::open("/dev/urandom")?.read_exact(&mut random)?;
    let token = random.iter().fold(String::from("ins_admin_"), |text, byte| text + &format!("{byte:02x}"));
    let unfinished = path.with_extension("token.new");
    let _ = fs::remove_file(&unfinished);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
    writeln!(file, "{token}")?;
    file.sync_all()?;
    fs::rename(&unfinished, path)?;
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_start_makes_a_token_for_its_owner_alone_and_later_ones_find_it() {
        let state = tempfile::tempdir().unwrap();
        let first = load(state.path(), None).unwrap();
        let path = state.path().join(FILE);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(hash_key(fs::read_to_string(&path).unwrap().trim()), first);
        assert_eq!(load(state.path(), Some(String::new())).unwrap(), first);
        assert_ne!(load(tempfile::tempdir().unwrap().path(), None).unwrap(), first);
    }

    #[test]
    fn a_given_token_stands_over_the_file() {
        let state = tempfile::tempdir().unwrap();
        assert_eq!(load(state.path(), Some("0123456789abcdef".into())).unwrap(), hash_key("0123456789abcdef"));
        assert!(!state.path().join(FILE).exists());
    }

    #[test]
    fn short_tokens_and_open_files_are_refused() {
        let state = tempfile::tempdir().unwrap();
        assert!(load(state.path(), Some("short".into())).unwrap_err().message().contains(VARIABLE));
        load(state.path(), None).unwrap();
        let path = state.path().join(FILE);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(load(state.path(), None).unwrap_err().message().contains("644"));
    }
}
