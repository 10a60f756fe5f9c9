# Two commands matter to a newcomer: `make demo` and `make test`. Both set up everything they need in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help demo test check format docs bench pays clean

help:            ## this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

$(VENV)/ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Windrow needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,bench]'
	@touch $@

demo: $(VENV)/ready  ## run a real workflow on this machine's queue, then compare strategies; pages in out/
	@mkdir -p out
	@cp examples/demo.yaml out/
	cd out && ../$(BIN)/windrow run demo.yaml && ../$(BIN)/windrow report -o demo.html && cat primes/summary.txt
	$(BIN)/windrow generate montage --tasks 250 --work 500h --seed 1 -o out/montage.json
	$(BIN)/windrow generate log --model lublin --nodes 128 --jobs 5000 --seed 1 -o out/lublin.swf.gz
	$(BIN)/windrow compare out/montage.json --log out/lublin.swf.gz --html out/compare.html
	$(BIN)/windrow timeline out/montage.json --log out/lublin.swf.gz --at 30h --strategy glume -o out/timeline.html
	@echo 'open in a browser: out/demo.html (the run), out/compare.html (strategies), out/timeline.html (one simulated run)'

test: $(VENV)/ready  ## every test; says what it skipped; as root on an apt system it installs a Slurm to test with
	sh tests/slurm/install
	$(BIN)/pytest -rs -n 4 --dist loadgroup --no-loadscope-reorder

check: $(VENV)/ready docs  ## format, lint, types, import layers, docs, tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -rs -n 4 --dist loadgroup --no-loadscope-reorder

format: $(VENV)/ready  ## put the code into the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/ready  ## the documentation site, in docs/_build/html; a warning is an error
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html

bench: $(VENV)/ready  ## speed, side by side with what one would use instead
	$(BIN)/python bench/bench.py
	$(BIN)/python bench/streams.py
	$(BIN)/python bench/light.py

pays: $(VENV)/ready  ## strategies on a real Slurm and in the simulator, side by side; about 25 minutes
	$(BIN)/python bench/pays.py

clean:           ## remove what the other commands made
	rm -rf $(VENV) out docs/_build
