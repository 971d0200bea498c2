# SPDX-License-Identifier: GPL-2.0
#
# Everything a person types. `make help` lists it.

release := $(shell uname -r)
running := /lib/modules/$(release)/build
metadata = $(wildcard $(1)/rust/libkernel.rmeta)

# KDIR is used as it is, with the host's compilers. Without it the running
# kernel's build tree is taken if this module can be built in it, else qemu/
# prepares Debian's kernel and compilers under build/.
ifeq ($(origin KDIR),undefined)
  ifneq ($(and $(filter 7.3.%,$(release)),$(call metadata,$(running))),)
    KDIR := $(running)
  endif
endif

MO := $(CURDIR)/build/mod
kmake = $(MAKE) -C $(KDIR) M=$(CURDIR) MO=$(MO)

.PHONY: all
ifneq ($(KDIR),)
all: metadata
	@$(MAKE) --no-print-directory -s -f rust/vendor.mk vendor
	@mkdir -p $(MO)
	$(kmake) modules
	@echo "built $(MO)/fuse_rs.ko"

.PHONY: metadata
metadata:
	@[ -n "$(call metadata,$(KDIR))" ] || { \
	echo "$(KDIR) has no Rust metadata (rust/libkernel.rmeta): distributions' header packages leave it out." >&2; \
	echo "Give KDIR= a kernel's build tree with CONFIG_RUST=y after 'make modules_prepare' or a full build," >&2; \
	echo "or run 'make' without KDIR to have Debian's kernel prepared under build/." >&2; exit 1; }

.PHONY: modules_install
modules_install: all
	$(kmake) modules_install
else
all: host
	@qemu/module stock
	@echo "built build/mod-stock/fuse_rs.ko"

.PHONY: modules_install
modules_install: all
	@qemu/module stock modules_install
endif

PREFIX := /usr/local
.PHONY: tools_install
tools_install:
	tools/install $(DESTDIR)$(PREFIX) $(DESTDIR)/sbin

.PHONY: help
help:
	@echo 'make                  build fuse_rs.ko for KDIR=, by default the running kernel if its build tree'
	@echo '                      has Rust metadata, else Debian'"'"'s kernel, prepared under build/'
	@echo 'make demo             read a tree of files through both clients and show what differs'
	@echo 'make test             host tests, then kselftests and daemons on both clients, on Debian'"'"'s kernel'
	@echo 'make test-debug       the same on a kernel with KASAN, lockdep and kmemleak; daemons in drop-in mode'
	@echo 'make soak             hours of storm and hostile daemon, then boots in a row'
	@echo 'make check            the fast loop: format, clippy, host tests, build, one boot'
	@echo 'make shell            a root prompt in a guest with the module loaded'
	@echo 'make modules_install  install the module built for KDIR'
	@echo 'make tools_install    install what runs daemons on fuse_rs below PREFIX= (/usr/local); see docs/daemons.md'
	@echo 'make clean            remove what was built from this source'
	@echo 'make distclean        remove all of build/, toolchain and kernels included'
	@echo 'Everything needed is set up under build/ by the first command that needs it.'

.PHONY: host
host:
	@qemu/host

# The guest's disk is made beside the kernel: neither keeps two CPUs busy.
.PHONY: guest
guest: host
	@qemu/toolchain
	@qemu/guest/image & image=$$!; qemu/kernel stock; kernel=$$?; wait $$image && exit $$kernel

.PHONY: demo test test-debug soak check shell
demo: guest
	@qemu/demo
test: guest
	@tests/run host stock daemons
test-debug: guest
	@tests/run debug dropin
soak: guest
	@tests/run soak
check: guest
	@tests/run lint host boot
shell: guest
	@qemu/module stock
	@qemu/tools
	@qemu/run --module build/mod-stock/fuse_rs.ko --share build/tools=/opt/fuse_rs --shell

.PHONY: clean distclean
clean:
	rm -rf build/mod build/mod-* build/target build/tools build/kselftest build/log build/results
distclean:
	@if [ -e build ]; then chmod -R u+rwX build; rm -rf build; fi
