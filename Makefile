# Set-up, demo and tests. `make demo` and `make test` need Python 3.11 or later, and nothing else of ours.

PYTHON ?= python3
VENV   ?= .venv
# Installed by pip in a step of its own, before everything else: a resolver that meets a conflict would swap a
# CPU build for gigabytes of CUDA. Add pip options here to take it from another place.
TORCH       ?= torch==2.13.0
# The published wheel declares a CUDA torch; without its dependencies it runs on any torch of its release.
TORCHVISION ?= torchvision==0.28.0
# Headers and libraries for harnesses/compiled/executor_runner. What it depends on is for exporting only, and takes minutes.
EXECUTORCH  ?= executorch==1.5.1
# What exporting for ExecuTorch imports of them.
TORCHAO        := torchao==0.18.0
EXPORT_IMPORTS := ruamel.yaml tabulate
# Runtimes that examples/runtimes compares. zig links what TVM compiles.
FURTHER_RUNTIMES := ai-edge-quantizer==0.10.0 apache-tvm==0.27.0.post1 apache-tvm-ffi==0.1.14.post1 ziglang==0.17.1
# Without what their wheels declare: a torch among it. MNN's wheel brings programs that install packages when they
# are started (mnn, mnnconvert, mnnquant); nothing here starts them.
RUNTIMES_ALONE := ncnn==1.0.20261020 pnnx==20261020 mnn==3.6.1
# What TVM's tuner imports, beside what is there: its cost model is trained by XGBoost, on the CPU alone.
TUNER := xgboost-cpu==3.2.0 cloudpickle==3.1.2

BIN := $(VENV)/bin
# Every worker and every process of a test would compile what it imports, where nothing may keep it.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help

.PHONY: help
help:
	@echo "make demo      set up, run one matrix on two virtual phones, print the speedup table"
	@echo "make demo-runtimes  install the runtimes, run one network by each of them side by side, print one table"
	@echo "make demo-nnapi  run MobileNetV2 in three precisions on the CPU and by NNAPI's reference library, print one table"
	@echo "make demo-llm  build llama.cpp's llama-bench, run a small language model by it, by LiteRT-LM, ExecuTorch, ONNX Runtime GenAI and MNN, print one table each"
	@echo "make install   set up only"
	@echo "make check     lint, and the tests of what is pure: under a minute"
	@echo "make test      set up, lint, and the quick tests: all that is promised, at least once"
	@echo "make test-long storms, kill tests, typed pages, mutants, PostgreSQL, many examples"
	@echo "make test-all  both"
	@echo "make test-failed  the tests that failed in the last run, with little beside them"
	@echo "make chaos     set up, 1000 faults on each database: SEED=7 FAULTS=100 DATABASE=sqlite|postgresql|both"
	@echo "make simulate  many seeds of the simulation: SEEDS=17 (that one, with its trace) DATABASE=sqlite|postgresql|both"
	@echo "make mutants   take each enforcement of an invariant out, and see a test fail"
	@echo "make security  ruff S, known holes, roles, hostile texts, fuzzers, fuzzed calls: CALLS=2000 WITHIN=600 FUZZ=60 (seconds)"
	@echo "make lint      ruff, mypy and the import contracts only"
	@echo "make docs      generate the pages that are made from the code: reference, states, events, roles, json, reliability"
	@echo "make site      build the documentation site into build/site, and check its links"
	@echo "make screenshots  write the pictures of the pages in docs/images, by a browser"
	@echo "make lock      pin what a release is made of, with digests, in deploy/requirements-*.lock"
	@echo "make release   a wheel that is built twice alike, the locks, an SBOM and their digests, in build/release"
	@echo "make vendor    copy the scripts of the pages from their npm packages"
	@echo "make clean     remove the virtual environment"

.PHONY: demo
demo: $(VENV)/.installed
	@$(BIN)/farm demo

.PHONY: demo-runtimes
demo-runtimes: $(VENV)/.installed-runtimes
	@$(BIN)/python examples/runtimes/demo.py

.PHONY: demo-llm
demo-llm: $(VENV)/.installed-llm
	@$(BIN)/python examples/llm/demo.py

.PHONY: demo-nnapi
demo-nnapi: $(VENV)/.installed
	@$(BIN)/python examples/mobilenet_v2/demo.py

.PHONY: install
install: $(VENV)/.installed

CORES := $(shell getconf _NPROCESSORS_ONLN)
# Most tests wait, for a phone or a process: more of them run at once than there are cores.
WORKERS ?= $(shell expr 3 '*' $(CORES))
# Tests write many small files and sync them: in memory they wait for no disk. It takes 4 GiB, and programs that may be
# started from there. `make test TESTS_IN=` leaves them where other temporary files are.
TESTS_IN ?= $(shell findmnt --noheadings --bytes --output AVAIL,OPTIONS --target /dev/shm 2> /dev/null | tail -n 1 | \
	awk '$$1 > 4 * 1024 ^ 3 && $$2 !~ /noexec/ { print "/dev/shm" }')
# Who has run out of tests takes some of another's; the tests of a file stay together as far as that goes.
PYTEST = $(if $(TESTS_IN),TMPDIR=$(TESTS_IN)) $(BIN)/python -m pytest --dist worksteal
PURE   = tests/architecture tests/core tests/harness tests/phone tests/wire
# Simulated months of many devices: a third of what all pure tests cost. `make test` runs them.
DEAR   = tests/core/results/history/changes

# What the long tests are is said where they stand: `pytest.mark.long`.
.PHONY: test
test: $(VENV)/.installed-dev
	@$(MAKE) --no-print-directory -j 2 lint $(VENV)/.bytecode
	$(PYTEST) -n $(WORKERS) -m "not long"

