# Thin front to the CMake presets. `make demo` and `make test` do all the set-up on a fresh Debian 12 or Ubuntu 24.04.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := build
jobs := $(shell nproc)
# On a terminal ninja keeps its progress on one line: the share of the whole build that is done, and the time since it began.
export NINJA_STATUS := [build %p, %e s] 

.PHONY: build program configure package tarball wheel demo test bench gpu-test mutate covered docs format packages bench-packages test-packages clean
.PHONY: test-optimised test-sanitized test-format test-release test-whole test-presets test-asan test-tsan test-tidy test-fuzz

packages:
	@tools/install-packages.sh build
bench-packages:
	@tools/install-packages.sh bench
test-packages:
	@tools/install-packages.sh test

# What is installed: the program build/release/demarc, the libraries that it loads into others and that others load, and
# those of the rooms. `cmake --install build/release` works after it.
build: configure
	cmake --build --preset release --target demarc_installed

# The program, build/release/demarc, with the libraries that it loads into others.
program: configure
	cmake --build --preset release --target demarc_program

configure: packages
	cmake --preset release -DDEMARC_BUILD_TESTS=OFF -DDEMARC_BUILD_BENCH=OFF >/dev/null

# Debian packages, in build/release (cmake/DemarcPackage.cmake says which).
package: build
	cd build/release && cpack >/dev/null && ls "$$PWD"/demarc*.deb

# A tarball for other Linux machines, in build/static: it needs their C library and nothing else.
tarball: packages
	cmake --preset static >/dev/null
	cmake --build --preset static --target demarc_installed
	cd build/static && cpack >/dev/null && ls "$$PWD"/demarc-*.tar.gz

# A wheel of the Python package, in build/wheel. Python's standard library makes it, and no network is needed.
wheel:
	@python3 -c "import base64, hashlib, zipfile" 2>/dev/null || \
	  { echo "make wheel: there is no python3 with its standard library: install the package python3" >&2; exit 1; }
	@python3 python/wheel_of_demarc.py build/wheel

# The main job on bundled real kernels; writes build/demo/index.html. It needs the program alone. A build from nothing takes
# seven minutes of one processor at most (docs/measurements/tests.md).
demo_minutes := $(shell expr \( 6 + $(jobs) \) / $(jobs))
demo:
	@start=$$SECONDS; \
	echo "make demo: builds Demarc and analyses bundled kernels; takes up to $(demo_minutes) min ($(jobs) processors), and 6 GB of memory"; \
	$(MAKE) --no-print-directory program; \
	mkdir -p build/demo; \
	build/release/demarc demo --html build/demo/index.html; \
	echo "make demo: done in $$((SECONDS - start)) s"

# What has to pass before a change lands. Every test runs once under the address and undefined-behaviour sanitizers, or,
# where it runs the program or somebody else's compiler, against the optimised build.
# The optimised build and those of sanitizers go side by side, so that no processor waits for the end of a build or of a
# test; the device code, which all keep in build/ptx, is compiled before.
test: test-packages
	@start=$$SECONDS; rm -rf build/log; mkdir -p build/log; \
	$(MAKE) --no-print-directory test-format; \
	cmake --preset release -DDEMARC_BUILD_TESTS=ON -DDEMARC_BUILD_BENCH=ON >/dev/null; \
	cmake --build --preset release -j $(jobs) --target demarc_generated_sources; \
	$(MAKE) --no-print-directory -j2 test-optimised test-sanitized; \
	tools/sum-up-tests.sh build/log build/release build/asan build/tsan | sed "s/^/make test: /"; \
	echo "make test: done in $$((SECONDS - start)) s"

test-optimised: parts := release
test-sanitized: parts := asan fuzz tsan tidy
test-optimised test-sanitized:
	@mkdir -p build/log; \
	for part in $(parts); do \
	  begin=$$SECONDS; \
	  $(MAKE) --no-print-directory test-$$part 2>&1 | tee build/log/$$part.log | sed -u "s/^/$$part: /"; \
	  echo "make test: $$part passed in $$((SECONDS - begin)) s"; \
	done

test-format:
	tools/check-format.sh
	tools/check-tree.sh
	tools/check-words.py

# GCC, optimised: the program as users run it, the pages in a browser, the oracles, the rules of the house.
test-release:
	cmake --preset release -DDEMARC_BUILD_TESTS=ON -DDEMARC_BUILD_BENCH=ON >/dev/null
	cmake --build --preset release -j $(jobs) --target demarc_program demarc_bench_objects demarc_optimised_tests
	ctest --preset release -j $(jobs) --schedule-random -L '^(optimised|verbs|browser|oracle|architecture)$$'

# What the tests say that holds, room by room: build/covered.md.
covered:
	@mkdir -p build; tools/what-is-covered.py -o build/covered.md; echo build/covered.md

