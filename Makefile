# The front door. Thin on purpose: CMake builds, scripts/ do the work. `make` alone says what there is.
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
	@echo 'make run                  build Reef and run the experiments of the paper; figures in results/'
	@echo 'make paper-full           the same with mini-batches and the worst delta; takes a few minutes'
	@echo 'make demo                 build Reef and run its demonstration of a few seconds'
	@echo 'make robustness           the tables of docs/robustness.md: every rule against every attack (half an hour)'
	@echo 'make ablation             what each part of mref is worth (ten minutes)'
	@echo 'make test                 the tests: optimised and sanitized builds, command line, installation; names those it left out'
	@echo 'make test-net             agents over a real nats-server, which is installed if it is missing'
	@echo 'make test-python-extras   the Python package with PyTorch, ByzFL and Flower, in virtual environments'
	@echo 'make bench                what each rule costs in time, as a multiple of the mean (BENCH_FLAGS=...)'
	@echo 'make bench-mpi            runs over 1 to 8 MPI ranks beside one process and beside bare MPI'
	@echo 'make bench-merge          model files through Reef, PyTorch and mergekit, as multiples of cat (MERGE_FLAGS=...)'
	@echo 'make bench-peers          the same arrays through numpy, scipy, PyTorch, ByzFL, Flower (PEERS_FLAGS=...)'
	@echo 'make bench-byzfl          training in ByzFL'"'"'s own framework, its aggregators and ours (BYZFL_FLAGS=..., MNIST=folder)'
	@echo 'make bench-flower         colluders inside the honest spread: Flower'"'"'s strategies and ours (FLOWER_FLAGS=...)'
	@echo 'make bench-python         the same lists of arrays through the Python package, numpy, ByzFL and Flower'
	@echo 'make check                static gates: format, layers, warnings, symbols, docs, clang-tidy, cppcheck'
	@echo 'make docs                 the documentation as a site, build/site/index.html; works offline'
	@echo 'make check-site           the same, looked at in a browser'
	@echo 'make check-docs-long      every command of the documentation, the slow ones too, compared with what the pages show'
	@echo 'make check-aarch64        the vector code of 64-bit Arm: cross-compiled, tested under qemu'
	@echo 'make coverage             lines that the unit tests execute, per room; agg, num, io and learn need 85 %'
	@echo 'make fuzz                 fuzz every parser (FUZZ_SECONDS=$(FUZZ_SECONDS) each)'
	@echo 'make fuzz-long            the same for hours (FUZZ_LONG_SECONDS=$(FUZZ_LONG_SECONDS) each)'
	@echo 'make torture              an hour of kills, full disks, limits and damaged files (TORTURE=run, docs/testing.md)'
	@echo 'make format               apply .clang-format'
	@echo 'make wheel                build/wheel/*.whl: what pip installs, complete in itself (glibc 2.35 or newer)'
	@echo 'make wheel-aarch64        the same for 64-bit Arm, cross-compiled, tested under qemu'
	@echo 'make deb                  build/deb/*.deb: Debian packages of the last commit'
	@echo 'make check-packages       installs, uses and purges these in a new minimal Debian (root; downloads 100 MB)'
	@echo 'make release-check        version, symbols, a source without git, reproducible builds: before a version is given out'
	@echo 'make install              install to PREFIX=$(PREFIX), below DESTDIR if that is set'
	@echo 'make clean                remove build/'
	@echo
	@echo 'Missing Debian packages are installed when you are root, or after a question by sudo if that asks no password'
	@echo '(REEF_YES=1: without the question); otherwise the command to install them is printed.'

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

# With a small set of packages; what needs more runs where it is there, and is named at the end otherwise.
test:
	@scripts/bootstrap.sh run test
	@scripts/test.sh

# NATS=new: on the current nats-server, built from its Go module.
test-net:
	@scripts/bootstrap.sh run test net
	@scripts/test_net.sh

# What cannot be installed is named and left out, so a failure to install some is no end.
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

# Peers that cannot be installed are named as absent, so a failure to install some is no end.
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

# All commands of README and docs; `make test` runs the quick ones.
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

# An hour in all; TORTURE=kill_run,limits chooses parts, TORTURE_SECONDS another time. Interrupted, it goes on where it was.
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

# The cache of shared libraries is refreshed only for an installation that is meant for this very system.
install:
	@scripts/bootstrap.sh run man
	@scripts/build.sh release reef_shared reef_static reef_tool reef_extras
	@DESTDIR='$(DESTDIR)' cmake --install build/release --prefix '$(PREFIX)'
	@if [ -z '$(DESTDIR)' ] && [ "$$(id -u)" -eq 0 ]; then ldconfig 2>/dev/null || true; fi

clean:
	rm -rf build
