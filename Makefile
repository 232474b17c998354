# `make demo` and `make test` need Python 3.11 or newer, make and git; everything else goes into .venv.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory
unexport PYTHONPATH PYTHONHOME
# The tests start hundreds of processes: each would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
# -P: the current folder does not join sys.path, so that only `import headrace` finds the package, as for users.
RUN := $(BIN)/python -P -m
PIP_INSTALL := $(RUN) pip install --quiet --no-input --disable-pip-version-check --constraint constraints.txt
INPUTS := pyproject.toml constraints.txt

# An environment made for another folder (the checkout was moved or copied) still imports from there: make it anew.
ifneq ($(shell cat $(VENV)/checkout 2>/dev/null),$(CURDIR))
.PHONY: $(BIN)/python $(VENV)/installed $(VENV)/installed-dev
endif

.PHONY: help demo test test-all lint fast clean

help: ## show this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/make \1\t\2/p' Makefile

demo: $(VENV)/installed ## install into .venv and run the demo on two small synthetic data sets
	@$(BIN)/headrace demo

test: lint ## install into .venv and run every check: linters, types, import rules, spelling, tests
	@echo "== pytest"
	@$(RUN) pytest --numprocesses logical --dist worksteal

test-all: test ## make test, then the tests that need a network
	@echo "== pytest -m network"
	@$(RUN) pytest -m network

lint: $(VENV)/installed-dev ## every check but the tests
	@echo "== ruff check"
	@$(RUN) ruff check .
	@echo "== ruff format --check"
	@$(RUN) ruff format --check .
	@echo "== mypy"
	@$(RUN) mypy
	@echo "== lint-imports"
	@$(BIN)/lint-imports --no-logo
	@echo "== codespell"
	@$(BIN)/codespell

fast: $(VENV)/installed-dev ## the quick tests, up to the first failure
	@$(RUN) pytest -m "not slow" -x

clean: ## remove .venv, caches and build outputs
	@rm -rf $(VENV) build dist src/*.egg-info .cache .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/installed: $(INPUTS) | $(BIN)/python
	@echo "== installing headrace into $(VENV)"
	@$(PIP_INSTALL) --editable .
	@touch $@

$(VENV)/installed-dev: $(INPUTS) | $(BIN)/python
	@echo "== installing headrace and its development tools into $(VENV)"
	@$(PIP_INSTALL) --editable '.[dev]'
	@touch $(VENV)/installed $@

# The first Python that is new enough and can make a virtual environment; `make PYTHON=…` names another.
$(BIN)/python:
	@for python in $(PYTHON) python3.11 python3; do \
	    if "$$python" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	        echo "== making $(VENV) with $$("$$python" --version)"; \
	        "$$python" -m venv --clear $(VENV); \
	        echo "$(CURDIR)" > $(VENV)/checkout; \
	        exit 0; \
	    fi; \
	done; \
	echo "Headrace needs Python 3.11 or newer with its venv module; neither python3.11 nor python3 is that." >&2; \
	echo "Install it (Debian, Ubuntu: python3.11 and python3.11-venv) or name one: make PYTHON=/path/to/python" >&2; \
	exit 1
