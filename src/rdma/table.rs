// SPDX-License-Identifier: GPL-2.0

//! The operations table handed to ib_core, and the trampolines in it.
//!
//! A trampoline is what `trampolines!` makes of a function over safe types: [`FromC`] turns each
//! argument into what the function takes, [`IntoC`] its result into what C expects.

use kernel::module::this_module;

use super::{
    cm_ops::{
        self,
        CmOperations,
        ListenerOperations, //
    },
    completion::WcWriter,
    cq::{
        self,
        Cq,
        CqOperations,
        Notify, //
    },
    details::Details,
    device::{
        copy_text,
        DeviceOperations,
        PORT, //
    },
    mr::{
        self,
        Mr,
        MrOperations, //
    },
    object::{
        OfProgram,
        PdOperations, //
    },
    port,
    prelude::*,
    qp::{
        self,
        Qp,
        QpOperations, //
    },
    srq::{
        self,
        Srq,
        SrqChange,
        SrqOperations, //
    },
    trampoline::{
        trampolines,
        FromC,
        IntoC, //
    },
    types::QpChange,
    user::{
        self,
        memory,
        share::{
            self,
            UserData, //
        }, //
    },
    values::access::AccessFlags,
    work::WrChain, //
};
use crate::sys::{
    span::AllMemory,
    unaligned::Room, //
};

/// The trampolines from ib_core into a provider `T`.
///
/// # Safety
///
/// This contract is shared by all trampolines. Their caller is ib_core, or a consumer through the
/// inline functions of `ib_verbs.h`, on a device that was set up with this table. So every object
/// that occurs was made by the create trampoline of its type and is not destroyed before the call
/// returns; a create trampoline gets a new object of `Object::SIZE` bytes whose device or domain is
/// set, and a destroy trampoline an object that nobody else uses and that it gets once. Pointers to
/// parameters are valid during the call, in which no other code changes what they point at; a
/// consumer's structures need not be aligned.
pub(super) struct OperationsVTable<T: Operations>(PhantomData<T>);

