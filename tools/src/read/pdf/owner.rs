//! The owner's password of an encryption before AES-256 gives the user's, which is what such a file opens with.

use hayro_interpret::hayro_syntax::object::dict::keys;
use hayro_interpret::hayro_syntax::object::{Dict, FromBytes, Name, ObjRef, String as Bytes};
use md5::{Digest, Md5};

/// What fills a password up to 32 bytes (ISO 32000-1, 7.6.3.3).
const PADDING: [u8; 32] = [
    0x28, 0xBF, 0x4E, 0x5E, 0x4E, 0x75, 0x8A, 0x41, 0x64, 0x00, 0x4E, 0x56, 0xFF, 0xFA, 0x01, 0x08, 0x2E, 0x2E, 0x00,
    0xB6, 0xD0, 0x68, 0x3E, 0x80, 0x2F, 0x0C, 0xA9, 0xFE, 0x64, 0x53, 0x69, 0x7A,
];

/// Places that are looked at for the dictionary of the encryption; each costs one search through the file.
const PLACES_MAX: usize = 4;

/// The users' passwords that this password would give if it is the owner's: one for each way in which its letters become
/// bytes. Whether one of them opens the file, the file tells.
pub fn user_passwords(file: &[u8], owner: &str) -> Vec<String> {
    let Some(encryption) = Encryption::find(file) else { return Vec::new() };
    let latin: Option<Vec<u8>> = owner.chars().map(|letter| u8::try_from(u32::from(letter)).ok()).collect();
    let mut owners = vec![owner.as_bytes().to_vec()];
    owners.extend(latin.filter(|latin| latin != owner.as_bytes()));
    let user = |owner: Vec<u8>| String::from_utf8(encryption.user_password(&owner)).ok();
    owners.into_iter().filter_map(user).collect()
}

/// What the owner's password is checked with.
#[derive(Debug, PartialEq, Eq)]
struct Encryption {
    revision: u8,
    key_bytes: usize,
    owner: Vec<u8>,
}

impl Encryption {
    /// The newest encryption of a file, which stands unencrypted in its trailer or in an object that the trailer names.
    fn find(file: &[u8]) -> Option<Encryption> {
        let mut end = file.len();
        for _ in 0..PLACES_MAX {
            end = last(file, end, b"/Encrypt")?;
            let value = file.get(end + b"/Encrypt".len()..)?.trim_ascii_start();
            let dict = match ObjRef::from_bytes(value) {
                Some(reference) => object(file, reference).and_then(Dict::from_bytes),
                None => value.starts_with(b"<<").then(|| Dict::from_bytes(value)).flatten(),
            };
            if let Some(encryption) = dict.as_ref().and_then(Encryption::of) {
                return Some(encryption);
            }
        }
        None
    }

    fn of(dict: &Dict<'_>) -> Option<Encryption> {
        let revision: u8 = dict.get(keys::R)?;
        let is_known = dict.get::<Name<'_>>(keys::FILTER)?.as_str() == "Standard" && (2..=4).contains(&revision);
        let owner = dict.get::<Bytes<'_>>(keys::O).filter(|_| is_known)?.as_bytes().to_vec();
        let bits = match dict.get::<u8>(keys::V)? {
            1 => 40,
            version => dict.get::<u16>(keys::LENGTH).unwrap_or(if version == 4 { 128 } else { 40 }),
        };
        // An MD5 sum has 16 bytes; revision 2 takes five of them always.
        let key_bytes = if revision == 2 { 5 } else { usize::from(bits / 8) };
        ((5..=16).contains(&key_bytes) && owner.len() == 32).then_some(Encryption { revision, key_bytes, owner })
    }

    /// ISO 32000-1, algorithms 3 (steps a to d) and 7.
    fn user_password(&self, owner: &[u8]) -> Vec<u8> {
        let padded: Vec<u8> = owner.iter().chain(&PADDING).copied().take(PADDING.len()).collect();
        let mut sum = Md5::digest(padded);
        let mut user = self.owner.clone();
        if self.revision == 2 {
            rc4(sum.get(..self.key_bytes).unwrap_or_default(), &mut user);
        } else {
            for _ in 0..50 {
                sum = Md5::digest(sum);
            }
            for round in (0..20).rev() {
                let key: Vec<u8> = sum.iter().take(self.key_bytes).map(|byte| byte ^ round).collect();
                rc4(&key, &mut user);
            }
        }
        let is_padding = |at: &usize| user.get(*at..).is_some_and(|rest| PADDING.starts_with(rest));
        let length = (0..user.len()).find(is_padding).unwrap_or(user.len());
        user.truncate(length);
        user
    }
}

