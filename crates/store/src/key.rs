//! Keys as a tenant document stores them: an id, the SHA-256 of the secret, and when it was made and ends. A secret itself
//! is never stored, logged or kept. The server hashes what a caller presents with [`hash_key`] and looks the hash up.

use insula_core::KeyId;
use jiff::Timestamp;
use sha2::{Digest, Sha256};

/// One key of a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRecord {
    /// The key's id, for people and logs; unique within the tenant.
    pub id: KeyId,
    /// SHA-256 of the whole key text.
    pub sha256: [u8; 32],
    /// When it was made.
    pub created: Timestamp,
    /// From when on it is refused; `None`: never.
    pub expires: Option<Timestamp>,
}

impl KeyRecord {
    /// Whether the key is past its end at `now`.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|end| end <= now)
    }
}

/// The hash under which a key is stored: SHA-256 of all bytes of its text.
pub fn hash_key(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// The 32 bytes that 64 hexadecimal digits stand for, in either case; `None` for any other text.
pub(crate) fn hash_from_hex(text: &str) -> Option<[u8; 32]> {
    let digits = text.as_bytes();
    if digits.len() != 64 {
        return None;
    }
    let mut hash = [0_u8; 32];
    for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
        let high = char::from(pair[0]).to_digit(16)?;
        let low = char::from(pair[1]).to_digit(16)?;
        *byte = u8::try_from(high << 4 | low).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_hashed_whole() {
        // The two test vectors of FIPS 180-2 that are text.
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Some(hash_key("")), hash_from_hex(empty));
        assert_eq!(Some(hash_key("abc")), hash_from_hex(abc));
    }

    #[test]
    fn only_64_hexadecimal_digits_are_a_hash() {
        assert_eq!(hash_from_hex(&"aF".repeat(32)), Some([0xaf; 32]));
        for bad in ["", &"a".repeat(63), &"a".repeat(65), &"g".repeat(64), &"ä".repeat(32), &"+1".repeat(32)] {
            assert_eq!(hash_from_hex(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_key_ends_at_its_expiry_and_not_before() {
        let end: Timestamp = "2027-01-01T00:00:00Z".parse().unwrap();
        let before = Timestamp::new(end.as_second() - 1, 999_999_999).unwrap();
        let mut key = KeyRecord { id: KeyId::new("k").unwrap(), sha256: [0; 32], created: before, expires: Some(end) };
        assert!(!key.is_expired(before));
        assert!(key.is_expired(end));
        key.expires = None;
        assert!(!key.is_expired(Timestamp::MAX));
    }
}
