# A thin front door; Meson and ninja do the work.
#
#   make            builds what the packages that are here allow, and names what is missing
#   make demo       installs what is missing (apt), builds all, runs the main job
#   make check      the same, then every test; bigcheck: the long ones too
#   make docs       installs what they need, builds BUILD/site, checks its links
#   make install    PREFIX=/usr/local by default, and what the shell needs to find another one;
#                   DESTDIR=/stage for packages
BUILD ?= build
SHELL := /bin/bash
FULL := -Dnn=enabled -Dtool=enabled -Dtests=enabled
.DELETE_ON_ERROR:
.PHONY: all full deps demo check bigcheck bench docs install asan tsan clean format

all:
	@tools/deps.sh --missing
	@test -f $(BUILD)/build.ninja || meson setup $(BUILD) --buildtype=release
	ninja -C $(BUILD)

# Everything that there is, or an error.
full: deps
	@test -f $(BUILD)/build.ninja || meson setup $(BUILD) --buildtype=release $(FULL)
	@test -f $(BUILD)/full || { meson configure $(BUILD) $(FULL) && touch $(BUILD)/full; }
	ninja -C $(BUILD)

# Installs missing Debian packages; does nothing when all is there.
deps:
	@tools/deps.sh

# The main job: a recurrent spiking network learns in a few megabytes.
demo: full
	@tools/demo.sh $(BUILD)

check: export NEAP_FRAMEWORKS = 1
check: full
	@tools/check.sh $(BUILD)

bigcheck: export NEAP_SANITIZED = 1
bigcheck: export NEAP_FRAMEWORKS = 1
bigcheck: full
	@tools/check.sh $(BUILD) --big

bench: full
	@tools/bench.sh $(BUILD)

docs: export NEAP_DOCS = 1
docs: full
	@/usr/bin/python3 tools/docs/site.py $(BUILD)
	@echo "docs: $(BUILD)/site/index.html; for its search: python3 -m http.server -d $(BUILD)/site"

# meson reads DESTDIR itself. Where programs look for libraries, they find ours from now on.
install: all
	@if test -n "$(PREFIX)"; then meson configure $(BUILD) -Dprefix="$(abspath $(PREFIX))"; fi
	meson install -C $(BUILD)
	@if test -z "$(DESTDIR)" && test "$$(id -u)" = 0; then ldconfig; fi
	@if test -z "$(DESTDIR)"; then tools/installed.sh $(BUILD); fi

asan: deps
	@tools/sanitize.sh address,undefined

tsan: deps
	@tools/sanitize.sh thread

format:
	clang-format -i $$(git ls-files '*.c' '*.h')

clean:
	rm -rf $(BUILD) build-asan build-tsan build-clang
