# Everything happens in a virtual environment of the project's own, .venv; only the tests with DoWhy,
# which needs an older scipy, and those on a second version of Python have others.
# Stamps in .venv say what is installed: the core alone (for the demo), the core and the development
# tools, the core and what it is benchmarked against, and what builds the documentation. All follow
# pyproject.toml, in the versions that constraints.txt names.

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:

PYTHON ?= python3
PYTEST_ARGS ?=
BENCH_ARGS ?=
MUTANTS_ARGS ?=
FUZZ_ARGS ?=
SIZE_ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
CREATED := $(VENV)/.created
CORE := $(VENV)/.core-installed
DEV := $(VENV)/.dev-installed
BENCH := $(VENV)/.bench-installed
DOCS := $(VENV)/.docs-installed
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check --no-input
INSTALL := $(PIP) install --constraint constraints.txt --editable
# worksteal: tests of one file stay on one worker as long as there is work for both, and share what
# they set up
PYTEST := $(BIN)/python -m pytest -n auto --maxprocesses 2 --dist worksteal

DOWHY := .venv-dowhy
DOWHY_READY := $(DOWHY)/.installed

.PHONY: help demo test test-all test-dowhy test-second docs bench lint size check wheel-check mutants fuzz kills \
    sbom licences constraints packages format clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(CORE) ## install the core and run the demonstration
	$(BIN)/mutandis demo

# the suite starts some hundred processes: what they compile is kept, whatever the environment says
test test-all test-second: export PYTHONDONTWRITEBYTECODE :=

test: $(DEV) packages ## run the tests and doctests but the slow ones (PYTEST_ARGS="-k ties" chooses)
	$(PYTEST) -m "not slow" $(PYTEST_ARGS)

test-all: $(DEV) packages ## run all tests, with simulations that take minutes
	$(PYTEST) $(PYTEST_ARGS)

test-second: $(CREATED) packages ## run the fast tests on a second version of Python, if there is one
	tools/test_second_python.sh $(BIN)/python $(PYTEST_ARGS)

test-dowhy: $(DOWHY_READY) ## run the tests and examples that need DoWhy
	$(DOWHY)/bin/python -m pytest tests/rooms/dowhy docs/dowhy.md src/mutandis/rooms/dowhy.py $(PYTEST_ARGS)

# Not --quiet, under which --strict sees no warnings. The theme's notices are not about this project.
docs: $(DOCS) ## build the documentation into site/, strictly
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "To read it: $(BIN)/python -m http.server --directory site"

bench: $(BENCH) ## time the search beside its peers, 15 minutes (BENCH_ARGS=--quick: 2)
	$(BIN)/python benchmarks/search.py $(BENCH_ARGS)

lint: $(DEV) ## check style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

size: $(CREATED) ## print the lines of each package (SIZE_ARGS=--limits: fail above the limits)
	$(BIN)/python tools/size.py $(SIZE_ARGS)

check: lint test ## lint and test: what a change has to pass

wheel-check: $(CREATED) ## build the wheel twice, compare the bytes, use it in a clean environment
	tools/check_wheel.sh $(BIN)/python

mutants: $(DEV) ## change the code in small ways, and see whether the tests notice: 30 minutes
	$(BIN)/python tools/mutants.py $(MUTANTS_ARGS)

fuzz: $(DEV) ## give hostile inputs to every reader: 25 minutes (FUZZ_ARGS=--quick: half of one)
	$(BIN)/python tools/fuzz.py $(FUZZ_ARGS)

kills: $(DEV) ## end commands at random moments: 100 times, some ten minutes (KILLS_ARGS="--kills 8")
	$(BIN)/python tools/kills.py $(KILLS_ARGS)

licences: $(DEV) ## check the licences of what the core and the extras bring along
	$(BIN)/python tools/check_licences.py

sbom: $(CREATED) ## write dist/sbom.json, a CycloneDX list of what the core and all extras bring along
	tools/write_sbom.sh $(BIN)/python

constraints: $(CREATED) ## write constraints.txt and the hashes anew, with the newest versions
	tools/pin_constraints.sh $(BIN)/python

# system packages that some tests need; where they cannot be installed, those tests are skipped
packages:
	@tools/install_system_packages.sh

format: $(DEV) ## put the code into its standard form
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

clean: ## remove what make and the tools have made
	rm -rf $(VENV) $(VENV)-second $(DOWHY) build dist site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Debian ships Python without ensurepip, and a venv made without it is left half-made: so the
# module is looked for first. Root may install it; for others there is a message.
$(CREATED):
	@set -e; \
	command -v $(PYTHON) >/dev/null || { \
	    echo "There is no $(PYTHON). Install Python 3.11 or later, or name one: make PYTHON=…" >&2; exit 1; }; \
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "mutandis needs Python 3.11 or later; $(PYTHON) is $$($(PYTHON) -V). Name another: make PYTHON=…" >&2; exit 1; }; \
	if ! $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null; then \
	    if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	        echo "Installing python3-venv, which $(PYTHON) lacks"; \
	        export DEBIAN_FRONTEND=noninteractive; \
	        apt-get update -qq </dev/null; \
	        apt-get install -y -qq python3-venv </dev/null; \
	    else \
	        echo "$(PYTHON) cannot make virtual environments. Ask an administrator to install the package python3-venv, or name another Python: make PYTHON=…" >&2; exit 1; \
	    fi; \
	fi; \
	echo "Making the virtual environment $(VENV)"; \
	$(PYTHON) -m venv --clear $(VENV)
	@$(PIP) install --upgrade pip
	@touch $@

$(CORE): pyproject.toml constraints.txt | $(CREATED)
	@echo "Installing mutandis"
	@$(INSTALL) .
	@touch $@

# the development tools come with the core: both stamps are set
$(DEV): pyproject.toml constraints.txt | $(CREATED)
	@echo "Installing mutandis and its development tools"
	@$(INSTALL) '.[dev]'
	@touch $(CORE) $@

$(BENCH): pyproject.toml constraints.txt | $(CREATED)
	@echo "Installing mutandis and the libraries that it is timed against"
	@$(INSTALL) '.[bench]'
	@touch $(CORE) $@

$(DOCS): pyproject.toml constraints.txt | $(CREATED)
	@echo "Installing what builds the documentation"
	@$(INSTALL) '.[docs]'
	@touch $(CORE) $@

# not all of the development tools: some may not get along with what DoWhy needs
$(DOWHY_READY): pyproject.toml constraints-dowhy.txt | $(CREATED)
	@echo "Installing mutandis with DoWhy in $(DOWHY), which takes a minute or two"
	@$(BIN)/python -m venv --clear $(DOWHY)
	@$(DOWHY)/bin/python -m pip --quiet --disable-pip-version-check --no-input install \
	    --constraint constraints-dowhy.txt --editable '.[arrow,dowhy]' hypothesis polars pytest
	@touch $@
