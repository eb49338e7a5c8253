# A thin front door; Meson and ninja do the work.
#
#   make            builds what the packages that are here allow, and names what is missing
#   make demo       installs what the tool needs (apt), builds the tool, trains one network with and without a small
#                   memory budget; PLANS=1: the plans of all strategies as well
#   make check-fast runs the tests that belong to the changed files, in about a minute; SINCE=COMMIT: changed since then
#   make check      installs what is missing (apt), builds all, runs every test; bigcheck: the long ones too
#   make wheel      the source archive for pip and a wheel with the tool, in BUILD/dist; nothing is published
#   make docs       installs what they need, builds BUILD/site, checks its links
#   make install    PREFIX=/usr/local by default, and what the shell needs to find another one;
#                   DESTDIR=/stage for packages
BUILD ?= build
SHELL := /bin/bash
FULL := -Dnn=enabled -Dtool=enabled -Dtests=enabled
.DELETE_ON_ERROR:
.PHONY: all full deps tool demo check check-fast bigcheck bench wheel docs install asan tsan clean format

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

# The tool alone, in whatever configuration BUILD has; BUILD/full is not made, so that `full` adds the rest later.
TOOL := -Dnn=enabled -Dtool=enabled
tool:
	@tools/deps.sh --tool
	@test -f $(BUILD)/build.ninja || meson setup $(BUILD) --buildtype=release $(TOOL)
	@ninja -C $(BUILD) -t query neap >/dev/null 2>&1 || meson configure $(BUILD) $(TOOL)
	ninja -C $(BUILD) neap

# One spiking network, trained storing everything and in 5 MB.
demo: tool
	@PLANS=$(PLANS) tools/demo.sh $(BUILD)

check: export NEAP_FRAMEWORKS = 1
check: full
	@tools/check.sh $(BUILD)

# Everything is configured, but only what the chosen tests need is built.
SINCE ?= HEAD
check-fast:
	@test -f $(BUILD)/build.ninja || meson setup $(BUILD) --buildtype=release $(FULL)
	@tests/affected.py $(BUILD) --since $(SINCE)

bigcheck: export NEAP_SANITIZED = 1
bigcheck: export NEAP_FRAMEWORKS = 1
bigcheck: full
	@tools/check.sh $(BUILD) --big

bench: full
	@tools/bench.sh $(BUILD)

wheel:
	@tools/deps.sh --wheel
	@/usr/bin/python3 tools/wheel.py $(BUILD)/dist

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
