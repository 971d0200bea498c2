# SPDX-License-Identifier: GPL-2.0
# Count test results in KTAP (kselftest's, one level of "# " deep) and in the
# output of cargo test or nextest. Prints "PASSED FAILED SKIPPED".

function count(line) {
	if (line ~ /# SKIP/) skipped++
	else if (line ~ /^ok /) passed++
	else { failed++; print "   " line > "/dev/stderr" }
}

{ sub(/\r$/, "") }

# A test of a program; what the program as a whole says comes after.
/^# (not )?ok [0-9]/ { inner++; if ($2 == "not") inner_failed++; count(substr($0, 3)) }
/^(not )?ok [0-9]/ {
	# A program counts for itself if it had no tests to tell of, or died after them.
	if (!inner || ($1 == "not" && !inner_failed)) count($0)
	inner = inner_failed = 0
}

# test result: ok. 12 passed; 0 failed; 1 ignored; ...
/^test result:/ { passed += $4; failed += $6; skipped += $8 }
/^test .* FAILED$/ { print "   " $0 > "/dev/stderr" }

# Summary [   0.5s] 12 tests run: 11 passed, 1 failed, 2 skipped
/^ *Summary \[/ {
	for (i = 1; i < NF; i++) {
		if ($(i + 1) ~ /^passed/) passed += $i
		if ($(i + 1) ~ /^(failed|timed)/) failed += $i
		if ($(i + 1) ~ /^skipped/) skipped += $i
	}
}

END { printf "%d %d %d\n", passed, failed, skipped }
