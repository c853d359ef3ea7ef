# The front door. Thin on purpose: CMake builds, scripts/ do the work. `make` alone lists the targets.
PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 60
FUZZ_LONG_SECONDS ?= 3600
BENCH_FLAGS ?=
PEERS_FLAGS ?=
PYTHON_BENCH_FLAGS ?=
BYZFL_FLAGS ?=
FLOWER_FLAGS ?=

.PHONY: help run paper-full demo robustness ablation test test-net test-python-extras torture
.PHONY: docs check-site check-docs-long bench bench-byzfl bench-peers bench-mpi bench-python check check-aarch64 coverage fuzz fuzz-long format wheel wheel-aarch64 deb check-packages release-check install clean

help:
	@echo 'make run                  builds Reef and reproduces the figure and table of the paper; results in results/'
	@echo 'make paper-full           the same, with mini-batches and the worst-case shifts; takes a few minutes'
	@echo 'make demo                 builds Reef and runs its demonstration (a few seconds)'
	@echo 'make robustness           reproduces the tables of docs/robustness.md: every rule against every attack (half an hour)'
	@echo 'make ablation             measures what each part of mref is worth (ten minutes)'
	@echo 'make test                 runs the tests: optimised and sanitized builds, command line, installation; lists what was left out'
	@echo 'make test-net             tests agents over a real nats-server, which is installed if missing'
	@echo 'make test-python-extras   tests the Python package with PyTorch, ByzFL and Flower, in virtual environments'
	@echo 'make bench                times each rule, as a multiple of the mean (BENCH_FLAGS=...)'
	@echo 'make bench-mpi            times runs on 1 to 8 MPI ranks, compared with one process and with bare MPI'
	@echo 'make bench-net            times rounds over the network: speed, processor time, bytes, memory (NET_SIZES=...)'
	@echo 'make bench-merge          times merging model files in Reef, PyTorch and mergekit, as multiples of cat (MERGE_FLAGS=...)'
	@echo 'make bench-peers          times the same arrays in NumPy, SciPy, PyTorch, ByzFL and Flower (PEERS_FLAGS=...)'
	@echo 'make bench-byzfl          trains in ByzFL'"'"'s own framework with its aggregators and with Reef'"'"'s (BYZFL_FLAGS=..., MNIST=folder)'
	@echo 'make bench-flower         pits Flower'"'"'s strategies and Reef'"'"'s against colluders within the honest spread (FLOWER_FLAGS=...)'
	@echo 'make bench-python         times the same lists of arrays through the Python package, NumPy, ByzFL and Flower'
	@echo 'make check                static checks: format, layers, warnings, symbols, docs, clang-tidy, cppcheck'
	@echo 'make docs                 builds the documentation site, build/site/index.html, which works offline'
	@echo 'make check-site           the same, and checks it in a browser'
	@echo 'make check-docs-long      runs every command in the documentation, including the slow ones, and compares the output'
	@echo 'make check-aarch64        cross-compiles the vector code for 64-bit Arm and tests it under qemu'
	@echo 'make coverage             measures the lines that unit tests execute, per module; agg, num, io and learn need 85 %'
	@echo 'make fuzz                 fuzzes every parser (FUZZ_SECONDS=$(FUZZ_SECONDS) each)'
	@echo 'make fuzz-long            the same for longer (FUZZ_LONG_SECONDS=$(FUZZ_LONG_SECONDS) each)'
	@echo 'make torture              an hour of kills, full disks, limits and damaged files (TORTURE=run, docs/testing.md)'
	@echo 'make format               applies .clang-format'
	@echo 'make wheel                builds build/wheel/*.whl, a self-contained Python wheel (glibc 2.35 or newer)'
	@echo 'make wheel-aarch64        the same for 64-bit Arm, cross-compiled and tested under qemu'
	@echo 'make deb                  builds build/deb/*.deb, Debian packages of the last commit'
	@echo 'make check-packages       installs, uses and purges these in a new minimal Debian (needs root; downloads 100 MB)'
	@echo 'make check-container      builds the image of packaging/container with buildah and runs agents from it (needs root; downloads 300 MB)'
	@echo 'make release-check        checks version, symbols, building without git, and reproducible builds before a release'
	@echo 'make install              installs to PREFIX=$(PREFIX), below DESTDIR if that is set'
	@echo 'make clean                removes build/'
	@echo
	@echo 'Missing Debian packages are installed if you are root, or with passwordless sudo after asking'
	@echo '(REEF_YES=1: without asking); otherwise the command to install them is printed.'

run:
	@scripts/bootstrap.sh run
	@scripts/build.sh release reef_tool
	@scripts/paper.sh build/release/reef

paper-full:
	@scripts/bootstrap.sh run
	@scripts/build.sh release reef_tool
	@PAPER=full scripts/paper.sh build/release/reef

demo:
	@scripts/bootstrap.sh run
	@scripts/build.sh release reef_tool
	@build/release/reef demo

robustness:
	@scripts/bootstrap.sh run
	@scripts/build.sh release reef_tool
	@python3 scripts/robustness.py build/release/reef

