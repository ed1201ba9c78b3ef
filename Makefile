# Needs make and Python 3.10 or newer; everything else goes into .venv. `make help` lists the targets.

PYTHON ?= python3
CONFIG ?= configs/quick.yaml
ARGS ?=

# Where pip also looks for PyTorch. Without an NVIDIA driver that is the index of the CPU builds, which are a tenth of
# the size; where it cannot be reached, pip goes on without it. `make install TORCH_INDEX=` asks the usual index alone.
TORCH_INDEX ?= $(if $(shell command -v nvidia-smi),,https://download.pytorch.org/whl/cpu)

VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check
INSTALLED := $(VENV)/.installed
BENCH_INSTALLED := $(VENV)/.installed-bench

.DEFAULT_GOAL := help
.PHONY: help install venv train test lint types format bench notebook docs clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "  Variables: PYTHON=$(PYTHON) CONFIG=$(CONFIG) ARGS= (more words for train.py, pytest or benchmarks) TORCH_INDEX=$(TORCH_INDEX)"

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.10 or newer is needed, not " + sys.version if sys.version_info < (3, 10) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --no-deps --constraint constraints.txt torch \
		$(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX) --retries 1 --timeout 20)
	$(PIP) install --quiet --constraint constraints.txt --editable ".[dev]"
	@touch $@

$(BENCH_INSTALLED): $(INSTALLED)
	$(PIP) install --quiet --constraint constraints.txt --editable ".[dev,bench]"
	@touch $@

install: $(INSTALLED) ## create .venv with the tested versions of everything
venv: install

train: $(INSTALLED) ## train a policy by CONFIG, in about five minutes on two cores
	$(PY) train.py --config $(CONFIG) $(ARGS)

test: $(INSTALLED) ## run every test, those of the README and the notebook too
	$(PY) -m pytest $(ARGS)

lint: $(INSTALLED) ## check style, format and types
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

types: $(INSTALLED) ## check types alone
	$(PY) -m mypy

format: $(INSTALLED) ## put imports and layout in order
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

bench: $(BENCH_INSTALLED) ## measure speed beside other packages and write it into README.md
	$(PY) -m benchmarks --write README.md $(ARGS)

notebook: $(INSTALLED) ## run the notebook in full; the copy with outputs goes to runs/
	@mkdir -p runs
	$(VENV)/bin/jupyter-execute notebooks/01_quickstart.ipynb --output ../runs/01_quickstart

docs: $(INSTALLED) ## write the generated parts of README.md and docs/ anew
	$(PY) docs/generate.py

clean: ## remove caches and compiled kernels; .venv and runs/ stay
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -path ./$(VENV) -prune -o -path ./runs -prune -o -type d -name __pycache__ -prune -exec rm -rf {} +
