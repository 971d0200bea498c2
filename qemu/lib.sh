# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Common to all scripts below qemu/: where things are, messages, progress,
# and stages that are redone only when their inputs changed.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$top/build
# shellcheck disable=SC2034 # for the sourcing scripts
toolchain=$build/toolchain

say() { printf '%s\n' "== $*" >&2; }
die() { printf '%s\n' "${0##*/}: error: $*" >&2; exit 1; }

# hash WORDS... < MORE: a short digest of all that a stage depends on.
hash() { { printf '%s\0' "$@"; [ -t 0 ] || cat; } | sha256sum | cut -c1-16; }

# locked NAME: only one process at a time runs the stage NAME; held until exit.
locked() {
	mkdir -p "$build/lock"
	exec 9>"$build/lock/$1"
	flock -n 9 || { say "$1: another process is at it, waiting"; flock 9; }
}

# fresh DIR HASH: was DIR made, whole, from these very inputs?
fresh() { [ "$(cat "$1/.stamp" 2>/dev/null)" = "$2" ]; }

# finish TMP DIR HASH: put the finished TMP in DIR's place. Whoever is
# interrupted before this line leaves a TMP that the next run throws away.
finish() {
	printf '%s\n' "$3" >"$1/.stamp"
	if [ -e "$2" ]; then
		discard "$2.old"
		mv -T "$2" "$2.old"
	fi
	mv -T "$1" "$2"
	discard "$2.old"
}

# discard DIR...: rm -rf that also gets rid of directories without write permission.
discard() {
	local dir
	for dir; do
		[ -e "$dir" ] || continue
		chmod -R u+rwX "$dir" 2>/dev/null || true
		rm -rf "$dir"
	done
}

# require_space GIB: better said before the work than in the middle of it.
require_space() {
	mkdir -p "$build"
	local free
	free=$(df -Pk "$build" | awk 'NR == 2 { print int($4 / 1048576) }')
	[ "$free" -ge "$1" ] || die "$build has $free GiB free, this step needs $1 GiB"
}

# step LABEL CMD...: run CMD with its output in a log; show that it lives, and
# the end of the log when it fails.
step() {
	local label=$1 log pid start=$SECONDS rc=0 every=15
	shift
	mkdir -p "$build/log"
	log=$build/log/$(printf '%s' "$label" | tr -c 'a-zA-Z0-9._-' '-').log
	[ ! -t 2 ] || every=1
	say "$label"
	"$@" >"$log" 2>&1 9>&- &
	pid=$!
	# shellcheck disable=SC2064 # the pid of now
	trap "kill $pid 2>/dev/null || true; exit 130" INT TERM
	while kill -0 "$pid" 2>/dev/null; do
		sleep 0.5
		if [ $((SECONDS - start)) -lt 2 ] || [ $((SECONDS % every)) -ne 0 ]; then continue; fi
		progress "$label" $((SECONDS - start)) "$log"
		[ -t 2 ] || sleep 1
	done
	wait "$pid" || rc=$?
	trap - INT TERM
	[ ! -t 2 ] || printf '\r\033[K' >&2
	[ "$rc" -eq 0 ] || { failed "$label" "$log" "$rc"; return "$rc"; }
	say "$label: done in $((SECONDS - start)) s"
}

progress() {
	local last
	last=$(tail -c 300 "$3" | tr '\r' '\n' | grep -v '^[[:space:]]*$' | tail -n 1 | tr -cd '[:print:]' | cut -c1-60 || true)
	if [ -t 2 ]; then
		printf '\r\033[K   %s: %d s  %s' "$1" "$2" "$last" >&2
	else
		printf '   %s: %d s  %s\n' "$1" "$2" "$last" >&2
	fi
}

failed() {
	tail -n 20 "$2" >&2 || true
	if [ "$(df -Pk "$build" | awk 'NR == 2 { print $4 }')" -lt 65536 ]; then
		printf '%s\n' "${0##*/}: error: $1: the disk that holds $build is full" >&2
	fi
	printf '%s\n' "${0##*/}: error: $1 failed with status $3; full output: $2" >&2
	printf '%s\n' "   What is half-made is not used: the next run takes it up again." >&2
}