trampolines! {
    fn query_device(
        device: &Device<T>,
        attr: &mut Unaligned<bindings::ib_device_attr>,
        _data: UserData,
    ) -> Result {
        attr.update(|attr| {
            device.attributes().fill(attr);
            attr.sys_image_guid = u64::from_ne_bytes(device.guid());
        });
        Ok(())
    }

    fn get_dev_fw_str(_device: &Device<T>, text: *mut c_char) -> () {
        let mut version = [0u8; port::FIRMWARE_SIZE];
        copy_text(&mut version, T::FIRMWARE);
        // SAFETY: The core passes room for so many bytes; any byte will do as a character.
        unsafe { text.cast::<[u8; port::FIRMWARE_SIZE]>().write(version) };
    }

    fn query_port(
        device: &Device<T>,
        _port: u32,
        attr: &mut Unaligned<bindings::ib_port_attr>,
    ) -> Result {
        let netdev = device.netdev().ok_or(ENODEV)?;
        attr.update(|attr| port::describe(attr, &netdev, device.is_port_down(), T::MAX_MESSAGE));
        Ok(())
    }

    fn query_gid(
        device: &Device<T>,
        _port: u32,
        _index: c_int,
        gid: Room<'_, bindings::ib_gid>,
    ) -> Result {
        gid.set(bindings::ib_gid { raw: device.gid() });
        Ok(())
    }

    fn query_pkey(_device: &Device<T>, _port: u32, index: u16, pkey: Room<'_, u16>) -> Result {
        if index != 0 {
            return Err(EINVAL);
        }
        pkey.set(port::PKEY);
        Ok(())
    }

    fn get_port_immutable(
        _device: &Device<T>,
        _port: u32,
        immutable: &mut Unaligned<bindings::ib_port_immutable>,
    ) -> Result {
        immutable.update(port::describe_immutable);
        Ok(())
    }

    fn alloc_hw_port_stats(_device: &Device<T>, _port: u32) -> *mut bindings::rdma_hw_stats {
        port::alloc_stats::<T>()
    }

    fn get_hw_stats(
        device: &Device<T>,
        stats: *mut bindings::rdma_hw_stats,
        port: u32,
        _index: c_int,
    ) -> Result<c_int> {
        if port != PORT {
            return Err(EINVAL);
        }
        // SAFETY: `alloc_hw_port_stats` made the values, and the core holds their lock.
        device.read_counters(unsafe { port::stats::<T>(stats) });
        // CAST: At most `MAX_COUNTERS`.
        Ok(T::COUNTERS.len() as c_int)
    }

    fn dealloc_driver(device: OwnedObject<bindings::ib_device, T::Device>) -> () {
        device.private().end();
        user::forget(device.as_raw(), T::DRIVER_ID);
        drop(device);
        // It makes it unlikely that the core frees an entry of the device's GIDs after the table.
        // SAFETY: The core calls this in process context, and not from the queue of that work.
        unsafe { bindings::ndk_gid_work_flush() };
    }

    /// There is nothing behind a context.
    fn alloc_ucontext(_context: *mut bindings::ib_ucontext, _data: UserData) -> Result {
        Ok(())
    }

    fn dealloc_ucontext(_context: *mut bindings::ib_ucontext) -> () {}

    /// Nothing is to be done. Having the operation lets a device move between network namespaces,
    /// and go while programs have it open.
    fn disassociate_ucontext(_context: *mut bindings::ib_ucontext) -> () {}

    fn mmap(context: *mut bindings::ib_ucontext, area: *mut bindings::vm_area_struct) -> Result {
        // SAFETY: The core passes both for a call of the current program.
        unsafe { share::map(context, area) }
    }

    fn mmap_free(entry: *mut bindings::rdma_user_mmap_entry) -> () {
        // SAFETY: The core has given the last reference up, and all entries are of one kind.
        unsafe { share::free(entry) };
    }

    fn alloc_pd(pd: NewObject<bindings::ib_pd, T::Pd>, _data: UserData) -> Result {
        // SAFETY: The core sets the device of an object before it asks for its creation.
        let device = unsafe { Device::<T>::from_raw(pd.device) };
        let payload = T::Pd::alloc(device, pd.uobject.is_null())?;
        pd.init((), payload);
        Ok(())
    }

    fn dealloc_pd(pd: OwnedObject<bindings::ib_pd, T::Pd>, _data: UserData) -> Result {
        pd.dealloc();
        drop(pd);
        Ok(())
    }

    fn create_cq(
        cq: NewObject<bindings::ib_cq, T::Cq>,
        attr: *const bindings::ib_cq_init_attr,
        attrs: *mut bindings::uverbs_attr_bundle,
    ) -> Result {
        // SAFETY: The core passes valid attributes, and the program's where it makes the queue.
        let (attr, data) = unsafe { (attr.read_unaligned(), UserData::of_attributes(attrs)) };
        cq::create::<T>(cq, &attr, &data)
    }

    fn modify_cq(cq: &Cq<T>, count: u16, period_us: u16) -> Result {
        cq.modify(count, period_us)
    }

    fn resize_user_cq(cq: &Cq<T>, entries: c_uint, data: UserData) -> Result {
        let entries = cq.resize(entries, &data)?;
        cq.private().mapping.set(data.take_mapping());
        // CAST: A number of entries, below `i32::MAX` by the provider's own limit.
        // SAFETY: A number that others read at any time, either one.
        unsafe { (&raw mut (*cq.as_raw()).cqe).write_volatile(entries as c_int) };
        Ok(())
    }

    /// `ib_free_cq()` ends its own polling next, which a call to the handler would start again.
    fn pre_destroy_cq(cq: &Cq<T>) -> Result {
        cq.pre_destroy();
        cq.private().close();
        Ok(())
    }

    fn post_destroy_cq(cq: OwnedObject<bindings::ib_cq, T::Cq>) -> () {
        cq::wait_for_handlers::<T>(&cq);
        cq.destroy();
    }

    /// Of a queue that the core does not poll.
    fn destroy_cq(cq: *mut bindings::ib_cq, _data: UserData) -> c_int {
        // SAFETY: The caller destroys a queue once, when nothing uses it.
        unsafe {
            Self::pre_destroy_cq(cq);
            Self::post_destroy_cq(cq);
        }
        0
    }

    fn poll_cq(cq: &Cq<T>, room: c_int, wc: *mut bindings::ib_wc) -> c_int {
        // SAFETY: The consumer says that `wc` has that room.
        let mut out = unsafe { WcWriter::new(wc, room) };
        cq.poll(&mut out);
        out.written()
    }

    fn req_notify_cq(cq: &Cq<T>, flags: bindings::ib_cq_notify_flags) -> c_int {
        c_int::from(cq.req_notify(Notify::from_c(flags)))
    }

    fn create_qp(
        qp: NewObject<bindings::ib_qp, T::Qp>,
        init: &mut Unaligned<bindings::ib_qp_init_attr>,
        data: UserData,
    ) -> Result {
        // SAFETY: For the call of `create`: the core passes the domain and the queues of the queue
        // pair, which it keeps as long as that.
        init.update(|init| unsafe { qp::create::<T>(qp, init, &data) })
    }

    fn modify_qp(
        qp: &Qp<T>,
        attr: &mut Unaligned<bindings::ib_qp_attr>,
        mask: c_int,
        _data: UserData,
    ) -> Result {
        qp.private().note_change();
        qp.modify(&QpChange::from_c(attr, mask)?)
    }

    fn query_qp(
        qp: &Qp<T>,
        attr: Room<'_, bindings::ib_qp_attr>,
        _mask: c_int,
        init: Room<'_, bindings::ib_qp_init_attr>,
    ) -> Result {
        let (now, made) = qp.query().to_c();
        attr.set(now);
        init.set(made);
        Ok(())
    }

    fn destroy_qp(qp: OwnedObject<bindings::ib_qp, T::Qp>, _data: UserData) -> Result {
        qp.private().hide();
        qp.destroy();
        qp.private().end();
        Ok(())
    }

    fn fill_res_qp_entry(msg: *mut bindings::sk_buff, qp: &Qp<T>) -> Result {
        // SAFETY: The core passes the message that it writes.
        unsafe { Details::fill(msg, |details| qp.describe(details)) }
    }

    fn fill_res_cq_entry(msg: *mut bindings::sk_buff, cq: &Cq<T>) -> Result {
        // SAFETY: The core passes the message that it writes.
        unsafe { Details::fill(msg, |details| cq.describe(details)) }
    }

    fn post_send(
        qp: &Qp<T>,
        wr: *const bindings::ib_send_wr,
        bad_wr: *mut *const bindings::ib_send_wr,
    ) -> c_int {
        // SAFETY: The consumer passes a chain of valid requests and a place to write to.
        unsafe { WrChain::post_from(qp.is_of_program(), wr, bad_wr, |chain| qp.post_send(chain)) }
    }

    fn post_recv(
        qp: &Qp<T>,
        wr: *const bindings::ib_recv_wr,
        bad_wr: *mut *const bindings::ib_recv_wr,
    ) -> c_int {
        // SAFETY: The consumer passes a chain of valid requests and a place to write to.
        unsafe { WrChain::post_from(qp.is_of_program(), wr, bad_wr, |chain| qp.post_recv(chain)) }
    }

    fn create_srq(
        srq: NewObject<bindings::ib_srq, T::Srq>,
        init: &mut Unaligned<bindings::ib_srq_init_attr>,
        data: UserData,
    ) -> Result {
        init.update(|init| srq::create::<T>(srq, init, &data))
    }

    fn modify_srq(
        srq: &Srq<T>,
        attr: &mut Unaligned<bindings::ib_srq_attr>,
        mask: bindings::ib_srq_attr_mask,
        data: UserData,
    ) -> Result {
        srq.modify(&SrqChange::from_c(&attr.get(), mask), &data)?;
        srq.private().mapping.set(data.take_mapping());
        Ok(())
    }

    fn query_srq(srq: &Srq<T>, attr: Room<'_, bindings::ib_srq_attr>) -> Result {
        attr.set(srq.query().to_c());
        Ok(())
    }

    fn destroy_srq(srq: OwnedObject<bindings::ib_srq, T::Srq>, _data: UserData) -> Result {
        srq.destroy();
        srq.private().close();
        Ok(())
    }

    fn post_srq_recv(
        srq: &Srq<T>,
        wr: *const bindings::ib_recv_wr,
        bad_wr: *mut *const bindings::ib_recv_wr,
    ) -> c_int {
        // SAFETY: The consumer passes a chain of valid requests and a place to write to.
        unsafe { WrChain::post_from(srq.is_of_program(), wr, bad_wr, |chain| srq.post_recv(chain)) }
    }

    fn get_dma_mr(pd: &Pd<T>, access: c_int) -> Result<*mut bindings::ib_mr> {
        // SAFETY: The core calls this for a consumer who asked for a global key alone, and who
        // answers for what his peers name by it.
        let memory = unsafe { AllMemory::new() };
        mr::create::<T>(mr::MapLimit::NOTHING, || {
            T::Mr::get_dma(pd, AccessFlags::from_c(access), memory)
        })
    }

    fn alloc_mr(
        pd: &Pd<T>,
        kind: bindings::ib_mr_type,
        max_entries: u32,
    ) -> Result<*mut bindings::ib_mr> {
        let limit = mr::MapLimit::from_c(kind, max_entries)?;
        mr::create::<T>(limit, || T::Mr::alloc(pd, max_entries))
    }

    fn reg_user_mr(
        pd: &Pd<T>,
        start: u64,
        length: u64,
        iova: u64,
        access: c_int,
        dmah: *mut bindings::ib_dmah,
        _data: UserData,
    ) -> Result<*mut bindings::ib_mr> {
        if !dmah.is_null() {
            return Err(EOPNOTSUPP);
        }
        let rights = memory::checked_access(access)?;
        // SAFETY: The device of a domain is live, and has no DMA.
        let umem = unsafe { memory::Umem::pin((*pd.as_raw()).device, start, length, access) }?;
        mr::create_user::<T>(umem, |pieces| T::Mr::reg_user(pd, rights, iova, pieces))
    }

    fn map_mr_sg(
        mr: &Mr<T>,
        list: *mut bindings::scatterlist,
        count: c_int,
        offset: *mut c_uint,
    ) -> Result<c_int> {
        // SAFETY: The consumer passes a mapped list of `count` entries, whose memory it keeps until
        // the registration ends; `offset` is null or the consumer's.
        unsafe { mr::map::<T>(mr, list, count, offset.cast::<Unaligned<c_uint>>().as_mut()) }
    }

    fn dereg_mr(mr: OwnedObject<bindings::ib_mr, T::Mr>, _data: UserData) -> Result {
        mr.dereg();
        mr::free(mr);
        Ok(())
    }

    /// `iw_get_qp` has added it.
    fn iw_add_ref(_qp: *mut bindings::ib_qp) -> () {}

    fn iw_rem_ref(qp: *mut bindings::ib_qp) -> () {
        // SAFETY: The reference that is given up here keeps the queue pair until it is.
        let cm = unsafe { Qp::<T>::from_raw(qp) }.private().cm.clone();
        cm.put();
    }

    /// Interrupts are off. The reference that iw_cm asks for next is added here already: a program
    /// may name any number, also of a queue pair that is about to go.
    fn iw_get_qp(_device: &Device<T>, number: c_int) -> *mut bindings::ib_qp {
        qp::get::<T>(number)
    }

    fn iw_connect(
        id: *mut bindings::iw_cm_id,
        param: *mut bindings::iw_cm_conn_param,
    ) -> Result {
        // SAFETY: iw_cm passes its identifier and valid parameters, and holds the queue pair.
        let (id, qp, params) = unsafe { cm_ops::conn_args::<T>(id, param) }?;
        // The answer may come, and iw_cm give its reference up, before this returns.
        let _held = qp.hold();
        qp.connect(id, &params)
    }

    fn iw_accept(
        id: *mut bindings::iw_cm_id,
        param: *mut bindings::iw_cm_conn_param,
    ) -> Result {
        // SAFETY: iw_cm passes its identifier and valid parameters, and holds the queue pair.
        match unsafe { cm_ops::conn_args::<T>(id, param) } {
            Ok((id, qp, params)) => {
                // As in `iw_connect`: the connection may come and go before this returns.
                let _held = qp.hold();
                let request = cm_ops::take_request(&id)?;
                qp.accept(id, request, &params)
            }
            Err(error) => {
                // iw_cm forgets the request now, and nobody else would answer it.
                // SAFETY: iw_cm passes its identifier.
                let id = unsafe { cm_ops::id::<T>(id) }?;
                // A request that has gone needs no answer.
                let _ = cm_ops::take_request(&id).and_then(|r| T::Listener::reject(&id, r, &[]));
                Err(error)
            }
        }
    }

    fn iw_reject(id: *mut bindings::iw_cm_id, data: *const c_void, len: u8) -> Result {
        // SAFETY: iw_cm passes its identifier and valid data.
        let (id, data) = unsafe { (cm_ops::id(id)?, cm_ops::private_data(data, len.into())) };
        T::Listener::reject(&id, cm_ops::take_request(&id)?, data)
    }

    fn iw_create_listen(id: *mut bindings::iw_cm_id, backlog: c_int) -> Result {
        // SAFETY: iw_cm passes its identifier, of a device that it keeps during the call.
        let (device, client) = unsafe { (Device::<T>::from_raw((*id).device), cm_ops::client(id)?) };
        // SAFETY: As above.
        let id = unsafe { cm_ops::id(id) }?;
        let backlog = u32::try_from(backlog).map_err(|_| EINVAL)?;
        if !client.takes_requests(&id)? {
            return Ok(());
        }
        let listener = T::Listener::create(device, id.clone(), client.net.cookie(), backlog)?;
        cm_ops::keep_listener(&id, listener);
        Ok(())
    }

    fn iw_destroy_listen(id: *mut bindings::iw_cm_id) -> Result {
        // SAFETY: iw_cm passes its identifier, with which `iw_create_listen` was called, once.
        unsafe { cm_ops::end_listening::<T>(id) }
    }
}