/// Encrypts or decrypts with a key that is not empty: RC4, which no file is written with any more.
fn rc4(key: &[u8], bytes: &mut [u8]) {
    let mut state: [u8; 256] = std::array::from_fn(|place| u8::try_from(place).unwrap_or_default());
    let mut other = 0_u8;
    for (place, byte) in (0..256).zip(key.iter().cycle()) {
        other = other.wrapping_add(state[place]).wrapping_add(*byte);
        state.swap(place, usize::from(other));
    }
    let (mut place, mut other) = (0_u8, 0_u8);
    for byte in bytes {
        place = place.wrapping_add(1);
        let value = state[usize::from(place)];
        other = other.wrapping_add(value);
        state.swap(usize::from(place), usize::from(other));
        *byte ^= state[usize::from(value.wrapping_add(state[usize::from(place)]))];
    }
}

/// Where a word stands last before `end`.
fn last(file: &[u8], end: usize, word: &[u8]) -> Option<usize> {
    file.get(..end)?.windows(word.len()).rposition(|window| window == word)
}

/// What the newest object of this number begins with.
fn object(file: &[u8], reference: ObjRef) -> Option<&[u8]> {
    let head = format!("{} {} obj", reference.obj_number, reference.gen_number);
    let mut end = file.len();
    loop {
        end = last(file, end, head.as_bytes())?;
        let is_whole = end.checked_sub(1).and_then(|before| file.get(before)).is_none_or(u8::is_ascii_whitespace);
        if is_whole {
            return Some(file.get(end + head.len()..)?.trim_ascii_start());
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read::pdf::owner::{rc4, user_passwords};

    /// Four bits a digit.
    fn bytes(hex: &str) -> Vec<u8> {
        let pair = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (0..hex.len()).step_by(2).map(pair).collect()
    }

    #[test]
    fn rc4_gives_the_known_streams() {
        for (key, text, encrypted) in [
            ("Key", "Plaintext", "bbf316e8d940af0ad3"),
            ("Wiki", "pedia", "1021bf0420"),
            ("Secret", "Attack at dawn", "45a01f645fc35b383552544b9bf5"),
        ] {
            let mut found = text.as_bytes().to_vec();
            rc4(key.as_bytes(), &mut found);
            assert_eq!(found, bytes(encrypted));
        }
    }

    #[test]
    fn the_owners_password_gives_the_users_whether_the_trailer_holds_the_encryption_or_names_it() {
        let weak = "/V 1/R 2/O<46cefc6ed6e62231de2f2ad17499c4b66186beb7517177c6dde9747af1b3a3e7>";
        let long = "/V 2/R 3/Length 128/O<acc3abe4f92490020f35f66196b1ae0d2b88f6d2df0bd905fad9b3a7d8dc3c06>";
        let none = "/V 4/R 4/O<e30980c9c379a50d357bcdbd282faf4b53590c65074dc985630572673ca059d5>";
        for (values, user) in [(weak, "guest"), (long, "guest"), (none, "")] {
            for file in [
                format!("trailer<</Encrypt<</Filter/Standard{values}>>/Size 1>>"),
                format!("17 0 obj\nnull\n7 0 obj\n<</Filter /Standard{values}>>\nendobj\ntrailer<</Encrypt 7 0 R>>"),
            ] {
                assert_eq!(user_passwords(file.as_bytes(), "keeper"), [user], "{file}");
                assert!(!user_passwords(file.as_bytes(), "nobody").contains(&user.to_owned()), "{file}");
            }
        }
    }

    #[test]
    fn letters_beyond_ascii_count_in_one_byte_as_well() {
        let values = "/V 2/R 3/Length 128/O<2e6d4ee8ee9678dca6f57e535f7bcb5d5a40d8ce8376e1a015b92df6ce512c25>";
        let file = format!("trailer<</Encrypt<</Filter/Standard{values}>>>>");
        assert!(user_passwords(file.as_bytes(), "schlüssel").contains(&"guest".to_owned()));
    }

    #[test]
    fn files_without_an_encryption_that_is_known_give_nothing() {
        for file in ["", "/Encrypt", "/Encrypt 1 0 R", "/Encrypt<<", "/Encrypt<</Filter/Standard/R 3/V 2/O(short)>>"] {
            assert_eq!(user_passwords(file.as_bytes(), "a"), Vec::<String>::new());
        }
    }
}
