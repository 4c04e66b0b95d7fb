// SPDX-License-Identifier: GPL-2.0

//! Connection identifiers of iw_cm, held by reference, and their events.
//!
//! A provider owes iw_cm: after a connect that returned success one
//! [`CmId::connect_reply`]; after an accept that returned success one
//! [`CmId::established`]; and for each of these, if the connection came about,
//! one [`CmId::closed`] in the end. iw_cm stops the machine when the order is
//! broken. Events run on one ordered work queue of iw_cm and may come late; of
//! the provider only `destroy_qp` may wait for them.
//!
//! C header: [`include/rdma/iw_cm.h`](srctree/include/rdma/iw_cm.h)

use core::{
    net::SocketAddr,
    num::NonZeroUsize,
    ptr,
    ptr::NonNull, //
};

use kernel::error::to_result;

use super::prelude::*;
use crate::sys::{
    addr,
    netdev::Net, //
};

/// The most private data an event or a call can carry, in bytes.
const MAX_PRIVATE_DATA: usize = 255;

/// A connection identifier of a device of `T`.
///
/// Cloning adds a reference and dropping gives it up; both in any context.
///
/// # Invariants
///
/// Owns one reference to a live `iw_cm_id` of a device that belongs to `T`.
pub(crate) struct CmId<T: Operations> {
    id: NonNull<bindings::iw_cm_id>,
    _provider: PhantomData<T>,
}

// SAFETY: References to an `iw_cm_id` belong to no thread, and iw_cm locks the calls made here.
unsafe impl<T: Operations> Send for CmId<T> {}
// SAFETY: iw_cm locks the calls made here, so many threads may call at once.
unsafe impl<T: Operations> Sync for CmId<T> {}

/// The provider's number for a request, which iw_cm hands back with the answer.
///
/// A number and not a reference, because iw_cm may lose a request without notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestId(NonZeroUsize);

impl RequestId {
    /// A number of the provider's choice.
    pub(crate) const fn new(number: NonZeroUsize) -> Self {
        Self(number)
    }

    /// The number that [`RequestId::new`] got.
    pub(crate) const fn number(self) -> NonZeroUsize {
        self.0
    }

    /// The number that an identifier keeps, if it keeps one.
    pub(super) fn from_word(word: *mut c_void) -> Option<Self> {
        NonZeroUsize::new(word.addr()).map(Self)
    }
}

/// The parameters of a connection in an incoming request, or in the answer to a request.
pub(crate) struct CmInfo<'a> {
    /// The address of this side.
    pub(crate) local: SocketAddr,
    /// The address of the peer.
    pub(crate) remote: SocketAddr,
    /// In a request: the reads that the peer serves at once, which bounds our ORD. In an answer:
    /// the reads that we serve at once.
    pub(crate) ird: u8,
    /// In a request: the reads that the peer wants outstanding, which bounds our IRD from below. In
    /// an answer: the reads that we may have outstanding.
    pub(crate) ord: u8,
    /// The private data of the peer's consumer; at most [`MAX_PRIVATE_DATA`] bytes.
    pub(crate) private_data: &'a [u8],
}

/// The parameters of a connect or an accept. C: `struct iw_cm_conn_param`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnParams<'a> {
    /// The network namespace of the connection, that of the consumer's identifier.
    pub(crate) net: Net<'a>,
    /// Reads to have outstanding.
    pub(crate) ord: u32,
    /// Reads to serve at once.
    pub(crate) ird: u32,
    /// The private data for the peer.
    pub(crate) private_data: &'a [u8],
}

impl<T: Operations> CmId<T> {
    /// Adds a reference to `id`.
    ///
    /// # Safety
    ///
    /// `id` is live during the call and of a device that belongs to `T`.
    pub(super) unsafe fn get(id: NonNull<bindings::iw_cm_id>) -> Self {
        // SAFETY: The caller says that `id` is live; iw_cm sets the function at creation.
        unsafe {
            if let Some(add_ref) = (*id.as_ptr()).add_ref {
                add_ref(id.as_ptr());
            }
        }
        // INVARIANT: The reference was just added.
        Self {
            id,
            _provider: PhantomData,
        }
    }

    /// The local address as the consumer knows it. `EINVAL` if it is neither IPv4 nor IPv6. Any
    /// context.
    ///
    /// Not the mapped address (`m_local_addr`): no port is mapped on this device, and any program
    /// may claim to be the port mapper of iw_cm, without a privilege.
    pub(crate) fn local(&self) -> Result<SocketAddr> {
        // SAFETY: By the invariant the identifier is live; iw_cm sets these addresses before it
        // calls us, and not again.
        addr::read(unsafe { &(*self.id.as_ptr()).local_addr }).ok_or(EINVAL)
    }

    /// The remote address, as [`CmId::local`] does. Any context.
    pub(crate) fn remote(&self) -> Result<SocketAddr> {
        // SAFETY: By the invariant the identifier is live; the addresses are set as in `local`.
        addr::read(unsafe { &(*self.id.as_ptr()).remote_addr }).ok_or(EINVAL)
    }

    /// A number for the context that iw_cm's client keeps with the identifier. An identifier that a
    /// request made has its listener's context until the client takes the request on, which the
    /// client does before it notifies its own consumer. Process context, in calls from iw_cm. C:
    /// `context`.
    pub(crate) fn client(&self) -> usize {
        // SAFETY: By the invariant the identifier is live; the client changes the context before it
        // calls us.
        unsafe { (*self.id.as_ptr()).context }.addr()
    }

