# SPDX-License-Identifier: GPL-2.0
# What each client made of each test, differences first, from the output of
# guest/kselftest. A test says "# in-tree: REASON" where it knows of a difference.

function result(client, test, what) {
	if (!(test in seen)) {
		seen[test] = 1
		order[++tests] = test
	}
	of[client, test] = what
	if (reason != "") why[test] = reason
	reason = ""
}

function verdict(line) { return line ~ /# SKIP/ ? "skip" : line ~ /^not/ ? "FAIL" : "ok" }

function row(test) {
	printf "%-50s %-8s %-8s %s\n", test, of["fuse_rs", test], of["fuse", test], why[test]
}

{ sub(/\r$/, "") }

/^# selftests: / {
	client = $3
	sub(/:$/, "", client)
	program = $4
	inner = inner_failed = 0
}
/^# # in-tree: / { reason = substr($0, 5) }
/^# (not )?ok [0-9]/ {
	line = substr($0, 3)
	test = line
	sub(/^(not )?ok [0-9]+ (- )?/, "", test)
	sub(/ *#.*/, "", test)
	if (verdict(line) == "FAIL") inner_failed++
	inner++
	result(client, test, verdict(line))
}
/^(not )?ok [0-9]/ {
	# The program itself, if it had no tests to tell of or died after them.
	if (!inner || (verdict($0) == "FAIL" && !inner_failed)) result(client, program, verdict($0))
	client = ""
}

END {
	if (client != "") result(client, program, "FAIL") # the guest ended in the middle of it
	printf "\n%-50s %-8s %-8s\n", "test", "fuse_rs", "in-tree"
	for (i = 1; i <= tests; i++) {
		t = order[i]
		differs[t] = of["fuse_rs", t] != of["fuse", t] || t in why || of["fuse", t] == "FAIL"
		if (differs[t]) row(t)
	}
	for (i = 1; i <= tests; i++)
		if (!differs[order[i]]) row(order[i])
	for (key in of) count[of[key]]++
	print ""
	printf "%d passed, %d failed, %d skipped\n", count["ok"], count["FAIL"], count["skip"]
}
