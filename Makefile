# build  an importable in-tree build       MODE=debug|asan|ubsan|tsan|clang (or several joined by "-") has a build folder of its own
# test   C tests and a part of all others that covers every op, layer, optimizer and kernel table (makes .venv); some minutes
# test-all  every test, conformance, the new contributor's path   TESTS= narrows the Python tests, PYTEST_ARGS= is passed on
# check  the gates: layers, sizes, duplication, formatting, warnings, stubs, instruction counts     GATES= narrows them
# asan   C tests and a part of the Python tests under AddressSanitizer and UBSan, with the checks of debug builds
# tsan   the C tests under ThreadSanitizer
# compat every op on all samples of PyTorch's own op database     OPS= narrows it
# docs   the op reference and the documentation site, into the build folder
# wheel  the wheel for distribution, in dist/     PYTHONS=all makes one for every Python of this machine
# bench  benchmarks beside PyTorch;   demo  LeNet-5 learns handwritten digits;   test-gpu, test-gpu-sanitizer  the tests that need a GPU
# bench-gpu  benchmarks on a GPU beside PyTorch; figures go into the build folder as gpu.json
# test-packages  uses of packages written for PyTorch, equal on both   packages-table writes docs/packages.md
MODE   ?=
PYTHON ?= $(if $(wildcard .venv/bin/python),.venv/bin/python,python3)
JOBS   ?= $(shell nproc)
TESTS  ?= tests
ifneq ($(origin CC),default)
export CC
endif

BUILD := build/$(or $(MODE),release)
PY    := $(abspath $(shell command -v $(PYTHON)))
TOOLS := PATH="$(dir $(PY)):$$PATH"# meson and ninja of the Python that is built for, if it has them
# the build under test goes before the source tree (tests/conftest.py)
PYTEST := PYTHONPATH=$(CURDIR)/$(BUILD)/pkg $(PY) -m pytest
# several processes, if pytest-xdist is there (the venv has it); OMP_NUM_THREADS: PyTorch's threads would wait for each other's cores
SHARED := $(shell $(PY) -c "import xdist" 2>/dev/null && printf -- "-n $(JOBS) --dist loadgroup")
MANY   := OMP_NUM_THREADS=1 $(PYTEST) $(SHARED)
ISAS  := $(shell grep -qw avx2 /proc/cpuinfo 2>/dev/null && echo base; grep -qw avx512dq /proc/cpuinfo 2>/dev/null && echo avx2)
MAKE_ := $(MAKE) --no-print-directory

.PHONY: build venv test test-all compat c-test py-test compat-test isa-test contributor-test check asan tsan docs bench demo wheel wheel-test packages-venv test-packages packages-table test-gpu test-gpu-sanitizer bench-gpu format clean

build:
	@$(TOOLS) $(PY) tools/build.py --mode "$(MODE)" --jobs $(JOBS) $(BUILD)

venv:
	@python3 tools/make_venv.py .venv requirements-test.txt

c-test: build
	@$(TOOLS) meson test -C $(BUILD) --print-errorlogs --quiet $(C_TESTS)

# tests/compat starts processes of its own
py-test: build
	@$(MANY) $(TESTS) --ignore=tests/compat $(PYTEST_ARGS)

compat-test: build
	@$(PYTEST) tests/compat $(PYTEST_ARGS)

# The kernel tests once more with every narrower kernel table this CPU has.
isa-test: build
	@for isa in $(ISAS); do LUCID_ISA=$$isa $(MANY) tests/ops -k values $(PYTEST_ARGS) || exit 1; done

# docs/add-an-op.md, followed to the letter on a copy of the tree.
contributor-test: build
	@$(PY) tests/repo/follow_add_an_op.py

test: venv
	@$(MAKE_) c-test py-test compat-test isa-test PYTHON=.venv/bin/python PYTEST_ARGS="--few $(PYTEST_ARGS)"
	@echo "test: passed, with a part of the cases; make test-all runs all of them"

test-all: venv
	@$(MAKE_) c-test py-test compat-test isa-test contributor-test PYTHON=.venv/bin/python
	@echo "test-all: C tests, Python tests, conformance, kernel tables ($(ISAS) and the widest), contributor's path passed"

compat: build
	@PYTHONPATH=$(CURDIR)/$(BUILD)/pkg $(PY) tests/compat/run.py --jobs $(JOBS) $(OPS)

check: build
	@$(TOOLS) $(PY) tools/check.py $(BUILD) $(GATES)

asan:
	@$(PY) tools/sanitize.py debug-asan-ubsan $(JOBS)
