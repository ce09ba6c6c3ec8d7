//! The keys of the example tenants, which everybody can read. It holds hashes only and decides nothing: the server asks
//! it before it lets a key in.

/// SHA-256 of `ins_demo_acme_corp_0000000000000000000000`.
const ACME_CORP: [u8; 32] = [
    0xa1, 0xfd, 0x6f, 0x98, 0xa4, 0xed, 0x2c, 0x23, 0x38, 0x4f, 0x25, 0x64, 0xb3, 0x68, 0x72, 0x68, 0x04, 0xc0, 0xf2,
    0x48, 0xe0, 0x72, 0xc8, 0xcf, 0x3e, 0xce, 0x75, 0x6d, 0xfc, 0xc6, 0x25, 0xb3,
];

/// SHA-256 of `ins_demo_beta_llc_00000000000000000000000`.
const BETA_LLC: [u8; 32] = [
    0xd9, 0x8c, 0x64, 0x0f, 0xc6, 0x6b, 0x22, 0x06, 0xfa, 0x65, 0x5e, 0x87, 0xef, 0xf9, 0xf1, 0x71, 0x52, 0x18, 0x1a,
    0x22, 0x38, 0x1c, 0x35, 0x52, 0x12, 0x02, 0x3f, 0x96, 0x79, 0x3c, 0x1a, 0xbf,
];

/// Whether `sha256` is the hash of a key of the example tenants.
pub fn is_demo_key(sha256: &[u8; 32]) -> bool {
    [ACME_CORP, BETA_LLC].contains(sha256)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::hash_key;

    #[test]
    fn the_published_texts_are_the_demo_keys() {
        assert_eq!(hash_key("ins_demo_acme_corp_0000000000000000000000"), ACME_CORP);
        assert_eq!(hash_key("ins_demo_beta_llc_00000000000000000000000"), BETA_LLC);
    }

    #[test]
    fn other_keys_are_not() {
        assert!(!is_demo_key(&hash_key("ins_demo_acme_corp")));
        assert!(!is_demo_key(&[0; 32]));
    }
}
