# The front door. Thin on purpose: CMake builds, scripts/ do the work. `make` alone says what there is.
PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 60
BENCH_FLAGS ?=
PEERS_FLAGS ?=
PYTHON_BENCH_FLAGS ?=

.PHONY: help run paper-full demo robustness ablation test test-python-extras
.PHONY: bench bench-peers bench-mpi bench-python check check-aarch64 fuzz format install clean

help:
	@echo 'make run                  build Reef and run the experiments of the paper; figures in results/'
	@echo 'make paper-full           the same with mini-batches and the worst delta; takes a few minutes'
	@echo 'make demo                 build Reef and run its demonstration of a few seconds'
	@echo 'make robustness           the table of docs/robustness.md: every rule against every lie (ten minutes)'
	@echo 'make ablation             what each part of mref is worth (ten minutes)'
	@echo 'make test                 all tests: optimised and sanitized builds, command line, installation'
	@echo 'make test-python-extras   the Python package with PyTorch, ByzFL and Flower, in virtual environments'
	@echo 'make bench                what each rule costs in time, as a multiple of the mean (BENCH_FLAGS=...)'
	@echo 'make bench-mpi            runs over 1 to 8 MPI ranks beside one process and beside bare MPI'
	@echo 'make bench-peers          the same arrays through numpy, scipy, PyTorch, ByzFL, Flower (PEERS_FLAGS=...)'
	@echo 'make bench-python         the same lists of arrays through the Python package, numpy, ByzFL and Flower'
	@echo 'make check                static gates: format, layers, warnings, symbols, docs, clang-tidy, cppcheck'
	@echo 'make check-aarch64        the vector code of 64-bit Arm: cross-compiled, tested under qemu'
	@echo 'make fuzz                 fuzz every parser (FUZZ_SECONDS=$(FUZZ_SECONDS) each)'
	@echo 'make format               apply .clang-format'
	@echo 'make install              install to PREFIX=$(PREFIX), below DESTDIR if that is set'
	@echo 'make clean                remove build/'
	@echo
	@echo 'Missing Debian packages are installed when you are root or sudo asks no password;'
	@echo 'otherwise the command to install them is printed.'

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

test:
	@scripts/bootstrap.sh run test
	@scripts/test.sh

# What cannot be installed is named and left out, so a failure to install some is no end.
test-python-extras:
	@scripts/bootstrap.sh run test
	@scripts/bootstrap.sh python || true
	@scripts/python_extras.sh

bench-python:
	@scripts/bootstrap.sh run test
	@scripts/bootstrap.sh python || true
	@scripts/bench_python.sh $(PYTHON_BENCH_FLAGS)

bench:
	@scripts/bootstrap.sh run
	@scripts/bench.sh $(BENCH_FLAGS)

bench-mpi:
	@scripts/bootstrap.sh run test
	@scripts/bench_mpi.sh

# Peers that cannot be installed are named as absent, so a failure to install some is no end.
bench-peers:
	@scripts/bootstrap.sh run
	@scripts/bootstrap.sh peers || true
	@scripts/bench_peers.sh $(PEERS_FLAGS)

check:
	@scripts/bootstrap.sh run test check
	@scripts/gates.sh

check-aarch64:
	@scripts/bootstrap.sh run aarch64
	@scripts/gates.sh aarch64

fuzz:
	@scripts/bootstrap.sh run check
	@scripts/fuzz.sh $(FUZZ_SECONDS)

format:
	@scripts/bootstrap.sh check
	@find include src tools tests examples bench -name '*.[ch]' 2>/dev/null | xargs clang-format -i

# The cache of shared libraries is refreshed only for an installation that is meant for this very system.
install:
	@scripts/bootstrap.sh run man
	@scripts/build.sh release reef_shared reef_static reef_tool reef_extras
	@DESTDIR='$(DESTDIR)' cmake --install build/release --prefix '$(PREFIX)'
	@if [ -z '$(DESTDIR)' ] && [ "$$(id -u)" -eq 0 ]; then ldconfig 2>/dev/null || true; fi

clean:
	rm -rf build
