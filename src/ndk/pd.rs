// SPDX-License-Identifier: GPL-2.0

//! [`Pd`]: a protection domain.

use super::prelude::*;
use crate::{
    engine::domain::Domain,
    rdma::values::token::Token, //
};

/// A protection domain.
pub(crate) struct Pd {
    pub(super) adapter: Ref<Adapter>,
    pub(super) domain: Arc<Domain>,
}

impl ObjectType for Pd {
    fn end_sleeps(&self) -> bool {
        false
    }

    fn end(&self) {
        self.domain.close();
    }
}

impl Object<Adapter> {
    /// `CreatePd`; completes at once.
    pub(crate) fn create_pd(self: &Arc<Self>) -> Created<Pd> {
        let domain = Domain::new(self.device().clone(), GFP_ATOMIC).map_err(no_memory)?;
        let adapter = self.clone();
        self.successor(Pd { adapter, domain }, GFP_ATOMIC)
    }
}

impl Pd {
    /// `GetPrivilegedMemoryRegionToken`: the token for logical addresses (PRIV-01).
    pub(crate) fn privileged_token(&self) -> Token {
        Token::LOCAL_MEMORY
    }
}
