# build  an importable in-tree build          MODE=debug|asan|ubsan|tsan (or several joined by "-") has a build folder of its own
# test   C and Python tests (makes .venv)     TESTS= narrows the Python tests
# check  the gates: layers, sizes, duplication, formatting, warnings, stubs, instruction counts
# asan   C tests and a part of the Python tests under AddressSanitizer and UBSan;  tsan  the C tests under ThreadSanitizer
# bench  benchmarks beside PyTorch;  demo  train a small network;  test-gpu  the GPU tests
MODE   ?=
PYTHON ?= $(if $(wildcard .venv/bin/python),.venv/bin/python,python3)
JOBS   ?= $(shell nproc)
TESTS  ?= tests
CC     ?= cc

VENV  := .venv/bin/python
BUILD := build/$(or $(MODE),release)
# meson and ninja of the Python that is built for, if it has them
PY    := $(abspath $(shell command -v $(PYTHON)))
TOOLS := PATH="$(dir $(PY)):$$PATH"

.PHONY: build test check asan tsan bench demo test-gpu venv dev-venv c-test py-test clean
.DEFAULT_GOAL := build

build:
	@$(TOOLS) $(PY) tools/build.py --mode "$(MODE)" --jobs $(JOBS) $(BUILD)

venv:
	@python3 tools/make_venv.py .venv requirements-test.txt

c-test: build
	@$(TOOLS) meson test -C $(BUILD) --no-rebuild --print-errorlogs --quiet $(C_TESTS)

py-test: build
	@cd $(BUILD)/pkg && $(PY) -m pytest $(abspath $(TESTS)) $(PYTEST_ARGS)
