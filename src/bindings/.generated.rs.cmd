savedcmd_src/bindings/generated.rs := bindgen src/bindings/headers.h --blocklist-type __kernel_s?size_t --blocklist-type __kernel_ptrdiff_t --opaque-type xregs_state --opaque-type desc_struct --opaque-type arch_lbr_state --opaque-type local_apic --opaque-type alt_instr --opaque-type x86_msi_data --opaque-type x86_msi_addr_lo --opaque-type lowcore --opaque-type tod_clock --opaque-type tpi_info --opaque-type uv_cb.* --opaque-type uv_secret.* --opaque-type zpci_fib --opaque-type spinlock --no-doc-comments --blocklist-function __list_.*_report --blocklist-item ARCH_SLAB_MINALIGN --blocklist-item ARCH_KMALLOC_MINALIGN --blocklist-item VM_MERGEABLE --blocklist-item VM_READ --blocklist-item VM_WRITE --blocklist-item VM_EXEC --blocklist-item VM_SHARED --blocklist-item VM_MAYREAD --blocklist-item VM_MAYWRITE --blocklist-item VM_MAYEXEC --blocklist-item VM_MAYSHARE --blocklist-item VM_PFNMAP --blocklist-item VM_IO --blocklist-item VM_DONTCOPY --blocklist-item VM_DONTEXPAND --blocklist-item VM_LOCKONFAULT --blocklist-item VM_ACCOUNT --blocklist-item VM_NORESERVE --blocklist-item VM_HUGETLB --blocklist-item VM_SYNC --blocklist-item VM_ARCH_1 --blocklist-item VM_WIPEONFORK --blocklist-item VM_DONTDUMP --blocklist-item VM_SOFTDIRTY --blocklist-item VM_MIXEDMAP --blocklist-item VM_HUGEPAGE --blocklist-item VM_NOHUGEPAGE --with-derive-custom-struct .*=MaybeZeroable --with-derive-custom-union .*=MaybeZeroable --allowlist-file '.*/rdma/.*' --allowlist-function 'ndk_.*' --no-recursive-allowlist --default-non-copy-union-style manually_drop --allowlist-type '(__)?[us](8|16|32|64)_?|__(be|le)(16|32|64)|gfp_t|dma_addr_t|phys_addr_t' --allowlist-type 'ifla_vf_(guid|stats|info)|irq_poll|irq_poll_fn|tph_mem_type|iphdr.*|dim|dim_.*' --allowlist-function '(un)?register_netdevice_notifier' --allowlist-type 'netdev_cmd' --rust-target 1.85 --use-core --with-derive-default --ctypes-prefix ffi --no-debug '.*' --enable-function-attribute-detection -o src/bindings/generated.rs -- -Wp,-MMD,src/bindings/.generated.rs.d -nostdinc -I/root/.cache/ndk/src/linux-7.3/arch/x86/include -I/root/.cache/ndk/kernel/lean-341a8a4110a9/arch/x86/include/generated -I/root/.cache/ndk/src/linux-7.3/include -I/root/.cache/ndk/kernel/lean-341a8a4110a9/include -I/root/.cache/ndk/src/linux-7.3/arch/x86/include/uapi -I/root/.cache/ndk/kernel/lean-341a8a4110a9/arch/x86/include/generated/uapi -I/root/.cache/ndk/src/linux-7.3/include/uapi -I/root/.cache/ndk/kernel/lean-341a8a4110a9/include/generated/uapi -include /root/.cache/ndk/src/linux-7.3/include/linux/compiler-version.h -include /root/.cache/ndk/src/linux-7.3/include/linux/kconfig.h -include /root/.cache/ndk/src/linux-7.3/include/linux/compiler_types.h -D__KERNEL__ --target=x86_64-linux-gnu -fintegrated-as -Werror=unknown-warning-option -Werror=ignored-optimization-argument -Werror=option-ignored -Werror=unused-command-line-argument -fshort-wchar -funsigned-char -fno-common -fno-PIE -fno-strict-aliasing -std=gnu11 -fms-extensions -Wno-gnu -Wno-microsoft-anon-tag -mno-sse -mno-mmx -mno-sse2 -mno-3dnow -mno-avx -mno-sse4a -fcf-protection=none -m64 -falign-loops=1 -mno-80387 -mno-fp-ret-in-387 -mstack-alignment=8 -mskip-rax-setup -march=x86-64 -mtune=generic -mno-red-zone -mcmodel=kernel -Wno-sign-compare -fno-asynchronous-unwind-tables -fno-delete-null-pointer-checks -O2 -fno-stack-protector -fomit-frame-pointer -ftrivial-auto-var-init=zero -fno-stack-clash-protection -falign-functions=16 -fstrict-flex-arrays=3 -fno-strict-overflow -fno-stack-check -fno-builtin-wcslen -Wall -Wextra -Wundef -Werror=implicit-function-declaration -Werror=implicit-int -Werror=return-type -Werror=strict-prototypes -Wno-format-security -Wno-trigraphs -Wno-frame-address -Wno-address-of-packed-member -Wmissing-declarations -Wmissing-prototypes -Wframe-larger-than=2048 -Wno-format-overflow-non-kprintf -Wno-format-truncation-non-kprintf -Wno-type-limits -Wno-pointer-sign -Wcast-function-type -Wimplicit-fallthrough -Werror=date-time -Werror=incompatible-pointer-types -Wenum-conversion -Wunused -Wno-unused-but-set-variable -Wno-unused-const-variable -Wno-format-overflow -Wno-override-init -Wno-pointer-to-enum-cast -Wno-tautological-constant-out-of-range-compare -Wno-unaligned-access -Wno-enum-compare-conditional -Wno-missing-field-initializers -Wno-shift-negative-value -Wno-enum-enum-conversion -Wno-sign-compare -Wno-unused-parameter -I././src -I././include    -DKBUILD_MODFILE='"./generated"' -DKBUILD_BASENAME='"generated"' -DKBUILD_MODNAME='"generated"' -D__KBUILD_MODNAME=generated -fno-builtin -D__BINDGEN__ -DMODULE

source_src/bindings/generated.rs := src/bindings/headers.h

