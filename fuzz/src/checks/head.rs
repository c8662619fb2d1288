//! `HEAD` of any bytes, as it is and with its checksum mended.

use hedgerow_format::checksum::crc32c;
use hedgerow_format::head::Head;

/// What is read is written the same.
pub fn check(bytes: &[u8]) {
    read(bytes);
    if bytes.len() >= 16 {
        let mut mended = bytes.to_vec();
        mended[12..16].fill(0);
        let sum = crc32c(&mended).to_le_bytes();
        mended[12..16].copy_from_slice(&sum);
        read(&mended);
    }
}

fn read(bytes: &[u8]) {
    if let Ok(head) = Head::from_bytes(bytes) {
        assert_eq!(head.to_bytes(), bytes, "a head that is read is written the same");
    }
}

/// Two heads.
pub fn seeds() -> Vec<Vec<u8>> {
    vec![Head::new([7; 16], 5, 6, 700, [9; 32]).to_bytes(), Head::new([0; 16], u64::MAX, 0, 0, [0; 32]).to_bytes()]
}