# pytest keeps what it makes of a file of tests. Once, on the core that lint leaves idle; else each worker does it.
$(VENV)/.bytecode: $(VENV)/.installed-dev
	@$(BIN)/python -m pytest --collect-only -qq > /dev/null 2>&1 || true
	@touch $@

# Tests of properties run again, with many examples.
.PHONY: test-long
test-long: $(VENV)/.installed-dev
	$(PYTEST) -n $(WORKERS) -m "long or hypothesis" --hypothesis-profile long

# For CI: what failed in the last run once more, with little beside it. Where nothing failed, that is an error.
.PHONY: test-failed
test-failed: $(VENV)/.installed-dev
	@grep -qs true .pytest_cache/v/cache/lastfailed || { echo "no test failed in the last run" >&2; exit 1; }
	$(PYTEST) -n $(CORES) --last-failed

.PHONY: test-all
test-all: test
	@$(MAKE) --no-print-directory test-long

.PHONY: check
check: lint
	$(PYTEST) -n $(CORES) -m "not long" $(PURE) --ignore $(DEAR)

# Drawn by the run where it is empty; it says which one it drew.
SEED     ?=
FAULTS   ?= 1000
DATABASE ?= both

.PHONY: chaos
chaos: $(VENV)/.installed-dev
	@$(BIN)/python -m tests.chaos.long_run $(if $(SEED),--seed $(SEED)) --faults $(FAULTS) --database $(DATABASE)

SEEDS    ?= 1000-1100

.PHONY: simulate
simulate: $(VENV)/.installed-dev
	$(BIN)/python -m tests.simulation $(SEEDS) --database $(DATABASE)

.PHONY: mutants
mutants: $(VENV)/.installed-dev
	@$(BIN)/python -m tests.architecture.reliability.mutants

CALLS  ?= 100000
WITHIN ?= 3600
FUZZ   ?= 60

.PHONY: security
security: $(VENV)/.installed-dev
	@$(BIN)/python -m tests.security --calls $(CALLS) --within $(WITHIN) --fuzz $(FUZZ)

.PHONY: lint
lint: $(VENV)/.installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check --quiet
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# Each of these tests compares a page with the code, and writes the page when BENCHFARM_DRAW is set.
DRAWN = tests/architecture/docs/test_states_page.py tests/architecture/docs/test_events_page.py tests/architecture/docs/test_roles_page.py \
	tests/architecture/docs/test_json_page.py tests/architecture/docs/reference tests/architecture/reliability/test_page.py

.PHONY: docs
docs: $(VENV)/.installed-dev
	BENCHFARM_DRAW=1 $(BIN)/python -m pytest -q $(DRAWN)

# Strict: a broken link or anchor is an error. Needs no network.
.PHONY: site
site: $(VENV)/.installed-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict

# The newest versions that pyproject.toml allows, with their digests. Needs the package index.
.PHONY: lock
lock: $(VENV)/.installed-dev
	$(BIN)/python deploy/release.py lock

# A wheel that two builds make alike, the locks, a CycloneDX SBOM and their digests. Needs the package index.
.PHONY: release
release: $(VENV)/.installed-dev
	$(BIN)/python deploy/release.py build build/release

# A real farm runs the demo; look at each picture before it is committed.
.PHONY: screenshots
screenshots: $(VENV)/.installed-dev
	BENCHFARM_SCREENSHOTS=1 $(BIN)/python -m pytest -q tests/e2e/pages/test_screenshots.py

# Needs npm; the versions stand in the script.
.PHONY: vendor
vendor:
	$(PYTHON) deploy/vendor_web.py

.PHONY: clean
clean:
	rm -rf $(VENV)

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or later is needed, $(PYTHON) is older. hint: make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) cannot make virtual environments. hint: on Debian and Ubuntu, apt install python3-venv" >&2; exit 1; }
	@echo "making a virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.torch: $(VENV)/bin/python
	@echo "installing $(TORCH)"
	@$(PIP) install $(TORCH)
	@$(PIP) install --no-deps $(TORCHVISION)
	@touch $@

$(VENV)/.installed: $(VENV)/.torch pyproject.toml
	@echo "installing benchfarm"
	@$(PIP) install --editable '.[farm,torch]'
	@touch $@

# What exporting for ExecuTorch and ONNX imports, without the hundreds of megabytes that their wheels want besides.
$(VENV)/.installed-runtimes: $(VENV)/.installed
	@echo "installing the runtimes"
	@$(PIP) install --editable '.[farm,torch,litert,onnxruntime]' onnx==1.23.2 $(FURTHER_RUNTIMES) $(EXPORT_IMPORTS)
	@$(PIP) install --no-deps $(EXECUTORCH) $(TORCHAO) $(RUNTIMES_ALONE)
	@touch $@

# What writes the models, what runs those of LiteRT-LM, ExecuTorch, GenAI and MNN, and what llama.cpp is built with. Needs a C++ compiler.
$(VENV)/.installed-llm: $(VENV)/.installed
	@echo "installing gguf, cmake, ninja, LiteRT-LM, ONNX Runtime GenAI, MNN and ExecuTorch"
	@$(PIP) install --editable '.[farm,torch,litert,litert-lm,onnxruntime-genai,mnn]' gguf==0.19.0 onnx==1.23.2 cmake ninja $(EXPORT_IMPORTS)
	@$(PIP) install --no-deps $(EXECUTORCH) $(TORCHAO)
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	@echo "installing what the tests need"
	@$(PIP) install --editable '.[all,litert,onnxruntime,docs,dev]' $(FURTHER_RUNTIMES) $(TUNER) $(EXPORT_IMPORTS)
	@$(PIP) install --no-deps $(EXECUTORCH) $(TORCHAO) $(RUNTIMES_ALONE)
	@touch $@