tsan:
	@$(PY) tools/sanitize.py tsan $(JOBS)

docs: build
	@PYTHONPATH=$(CURDIR)/$(BUILD)/pkg $(PY) tools/gendocs.py $(BUILD)/docs/ops
	@NO_MKDOCS_2_WARNING=1 PYTHONPATH=$(CURDIR)/$(BUILD)/pkg $(PY) tools/docsite.py $(BUILD)
	@$(PY) tools/check_site.py $(BUILD)/site/html

bench: build
	@PYTHONPATH=. $(PY) benchmarks/summary.py
	@PYTHONPATH=. $(PY) benchmarks/dispatch.py
	@PYTHONPATH=. $(PY) benchmarks/modules.py
	@PYTHONPATH=. $(PY) benchmarks/elementwise.py
	@PYTHONPATH=. $(PY) benchmarks/ops.py
	@PYTHONPATH=. $(PY) benchmarks/kernels.py
	@PYTHONPATH=. $(PY) benchmarks/models.py
	@PYTHONPATH=. $(PY) benchmarks/generate.py
	@PYTHONPATH=. $(PY) benchmarks/runtime.py
	@PYTHONPATH=. $(PY) benchmarks/data.py
	@PYTHONPATH=. $(PY) benchmarks/checkpoints.py

demo: build
	@PYTHONPATH=. $(PY) examples/lenet.py 30 docs/images/demo.png

# The wheel for distribution, named after the oldest glibc it runs with, in dist/
wheel:
	@$(TOOLS) $(PY) tools/make_wheel.py dist $(PYTHONS)

# Build the wheel, install it into an empty environment, use it from Python and from C; then on the other Pythons of this machine.
wheel-test:
	@$(TOOLS) $(PY) tools/check_wheel.py

# Uses of packages that are written for PyTorch, in two processes: on PyTorch and on Lucid. Their environment is large.
# PyTorch comes first, with what its build needs (the default index gives one for CUDA); the list of the others is complete.
packages-venv:
	@python3 tools/make_venv.py .venv-packages requirements-torch.txt
	@python3 tools/make_venv.py .venv-packages requirements-packages.txt --no-deps

test-packages: build packages-venv
	@$(PYTEST) tests/packages $(PYTEST_ARGS)

# docs/packages.md: every use, equal or not, and its time beside PyTorch's
packages-table: build packages-venv
	@PYTHONPATH=$(CURDIR)/$(BUILD)/pkg $(PY) tests/packages/table.py docs/packages.md

# Eight processes on one GPU, without pytest-xdist; without a GPU what runs on the emulation. TESTS= narrows.
GPU_TESTS := PYTHONPATH=$(CURDIR)/$(BUILD)/pkg $(PY) -m tests.gpu.parallel
test-gpu: build
	@$(GPU_TESTS) $(if $(filter command line environment,$(origin TESTS)),$(TESTS),tests/gpu) $(PYTEST_ARGS)

# A part of them under compute-sanitizer: every kernel family once for memory, those with shared memory for races.
SANITIZER := $(or $(shell command -v compute-sanitizer),/usr/local/cuda/bin/compute-sanitizer)
RACES     := softmax or norm or sum or cross_entropy or sort or cumsum or scans or unique or topk or lu or qr or eigh or svd or small
test-gpu-sanitizer: build
	@test -x $(SANITIZER) || { echo "test-gpu-sanitizer: no compute-sanitizer (it comes with the CUDA toolkit)"; exit 1; }
	@LUCID_CUDA_CACHE=0 $(GPU_TESTS) --under "$(SANITIZER) --tool memcheck --error-exitcode 77" tests/gpu/test_families.py $(PYTEST_ARGS)
	@$(GPU_TESTS) --under "$(SANITIZER) --tool racecheck --error-exitcode 77" tests/gpu/test_families.py -k "test_like_the_cpu and ($(RACES))"

bench-gpu: build
	@PYTHONPATH=$(CURDIR)/$(BUILD)/pkg $(PY) benchmarks/gpu.py --json $(BUILD)/gpu.json
	@PYTHONPATH=$(CURDIR)/$(BUILD)/pkg $(PY) benchmarks/gpu_runtime.py
	@PYTHONPATH=$(CURDIR)/$(BUILD)/pkg $(PY) benchmarks/generate_gpu.py

format:
	@$(TOOLS) clang-format -i $$(git ls-files '*.c' '*.h' '*.cuh')
	@$(TOOLS) ruff format --quiet . && $(TOOLS) ruff check --quiet --fix .

clean:
	rm -rf build
	find lucid -type l -delete
