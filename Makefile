# A thin front door; Meson and ninja do the work.
BUILD ?= build
SHELL := /bin/bash
.DELETE_ON_ERROR:
.PHONY: all deps demo check bigcheck bench install asan tsan clean format

all: $(BUILD)/build.ninja
	ninja -C $(BUILD)

# Installs missing Debian packages; does nothing when all is there.
deps:
	@tools/deps.sh

$(BUILD)/build.ninja: | deps
	@test -f $@ || meson setup $(BUILD) --buildtype=release

# The main job: a recurrent spiking network learns in a few megabytes.
demo: all
	@tools/demo.sh $(BUILD)

check: all
	@tools/check.sh $(BUILD)

bigcheck: all
	@tools/check.sh $(BUILD) --big

bench: all
	@tools/bench.sh $(BUILD)

install: all
	meson install -C $(BUILD)
	@if test -z "$$DESTDIR" && test "$$(id -u)" = 0; then ldconfig; fi # so that programs find them

asan: | deps
	@tools/sanitize.sh address,undefined

tsan: | deps
	@tools/sanitize.sh thread

format:
	clang-format -i $$(git ls-files '*.c' '*.h')

clean:
	rm -rf $(BUILD) build-asan build-tsan