ablation:
	@scripts/bootstrap.sh run
	@scripts/build.sh release reef_tool
	@python3 scripts/ablation.py build/release/reef

# Needs few packages; tests that need more run where those are installed, and are listed at the end otherwise.
test:
	@scripts/bootstrap.sh run test
	@scripts/test.sh

# NATS=new: on the current nats-server, built from its Go module.
test-net:
	@scripts/bootstrap.sh run test net
	@scripts/test_net.sh

# What cannot be installed is listed and left out, so a failed installation is not fatal.
test-python-extras:
	@scripts/bootstrap.sh run test
	@scripts/bootstrap.sh python || true
	@scripts/python_extras.sh

bench-python:
	@scripts/bootstrap.sh run test
	@scripts/bootstrap.sh python || true
	@scripts/bench_python.sh $(PYTHON_BENCH_FLAGS)

bench-byzfl:
	@scripts/bootstrap.sh run test
	@scripts/bootstrap.sh python || true
	@scripts/bench_byzfl.sh $(BYZFL_FLAGS)

.PHONY: bench-flower
bench-flower:
	@scripts/bootstrap.sh run test
	@scripts/bootstrap.sh python || true
	@scripts/bench_flower.sh $(FLOWER_FLAGS)

bench:
	@scripts/bootstrap.sh run
	@scripts/bench.sh $(BENCH_FLAGS)

bench-mpi:
	@scripts/bootstrap.sh run test full
	@scripts/bench_mpi.sh

.PHONY: bench-merge
bench-merge:
	@scripts/bootstrap.sh run
	@scripts/bench_merge.sh $(MERGE_FLAGS)

# Rounds over the network: speed, processor time, bytes, memory. NET_SIZES="16x1000 128x1000": agents x numbers in a model.
.PHONY: bench-net
bench-net:
	@scripts/bootstrap.sh run test net
	@scripts/build.sh release reef_tool reef_net
	@python3 scripts/bench_net.py build/release/reef $(NET_SIZES)

# Peers that cannot be installed are listed as absent, so a failed installation is not fatal.
bench-peers:
	@scripts/bootstrap.sh run
	@scripts/bootstrap.sh peers || true
	@scripts/bench_peers.sh $(PEERS_FLAGS)

check:
	@scripts/bootstrap.sh run test full net check
	@scripts/gates.sh

docs:
	@scripts/bootstrap.sh run docs
	@scripts/site.sh

check-site:
	@scripts/bootstrap.sh run test full docs
	@scripts/site.sh --check

# All commands in README and docs; `make test` runs the quick ones.
check-docs-long:
	@scripts/bootstrap.sh run test full
	@scripts/build.sh release
	@/usr/bin/python3 scripts/run_docs.py build/release --long

check-aarch64:
	@scripts/bootstrap.sh run aarch64
	@scripts/gates.sh aarch64

coverage:
	@scripts/bootstrap.sh run test full net
	@scripts/coverage.sh

fuzz:
	@scripts/bootstrap.sh run net check
	@scripts/fuzz.sh $(FUZZ_SECONDS)

fuzz-long:
	@scripts/bootstrap.sh run net check
	@scripts/fuzz.sh $(FUZZ_LONG_SECONDS)

# An hour in all; TORTURE=kill_run,limits selects parts, TORTURE_SECONDS sets another duration. If interrupted, the same command resumes.
torture:
	@scripts/bootstrap.sh run test full net
	@scripts/build.sh release
	@python3 scripts/torture.py build/release/reef

format:
	@scripts/bootstrap.sh check
	@find include src tools tests examples bench -name '*.[ch]' 2>/dev/null | xargs clang-format -i

wheel:
	@scripts/bootstrap.sh run wheel
	@scripts/wheel.sh

# The same for 64-bit Arm, tested under qemu.
wheel-aarch64:
	@scripts/bootstrap.sh run test wheel aarch64
	@scripts/wheel.sh aarch64
	@tests/install/wheel_aarch64.sh build/wheel-aarch64/*.whl | tee build/log/wheel-aarch64.tap
	@! grep -q '^not ok' build/log/wheel-aarch64.tap

deb:
	@scripts/bootstrap.sh run deb
	@scripts/deb.sh

release-check:
	@scripts/bootstrap.sh run test full check wheel
	@scripts/release_check.sh

check-packages: deb
	@scripts/check_packages.sh

.PHONY: check-container
check-container:
	@scripts/bootstrap.sh container
	@scripts/check_container.sh

# The cache of shared libraries is refreshed only for an installation on this system itself.
install:
	@scripts/bootstrap.sh run man
	@scripts/build.sh release reef_shared reef_static reef_tool reef_extras
	@DESTDIR='$(DESTDIR)' cmake --install build/release --prefix '$(PREFIX)'
	@if [ -z '$(DESTDIR)' ] && [ "$$(id -u)" -eq 0 ]; then ldconfig 2>/dev/null || true; fi

clean:
	rm -rf build
