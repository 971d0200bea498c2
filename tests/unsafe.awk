# SPDX-License-Identifier: GPL-2.0
# Find unsafe code in the expanded source of the fuse_rs crate that none of the
# kernel's own macros made (pin_init and pin_data, module!, pr_*!, locks' classes).
# Their code names what it is for at once or a few lines on.

function report() { if (pending) { print start; bad = 1 } }

/^[[:space:]]*\/\// || /unsafe_code/ { next }
/unsafe/ { report(); pending = 5; text = ""; start = NR ": " $0 }
pending {
	text = text $0
	if (text ~ /::pin_init::|::core::pin::Pin::|__data\.[a-z_]+\(slot\)|fn __pin_data|_ = &\(\*slot\)/ ||
	    text ~ /::kernel::(sync::LockClassKey|print::call_printk|ThisModule)|__(init|exit)\(\)|__MOD\.|(addressable_|fn )init_module/)
		pending = 0
	else if (!--pending) {
		pending = 1
		report()
		pending = 0
	}
}

END { report(); exit bad }