    /// Returns true if a listener at the IPv6 wildcard does without IPv4. Any context. C: `afonly`.
    pub(crate) fn is_family_only(&self) -> bool {
        // SAFETY: By the invariant the identifier is live; the flag is set before it listens.
        unsafe { bindings::iw_cm_id::afonly_raw(self.id.as_ptr()) }
    }

    /// Reports a request to a listening endpoint; accept or reject brings the request back. Any
    /// context.
    ///
    /// `ENOMEM` if iw_cm has no room for the request (backlog): no answer will come then. In rare
    /// cases (no memory later) iw_cm drops a request without notice: the provider needs a timer.
    pub(crate) fn connect_request(&self, what: &CmInfo<'_>, request: RequestId) -> Result {
        let kind = bindings::iw_cm_event_type_IW_CM_EVENT_CONNECT_REQUEST;
        let mut event = event(kind, Ok(()));
        set_info(&mut event, what)?;
        event.provider_data = ptr::without_provenance_mut(request.0.get());
        self.send(&mut event)
    }

    /// Reports the result of a connect. Once for each connect. Any context.
    ///
    /// `ECONNREFUSED` and `ECONNRESET` mean rejected (only the former carries private data),
    /// `ETIMEDOUT` unreachable.
    pub(crate) fn connect_reply(&self, status: Result, what: &CmInfo<'_>) -> Result {
        let kind = bindings::iw_cm_event_type_IW_CM_EVENT_CONNECT_REPLY;
        let mut event = event(kind, status);
        set_info(&mut event, what)?;
        self.send(&mut event)
    }

    /// Reports that an accepted connection is up. Once for each accept. Any context.
    pub(crate) fn established(&self, ird: u8, ord: u8) -> Result {
        let mut event = event(bindings::iw_cm_event_type_IW_CM_EVENT_ESTABLISHED, Ok(()));
        event.ird = ird;
        event.ord = ord;
        self.send(&mut event)
    }

    /// Reports that the connection is gone. Once for each connection that was up. Any context.
    pub(crate) fn closed(&self, status: Result) -> Result {
        self.send(&mut event(
            bindings::iw_cm_event_type_IW_CM_EVENT_CLOSE,
            status,
        ))
    }

    fn send(&self, event: &mut bindings::iw_cm_event) -> Result {
        let id = self.id.as_ptr();
        // SAFETY: By the invariant the identifier is live; iw_cm set the handler at creation.
        let handler = unsafe { (*id).event_handler }.ok_or(EINVAL)?;
        // SAFETY: The handler wants its identifier and copies the event and its private data.
        to_result(unsafe { handler(id, event) })
    }

    /// The word that the provider may keep in the identifier.
    pub(super) fn provider_data(&self) -> *mut *mut c_void {
        // SAFETY: By the invariant the identifier is live.
        unsafe { &raw mut (*self.id.as_ptr()).provider_data }
    }
}

impl<T: Operations> Clone for CmId<T> {
    fn clone(&self) -> Self {
        // SAFETY: By the invariant the identifier is live and belongs to `T`.
        unsafe { Self::get(self.id) }
    }
}

impl<T: Operations> Drop for CmId<T> {
    fn drop(&mut self) {
        // SAFETY: By the invariant the reference is ours to give up; iw_cm set the function. Its
        // code stays: this module uses a symbol of iw_cm, so iw_cm is not unloaded before this
        // module.
        unsafe {
            if let Some(rem_ref) = (*self.id.as_ptr()).rem_ref {
                rem_ref(self.id.as_ptr());
            }
        }
    }
}

fn event(kind: bindings::iw_cm_event_type, status: Result) -> bindings::iw_cm_event {
    bindings::iw_cm_event {
        event: kind,
        status: status.err().map_or(0, |error| error.to_errno()),
        ..pin_init::zeroed()
    }
}

/// Puts the connection's parameters into `event`, which must not outlive `what`. `EINVAL` if the
/// private data is too long.
fn set_info(event: &mut bindings::iw_cm_event, what: &CmInfo<'_>) -> Result {
    event.local_addr = addr::write(&what.local);
    event.remote_addr = addr::write(&what.remote);
    event.ird = what.ird;
    event.ord = what.ord;
    set_data(event, what.private_data)
}

/// Puts `data` into `event`, which must not outlive `data`. `EINVAL` if `data` is too long.
fn set_data(event: &mut bindings::iw_cm_event, data: &[u8]) -> Result {
    if data.len() > MAX_PRIVATE_DATA {
        return Err(EINVAL);
    }
    // CAST: at most 255.
    event.private_data_len = data.len() as u8;
    event.private_data = match data.is_empty() {
        true => ptr::null_mut(),
        false => data.as_ptr().cast_mut().cast(),
    };
    Ok(())
}

#[cfg(ndk_kunit)]
#[kernel::macros::kunit_tests(ndk_rdma_cm)]
mod tests {
    use super::*;

    #[test]
    fn private_data_ends_at_the_limit() {
        let data = [0u8; MAX_PRIVATE_DATA + 1];
        let mut event = event(0, Ok(()));
        assert!(set_data(&mut event, &data[..MAX_PRIVATE_DATA]).is_ok());
        kunit_assert_eq!(event.private_data_len, 255);
        assert!(set_data(&mut event, &data).is_err());
        assert!(set_data(&mut event, &[]).is_ok());
        assert!(event.private_data.is_null());
    }

    #[test]
    fn status_is_a_negative_errno() {
        kunit_assert_eq!(event(0, Err(ECONNREFUSED)).status, -111);
        kunit_assert_eq!(event(0, Ok(())).status, 0);
    }
}
