// SPDX-License-Identifier: GPL-2.0
// host-test

//! Memory tokens (steering tags, lkey and rkey): a 24-bit index and an 8-bit key.
//!
//! The index finds the slot of a region or a window. The owner changes the key from one
//! registration to the next, so that an old token fails. A token is compared whole.

/// A token as consumers and peers carry it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token(u32);

impl Token {
    /// The token that stands for all memory of this host, for local use only.
    ///
    /// Verbs call it `local_dma_lkey`, NDK the privileged memory region token. Index 0 is never
    /// given to a region, so no remote access can name it.
    pub(crate) const LOCAL_MEMORY: Self = Self(0x0000_00D1);

    /// The largest index that a token can carry.
    pub(crate) const MAX_INDEX: u32 = (1 << 24) - 1;

    /// Makes the token of slot `index` with `key`; bits of `index` above 24 are an error.
    pub(crate) const fn new(index: u32, key: u8) -> Option<Self> {
        if index > Self::MAX_INDEX {
            return None;
        }
        // CAST: widening.
        Some(Self((index << 8) | key as u32))
    }

    /// The token that a consumer or a frame named.
    pub(crate) const fn from_raw(raw: u32) -> Self {
        Self(raw)
    }

    /// The number that consumers see (host order).
    pub(crate) const fn raw(self) -> u32 {
        self.0
    }

    /// The slot that the token names.
    pub(crate) const fn index(self) -> u32 {
        self.0 >> 8
    }

    /// The part that its owner chooses.
    pub(crate) const fn key(self) -> u8 {
        // CAST: the low byte is the key.
        self.0 as u8
    }
}

#[cfg_attr(ndk_kunit, kernel::macros::kunit_tests(ndk_rdma_values_token))]
#[cfg(any(test, ndk_kunit))]
mod tests {
    use super::*;

    #[test]
    fn index_and_key_make_the_whole_token() {
        for (index, key) in [(1, 0), (1, 255), (0x00ab_cdef, 0x42), (Token::MAX_INDEX, 7)] {
            let t = Token::new(index, key);
            assert_eq!(t.map(|t| (t.index(), t.key())), Some((index, key)));
            assert!(t.is_some_and(|t| Token::from_raw(t.raw()) == t));
        }
    }

    #[test]
    fn an_index_of_more_than_24_bits_is_refused() {
        assert!(Token::new(Token::MAX_INDEX, 0).is_some());
        assert!(Token::new(Token::MAX_INDEX + 1, 0).is_none());
        assert!(Token::new(u32::MAX, 0).is_none());
    }

    #[test]
    fn tokens_that_differ_in_the_key_alone_are_different() {
        assert!(Token::new(9, 1) != Token::new(9, 2));
        assert!(Token::new(9, 1) != Token::new(10, 1));
    }

    #[test]
    fn the_local_memory_token_has_index_zero() {
        assert_eq!(Token::LOCAL_MEMORY.index(), 0);
    }
}
