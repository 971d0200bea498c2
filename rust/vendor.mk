# SPDX-License-Identifier: GPL-2.0
#
# `make -f rust/vendor.mk`, or included: bitflags, the one crate in the module that
# is neither ours nor the kernel's, in the version of Cargo.lock, into build/vendor,
# where Kbuild compiles it. cargo fetches it together with what `cargo test` needs.

fuse_rs_top := $(abspath $(dir $(lastword $(MAKEFILE_LIST)))..)
fuse_rs_vendor := $(fuse_rs_top)/build/vendor
CARGO ?= cargo

.PHONY: vendor
vendor: $(fuse_rs_vendor)/.stamp

# Replaced only by other contents, so that the module is not built anew for nothing.
$(fuse_rs_vendor)/.stamp: $(fuse_rs_top)/Cargo.lock
	@echo '  VENDOR  bitflags'
	@rm -rf $(@D)/new && mkdir -p $(@D)/new
	@manifest=$$(cd $(fuse_rs_top) && $(CARGO) metadata --quiet --locked --format-version 1 \
		--filter-platform x86_64-unknown-linux-gnu | \
		grep -o '"manifest_path":"[^"]*/bitflags-[^"]*/Cargo.toml"' | cut -d'"' -f4) && \
		{ [ "$$manifest" ] || { echo "bitflags: not fetched" >&2; exit 1; }; } && \
		cp -r "$$(dirname "$$manifest")/src" $(@D)/new/
	@diff -rq $(@D)/new $(@D)/bitflags >/dev/null 2>&1 || \
		{ rm -rf $(@D)/bitflags && mv $(@D)/new $(@D)/bitflags; }
	@rm -rf $(@D)/new && touch $@
