# SPDX-License-Identifier: GPL-2.0
#
# The crates that the module is built from and that are not ours, in the versions
# of Cargo.lock, under build/vendor. Included by the Makefile; Kbuild compiles them.

top := $(patsubst %/,%,$(dir $(abspath $(dir $(lastword $(MAKEFILE_LIST))))))
CARGO ?= cargo

.PHONY: vendor
vendor: $(top)/build/vendor/.stamp

# Vendored beside and moved into place, so that a lost download leaves nothing half-made.
$(top)/build/vendor/.stamp: $(top)/Cargo.lock
	@echo '  VENDOR  build/vendor'
	@rm -rf $(@D).new && mkdir -p $(@D).new
	@cd $(top) && $(CARGO) vendor --quiet --locked $(@D).new >/dev/null
	@rm -rf $(@D) && mv $(@D).new $(@D) && touch $@
