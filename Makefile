# Two commands matter to a newcomer: `make demo` and `make test`. Both set up everything they need in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Tests side by side: more workers than cores and several private Slurms, since most of them wait and do not calculate.
WORKERS ?= 12
CLUSTERS ?= 4
# Workers, and the hundreds of Pythons that tests start, share compiled code, whatever the shell says.
export PYTHONDONTWRITEBYTECODE :=
PYTEST := WINDROW_TEST_CLUSTERS=$(CLUSTERS) $(BIN)/pytest -rs -n $(WORKERS) --dist loadgroup --no-loadscope-reorder

.PHONY: help demo test quick check lint format docs bench pays prove clean

help:            ## this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

# The product alone, and with what tests, documentation and benchmarks need. Python compiles what it imports, and keeps
# it: to compile all that is installed takes twice as long as to install it.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Windrow needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)

# The studies (lab/) come with both; what only their charts and tables need, with the latter.
$(VENV)/ready: pyproject.toml lab/pyproject.toml | $(BIN)/python
	$(PIP) -e .
	$(PIP) --no-deps -e lab
	@touch $@

$(VENV)/ready-dev: pyproject.toml lab/pyproject.toml plugins/snakemake/pyproject.toml | $(BIN)/python
	$(PIP) -e '.[dev,bench]' -e lab -e 'plugins/snakemake[test]'
	@touch $(VENV)/ready $@

demo: $(VENV)/ready  ## a real workflow on a small emulated cluster, with a wait that hides behind a run; pages in out/
	@mkdir -p out
	@cd out && PATH="$(CURDIR)/$(BIN):$$PATH" sh ../examples/demo.sh ../examples
	@echo 'open in a browser: out/demo.html (the run), out/workflow.html (the workflow)'

quick: lint  ## lint and the quick tests; about a minute on two cores
	$(BIN)/pytest -n 2 --dist loadgroup -m 'not slow'

test: $(VENV)/ready-dev  ## every test, about 7 minutes on two cores; ends with what it skipped; as root with apt, installs a Slurm and Chromium
	@# one Python compiles the tests for all workers, while packages are installed
	$(BIN)/pytest -n0 --collect-only -qq > $(VENV)/collected 2>&1 & sh tests/slurm/install && sh tests/install-browser; code=$$?; wait; exit $$code
	$(PYTEST)

check: lint docs test  ## format, lint, types, import layers, docs, tests

lint: $(VENV)/ready-dev  ## format, lint, types, import layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/lint-imports --config lab/pyproject.toml

format: $(VENV)/ready-dev  ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

PICTURES := $(addprefix docs/images/,run.png what-if.png failed.png)

$(PICTURES): | $(VENV)/ready-dev
	$(BIN)/python docs/pictures.py

docs: $(VENV)/ready-dev $(PICTURES)  ## the documentation site, in docs/_build/html; a warning is an error; makes pictures that are missing
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html

bench: $(VENV)/ready-dev  ## speed, compared with the alternatives
	$(BIN)/python bench/bench.py
	$(BIN)/python bench/streams.py
	$(BIN)/python bench/light.py
	$(BIN)/python bench/tracers.py
	$(BIN)/python bench/flows.py
	$(BIN)/python bench/handing_over.py

prove: $(VENV)/ready-dev  ## what takes longer than tests may; writes bench/proof.md; about an hour, or PARTS="hour cases"
	sh tests/slurm/install
	$(BIN)/python bench/prove.py $(PARTS)

pays: $(VENV)/ready-dev  ## strategies on a real Slurm and in the simulator, compared; about 25 minutes
	$(BIN)/python bench/pays.py

clean:           ## remove what the other commands created
	rm -rf $(VENV) out docs/_build
