#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# pyverbs' own tests, as rdma-core ships them: no more fails than what no iWARP device can do.
#
# shellcheck disable=SC2317 # functions are called by their name, see check()
set -euo pipefail
. "$(dirname "$0")/lib.sh"

FROM=/usr/share/doc/rdma-core/tests
TESTS=/tmp/ndk-pyverbs/tests
LOG=/tmp/ndk-pyverbs.log
USER_NETDEV=ndkuser

# They connect queue pairs by ibv_modify_qp() alone, which iWARP has not (RFC 5040: a stream is
# there first), and get EINVAL when they go to RTS.
BY_HAND='test_atomic_cmp_and_swap test_atomic_fetch_and_add test_atomic_invalid_lkey
	test_atomic_invalid_mr_access test_atomic_invalid_qp_access test_atomic_invalid_rkey
	test_atomic_non_aligned_addr test_cq_events_rc test_mr_rereg_access
	test_mr_rereg_access_bad_flow test_mr_rereg_addr test_mr_rereg_pd test_ro_rc_traffic'

# They give a completion ten seconds, and two processes fifteen to meet and to end.
are_patient() {
	local seconds
	seconds=$(slowly 60)
	sed -i "s/^POLL_CQ_TIMEOUT = 10 .*/POLL_CQ_TIMEOUT = $seconds/" "$TESTS/utils.py"
	sed -i "s/timeout=15)/timeout=$seconds)/; s/repeat_times=150 if/repeat_times=$((10 * seconds)) if/" "$TESTS/base.py"
	if ! grep -q "^POLL_CQ_TIMEOUT = $seconds\$" "$TESTS/utils.py" || ! grep -q "timeout=$seconds)" "$TESTS/base.py" ||
		! grep -q "repeat_times=$((10 * seconds)) if" "$TESTS/base.py"; then
		echo "their limits are other ones"
		return 1
	fi
}

copy_tests() {
	mkdir -p /tmp/ndk-pyverbs
	cp -r "$FROM" /tmp/ndk-pyverbs/ && find /tmp/ndk-pyverbs -name '*.gz' -exec gunzip -f {} +
	are_patient
}

# Its status says only that some failed.
run_tests() {
	(cd /tmp/ndk-pyverbs && limit 3000 /usr/bin/python3 tests/run_tests.py --dev "$DEVICE" -v) >"$LOG" 2>&1 || true
	grep -E '^Ran [0-9]{3} tests' "$LOG" || { tail -n 3 "$LOG"; return 1; }
}

# The names of those that failed.
failed() { sed -nE 's/^(ERROR|FAIL): ([a-zA-Z0-9_]+).*/\2/p' "$LOG" | sort; }

only_by_hand() {
	local others
	# shellcheck disable=SC2086 # words
	others=$(comm -3 <(failed) <(printf '%s\n' $BY_HAND | sort))
	[[ -z $others ]] || { tr '\n' ' ' <<<"$others"; return 1; }
	! grep -q '^FAIL:' "$LOG"
}

# They say themselves why they do not connect: the state is refused, and nothing else.
all_at_rts() {
	local refused
	refused=$(grep -c '^pyverbs.*: Failed to modify QP state to RTS.*Errno: 22' "$LOG") || true
	((refused == $(failed | wc -l))) || { echo "$refused are"; return 1; }
}

some_pass() { (($(grep -c '\.\.\. ok$' "$LOG") >= 20)); }

defer unload_modules
load_modules
echo 1 >/sys/module/ndk/parameters/user_verbs
modprobe -a ib_uverbs rdma_ucm
make_dummy "$USER_NETDEV" 10.88.0.1
defer drop_dummy "$USER_NETDEV"
add_link "$DEVICE" "$USER_NETDEV"
defer del_link_if_there "$DEVICE"
check "pyverbs: its tests are there" copy_tests
check "pyverbs: they run" run_tests
check "pyverbs: none fails but those that connect by hand" only_by_hand
check "pyverbs: those are refused the state" all_at_rts
check "pyverbs: others pass" some_pass
# What was skipped, and why.
sed -nE "s/.*\.\.\. skipped ['\"](.*)['\"]$/\1/p" "$LOG" | sort | uniq -c | sort -rn | sed 's/^/# skipped: /'
check "pyverbs: nothing is left" wait_for 90 no_resources
finish