# What takes too long for every change: the device code of CUB, Thrust, libcu++ and cuRAND through ptxas, on every target,
# plain, with line numbers and for the debugger.
test-whole: test-packages
	cmake --preset release -DDEMARC_BUILD_TESTS=ON >/dev/null
	cmake --build --preset release --target demarc_ptx_oracle
	ctest --test-dir build/release --output-on-failure -L '^whole$$'

# Every preset that there is configures from nothing and builds all of its targets; what it is for is started once. An hour:
# before a release.
test-presets: test-packages
	@for preset in $$(cmake --list-presets=build | sed -nE 's/^ +"([a-z]+)".*/\1/p'); do \
	  begin=$$SECONDS; \
	  cmake --fresh --preset $$preset >/dev/null; \
	  cmake --build --preset $$preset -j $(jobs) >build/preset-$$preset.log 2>&1 || { tail -n 40 build/preset-$$preset.log; exit 1; }; \
	  if [ $$preset = fuzz ]; then tools/run-fuzzers.sh build/fuzz 2; else build/$$preset/demarc --version; fi; \
	  echo "make test-presets: $$preset builds in $$((SECONDS - begin)) s"; \
	done

# Clang, address and undefined-behaviour sanitizers: the tests of all rooms, with fewer cases a property. What takes
# minutes there (tests/*/slow: a million launches, whole maps, whole studies) runs optimised alone.
test-asan:
	cmake --preset asan >/dev/null
	cmake --build --preset asan -j $(jobs) --target demarc_room_tests
	RC_PARAMS="max_success=20" ASAN_OPTIONS=malloc_context_size=5:intercept_tls_get_addr=0 ctest --preset asan -j $(jobs) --schedule-random -L '^(room|threaded|optimised)$$'

# clang-tidy 14 over src/ and include/.
test-tidy:
	cmake --preset asan >/dev/null
	cmake --build --preset asan --target demarc_generated_sources
	tools/check-tidy.sh build/asan

# A minute of libFuzzer for PTX and, beside it, half a minute for everything else that is read, from the kept corpora.
test-fuzz:
	cmake --preset asan >/dev/null
	cmake --build --preset asan -j $(jobs) --target demarc_fuzzers
	tools/run-fuzzers.sh build/asan 60

# Only what runs threads of ours.
test-tsan:
	cmake --preset tsan >/dev/null
	cmake --build --preset tsan -j $(jobs) --target demarc_threaded_tests
	ctest --preset tsan -j $(jobs) -L '^threaded$$'

# Figures of every part that has a target, one program after the other.
bench: bench-packages
	cmake --preset release -DDEMARC_BUILD_TESTS=OFF -DDEMARC_BUILD_BENCH=ON >/dev/null
	cmake --build --preset release --target demarc_benches
	@missed=; \
	while read -r bench; do \
	  echo "== $$(basename $$bench)"; "$$bench" || missed="$$missed $$(basename $$bench)"; \
	done < build/release/benches.txt; \
	[ -z "$$missed" ] || { echo "make bench: not everything was reached by:$$missed"; exit 3; }

# What needs a GPU (tools/gpu-test.sh): the topology by its two ways, partitions and colours proved from inside the card, TLBs,
# programs under `exec`, a short `isolate`, bundled launches against their references, the emulator beside the card, and
# the conformance suite of all mechanisms. Without a GPU it says so and succeeds.
gpu-test: bench-packages
	@if ls /dev/nvidia[0-9]* >/dev/null 2>&1; then \
	  cmake --preset release -DDEMARC_BUILD_TESTS=ON >/dev/null; \
	  cmake --build --preset release --target demarc_program demarc_preload demarc_conformance demarc_emulate_gpu; \
	fi; \
	mkdir -p build/release; tools/gpu-test.sh build/release

# Would the tests notice? One-line faults, one at a time, in a copy of the tree (build/mutate/ROOM): who notices which, and
# the share. Exit code 3 below the room's bar (tools/mutate/rooms.py). make mutate ROOM=card [COUNT=40] [SEED=1]
# [FILES=verify,masks] [JOBS=1] [OPTIONS=--with-cli]
COUNT ?= 40
SEED ?= 1
JOBS ?= 1
mutate: test-packages
	@[ -n "$(ROOM)" ] || { echo "make mutate ROOM=card: a room is needed" >&2; exit 1; }
	@python3 tools/mutate --room $(ROOM) --count $(COUNT) --seed $(SEED) --files "$(FILES)" --jobs $(JOBS) $(OPTIONS)

# The pages of docs/ are plain Markdown; this checks that their links and file references hold.
docs:
	tools/check-docs.sh
	tools/check-figures.py
	tools/check-words.py

format:
	git ls-files '*.cpp' '*.hpp' '*.h' '*.cu' '*.cuh' | xargs clang-format-14 -i

clean:
	rm -rf build