deps_src/bindings/generated.rs := \
  /root/.cache/ndk/src/linux-7.3/include/linux/compiler-version.h \
    $(wildcard include/config/CC_VERSION_TEXT) \
  /root/.cache/ndk/src/linux-7.3/include/linux/kconfig.h \
    $(wildcard include/config/CPU_BIG_ENDIAN) \
    $(wildcard include/config/BOOGER) \
    $(wildcard include/config/FOO) \
  /root/.cache/ndk/src/linux-7.3/include/linux/compiler_types.h \
    $(wildcard include/config/DEBUG_INFO_BTF) \
    $(wildcard include/config/PAHOLE_HAS_BTF_TAG) \
    $(wildcard include/config/FUNCTION_ALIGNMENT) \
    $(wildcard include/config/CC_HAS_SANE_FUNCTION_ALIGNMENT) \
    $(wildcard include/config/X86_64) \
    $(wildcard include/config/ARM64) \
    $(wildcard include/config/LD_DEAD_CODE_DATA_ELIMINATION) \
    $(wildcard include/config/LTO_CLANG) \
    $(wildcard include/config/HAVE_ARCH_COMPILER_H) \
    $(wildcard include/config/KCSAN) \
    $(wildcard include/config/CC_HAS_ASSUME) \
    $(wildcard include/config/CC_HAS_COUNTED_BY) \
    $(wildcard include/config/FORTIFY_SOURCE) \
    $(wildcard include/config/UBSAN_BOUNDS) \
    $(wildcard include/config/CC_HAS_COUNTED_BY_PTR) \
    $(wildcard include/config/CC_HAS_MULTIDIMENSIONAL_NONSTRING) \
    $(wildcard include/config/CFI) \
    $(wildcard include/config/ARCH_USES_CFI_GENERIC_LLVM_PASS) \
    $(wildcard include/config/CC_HAS_BROKEN_COUNTED_BY_REF) \
    $(wildcard include/config/CC_HAS_ASM_INLINE) \
  /root/.cache/ndk/src/linux-7.3/include/linux/compiler-context-analysis.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/compiler_attributes.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/compiler-clang.h \
    $(wildcard include/config/ARCH_USE_BUILTIN_BSWAP) \
    $(wildcard include/config/CLANG_VERSION) \
    $(wildcard include/config/CC_HAS_TYPEOF_UNQUAL) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/percpu_types.h \
    $(wildcard include/config/SMP) \
    $(wildcard include/config/CC_HAS_NAMED_AS) \
    $(wildcard include/config/USE_X86_SEG_SUPPORT) \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/percpu_types.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/netdevice.h \
    $(wildcard include/config/DCB) \
    $(wildcard include/config/HYPERV_NET) \
    $(wildcard include/config/WLAN) \
    $(wildcard include/config/MAC80211_MESH) \
    $(wildcard include/config/NET_IPIP) \
    $(wildcard include/config/NET_IPGRE) \
    $(wildcard include/config/IPV6_SIT) \
    $(wildcard include/config/IPV6_TUNNEL) \
    $(wildcard include/config/NETPOLL) \
    $(wildcard include/config/SYSFS) \
    $(wildcard include/config/XDP_SOCKETS) \
    $(wildcard include/config/BQL) \
    $(wildcard include/config/XPS) \
    $(wildcard include/config/NUMA) \
    $(wildcard include/config/SYSCTL) \
    $(wildcard include/config/RFS_ACCEL) \
    $(wildcard include/config/FCOE) \
    $(wildcard include/config/XFRM_OFFLOAD) \
    $(wildcard include/config/NET_POLL_CONTROLLER) \
    $(wildcard include/config/LIBFCOE) \
    $(wildcard include/config/NET_SHAPER) \
    $(wildcard include/config/NETFILTER_EGRESS) \
    $(wildcard include/config/NET_XGRESS) \
    $(wildcard include/config/DEBUG_NET_SMALL_RTNL) \
    $(wildcard include/config/WIRELESS_EXT) \
    $(wildcard include/config/NET_L3_MASTER_DEV) \
    $(wildcard include/config/IPV6) \
    $(wildcard include/config/TLS_DEVICE) \
    $(wildcard include/config/LOCKDEP) \
    $(wildcard include/config/VLAN_8021Q) \
    $(wildcard include/config/NET_DSA) \
    $(wildcard include/config/TIPC) \
    $(wildcard include/config/CFG80211) \
    $(wildcard include/config/IEEE802154) \
    $(wildcard include/config/6LOWPAN) \
    $(wildcard include/config/MPLS_ROUTING) \
    $(wildcard include/config/MCTP) \
    $(wildcard include/config/INET_PSP) \
    $(wildcard include/config/NETFILTER_INGRESS) \
    $(wildcard include/config/NET_SCHED) \
    $(wildcard include/config/PCPU_DEV_REFCNT) \
    $(wildcard include/config/GARP) \
    $(wildcard include/config/MRP) \
    $(wildcard include/config/NET_DROP_MONITOR) \
    $(wildcard include/config/CGROUP_NET_PRIO) \
    $(wildcard include/config/MACSEC) \
    $(wildcard include/config/DPLL) \
    $(wildcard include/config/PAGE_POOL) \
    $(wildcard include/config/DIMLIB) \
    $(wildcard include/config/RPS) \
    $(wildcard include/config/NET_FLOW_LIMIT) \
    $(wildcard include/config/PREEMPT_RT) \
    $(wildcard include/config/NET_DEV_REFCNT_TRACKER) \
    $(wildcard include/config/ETHTOOL_NETLINK) \
    $(wildcard include/config/BUG) \
  /root/.cache/ndk/src/linux-7.3/include/linux/timer.h \
    $(wildcard include/config/DEBUG_OBJECTS_TIMERS) \
    $(wildcard include/config/HOTPLUG_CPU) \
    $(wildcard include/config/NO_HZ_COMMON) \
  /root/.cache/ndk/src/linux-7.3/include/linux/list.h \
    $(wildcard include/config/LIST_HARDENED) \
    $(wildcard include/config/DEBUG_LIST) \
  /root/.cache/ndk/src/linux-7.3/include/linux/container_of.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/build_bug.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/compiler.h \
    $(wildcard include/config/TRACE_BRANCH_PROFILING) \
    $(wildcard include/config/PROFILE_ALL_BRANCHES) \
    $(wildcard include/config/OBJTOOL) \
  /root/.cache/ndk/kernel/lean-341a8a4110a9/arch/x86/include/generated/asm/rwonce.h \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/rwonce.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/kasan-checks.h \
    $(wildcard include/config/KASAN_GENERIC) \
    $(wildcard include/config/KASAN_SW_TAGS) \
  /root/.cache/ndk/src/linux-7.3/include/linux/types.h \
    $(wildcard include/config/HAVE_UID16) \
    $(wildcard include/config/UID16) \
    $(wildcard include/config/ARCH_DMA_ADDR_T_64BIT) \
    $(wildcard include/config/PHYS_ADDR_T_64BIT) \
    $(wildcard include/config/64BIT) \
    $(wildcard include/config/ARCH_32BIT_USTAT_F_TINODE) \
    $(wildcard include/config/KCOV) \
    $(wildcard include/config/KVFREE_RCU_BATCHED) \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/types.h \
  /root/.cache/ndk/kernel/lean-341a8a4110a9/arch/x86/include/generated/uapi/asm/types.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/asm-generic/types.h \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/int-ll64.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/asm-generic/int-ll64.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/uapi/asm/bitsperlong.h \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/bitsperlong.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/asm-generic/bitsperlong.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/posix_types.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/stddef.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/stddef.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/posix_types.h \
    $(wildcard include/config/X86_32) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/uapi/asm/posix_types_64.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/asm-generic/posix_types.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/kcsan-checks.h \
    $(wildcard include/config/KCSAN_WEAK_MEMORY) \
    $(wildcard include/config/KCSAN_IGNORE_ATOMICS) \
  /root/.cache/ndk/src/linux-7.3/include/linux/poison.h \
    $(wildcard include/config/ILLEGAL_POINTER_VALUE) \
  /root/.cache/ndk/src/linux-7.3/include/linux/const.h \
  /root/.cache/ndk/src/linux-7.3/include/vdso/const.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/const.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/barrier.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/alternative.h \
    $(wildcard include/config/CALL_THUNKS) \
    $(wildcard include/config/MITIGATION_ITS) \
    $(wildcard include/config/MITIGATION_RETHUNK) \
  /root/.cache/ndk/src/linux-7.3/include/linux/stringify.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/objtool.h \
    $(wildcard include/config/FRAME_POINTER) \
    $(wildcard include/config/NOINSTR_VALIDATION) \
    $(wildcard include/config/MITIGATION_UNRET_ENTRY) \
    $(wildcard include/config/MITIGATION_SRSO) \
  /root/.cache/ndk/src/linux-7.3/include/linux/objtool_types.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/annotate.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/asm.h \
    $(wildcard include/config/KPROBES) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/asm-offsets.h \
  /root/.cache/ndk/kernel/lean-341a8a4110a9/include/generated/asm-offsets.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/extable_fixup_types.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/bug.h \
    $(wildcard include/config/GENERIC_BUG) \
    $(wildcard include/config/DEBUG_BUGVERBOSE) \
    $(wildcard include/config/DEBUG_BUGVERBOSE_DETAILED) \
  /root/.cache/ndk/src/linux-7.3/include/linux/instrumentation.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/static_call_types.h \
    $(wildcard include/config/HAVE_STATIC_CALL) \
    $(wildcard include/config/HAVE_STATIC_CALL_INLINE) \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/bug.h \
    $(wildcard include/config/GENERIC_BUG_RELATIVE_POINTERS) \
  /root/.cache/ndk/src/linux-7.3/include/linux/once_lite.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/panic.h \
    $(wildcard include/config/PANIC_TIMEOUT) \
  /root/.cache/ndk/src/linux-7.3/include/linux/stdarg.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/printk.h \
    $(wildcard include/config/MESSAGE_LOGLEVEL_DEFAULT) \
    $(wildcard include/config/CONSOLE_LOGLEVEL_DEFAULT) \
    $(wildcard include/config/CONSOLE_LOGLEVEL_QUIET) \
    $(wildcard include/config/EARLY_PRINTK) \
    $(wildcard include/config/PRINTK) \
    $(wildcard include/config/PRINTK_INDEX) \
    $(wildcard include/config/DYNAMIC_DEBUG) \
    $(wildcard include/config/DYNAMIC_DEBUG_CORE) \
  /root/.cache/ndk/src/linux-7.3/include/linux/init.h \
    $(wildcard include/config/MEMORY_HOTPLUG) \
    $(wildcard include/config/HAVE_ARCH_PREL32_RELOCATIONS) \
  /root/.cache/ndk/src/linux-7.3/include/linux/kern_levels.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/linkage.h \
    $(wildcard include/config/ARCH_USE_SYM_ANNOTATIONS) \
  /root/.cache/ndk/src/linux-7.3/include/linux/export.h \
    $(wildcard include/config/MODVERSIONS) \
    $(wildcard include/config/GENDWARFKSYMS) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/linkage.h \
    $(wildcard include/config/CALL_PADDING) \
    $(wildcard include/config/MITIGATION_RETPOLINE) \
    $(wildcard include/config/MITIGATION_SLS) \
    $(wildcard include/config/FUNCTION_PADDING_BYTES) \
    $(wildcard include/config/UML) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/ibt.h \
    $(wildcard include/config/X86_KERNEL_IBT) \
  /root/.cache/ndk/src/linux-7.3/include/linux/ratelimit_types.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/bits.h \
  /root/.cache/ndk/src/linux-7.3/include/vdso/bits.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/bits.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/overflow.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/limits.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/limits.h \
  /root/.cache/ndk/src/linux-7.3/include/vdso/limits.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/param.h \
  /root/.cache/ndk/kernel/lean-341a8a4110a9/arch/x86/include/generated/uapi/asm/param.h \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/param.h \
    $(wildcard include/config/HZ) \
  /root/.cache/ndk/src/linux-7.3/include/uapi/asm-generic/param.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/spinlock_types_raw.h \
    $(wildcard include/config/DEBUG_SPINLOCK) \
    $(wildcard include/config/DEBUG_LOCK_ALLOC) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/spinlock_types.h \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/qspinlock_types.h \
    $(wildcard include/config/NR_CPUS) \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/qrwlock_types.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/uapi/asm/byteorder.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/byteorder/little_endian.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/byteorder/little_endian.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/swab.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/swab.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/uapi/asm/swab.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/byteorder/generic.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/lockdep_types.h \
    $(wildcard include/config/PROVE_RAW_LOCK_NESTING) \
    $(wildcard include/config/LOCK_STAT) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/nops.h \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/barrier.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/ktime.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/jiffies.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/cache.h \
    $(wildcard include/config/ARCH_HAS_CACHE_LINE_SIZE) \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/kernel.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/sysinfo.h \
  /root/.cache/ndk/src/linux-7.3/include/vdso/cache.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/cache.h \
    $(wildcard include/config/X86_L1_CACHE_SHIFT) \
    $(wildcard include/config/X86_INTERNODE_CACHE_SHIFT) \
    $(wildcard include/config/X86_VSMP) \
  /root/.cache/ndk/src/linux-7.3/include/linux/math64.h \
    $(wildcard include/config/ARCH_SUPPORTS_INT128) \
  /root/.cache/ndk/src/linux-7.3/include/linux/math.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/div64.h \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/div64.h \
    $(wildcard include/config/CC_OPTIMIZE_FOR_PERFORMANCE) \
  /root/.cache/ndk/src/linux-7.3/include/vdso/math64.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/minmax.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/time.h \
    $(wildcard include/config/POSIX_TIMERS) \
  /root/.cache/ndk/src/linux-7.3/include/linux/time64.h \
  /root/.cache/ndk/src/linux-7.3/include/vdso/time64.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/time.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/time_types.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/time32.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/timex.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/timex.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/timex.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/processor.h \
    $(wildcard include/config/X86_VMX_FEATURE_NAMES) \
    $(wildcard include/config/X86_IOPL_IOPERM) \
    $(wildcard include/config/VM86) \
    $(wildcard include/config/X86_USER_SHADOW_STACK) \
    $(wildcard include/config/X86_DEBUG_FPU) \
    $(wildcard include/config/PARAVIRT_XXL) \
    $(wildcard include/config/CPU_SUP_AMD) \
    $(wildcard include/config/XEN) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/processor-flags.h \
    $(wildcard include/config/MITIGATION_PAGE_TABLE_ISOLATION) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/uapi/asm/processor-flags.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/mem_encrypt.h \
    $(wildcard include/config/ARCH_HAS_MEM_ENCRYPT) \
    $(wildcard include/config/AMD_MEM_ENCRYPT) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/mem_encrypt.h \
    $(wildcard include/config/X86_MEM_ENCRYPT) \
  /root/.cache/ndk/src/linux-7.3/include/linux/cc_platform.h \
    $(wildcard include/config/ARCH_HAS_CC_PLATFORM) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/math_emu.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/ptrace.h \
    $(wildcard include/config/PARAVIRT) \
    $(wildcard include/config/IA32_EMULATION) \
    $(wildcard include/config/X86_DEBUGCTLMSR) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/segment.h \
    $(wildcard include/config/XEN_PV) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/page_types.h \
    $(wildcard include/config/PHYSICAL_START) \
    $(wildcard include/config/PHYSICAL_ALIGN) \
    $(wildcard include/config/DYNAMIC_PHYSICAL_MASK) \
  /root/.cache/ndk/src/linux-7.3/include/vdso/page.h \
    $(wildcard include/config/PAGE_SHIFT) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/page_64_types.h \
    $(wildcard include/config/KASAN) \
    $(wildcard include/config/RANDOMIZE_BASE) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/kaslr.h \
    $(wildcard include/config/RANDOMIZE_MEMORY) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/uapi/asm/ptrace.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/uapi/asm/ptrace-abi.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/paravirt-base.h \
    $(wildcard include/config/PARAVIRT_SPINLOCKS) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/proto.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/uapi/asm/ldt.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/uapi/asm/sigcontext.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/current.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/percpu.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/args.h \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/percpu.h \
    $(wildcard include/config/DEBUG_PREEMPT) \
    $(wildcard include/config/HAVE_SETUP_PER_CPU_AREA) \
  /root/.cache/ndk/src/linux-7.3/include/linux/threads.h \
    $(wildcard include/config/BASE_SMALL) \
  /root/.cache/ndk/src/linux-7.3/include/linux/percpu-defs.h \
    $(wildcard include/config/ARCH_MODULE_NEEDS_WEAK_PER_CPU) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/cpufeatures.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/cpuid/types.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/cpuid/leaf_types.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/page.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/page_64.h \
    $(wildcard include/config/DEBUG_VIRTUAL) \
    $(wildcard include/config/X86_VSYSCALL_EMULATION) \
  /root/.cache/ndk/src/linux-7.3/include/linux/kmsan-checks.h \
    $(wildcard include/config/KMSAN) \
  /root/.cache/ndk/src/linux-7.3/include/linux/mmdebug.h \
    $(wildcard include/config/DEBUG_VM) \
    $(wildcard include/config/DEBUG_VM_IRQSOFF) \
    $(wildcard include/config/DEBUG_VM_PGFLAGS) \
  /root/.cache/ndk/src/linux-7.3/include/linux/bug.h \
    $(wildcard include/config/BUG_ON_DATA_CORRUPTION) \
  /root/.cache/ndk/src/linux-7.3/include/linux/range.h \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/memory_model.h \
    $(wildcard include/config/FLATMEM) \
    $(wildcard include/config/SPARSEMEM_VMEMMAP) \
    $(wildcard include/config/SPARSEMEM) \
  /root/.cache/ndk/src/linux-7.3/include/linux/pfn.h \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/getorder.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/log2.h \
    $(wildcard include/config/ARCH_HAS_ILOG2_U32) \
    $(wildcard include/config/ARCH_HAS_ILOG2_U64) \
  /root/.cache/ndk/src/linux-7.3/include/linux/bitops.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/typecheck.h \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/bitops/generic-non-atomic.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/bitops.h \
    $(wildcard include/config/X86_CMOV) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/rmwcc.h \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/bitops/sched.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/arch_hweight.h \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/bitops/const_hweight.h \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/bitops/instrumented-atomic.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/instrumented.h \
    $(wildcard include/config/DEBUG_ATOMIC) \
    $(wildcard include/config/DEBUG_ATOMIC_LARGEST_ALIGN) \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/bitops/instrumented-non-atomic.h \
    $(wildcard include/config/KCSAN_ASSUME_PLAIN_WRITES_ATOMIC) \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/bitops/instrumented-lock.h \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/bitops/le.h \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/bitops/ext2-atomic-setbit.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/pgtable_types.h \
    $(wildcard include/config/X86_INTEL_MEMORY_PROTECTION_KEYS) \
    $(wildcard include/config/X86_PAE) \
    $(wildcard include/config/MEM_SOFT_DIRTY) \
    $(wildcard include/config/HAVE_ARCH_USERFAULTFD_WP) \
    $(wildcard include/config/PGTABLE_LEVELS) \
    $(wildcard include/config/PROC_FS) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/pgtable_64_types.h \
    $(wildcard include/config/DEBUG_KMAP_LOCAL_FORCE_MAP) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/sparsemem.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/desc_defs.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/special_insns.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/errno.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/errno.h \
  /root/.cache/ndk/kernel/lean-341a8a4110a9/arch/x86/include/generated/uapi/asm/errno.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/asm-generic/errno.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/asm-generic/errno-base.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/irqflags.h \
    $(wildcard include/config/PROVE_LOCKING) \
    $(wildcard include/config/TRACE_IRQFLAGS) \
    $(wildcard include/config/IRQSOFF_TRACER) \
    $(wildcard include/config/PREEMPT_TRACER) \
    $(wildcard include/config/DEBUG_IRQFLAGS) \
    $(wildcard include/config/TRACE_IRQFLAGS_SUPPORT) \
  /root/.cache/ndk/src/linux-7.3/include/linux/irqflags_types.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/cleanup.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/err.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/irqflags.h \
    $(wildcard include/config/DEBUG_ENTRY) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/nospec-branch.h \
    $(wildcard include/config/CALL_THUNKS_DEBUG) \
    $(wildcard include/config/MITIGATION_CALL_DEPTH_TRACKING) \
    $(wildcard include/config/MITIGATION_IBPB_ENTRY) \
    $(wildcard include/config/BPF_JIT) \
  /root/.cache/ndk/src/linux-7.3/include/linux/static_key.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/jump_label.h \
    $(wildcard include/config/JUMP_LABEL) \
    $(wildcard include/config/HAVE_ARCH_JUMP_LABEL_RELATIVE) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/jump_label.h \
    $(wildcard include/config/HAVE_JUMP_LABEL_HACK) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/msr-index.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/unwind_hints.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/orc_types.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/paravirt.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/paravirt_types.h \
    $(wildcard include/config/ZERO_CALL_USED_REGS) \
  /root/.cache/ndk/src/linux-7.3/include/linux/cpumask.h \
    $(wildcard include/config/FORCE_NR_CPUS) \
    $(wildcard include/config/DEBUG_PER_CPU_MAPS) \
    $(wildcard include/config/CPUMASK_OFFSTACK) \
  /root/.cache/ndk/src/linux-7.3/include/linux/atomic.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/atomic.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/cmpxchg.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/cmpxchg_64.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/atomic64_64.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/atomic/atomic-arch-fallback.h \
    $(wildcard include/config/GENERIC_ATOMIC64) \
  /root/.cache/ndk/src/linux-7.3/include/linux/atomic/atomic-long.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/atomic/atomic-instrumented.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/bitmap.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/align.h \
  /root/.cache/ndk/src/linux-7.3/include/vdso/align.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/find.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/string.h \
    $(wildcard include/config/BINARY_PRINTF) \
  /root/.cache/ndk/src/linux-7.3/include/linux/array_size.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/string.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/string.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/string_64.h \
    $(wildcard include/config/ARCH_HAS_UACCESS_FLUSHCACHE) \
  /root/.cache/ndk/src/linux-7.3/include/linux/bitmap-str.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/cpumask_types.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/gfp_types.h \
    $(wildcard include/config/KASAN_HW_TAGS) \
  /root/.cache/ndk/src/linux-7.3/include/linux/numa.h \
    $(wildcard include/config/NUMA_KEEP_MEMINFO) \
    $(wildcard include/config/HAVE_ARCH_NODE_DEV_GROUP) \
  /root/.cache/ndk/src/linux-7.3/include/linux/nodemask.h \
    $(wildcard include/config/HIGHMEM) \
  /root/.cache/ndk/src/linux-7.3/include/linux/nodemask_types.h \
    $(wildcard include/config/NODES_SHIFT) \
  /root/.cache/ndk/src/linux-7.3/include/linux/random.h \
    $(wildcard include/config/VMGENID) \
  /root/.cache/ndk/src/linux-7.3/include/linux/kernel.h \
    $(wildcard include/config/PREEMPT_VOLUNTARY_BUILD) \
    $(wildcard include/config/PREEMPT_DYNAMIC) \
    $(wildcard include/config/HAVE_PREEMPT_DYNAMIC_CALL) \
    $(wildcard include/config/HAVE_PREEMPT_DYNAMIC_KEY) \
    $(wildcard include/config/PREEMPT_) \
    $(wildcard include/config/DEBUG_ATOMIC_SLEEP) \
    $(wildcard include/config/MMU) \
    $(wildcard include/config/DYNAMIC_FTRACE) \
  /root/.cache/ndk/src/linux-7.3/include/linux/kstrtox.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/sprintf.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/trace_printk.h \
    $(wildcard include/config/TRACING) \
  /root/.cache/ndk/src/linux-7.3/include/linux/instruction_pointer.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/util_macros.h \
    $(wildcard include/config/FOO_SUSPEND) \
  /root/.cache/ndk/src/linux-7.3/include/linux/wordpart.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/random.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/ioctl.h \
  /root/.cache/ndk/kernel/lean-341a8a4110a9/arch/x86/include/generated/uapi/asm/ioctl.h \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/ioctl.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/asm-generic/ioctl.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/irqnr.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/irqnr.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/frame.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/fpu/types.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/vmxfeatures.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/vdso/processor.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/shstk.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/personality.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/personality.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/tsc.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/cpufeature.h \
  /root/.cache/ndk/kernel/lean-341a8a4110a9/arch/x86/include/generated/asm/cpufeaturemasks.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/msr.h \
    $(wildcard include/config/TRACEPOINTS) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/cpumask.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/uapi/asm/msr.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/shared/msr.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/percpu.h \
    $(wildcard include/config/MODULES) \
    $(wildcard include/config/KMALLOC_PARTITION_CACHES) \
    $(wildcard include/config/PAGE_SIZE_4KB) \
    $(wildcard include/config/NEED_PER_CPU_PAGE_FIRST_CHUNK) \
  /root/.cache/ndk/src/linux-7.3/include/linux/alloc_tag.h \
    $(wildcard include/config/MEM_ALLOC_PROFILING_DEBUG) \
    $(wildcard include/config/MEM_ALLOC_PROFILING) \
    $(wildcard include/config/MEM_ALLOC_PROFILING_ENABLED_BY_DEFAULT) \
  /root/.cache/ndk/src/linux-7.3/include/linux/codetag.h \
    $(wildcard include/config/CODE_TAGGING) \
  /root/.cache/ndk/src/linux-7.3/include/linux/preempt.h \
    $(wildcard include/config/HAS_SEPARATE_PREEMPT_RESCHED_BITS) \
    $(wildcard include/config/PREEMPT_COUNT) \
    $(wildcard include/config/TRACE_PREEMPT_TOGGLE) \
    $(wildcard include/config/PREEMPTION) \
    $(wildcard include/config/PREEMPT_NOTIFIERS) \
    $(wildcard include/config/PREEMPT_NONE) \
    $(wildcard include/config/PREEMPT_VOLUNTARY) \
    $(wildcard include/config/PREEMPT) \
    $(wildcard include/config/PREEMPT_LAZY) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/preempt.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/smp.h \
    $(wildcard include/config/UP_LATE_INIT) \
    $(wildcard include/config/CSD_LOCK_WAIT_DEBUG) \
  /root/.cache/ndk/src/linux-7.3/include/linux/smp_types.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/llist.h \
    $(wildcard include/config/ARCH_HAVE_NMI_SAFE_CMPXCHG) \
  /root/.cache/ndk/src/linux-7.3/include/linux/thread_info.h \
    $(wildcard include/config/THREAD_INFO_IN_TASK) \
    $(wildcard include/config/GENERIC_ENTRY) \
    $(wildcard include/config/ARCH_HAS_PREEMPT_LAZY) \
    $(wildcard include/config/HAVE_ARCH_WITHIN_STACK_FRAMES) \
    $(wildcard include/config/SH) \
  /root/.cache/ndk/src/linux-7.3/include/linux/restart_block.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/thread_info.h \
    $(wildcard include/config/X86_FRED) \
    $(wildcard include/config/COMPAT) \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/thread_info_tif.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/smp.h \
    $(wildcard include/config/DEBUG_NMI_SELFTEST) \
  /root/.cache/ndk/src/linux-7.3/include/linux/sched.h \
    $(wildcard include/config/VIRT_CPU_ACCOUNTING_NATIVE) \
    $(wildcard include/config/SCHED_INFO) \
    $(wildcard include/config/SCHEDSTATS) \
    $(wildcard include/config/SCHED_CORE) \
    $(wildcard include/config/FAIR_GROUP_SCHED) \
    $(wildcard include/config/RT_GROUP_SCHED) \
    $(wildcard include/config/RT_MUTEXES) \
    $(wildcard include/config/UCLAMP_TASK) \
    $(wildcard include/config/UCLAMP_BUCKETS_COUNT) \
    $(wildcard include/config/KMAP_LOCAL) \
    $(wildcard include/config/SCHED_CLASS_EXT) \
    $(wildcard include/config/CGROUP_SCHED) \
    $(wildcard include/config/CFS_BANDWIDTH) \
    $(wildcard include/config/BLK_DEV_IO_TRACE) \
    $(wildcard include/config/PREEMPT_RCU) \
    $(wildcard include/config/TASKS_RCU) \
    $(wildcard include/config/TASKS_TRACE_RCU) \
    $(wildcard include/config/TRIVIAL_PREEMPT_RCU) \
    $(wildcard include/config/MEMCG_V1) \
    $(wildcard include/config/LRU_GEN) \
    $(wildcard include/config/COMPAT_BRK) \
    $(wildcard include/config/CGROUPS) \
    $(wildcard include/config/BLK_CGROUP) \
    $(wildcard include/config/PSI) \
    $(wildcard include/config/PAGE_OWNER) \
    $(wildcard include/config/EVENTFD) \
    $(wildcard include/config/ARCH_HAS_CPU_PASID) \
    $(wildcard include/config/X86_BUS_LOCK_DETECT) \
    $(wildcard include/config/TASK_DELAY_ACCT) \
    $(wildcard include/config/STACKPROTECTOR) \
    $(wildcard include/config/ARCH_HAS_SCALED_CPUTIME) \
    $(wildcard include/config/VIRT_CPU_ACCOUNTING_GEN) \
    $(wildcard include/config/NO_HZ_FULL) \
    $(wildcard include/config/POSIX_CPUTIMERS) \
    $(wildcard include/config/POSIX_CPU_TIMERS_TASK_WORK) \
    $(wildcard include/config/KEYS) \
    $(wildcard include/config/SYSVIPC) \
    $(wildcard include/config/DETECT_HUNG_TASK) \
    $(wildcard include/config/IO_URING) \
    $(wildcard include/config/AUDIT) \
    $(wildcard include/config/AUDITSYSCALL) \
    $(wildcard include/config/DETECT_HUNG_TASK_BLOCKER) \
    $(wildcard include/config/UBSAN) \
    $(wildcard include/config/UBSAN_TRAP) \
    $(wildcard include/config/COMPACTION) \
    $(wildcard include/config/TASK_XACCT) \
    $(wildcard include/config/CPUSETS) \
    $(wildcard include/config/X86_CPU_RESCTRL) \
    $(wildcard include/config/PERF_EVENTS) \
    $(wildcard include/config/NUMA_BALANCING) \
    $(wildcard include/config/SCHED_CACHE) \
    $(wildcard include/config/ARCH_HAS_LAZY_MMU_MODE) \
    $(wildcard include/config/FAULT_INJECTION) \
    $(wildcard include/config/LATENCYTOP) \
    $(wildcard include/config/KUNIT) \
    $(wildcard include/config/FUNCTION_GRAPH_TRACER) \
    $(wildcard include/config/MEMCG) \
    $(wildcard include/config/UPROBES) \
    $(wildcard include/config/BCACHE) \
    $(wildcard include/config/VMAP_STACK) \
    $(wildcard include/config/LIVEPATCH) \
    $(wildcard include/config/SECURITY) \
    $(wildcard include/config/BPF_SYSCALL) \
    $(wildcard include/config/KSTACK_ERASE) \
    $(wildcard include/config/KSTACK_ERASE_METRICS) \
    $(wildcard include/config/X86_MCE) \
    $(wildcard include/config/KRETPROBES) \
    $(wildcard include/config/RETHOOK) \
    $(wildcard include/config/ARCH_HAS_PARANOID_L1D_FLUSH) \
    $(wildcard include/config/RV) \
    $(wildcard include/config/RV_PER_TASK_MONITORS) \
    $(wildcard include/config/USER_EVENTS) \
    $(wildcard include/config/UNWIND_USER) \
    $(wildcard include/config/SCHED_PROXY_EXEC) \
    $(wildcard include/config/SCHED_MM_CID) \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/sched.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/futex_types.h \
    $(wildcard include/config/FUTEX) \
    $(wildcard include/config/FUTEX_PRIVATE_HASH) \
    $(wildcard include/config/FUTEX_ROBUST_UNLOCK) \
  /root/.cache/ndk/src/linux-7.3/include/linux/mutex_types.h \
    $(wildcard include/config/MUTEX_SPIN_ON_OWNER) \
    $(wildcard include/config/DEBUG_MUTEXES) \
  /root/.cache/ndk/src/linux-7.3/include/linux/osq_lock.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/spinlock_types.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/rwlock_types.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/pid_types.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/sem_types.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/shm.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/shmparam.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/kmsan_types.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/plist_types.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/hrtimer_types.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/timerqueue_types.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/rbtree_types.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/timer_types.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/seccomp_types.h \
    $(wildcard include/config/SECCOMP) \
  /root/.cache/ndk/src/linux-7.3/include/linux/refcount_types.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/resource.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/resource.h \
  /root/.cache/ndk/kernel/lean-341a8a4110a9/arch/x86/include/generated/uapi/asm/resource.h \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/resource.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/asm-generic/resource.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/latencytop.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/sched/prio.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/sched/types.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/signal_types.h \
    $(wildcard include/config/OLD_SIGACTION) \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/signal.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/signal.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/uapi/asm/signal.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/asm-generic/signal-defs.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/uapi/asm/siginfo.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/asm-generic/siginfo.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/spinlock.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/interrupt_rc.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/processor.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/bottom_half.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/lockdep.h \
    $(wildcard include/config/DEBUG_LOCKING_API_SELFTESTS) \
  /root/.cache/ndk/kernel/lean-341a8a4110a9/arch/x86/include/generated/asm/mmiowb.h \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/mmiowb.h \
    $(wildcard include/config/MMIOWB) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/spinlock.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/qspinlock.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/paravirt-spinlock.h \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/qspinlock.h \
    $(wildcard include/config/QUEUED_SPINLOCKS_TRACE_CONTENDED_RELEASE) \
  /root/.cache/ndk/src/linux-7.3/include/linux/tracepoint-defs.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/qrwlock.h \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/qrwlock.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/rwlock.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/spinlock_api_smp.h \
    $(wildcard include/config/INLINE_SPIN_LOCK) \
    $(wildcard include/config/INLINE_SPIN_LOCK_BH) \
    $(wildcard include/config/INLINE_SPIN_LOCK_IRQ) \
    $(wildcard include/config/INLINE_SPIN_LOCK_IRQSAVE) \
    $(wildcard include/config/INLINE_SPIN_TRYLOCK) \
    $(wildcard include/config/INLINE_SPIN_TRYLOCK_BH) \
    $(wildcard include/config/UNINLINE_SPIN_UNLOCK) \
    $(wildcard include/config/INLINE_SPIN_UNLOCK_BH) \
    $(wildcard include/config/INLINE_SPIN_UNLOCK_IRQ) \
    $(wildcard include/config/INLINE_SPIN_UNLOCK_IRQRESTORE) \
    $(wildcard include/config/GENERIC_LOCKBREAK) \
  /root/.cache/ndk/src/linux-7.3/include/linux/rwlock_api_smp.h \
    $(wildcard include/config/INLINE_READ_LOCK) \
    $(wildcard include/config/INLINE_WRITE_LOCK) \
    $(wildcard include/config/INLINE_READ_LOCK_BH) \
    $(wildcard include/config/INLINE_WRITE_LOCK_BH) \
    $(wildcard include/config/INLINE_READ_LOCK_IRQ) \
    $(wildcard include/config/INLINE_WRITE_LOCK_IRQ) \
    $(wildcard include/config/INLINE_READ_LOCK_IRQSAVE) \
    $(wildcard include/config/INLINE_WRITE_LOCK_IRQSAVE) \
    $(wildcard include/config/INLINE_READ_TRYLOCK) \
    $(wildcard include/config/INLINE_WRITE_TRYLOCK) \
    $(wildcard include/config/INLINE_READ_UNLOCK) \
    $(wildcard include/config/INLINE_WRITE_UNLOCK) \
    $(wildcard include/config/INLINE_READ_UNLOCK_BH) \
    $(wildcard include/config/INLINE_WRITE_UNLOCK_BH) \
    $(wildcard include/config/INLINE_READ_UNLOCK_IRQ) \
    $(wildcard include/config/INLINE_WRITE_UNLOCK_IRQ) \
    $(wildcard include/config/INLINE_READ_UNLOCK_IRQRESTORE) \
    $(wildcard include/config/INLINE_WRITE_UNLOCK_IRQRESTORE) \
  /root/.cache/ndk/src/linux-7.3/include/linux/syscall_user_dispatch_types.h \
    $(wildcard include/config/SYSCALL_USER_DISPATCH) \
  /root/.cache/ndk/src/linux-7.3/include/linux/mm_types_task.h \
    $(wildcard include/config/ARCH_WANT_BATCHED_UNMAP_TLB_FLUSH) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/tlbbatch.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/netdevice_xmit.h \
    $(wildcard include/config/NET_ACT_MIRRED) \
    $(wildcard include/config/NET_EGRESS) \
    $(wildcard include/config/NF_DUP_NETDEV) \
  /root/.cache/ndk/src/linux-7.3/include/linux/task_io_accounting.h \
    $(wildcard include/config/TASK_IO_ACCOUNTING) \
  /root/.cache/ndk/src/linux-7.3/include/linux/posix-timers_types.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/rseq_types.h \
    $(wildcard include/config/RSEQ) \
    $(wildcard include/config/RSEQ_SLICE_EXTENSION) \
  /root/.cache/ndk/src/linux-7.3/include/linux/irq_work_types.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/workqueue_types.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/seqlock_types.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/kcsan.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/rv.h \
    $(wildcard include/config/RV_LTL_MONITOR) \
    $(wildcard include/config/RV_HA_MONITOR) \
    $(wildcard include/config/RV_REACTORS) \
  /root/.cache/ndk/src/linux-7.3/include/linux/uidgid_types.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/unwind_deferred_types.h \
  /root/.cache/ndk/kernel/lean-341a8a4110a9/arch/x86/include/generated/asm/kmap_size.h \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/kmap_size.h \
    $(wildcard include/config/DEBUG_KMAP_LOCAL) \
  /root/.cache/ndk/kernel/lean-341a8a4110a9/include/generated/rq-offsets.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/sched/ext.h \
    $(wildcard include/config/EXT_SUB_SCHED) \
    $(wildcard include/config/EXT_GROUP_SCHED) \
  /root/.cache/ndk/src/linux-7.3/include/vdso/time32.h \
  /root/.cache/ndk/src/linux-7.3/include/vdso/time.h \
  /root/.cache/ndk/src/linux-7.3/include/vdso/jiffies.h \
  /root/.cache/ndk/kernel/lean-341a8a4110a9/include/generated/timeconst.h \
  /root/.cache/ndk/src/linux-7.3/include/vdso/ktime.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/timekeeping.h \
    $(wildcard include/config/POSIX_AUX_CLOCKS) \
    $(wildcard include/config/GENERIC_CMOS_UPDATE) \
  /root/.cache/ndk/src/linux-7.3/include/linux/clocksource_ids.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/debugobjects.h \
    $(wildcard include/config/DEBUG_OBJECTS) \
    $(wildcard include/config/DEBUG_OBJECTS_FREE) \
  /root/.cache/ndk/src/linux-7.3/include/linux/delay.h \
    $(wildcard include/config/HIGH_RES_TIMERS) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/delay.h \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/delay.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/prefetch.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/local.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/rculist.h \
    $(wildcard include/config/PROVE_RCU_LIST) \
  /root/.cache/ndk/src/linux-7.3/include/linux/rcupdate.h \
    $(wildcard include/config/TINY_RCU) \
    $(wildcard include/config/RCU_STRICT_GRACE_PERIOD) \
    $(wildcard include/config/RCU_LAZY) \
    $(wildcard include/config/RCU_STALL_COMMON) \
    $(wildcard include/config/VIRT_XFER_TO_GUEST_WORK) \
    $(wildcard include/config/RCU_NOCB_CPU) \
    $(wildcard include/config/TASKS_RCU_GENERIC) \
    $(wildcard include/config/TASKS_RUDE_RCU) \
    $(wildcard include/config/TREE_RCU) \
    $(wildcard include/config/DEBUG_OBJECTS_RCU_HEAD) \
    $(wildcard include/config/PROVE_RCU) \
    $(wildcard include/config/ARCH_WEAK_RELEASE_ACQUIRE) \
  /root/.cache/ndk/src/linux-7.3/include/linux/context_tracking_irq.h \
    $(wildcard include/config/CONTEXT_TRACKING_IDLE) \
  /root/.cache/ndk/src/linux-7.3/include/linux/rcutree.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/workqueue.h \
    $(wildcard include/config/DEBUG_OBJECTS_WORK) \
    $(wildcard include/config/FREEZER) \
    $(wildcard include/config/WQ_WATCHDOG) \
  /root/.cache/ndk/src/linux-7.3/include/linux/dynamic_queue_limits.h \
  /root/.cache/ndk/src/linux-7.3/include/net/net_namespace.h \
    $(wildcard include/config/NF_CONNTRACK) \
    $(wildcard include/config/NF_FLOW_TABLE) \
    $(wildcard include/config/UNIX) \
    $(wildcard include/config/IEEE802154_6LOWPAN) \
    $(wildcard include/config/IP_SCTP) \
    $(wildcard include/config/NETFILTER) \
    $(wildcard include/config/NF_TABLES) \
    $(wildcard include/config/WEXT_CORE) \
    $(wildcard include/config/XFRM) \
    $(wildcard include/config/IP_VS) \
    $(wildcard include/config/MPLS) \
    $(wildcard include/config/CAN) \
    $(wildcard include/config/CRYPTO_USER) \
    $(wildcard include/config/SMC) \
    $(wildcard include/config/VSOCKETS) \
    $(wildcard include/config/NET_NS) \
    $(wildcard include/config/NET_NS_REFCNT_TRACKER) \
    $(wildcard include/config/NET) \
  /root/.cache/ndk/src/linux-7.3/include/linux/refcount.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/sysctl.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/wait.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/rbtree.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/uidgid.h \
    $(wildcard include/config/MULTIUSER) \
    $(wildcard include/config/USER_NS) \
  /root/.cache/ndk/src/linux-7.3/include/linux/highuid.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/sysctl.h \
  /root/.cache/ndk/src/linux-7.3/include/net/flow.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/in6.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/in6.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/libc-compat.h \
  /root/.cache/ndk/src/linux-7.3/include/net/inet_dscp.h \
  /root/.cache/ndk/src/linux-7.3/include/net/netns/core.h \
  /root/.cache/ndk/src/linux-7.3/include/net/netns/mib.h \
    $(wildcard include/config/XFRM_STATISTICS) \
    $(wildcard include/config/TLS) \
    $(wildcard include/config/MPTCP) \
  /root/.cache/ndk/src/linux-7.3/include/net/snmp.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/snmp.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/u64_stats_sync.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/seqlock.h \
    $(wildcard include/config/CC_IS_GCC) \
    $(wildcard include/config/GCC_VERSION) \
    $(wildcard include/config/UBSAN_ALIGNMENT) \
  /root/.cache/ndk/src/linux-7.3/include/linux/mutex.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/debug_locks.h \
  /root/.cache/ndk/kernel/lean-341a8a4110a9/arch/x86/include/generated/asm/local64.h \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/local64.h \
  /root/.cache/ndk/src/linux-7.3/include/net/netns/unix.h \
  /root/.cache/ndk/src/linux-7.3/include/net/netns/packet.h \
  /root/.cache/ndk/src/linux-7.3/include/net/netns/ipv4.h \
    $(wildcard include/config/IP_ROUTE_MULTIPATH) \
    $(wildcard include/config/NET_UDP_TUNNEL) \
    $(wildcard include/config/IP_MULTIPLE_TABLES) \
    $(wildcard include/config/IP_ROUTE_CLASSID) \
    $(wildcard include/config/IP_MROUTE) \
    $(wildcard include/config/IP_MROUTE_MULTIPLE_TABLES) \
  /root/.cache/ndk/src/linux-7.3/include/net/inet_frag.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/rhashtable-types.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/completion.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/swait.h \
  /root/.cache/ndk/src/linux-7.3/include/net/dropreason-core.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/siphash.h \
    $(wildcard include/config/HAVE_EFFICIENT_UNALIGNED_ACCESS) \
  /root/.cache/ndk/src/linux-7.3/include/net/netns/ipv6.h \
    $(wildcard include/config/IPV6_MULTIPLE_TABLES) \
    $(wildcard include/config/IPV6_SUBTREES) \
    $(wildcard include/config/IPV6_MROUTE) \
    $(wildcard include/config/IPV6_MROUTE_MULTIPLE_TABLES) \
    $(wildcard include/config/NF_DEFRAG_IPV6) \
  /root/.cache/ndk/src/linux-7.3/include/net/dst_ops.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/percpu_counter.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/icmpv6.h \
  /root/.cache/ndk/src/linux-7.3/include/net/netns/nexthop.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/notifier.h \
    $(wildcard include/config/TREE_SRCU) \
  /root/.cache/ndk/src/linux-7.3/include/linux/rwsem.h \
    $(wildcard include/config/RWSEM_SPIN_ON_OWNER) \
    $(wildcard include/config/DEBUG_RWSEMS) \
  /root/.cache/ndk/src/linux-7.3/include/linux/srcu.h \
    $(wildcard include/config/TINY_SRCU) \
    $(wildcard include/config/NEED_SRCU_NMI_SAFE) \
  /root/.cache/ndk/src/linux-7.3/include/linux/rcu_segcblist.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/srcutree.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/rcu_node_tree.h \
    $(wildcard include/config/RCU_FANOUT) \
    $(wildcard include/config/RCU_FANOUT_LEAF) \
  /root/.cache/ndk/src/linux-7.3/include/net/netns/ieee802154_6lowpan.h \
  /root/.cache/ndk/src/linux-7.3/include/net/netns/sctp.h \
  /root/.cache/ndk/src/linux-7.3/include/net/netns/netfilter.h \
    $(wildcard include/config/LWTUNNEL) \
    $(wildcard include/config/NETFILTER_FAMILY_ARP) \
    $(wildcard include/config/NETFILTER_FAMILY_BRIDGE) \
    $(wildcard include/config/NF_DEFRAG_IPV4) \
  /root/.cache/ndk/src/linux-7.3/include/linux/netfilter_defs.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/netfilter.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/in.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/in.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/socket.h \
  /root/.cache/ndk/kernel/lean-341a8a4110a9/arch/x86/include/generated/uapi/asm/socket.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/asm-generic/socket.h \
  /root/.cache/ndk/kernel/lean-341a8a4110a9/arch/x86/include/generated/uapi/asm/sockios.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/asm-generic/sockios.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/sockios.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/uio.h \
    $(wildcard include/config/ARCH_HAS_COPY_MC) \
  /root/.cache/ndk/src/linux-7.3/include/linux/mm_types.h \
    $(wildcard include/config/HAVE_ALIGNED_STRUCT_PAGE) \
    $(wildcard include/config/SLAB_OBJ_EXT) \
    $(wildcard include/config/HUGETLB_PMD_PAGE_TABLE_SHARING) \
    $(wildcard include/config/SLAB_FREELIST_HARDENED) \
    $(wildcard include/config/USERFAULTFD) \
    $(wildcard include/config/ANON_VMA_NAME) \
    $(wildcard include/config/PER_VMA_LOCK) \
    $(wildcard include/config/SWAP) \
    $(wildcard include/config/HAVE_ARCH_COMPAT_MMAP_BASES) \
    $(wildcard include/config/MEMBARRIER) \
    $(wildcard include/config/ARCH_HAS_ELF_CORE_EFLAGS) \
    $(wildcard include/config/AIO) \
    $(wildcard include/config/MMU_NOTIFIER) \
    $(wildcard include/config/TRANSPARENT_HUGEPAGE) \
    $(wildcard include/config/SPLIT_PMD_PTLOCKS) \
    $(wildcard include/config/HUGETLB_PAGE) \
    $(wildcard include/config/IOMMU_MM_DATA) \
    $(wildcard include/config/KSM) \
    $(wildcard include/config/LRU_GEN_WALKS_MMU) \
    $(wildcard include/config/MM_ID) \
    $(wildcard include/config/CORE_DUMP_DEFAULT_ELF_HEADERS) \
  /root/.cache/ndk/src/linux-7.3/include/linux/auxvec.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/auxvec.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/uapi/asm/auxvec.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/kref.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/maple_tree.h \
    $(wildcard include/config/DEBUG_MAPLE_TREE) \
  /root/.cache/ndk/src/linux-7.3/include/linux/uprobes.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/page-flags-layout.h \
  /root/.cache/ndk/kernel/lean-341a8a4110a9/include/generated/bounds.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/mmu.h \
    $(wildcard include/config/MODIFY_LDT_SYSCALL) \
    $(wildcard include/config/ADDRESS_MASKING) \
    $(wildcard include/config/BROADCAST_TLB_FLUSH) \
  /root/.cache/ndk/src/linux-7.3/include/linux/ucopysize.h \
    $(wildcard include/config/HARDENED_USERCOPY) \
    $(wildcard include/config/HARDENED_USERCOPY_DEFAULT_ON) \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/uio.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/socket.h \
  /root/.cache/ndk/src/linux-7.3/include/net/netns/nftables.h \
  /root/.cache/ndk/src/linux-7.3/include/net/netns/xfrm.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/xfrm.h \
  /root/.cache/ndk/src/linux-7.3/include/net/netns/mpls.h \
  /root/.cache/ndk/src/linux-7.3/include/net/netns/can.h \
  /root/.cache/ndk/src/linux-7.3/include/net/netns/xdp.h \
  /root/.cache/ndk/src/linux-7.3/include/net/netns/smc.h \
    $(wildcard include/config/SMC_HS_CTRL_BPF) \
  /root/.cache/ndk/src/linux-7.3/include/net/netns/bpf.h \
  /root/.cache/ndk/src/linux-7.3/include/net/netns/mctp.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/hash.h \
    $(wildcard include/config/HAVE_ARCH_HASH) \
  /root/.cache/ndk/src/linux-7.3/include/linux/hashtable.h \
  /root/.cache/ndk/src/linux-7.3/include/net/netns/vsock.h \
  /root/.cache/ndk/src/linux-7.3/include/net/net_trackers.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/ref_tracker.h \
    $(wildcard include/config/REF_TRACKER) \
    $(wildcard include/config/DEBUG_FS) \
  /root/.cache/ndk/src/linux-7.3/include/linux/stackdepot.h \
    $(wildcard include/config/STACKDEPOT) \
    $(wildcard include/config/STACKDEPOT_MAX_FRAMES) \
    $(wildcard include/config/STACKDEPOT_ALWAYS_INIT) \
  /root/.cache/ndk/src/linux-7.3/include/linux/gfp.h \
    $(wildcard include/config/ZONE_DMA) \
    $(wildcard include/config/ZONE_DMA32) \
    $(wildcard include/config/ZONE_DEVICE) \
    $(wildcard include/config/CONTIG_ALLOC) \
  /root/.cache/ndk/src/linux-7.3/include/linux/mmzone.h \
    $(wildcard include/config/ARCH_FORCE_MAX_ORDER) \
    $(wildcard include/config/PAGE_BLOCK_MAX_ORDER) \
    $(wildcard include/config/HAVE_GIGANTIC_FOLIOS) \
    $(wildcard include/config/HUGETLB_PAGE_OPTIMIZE_VMEMMAP) \
    $(wildcard include/config/CMA) \
    $(wildcard include/config/MEMORY_ISOLATION) \
    $(wildcard include/config/ZSMALLOC) \
    $(wildcard include/config/UNACCEPTED_MEMORY) \
    $(wildcard include/config/SHADOW_CALL_STACK) \
    $(wildcard include/config/IOMMU_SUPPORT) \
    $(wildcard include/config/LRU_GEN_STATS) \
    $(wildcard include/config/MEMORY_FAILURE) \
    $(wildcard include/config/PAGE_EXTENSION) \
    $(wildcard include/config/DEFERRED_STRUCT_PAGE_INIT) \
    $(wildcard include/config/HAVE_MEMORYLESS_NODES) \
    $(wildcard include/config/SPARSEMEM_EXTREME) \
    $(wildcard include/config/SPARSEMEM_VMEMMAP_PREINIT) \
    $(wildcard include/config/HAVE_ARCH_PFN_VALID) \
  /root/.cache/ndk/src/linux-7.3/include/linux/list_nulls.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/pageblock-flags.h \
    $(wildcard include/config/HUGETLB_PAGE_SIZE_VARIABLE) \
  /root/.cache/ndk/src/linux-7.3/include/linux/page-flags.h \
    $(wildcard include/config/PAGE_IDLE_FLAG) \
    $(wildcard include/config/ARCH_USES_PG_ARCH_2) \
    $(wildcard include/config/ARCH_USES_PG_ARCH_3) \
    $(wildcard include/config/MIGRATION) \
  /root/.cache/ndk/src/linux-7.3/include/linux/local_lock.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/local_lock_internal.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/zswap.h \
    $(wildcard include/config/ZSWAP) \
  /root/.cache/ndk/src/linux-7.3/include/linux/sizes.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/memory_hotplug.h \
    $(wildcard include/config/ARCH_HAS_ADD_PAGES) \
    $(wildcard include/config/MEMORY_HOTREMOVE) \
  /root/.cache/ndk/src/linux-7.3/include/linux/topology.h \
    $(wildcard include/config/USE_PERCPU_NUMA_NODE_ID) \
    $(wildcard include/config/SCHED_SMT) \
    $(wildcard include/config/GENERIC_ARCH_TOPOLOGY) \
  /root/.cache/ndk/src/linux-7.3/include/linux/arch_topology.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/topology.h \
    $(wildcard include/config/X86_LOCAL_APIC) \
    $(wildcard include/config/SCHED_MC_PRIO) \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/topology.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/cpu_smt.h \
    $(wildcard include/config/HOTPLUG_SMT) \
  /root/.cache/ndk/src/linux-7.3/include/linux/ns_common.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/ns/ns_common_types.h \
    $(wildcard include/config/IPC_NS) \
    $(wildcard include/config/PID_NS) \
    $(wildcard include/config/TIME_NS) \
    $(wildcard include/config/UTS_NS) \
  /root/.cache/ndk/src/linux-7.3/include/linux/ns/nstree_types.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/vfsdebug.h \
    $(wildcard include/config/DEBUG_VFS) \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/nsfs.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/idr.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/radix-tree.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/xarray.h \
    $(wildcard include/config/XARRAY_MULTI) \
  /root/.cache/ndk/src/linux-7.3/include/linux/sched/mm.h \
    $(wildcard include/config/MMU_LAZY_TLB_REFCOUNT) \
    $(wildcard include/config/ARCH_HAS_MEMBARRIER_CALLBACKS) \
    $(wildcard include/config/ARCH_HAS_SYNC_CORE_BEFORE_USERMODE) \
  /root/.cache/ndk/src/linux-7.3/include/linux/sync_core.h \
    $(wildcard include/config/ARCH_HAS_PREPARE_SYNC_CORE_CMD) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/sync_core.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/sched/coredump.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/skbuff.h \
    $(wildcard include/config/BRIDGE_NETFILTER) \
    $(wildcard include/config/NET_TC_SKB_EXT) \
    $(wildcard include/config/MAX_SKB_FRAGS) \
    $(wildcard include/config/NET_SOCK_MSG) \
    $(wildcard include/config/SKB_EXTENSIONS) \
    $(wildcard include/config/WIRELESS) \
    $(wildcard include/config/IPV6_NDISC_NODETYPE) \
    $(wildcard include/config/NETFILTER_XT_TARGET_TRACE) \
    $(wildcard include/config/NET_SWITCHDEV) \
    $(wildcard include/config/NET_REDIRECT) \
    $(wildcard include/config/SKB_DECRYPTED) \
    $(wildcard include/config/NET_RX_BUSY_POLL) \
    $(wildcard include/config/NETWORK_SECMARK) \
    $(wildcard include/config/DEBUG_NET) \
    $(wildcard include/config/FAIL_SKB_REALLOC) \
    $(wildcard include/config/NETWORK_PHY_TIMESTAMPING) \
    $(wildcard include/config/MCTP_FLOWS) \
  /root/.cache/ndk/src/linux-7.3/include/linux/bvec.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/highmem.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/fs.h \
    $(wildcard include/config/FANOTIFY_ACCESS_PERMISSIONS) \
    $(wildcard include/config/FS_POSIX_ACL) \
    $(wildcard include/config/CGROUP_WRITEBACK) \
    $(wildcard include/config/IMA) \
    $(wildcard include/config/FILE_LOCKING) \
    $(wildcard include/config/FSNOTIFY) \
    $(wildcard include/config/EPOLL) \
    $(wildcard include/config/FS_DAX) \
    $(wildcard include/config/BLOCK) \
    $(wildcard include/config/UNICODE) \
  /root/.cache/ndk/src/linux-7.3/include/linux/fs/super.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/fs/super_types.h \
    $(wildcard include/config/QUOTA) \
    $(wildcard include/config/FS_ENCRYPTION) \
    $(wildcard include/config/FS_VERITY) \
  /root/.cache/ndk/src/linux-7.3/include/linux/fs_dirent.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/stat.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/uapi/asm/stat.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/stat.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/errseq.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/list_lru.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/shrinker.h \
    $(wildcard include/config/SHRINKER_DEBUG) \
  /root/.cache/ndk/src/linux-7.3/include/linux/list_bl.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/bit_spinlock.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/uuid.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/percpu-rwsem.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/rcuwait.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/sched/signal.h \
    $(wildcard include/config/SCHED_AUTOGROUP) \
    $(wildcard include/config/BSD_PROCESS_ACCT) \
    $(wildcard include/config/TASKSTATS) \
    $(wildcard include/config/STACK_GROWSUP) \
  /root/.cache/ndk/src/linux-7.3/include/linux/signal.h \
    $(wildcard include/config/DYNAMIC_SIGFRAME) \
  /root/.cache/ndk/src/linux-7.3/include/linux/sched/jobctl.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/sched/task.h \
    $(wildcard include/config/HAVE_EXIT_THREAD) \
    $(wildcard include/config/ARCH_WANTS_DYNAMIC_TASK_STRUCT) \
    $(wildcard include/config/HAVE_ARCH_THREAD_STRUCT_WHITELIST) \
  /root/.cache/ndk/src/linux-7.3/include/linux/uaccess.h \
    $(wildcard include/config/ARCH_HAS_SUBPAGE_FAULTS) \
    $(wildcard include/config/ARCH_MEMORY_ORDER_TSO) \
  /root/.cache/ndk/src/linux-7.3/include/linux/fault-inject-usercopy.h \
    $(wildcard include/config/FAULT_INJECTION_USERCOPY) \
  /root/.cache/ndk/src/linux-7.3/include/linux/nospec.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/uaccess.h \
    $(wildcard include/config/CC_HAS_ASM_GOTO_OUTPUT) \
    $(wildcard include/config/CC_HAS_ASM_GOTO_TIED_OUTPUT) \
    $(wildcard include/config/X86_INTEL_USERCOPY) \
  /root/.cache/ndk/src/linux-7.3/include/linux/mmap_lock.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/smap.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/extable.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/tlbflush.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/mmu_notifier.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/interval_tree.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/invpcid.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/pti.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/pgtable.h \
    $(wildcard include/config/DEBUG_WX) \
    $(wildcard include/config/HAVE_ARCH_TRANSPARENT_HUGEPAGE_PUD) \
    $(wildcard include/config/ARCH_SUPPORTS_PMD_PFNMAP) \
    $(wildcard include/config/ARCH_SUPPORTS_PUD_PFNMAP) \
    $(wildcard include/config/HAVE_ARCH_SOFT_DIRTY) \
    $(wildcard include/config/ARCH_HAS_PTE_PROTNONE) \
    $(wildcard include/config/ARCH_HAS_PMD_SOFTLEAVES) \
    $(wildcard include/config/PAGE_TABLE_CHECK) \
    $(wildcard include/config/X86_SGX) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/x86_init.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/pkru.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/fpu/api.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/coco.h \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/pgtable_uffd.h \
    $(wildcard include/config/PTE_MARKER_UFFD_WP) \
  /root/.cache/ndk/src/linux-7.3/include/linux/page_table_check.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/pgtable_64.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/fixmap.h \
    $(wildcard include/config/PROVIDE_OHCI1394_DMA_INIT) \
    $(wildcard include/config/X86_IO_APIC) \
    $(wildcard include/config/PCI_MMCONFIG) \
    $(wildcard include/config/ACPI_APEI_GHES) \
    $(wildcard include/config/INTEL_TXT) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/apicdef.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/uapi/asm/vsyscall.h \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/fixmap.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/pgtable-invert.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/uaccess_64.h \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/access_ok.h \
    $(wildcard include/config/ALTERNATE_USER_ADDRESS_SPACE) \
  /root/.cache/ndk/src/linux-7.3/include/linux/cred.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/capability.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/capability.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/key.h \
    $(wildcard include/config/KEY_NOTIFICATIONS) \
  /root/.cache/ndk/src/linux-7.3/include/linux/assoc_array.h \
    $(wildcard include/config/ASSOCIATIVE_ARRAY) \
  /root/.cache/ndk/src/linux-7.3/include/linux/sched/user.h \
    $(wildcard include/config/VFIO_PCI_ZDEV_KVM) \
    $(wildcard include/config/IOMMUFD) \
    $(wildcard include/config/SECRETMEM) \
    $(wildcard include/config/WATCH_QUEUE) \
  /root/.cache/ndk/src/linux-7.3/include/linux/ratelimit.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/pid.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/posix-timers.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/alarmtimer.h \
    $(wildcard include/config/RTC_CLASS) \
  /root/.cache/ndk/src/linux-7.3/include/linux/hrtimer.h \
    $(wildcard include/config/TIME_LOW_RES) \
    $(wildcard include/config/TIMERFD) \
  /root/.cache/ndk/src/linux-7.3/include/linux/hrtimer_rearm.h \
    $(wildcard include/config/HRTIMER_REARM_DEFERRED) \
  /root/.cache/ndk/src/linux-7.3/include/linux/timerqueue.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/rcuref.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/rcu_sync.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/quota.h \
    $(wildcard include/config/QUOTA_NETLINK_INTERFACE) \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/dqblk_xfs.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/dqblk_v1.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/dqblk_v2.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/dqblk_qtree.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/projid.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/quota.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/unicode.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/dcache.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/rculist_bl.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/lockref.h \
    $(wildcard include/config/ARCH_USE_CMPXCHG_LOCKREF) \
  /root/.cache/ndk/src/linux-7.3/include/linux/stringhash.h \
    $(wildcard include/config/DCACHE_WORD_ACCESS) \
  /root/.cache/ndk/src/linux-7.3/include/linux/wait_bit.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/kdev_t.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/kdev_t.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/path.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/semaphore.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/fcntl.h \
    $(wildcard include/config/ARCH_32BIT_OFF_T) \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/fcntl.h \
  /root/.cache/ndk/kernel/lean-341a8a4110a9/arch/x86/include/generated/uapi/asm/fcntl.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/asm-generic/fcntl.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/openat2.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/migrate_mode.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/delayed_call.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/ioprio.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/sched/rt.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/iocontext.h \
    $(wildcard include/config/BLK_ICQ) \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/ioprio.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/mount.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/mnt_idmapping.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/slab.h \
    $(wildcard include/config/FAILSLAB) \
    $(wildcard include/config/KFENCE) \
    $(wildcard include/config/SLUB_TINY) \
    $(wildcard include/config/SLUB_DEBUG) \
    $(wildcard include/config/KMALLOC_PARTITION_RANDOM) \
    $(wildcard include/config/KMALLOC_PARTITION_TYPED) \
    $(wildcard include/config/SLAB_BUCKETS) \
  /root/.cache/ndk/src/linux-7.3/include/linux/percpu-refcount.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/kasan.h \
    $(wildcard include/config/KASAN_STACK) \
    $(wildcard include/config/KASAN_VMALLOC) \
  /root/.cache/ndk/src/linux-7.3/include/linux/kasan-enabled.h \
    $(wildcard include/config/ARCH_DEFER_KASAN) \
  /root/.cache/ndk/src/linux-7.3/include/linux/kasan-tags.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/rw_hint.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/file_ref.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/fs.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/cacheflush.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/cacheflush.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/mm.h \
    $(wildcard include/config/HAVE_ARCH_MMAP_RND_BITS) \
    $(wildcard include/config/HAVE_ARCH_MMAP_RND_COMPAT_BITS) \
    $(wildcard include/config/PPC32) \
    $(wildcard include/config/RISCV_USER_CFI) \
    $(wildcard include/config/ARM64_GCS) \
    $(wildcard include/config/ARCH_HAS_PKEYS) \
    $(wildcard include/config/ARCH_PKEY_BITS) \
    $(wildcard include/config/PPC64) \
    $(wildcard include/config/PARISC) \
    $(wildcard include/config/SPARC64) \
    $(wildcard include/config/ARM64_MTE) \
    $(wildcard include/config/HAVE_ARCH_USERFAULTFD_MINOR) \
    $(wildcard include/config/USERFAULTFD_RWP) \
    $(wildcard include/config/MSEAL_SYSTEM_MAPPINGS) \
    $(wildcard include/config/FIND_NORMAL_PAGE) \
    $(wildcard include/config/SHMEM) \
    $(wildcard include/config/ARCH_HAS_PTE_SPECIAL) \
    $(wildcard include/config/ASYNC_KERNEL_PGTABLE_FREE) \
    $(wildcard include/config/SPLIT_PTE_PTLOCKS) \
    $(wildcard include/config/HIGHPTE) \
    $(wildcard include/config/DEBUG_VM_RB) \
    $(wildcard include/config/PAGE_POISONING) \
    $(wildcard include/config/INIT_ON_ALLOC_DEFAULT_ON) \
    $(wildcard include/config/INIT_ON_FREE_DEFAULT_ON) \
    $(wildcard include/config/DEBUG_PAGEALLOC) \
    $(wildcard include/config/ARCH_WANT_OPTIMIZE_DAX_VMEMMAP) \
    $(wildcard include/config/HUGETLBFS) \
    $(wildcard include/config/MAPPING_DIRTY_HELPERS) \
  /root/.cache/ndk/src/linux-7.3/include/linux/pgalloc_tag.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/page_ext.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/stacktrace.h \
    $(wildcard include/config/ARCH_STACKWALK) \
    $(wildcard include/config/STACKTRACE) \
    $(wildcard include/config/HAVE_RELIABLE_STACKTRACE) \
  /root/.cache/ndk/src/linux-7.3/include/linux/page_ref.h \
    $(wildcard include/config/DEBUG_PAGE_REF) \
  /root/.cache/ndk/src/linux-7.3/include/linux/pgtable.h \
    $(wildcard include/config/ARCH_HAS_NONLEAF_PMD_YOUNG) \
    $(wildcard include/config/ARCH_HAS_HW_PTE_YOUNG) \
    $(wildcard include/config/GUP_GET_PXX_LOW_HIGH) \
    $(wildcard include/config/ARCH_WANT_PMD_MKWRITE) \
    $(wildcard include/config/HAVE_ARCH_HUGE_VMAP) \
    $(wildcard include/config/X86_ESPFIX64) \
  /root/.cache/ndk/src/linux-7.3/include/linux/memremap.h \
    $(wildcard include/config/DEVICE_PRIVATE) \
    $(wildcard include/config/PCI_P2PDMA) \
  /root/.cache/ndk/src/linux-7.3/include/linux/ioport.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/cacheinfo.h \
    $(wildcard include/config/ACPI_PPTT) \
    $(wildcard include/config/ARM) \
    $(wildcard include/config/ARCH_HAS_CPU_CACHE_ALIASING) \
  /root/.cache/ndk/src/linux-7.3/include/linux/cpuhplock.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/iommu-debug-pagealloc.h \
    $(wildcard include/config/IOMMU_DEBUG_PAGEALLOC) \
  /root/.cache/ndk/src/linux-7.3/include/linux/huge_mm.h \
    $(wildcard include/config/PGTABLE_HAS_HUGE_LEAVES) \
    $(wildcard include/config/PERSISTENT_HUGE_ZERO_FOLIO) \
  /root/.cache/ndk/src/linux-7.3/include/linux/kobject.h \
    $(wildcard include/config/UEVENT_HELPER) \
    $(wildcard include/config/DEBUG_KOBJECT_RELEASE) \
  /root/.cache/ndk/src/linux-7.3/include/linux/sysfs.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/kernfs.h \
    $(wildcard include/config/KERNFS) \
  /root/.cache/ndk/src/linux-7.3/include/linux/kobject_ns.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/vmstat.h \
    $(wildcard include/config/VM_EVENT_COUNTERS) \
    $(wildcard include/config/DEBUG_TLBFLUSH) \
    $(wildcard include/config/PER_VMA_LOCK_STATS) \
  /root/.cache/ndk/src/linux-7.3/include/linux/vm_event_item.h \
    $(wildcard include/config/BALLOON) \
    $(wildcard include/config/BALLOON_MIGRATION) \
    $(wildcard include/config/X86) \
    $(wildcard include/config/DEBUG_STACK_USAGE) \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/cacheflush.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/kmsan.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/dma-direction.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/hardirq.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/context_tracking_state.h \
    $(wildcard include/config/CONTEXT_TRACKING_USER) \
    $(wildcard include/config/CONTEXT_TRACKING) \
    $(wildcard include/config/RCU_DYNTICKS_TORTURE) \
  /root/.cache/ndk/src/linux-7.3/include/linux/ftrace_irq.h \
    $(wildcard include/config/HWLAT_TRACER) \
    $(wildcard include/config/OSNOISE_TRACER) \
  /root/.cache/ndk/src/linux-7.3/include/linux/vtime.h \
    $(wildcard include/config/VIRT_CPU_ACCOUNTING) \
    $(wildcard include/config/HAVE_VIRT_CPU_ACCOUNTING_IDLE) \
    $(wildcard include/config/IRQ_TIME_ACCOUNTING) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/hardirq.h \
    $(wildcard include/config/X86_THERMAL_VECTOR) \
    $(wildcard include/config/X86_MCE_THRESHOLD) \
    $(wildcard include/config/X86_MCE_AMD) \
    $(wildcard include/config/X86_HV_CALLBACK_VECTOR) \
    $(wildcard include/config/HYPERV) \
    $(wildcard include/config/KVM) \
    $(wildcard include/config/GUEST_PERF_EVENTS) \
    $(wildcard include/config/X86_POSTED_MSI) \
    $(wildcard include/config/CPU_MITIGATIONS) \
    $(wildcard include/config/KVM_INTEL) \
  /root/.cache/ndk/src/linux-7.3/include/linux/highmem-internal.h \
  /root/.cache/ndk/src/linux-7.3/include/net/checksum.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/checksum.h \
    $(wildcard include/config/GENERIC_CSUM) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/checksum_64.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/dma-mapping.h \
    $(wildcard include/config/DMA_API_DEBUG) \
    $(wildcard include/config/HAS_DMA) \
    $(wildcard include/config/IOMMU_DMA) \
    $(wildcard include/config/DMA_NEED_SYNC) \
    $(wildcard include/config/NEED_DMA_MAP_STATE) \
  /root/.cache/ndk/src/linux-7.3/include/linux/device.h \
    $(wildcard include/config/GENERIC_MSI_IRQ) \
    $(wildcard include/config/ENERGY_MODEL) \
    $(wildcard include/config/PINCTRL) \
    $(wildcard include/config/ARCH_HAS_DMA_OPS) \
    $(wildcard include/config/DMA_DECLARE_COHERENT) \
    $(wildcard include/config/DMA_CMA) \
    $(wildcard include/config/SWIOTLB) \
    $(wildcard include/config/SWIOTLB_DYNAMIC) \
    $(wildcard include/config/PM) \
    $(wildcard include/config/PM_SLEEP) \
    $(wildcard include/config/OF) \
    $(wildcard include/config/DEVTMPFS) \
  /root/.cache/ndk/src/linux-7.3/include/linux/dev_printk.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/energy_model.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/sched/cpufreq.h \
    $(wildcard include/config/CPU_FREQ) \
  /root/.cache/ndk/src/linux-7.3/include/linux/sched/topology.h \
    $(wildcard include/config/SCHED_CLUSTER) \
    $(wildcard include/config/SCHED_MC) \
    $(wildcard include/config/CPU_FREQ_GOV_SCHEDUTIL) \
  /root/.cache/ndk/src/linux-7.3/include/linux/sched/idle.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/sched/sd_flags.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/klist.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/pm.h \
    $(wildcard include/config/VT_CONSOLE_SLEEP) \
    $(wildcard include/config/CXL_SUSPEND) \
    $(wildcard include/config/PM_CLK) \
    $(wildcard include/config/PM_GENERIC_DOMAINS) \
  /root/.cache/ndk/src/linux-7.3/include/linux/device/bus.h \
    $(wildcard include/config/ACPI) \
  /root/.cache/ndk/src/linux-7.3/include/linux/device/class.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/device/devres.h \
    $(wildcard include/config/HAS_IOMEM) \
  /root/.cache/ndk/src/linux-7.3/include/linux/device/driver.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/module.h \
    $(wildcard include/config/MODULES_TREE_LOOKUP) \
    $(wildcard include/config/STACKTRACE_BUILD_ID) \
    $(wildcard include/config/ARCH_USES_CFI_TRAPS) \
    $(wildcard include/config/MODULE_SIG) \
    $(wildcard include/config/KALLSYMS) \
    $(wildcard include/config/BPF_EVENTS) \
    $(wildcard include/config/DEBUG_INFO_BTF_MODULES) \
    $(wildcard include/config/EVENT_TRACING) \
    $(wildcard include/config/MODULE_UNLOAD) \
    $(wildcard include/config/CONSTRUCTORS) \
    $(wildcard include/config/FUNCTION_ERROR_INJECTION) \
  /root/.cache/ndk/src/linux-7.3/include/linux/buildid.h \
    $(wildcard include/config/VMCORE_INFO) \
  /root/.cache/ndk/src/linux-7.3/include/linux/kmod.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/umh.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/elf.h \
    $(wildcard include/config/ARCH_HAVE_EXTRA_ELF_NOTES) \
    $(wildcard include/config/ARCH_USE_GNU_PROPERTY) \
    $(wildcard include/config/ARCH_HAVE_ELF_PROT) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/elf.h \
    $(wildcard include/config/X86_X32_ABI) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/ia32.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/user.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/user_64.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/fsgsbase.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/syscall.h \
    $(wildcard include/config/X86_X32_DISABLED) \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/audit.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/elf-em.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/unistd.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/uapi/asm/unistd.h \
  /root/.cache/ndk/kernel/lean-341a8a4110a9/arch/x86/include/generated/uapi/asm/unistd_64.h \
  /root/.cache/ndk/kernel/lean-341a8a4110a9/arch/x86/include/generated/asm/unistd_64_x32.h \
  /root/.cache/ndk/kernel/lean-341a8a4110a9/arch/x86/include/generated/asm/unistd_32_ia32.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/vdso.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/elf.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/moduleparam.h \
    $(wildcard include/config/ALPHA) \
  /root/.cache/ndk/src/linux-7.3/include/linux/rbtree_latch.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/error-injection.h \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/error-injection.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/dynamic_debug.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/module.h \
    $(wildcard include/config/UNWINDER_ORC) \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/module.h \
    $(wildcard include/config/HAVE_MOD_ARCH_SPECIFIC) \
  /root/.cache/ndk/src/linux-7.3/include/linux/device-id/acpi.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/device-id/of.h \
  /root/.cache/ndk/kernel/lean-341a8a4110a9/arch/x86/include/generated/asm/device.h \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/device.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/pm_wakeup.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/scatterlist.h \
    $(wildcard include/config/NEED_SG_DMA_LENGTH) \
    $(wildcard include/config/NEED_SG_DMA_FLAGS) \
    $(wildcard include/config/DEBUG_SG) \
    $(wildcard include/config/SGL_ALLOC) \
    $(wildcard include/config/ARCH_NO_SG_CHAIN) \
    $(wildcard include/config/SG_POOL) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/io.h \
    $(wildcard include/config/MTRR) \
    $(wildcard include/config/X86_PAT) \
  /root/.cache/ndk/kernel/lean-341a8a4110a9/arch/x86/include/generated/asm/early_ioremap.h \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/early_ioremap.h \
    $(wildcard include/config/GENERIC_EARLY_IOREMAP) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/shared/io.h \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/io.h \
    $(wildcard include/config/GENERIC_IOMAP) \
    $(wildcard include/config/TRACE_MMIO_ACCESS) \
    $(wildcard include/config/HAS_IOPORT) \
    $(wildcard include/config/GENERIC_IOREMAP) \
    $(wildcard include/config/HAS_IOPORT_MAP) \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/iomap.h \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/pci_iomap.h \
    $(wildcard include/config/PCI) \
    $(wildcard include/config/NO_GENERIC_PCI_IOPORT_MAP) \
    $(wildcard include/config/GENERIC_PCI_IOMAP) \
  /root/.cache/ndk/src/linux-7.3/include/linux/logic_pio.h \
    $(wildcard include/config/INDIRECT_PIO) \
  /root/.cache/ndk/src/linux-7.3/include/linux/fwnode.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/netdev_features.h \
  /root/.cache/ndk/src/linux-7.3/include/net/flow_dissector.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/if_ether.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/pkt_cls.h \
    $(wildcard include/config/NET_CLS_ACT) \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/pkt_sched.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/if_packet.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/page_frag_cache.h \
  /root/.cache/ndk/src/linux-7.3/include/net/net_debug.h \
  /root/.cache/ndk/src/linux-7.3/include/net/netmem.h \
    $(wildcard include/config/NET_DEVMEM) \
  /root/.cache/ndk/src/linux-7.3/include/linux/seq_file_net.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/seq_file.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/string_helpers.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/ctype.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/string_choices.h \
  /root/.cache/ndk/src/linux-7.3/include/net/netprio_cgroup.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/cgroup.h \
    $(wildcard include/config/DEBUG_CGROUP_REF) \
    $(wildcard include/config/CGROUP_CPUACCT) \
    $(wildcard include/config/SOCK_CGROUP_DATA) \
    $(wildcard include/config/CGROUP_DATA) \
    $(wildcard include/config/CGROUP_BPF) \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/cgroupstats.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/taskstats.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/nsproxy.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/user_namespace.h \
    $(wildcard include/config/INOTIFY_USER) \
    $(wildcard include/config/FANOTIFY) \
    $(wildcard include/config/BINFMT_MISC) \
    $(wildcard include/config/PERSISTENT_KEYRINGS) \
  /root/.cache/ndk/src/linux-7.3/include/linux/rculist_nulls.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/kernel_stat.h \
    $(wildcard include/config/GENERIC_IRQ_STAT_SNAPSHOT) \
  /root/.cache/ndk/src/linux-7.3/include/linux/interrupt.h \
    $(wildcard include/config/IRQ_FORCED_THREADING) \
    $(wildcard include/config/GENERIC_IRQ_PROBE) \
  /root/.cache/ndk/src/linux-7.3/include/linux/irqreturn.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/irq.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/irq_vectors.h \
    $(wildcard include/config/PCI_MSI) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/sections.h \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/sections.h \
    $(wildcard include/config/HAVE_FUNCTION_DESCRIPTORS) \
  /root/.cache/ndk/src/linux-7.3/include/linux/cgroup-defs.h \
    $(wildcard include/config/CGROUP_NET_CLASSID) \
  /root/.cache/ndk/src/linux-7.3/include/linux/bpf-cgroup-defs.h \
    $(wildcard include/config/BPF_LSM) \
  /root/.cache/ndk/src/linux-7.3/include/linux/psi_types.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/kthread.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/cgroup_subsys.h \
    $(wildcard include/config/CGROUP_DEVICE) \
    $(wildcard include/config/CGROUP_FREEZER) \
    $(wildcard include/config/CGROUP_PERF) \
    $(wildcard include/config/CGROUP_HUGETLB) \
    $(wildcard include/config/CGROUP_PIDS) \
    $(wildcard include/config/CGROUP_RDMA) \
    $(wildcard include/config/CGROUP_MISC) \
    $(wildcard include/config/CGROUP_DMEM) \
    $(wildcard include/config/CGROUP_DEBUG) \
  /root/.cache/ndk/src/linux-7.3/include/linux/cgroup_namespace.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/cgroup_refcnt.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/neighbour.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/netlink.h \
  /root/.cache/ndk/src/linux-7.3/include/net/scm.h \
    $(wildcard include/config/SECURITY_NETWORK) \
  /root/.cache/ndk/src/linux-7.3/include/linux/net.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/once.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/sockptr.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/net.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/file.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/security.h \
    $(wildcard include/config/SECURITY_PATH) \
    $(wildcard include/config/SECURITY_INFINIBAND) \
    $(wildcard include/config/SECURITY_NETWORK_XFRM) \
    $(wildcard include/config/SECURITYFS) \
  /root/.cache/ndk/src/linux-7.3/include/linux/kernel_read_file.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/bpf.h \
    $(wildcard include/config/DEBUG_KERNEL) \
    $(wildcard include/config/DYNAMIC_FTRACE_WITH_JMP) \
    $(wildcard include/config/FINEIBT) \
    $(wildcard include/config/BPF_JIT_ALWAYS_ON) \
    $(wildcard include/config/INET) \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/bpf.h \
    $(wildcard include/config/BPF_LIRC_MODE2) \
    $(wildcard include/config/EFFICIENT_UNALIGNED_ACCESS) \
    $(wildcard include/config/BPF_KPROBE_OVERRIDE) \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/bpf_common.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/filter.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/bpf_defs.h \
  /root/.cache/ndk/src/linux-7.3/include/crypto/sha2.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/kallsyms.h \
    $(wildcard include/config/KALLSYMS_ALL) \
  /root/.cache/ndk/src/linux-7.3/include/linux/bpfptr.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/btf.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/bsearch.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/btf_ids.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/btf.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/rcupdate_trace.h \
    $(wildcard include/config/TASKS_TRACE_RCU_NO_MB) \
  /root/.cache/ndk/src/linux-7.3/include/linux/static_call.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/cpu.h \
    $(wildcard include/config/GENERIC_CPU_DEVICES) \
    $(wildcard include/config/PM_SLEEP_SMP) \
    $(wildcard include/config/PM_SLEEP_SMP_NONZERO_CPU) \
    $(wildcard include/config/ARCH_HAS_CPU_FINALIZE_INIT) \
  /root/.cache/ndk/src/linux-7.3/include/linux/node.h \
    $(wildcard include/config/HMEM_REPORTING) \
  /root/.cache/ndk/src/linux-7.3/include/linux/cpuhotplug.h \
    $(wildcard include/config/HOTPLUG_CORE_SYNC_DEAD) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/static_call.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/text-patching.h \
    $(wildcard include/config/UML_X86) \
  /root/.cache/ndk/src/linux-7.3/include/linux/memcontrol.h \
    $(wildcard include/config/MEMCG_NMI_SAFETY_REQUIRES_ATOMIC) \
  /root/.cache/ndk/src/linux-7.3/include/linux/page_counter.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/vmpressure.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/eventfd.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/eventfd.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/writeback.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/flex_proportions.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/backing-dev-defs.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/blk_types.h \
    $(wildcard include/config/FAIL_MAKE_REQUEST) \
    $(wildcard include/config/BLK_CGROUP_IOCOST) \
    $(wildcard include/config/BLK_INLINE_ENCRYPTION) \
    $(wildcard include/config/BLK_DEV_INTEGRITY) \
  /root/.cache/ndk/src/linux-7.3/include/linux/folio_batch.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/cfi.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/cfi.h \
    $(wildcard include/config/FINEIBT_BHI) \
    $(wildcard include/config/FUNCTION_PADDING_CFI) \
  /root/.cache/ndk/src/linux-7.3/include/linux/xattr.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/xattr.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/ftrace.h \
    $(wildcard include/config/TRACER_SNAPSHOT) \
    $(wildcard include/config/HAVE_FUNCTION_GRAPH_FREGS) \
    $(wildcard include/config/FUNCTION_TRACER) \
    $(wildcard include/config/HAVE_DYNAMIC_FTRACE_WITH_ARGS) \
    $(wildcard include/config/HAVE_FTRACE_REGS_HAVING_PT_REGS) \
    $(wildcard include/config/HAVE_REGS_AND_STACK_ACCESS_API) \
    $(wildcard include/config/DYNAMIC_FTRACE_WITH_REGS) \
    $(wildcard include/config/DYNAMIC_FTRACE_WITH_ARGS) \
    $(wildcard include/config/DYNAMIC_FTRACE_WITH_DIRECT_CALLS) \
    $(wildcard include/config/STACK_TRACER) \
    $(wildcard include/config/DYNAMIC_FTRACE_WITH_CALL_OPS) \
    $(wildcard include/config/FUNCTION_GRAPH_RETVAL) \
    $(wildcard include/config/FTRACE_SYSCALLS) \
  /root/.cache/ndk/src/linux-7.3/include/linux/trace_recursion.h \
    $(wildcard include/config/FTRACE_RECORD_RECURSION) \
    $(wildcard include/config/FTRACE_VALIDATE_RCU_IS_WATCHING) \
  /root/.cache/ndk/src/linux-7.3/include/linux/trace_clock.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/trace_clock.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/ptrace.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/pid_namespace.h \
    $(wildcard include/config/MEMFD_CREATE) \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/ptrace.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/seccomp.h \
    $(wildcard include/config/HAVE_ARCH_SECCOMP_FILTER) \
    $(wildcard include/config/SECCOMP_FILTER) \
    $(wildcard include/config/CHECKPOINT_RESTORE) \
    $(wildcard include/config/SECCOMP_CACHE_DEBUG) \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/seccomp.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/ftrace.h \
    $(wildcard include/config/HAVE_FENTRY) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/rqspinlock.h \
    $(wildcard include/config/QUEUED_SPINLOCKS) \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/rqspinlock.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/lsm.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/unistd.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/lsm/selinux.h \
    $(wildcard include/config/SECURITY_SELINUX) \
  /root/.cache/ndk/src/linux-7.3/include/linux/lsm/smack.h \
    $(wildcard include/config/SECURITY_SMACK) \
  /root/.cache/ndk/src/linux-7.3/include/linux/lsm/apparmor.h \
    $(wildcard include/config/SECURITY_APPARMOR) \
  /root/.cache/ndk/src/linux-7.3/include/linux/lsm/bpf.h \
  /root/.cache/ndk/src/linux-7.3/include/net/compat.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/compat.h \
    $(wildcard include/config/ARCH_HAS_SYSCALL_WRAPPER) \
    $(wildcard include/config/COMPAT_OLD_SIGACTION) \
    $(wildcard include/config/ODD_RT_SIGACTION) \
  /root/.cache/ndk/src/linux-7.3/include/linux/sem.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/sem.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/ipc.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/ipc.h \
  /root/.cache/ndk/kernel/lean-341a8a4110a9/arch/x86/include/generated/uapi/asm/ipcbuf.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/asm-generic/ipcbuf.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/uapi/asm/sembuf.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/if.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/hdlc/ioctl.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/aio_abi.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/compat.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/sched/task_stack.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/magic.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/user32.h \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/compat.h \
    $(wildcard include/config/COMPAT_FOR_U64_ALIGNMENT) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/syscall_wrapper.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/netlink.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/netdevice.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/if_ether.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/if_link.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/if_link.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/if_bonding.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/netdev.h \
  /root/.cache/ndk/src/linux-7.3/include/net/neighbour_tables.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/inetdevice.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/ip.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/ip.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/rtnetlink.h \
    $(wildcard include/config/NET_INGRESS) \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/rtnetlink.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/if_addr.h \
  /root/.cache/ndk/src/linux-7.3/include/rdma/ib_verbs.h \
    $(wildcard include/config/INFINIBAND_USER_ACCESS) \
    $(wildcard include/config/INFINIBAND_VIRT_DMA) \
  /root/.cache/ndk/src/linux-7.3/include/linux/ethtool.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/ethtool.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/typelimits.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/ethtool_netlink_generated.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/net_tstamp.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/irq_poll.h \
  /root/.cache/ndk/src/linux-7.3/include/net/ipv6.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/ipv6.h \
    $(wildcard include/config/IPV6_ROUTER_PREF) \
    $(wildcard include/config/IPV6_ROUTE_INFO) \
    $(wildcard include/config/IPV6_OPTIMISTIC_DAD) \
    $(wildcard include/config/IPV6_SEG6_HMAC) \
    $(wildcard include/config/IPV6_MIP6) \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/ipv6.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/tcp.h \
    $(wildcard include/config/TCP_AO) \
    $(wildcard include/config/BPF) \
    $(wildcard include/config/TCP_MD5SIG) \
  /root/.cache/ndk/src/linux-7.3/include/linux/win_minmax.h \
  /root/.cache/ndk/src/linux-7.3/include/net/sock.h \
    $(wildcard include/config/SOCK_RX_QUEUE_MAPPING) \
    $(wildcard include/config/SOCK_VALIDATE_XMIT) \
    $(wildcard include/config/BT) \
  /root/.cache/ndk/src/linux-7.3/include/linux/poll.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/poll.h \
  /root/.cache/ndk/kernel/lean-341a8a4110a9/arch/x86/include/generated/uapi/asm/poll.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/asm-generic/poll.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/eventpoll.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/indirect_call_wrapper.h \
  /root/.cache/ndk/src/linux-7.3/include/net/dst.h \
  /root/.cache/ndk/src/linux-7.3/include/net/neighbour.h \
  /root/.cache/ndk/src/linux-7.3/include/net/rtnetlink.h \
  /root/.cache/ndk/src/linux-7.3/include/net/netlink.h \
  /root/.cache/ndk/src/linux-7.3/include/net/tcp_states.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/net_tstamp.h \
  /root/.cache/ndk/src/linux-7.3/include/net/l3mdev.h \
  /root/.cache/ndk/src/linux-7.3/include/net/fib_rules.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/fib_rules.h \
  /root/.cache/ndk/src/linux-7.3/include/net/fib_notifier.h \
  /root/.cache/ndk/src/linux-7.3/include/net/inet_connection_sock.h \
  /root/.cache/ndk/src/linux-7.3/include/net/inet_sock.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/jhash.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/unaligned.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/unaligned/packed_struct.h \
  /root/.cache/ndk/src/linux-7.3/include/vdso/unaligned.h \
  /root/.cache/ndk/src/linux-7.3/include/net/request_sock.h \
    $(wildcard include/config/SYN_COOKIES) \
  /root/.cache/ndk/src/linux-7.3/include/net/rstreason.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/mptcp.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/mptcp_pm.h \
  /root/.cache/ndk/src/linux-7.3/include/net/netns/hash.h \
  /root/.cache/ndk/src/linux-7.3/include/net/inet_timewait_sock.h \
  /root/.cache/ndk/src/linux-7.3/include/net/timewait_sock.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/tcp.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/udp.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/udp.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/jump_label_ratelimit.h \
  /root/.cache/ndk/src/linux-7.3/include/net/if_inet6.h \
  /root/.cache/ndk/src/linux-7.3/include/net/ip.h \
  /root/.cache/ndk/src/linux-7.3/include/net/route.h \
  /root/.cache/ndk/src/linux-7.3/include/net/inetpeer.h \
  /root/.cache/ndk/src/linux-7.3/include/net/ip_fib.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/in_route.h \
  /root/.cache/ndk/src/linux-7.3/include/net/arp.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/if_arp.h \
    $(wildcard include/config/FIREWIRE_NET) \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/if_arp.h \
  /root/.cache/ndk/src/linux-7.3/include/net/ndisc.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/icmpv6.h \
    $(wildcard include/config/NF_NAT) \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/route.h \
  /root/.cache/ndk/src/linux-7.3/include/net/lwtunnel.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/lwtunnel.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/cgroup_rdma.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/dim.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/rdma/ib_user_verbs.h \
  /root/.cache/ndk/src/linux-7.3/include/rdma/rdma_counter.h \
  /root/.cache/ndk/src/linux-7.3/include/rdma/restrack.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/rdma/rdma_netlink.h \
  /root/.cache/ndk/src/linux-7.3/include/rdma/rdma_netlink.h \
  /root/.cache/ndk/src/linux-7.3/include/rdma/signature.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/rdma/rdma_user_ioctl.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/rdma/ib_user_mad.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/rdma/hfi/hfi1_ioctl.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/rdma/rdma_user_ioctl_cmds.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/rdma/ib_user_ioctl_verbs.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/pci-tph.h \
    $(wildcard include/config/PCIE_TPH) \
  /root/.cache/ndk/src/linux-7.3/include/rdma/frmr_pools.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/dma-buf.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/iosys-map.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/io.h \
    $(wildcard include/config/STRICT_DEVMEM) \
  /root/.cache/ndk/src/linux-7.3/include/linux/dma-fence.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/pci-p2pdma.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/pci.h \
    $(wildcard include/config/PCI_IOV) \
    $(wildcard include/config/PCIEAER) \
    $(wildcard include/config/PCIEPORTBUS) \
    $(wildcard include/config/PCIEASPM) \
    $(wildcard include/config/HOTPLUG_PCI_PCIE) \
    $(wildcard include/config/PCIE_PTM) \
    $(wildcard include/config/PCIE_DPC) \
    $(wildcard include/config/PCI_ATS) \
    $(wildcard include/config/PCI_PRI) \
    $(wildcard include/config/PCI_PASID) \
    $(wildcard include/config/PCI_DOE) \
    $(wildcard include/config/PCI_NPEM) \
    $(wildcard include/config/PCI_IDE) \
    $(wildcard include/config/PCI_TSM) \
    $(wildcard include/config/PCI_DOMAINS_GENERIC) \
    $(wildcard include/config/CARDBUS) \
    $(wildcard include/config/HOTPLUG_PCI) \
    $(wildcard include/config/PCI_DOMAINS) \
    $(wildcard include/config/PCI_QUIRKS) \
    $(wildcard include/config/ACPI_MCFG) \
    $(wildcard include/config/EEH) \
    $(wildcard include/config/S390) \
  /root/.cache/ndk/src/linux-7.3/include/linux/device-id/pci.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/resource_ext.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/msi_api.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/pci.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/pci_regs.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/pci_ids.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/dmapool.h \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/pci.h \
    $(wildcard include/config/VMD) \
  /root/.cache/ndk/src/linux-7.3/arch/x86/include/asm/memtype.h \
  /root/.cache/ndk/src/linux-7.3/include/rdma/iw_cm.h \
  /root/.cache/ndk/src/linux-7.3/include/rdma/ib_cm.h \
  /root/.cache/ndk/src/linux-7.3/include/rdma/ib_mad.h \
  /root/.cache/ndk/src/linux-7.3/include/rdma/ib_sa.h \
  /root/.cache/ndk/src/linux-7.3/include/rdma/ib_addr.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/if_vlan.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/etherdevice.h \
  /root/.cache/ndk/src/linux-7.3/include/linux/crc32.h \
    $(wildcard include/config/CRC32_ARCH) \
  /root/.cache/ndk/src/linux-7.3/include/linux/bitrev.h \
    $(wildcard include/config/HAVE_ARCH_BITREVERSE) \
  /root/.cache/ndk/src/linux-7.3/include/asm-generic/bitops/__bitrev.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/linux/if_vlan.h \
  /root/.cache/ndk/src/linux-7.3/include/rdma/ib_pack.h \
  /root/.cache/ndk/src/linux-7.3/include/rdma/opa_addr.h \
  /root/.cache/ndk/src/linux-7.3/include/rdma/opa_smi.h \
  /root/.cache/ndk/src/linux-7.3/include/rdma/ib_smi.h \
  /root/.cache/ndk/src/linux-7.3/include/rdma/rdma_cm.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/rdma/rdma_user_cm.h \
  /root/.cache/ndk/src/linux-7.3/include/uapi/rdma/ib_user_sa.h \
  src/bindings/shim.h \

src/bindings/generated.rs: $(deps_src/bindings/generated.rs)

$(deps_src/bindings/generated.rs):
