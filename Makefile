# `make` lists what there is. Needs python3 (3.11 or newer) and nothing else.
# `make PYTHON=python3.12 run` uses another Python.
.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.PHONY: help run test check format docs bench bars crash cluster clean

PYTHON ?= python3
BIN := .venv/bin
PY := $(BIN)/python
STAMP := .venv/.with-dev,local
RUNNABLE := .venv/.with-local,sandbox
STORE := sqlite
PIP_INSTALL := $(PY) -m pip install -q --disable-pip-version-check
# With compiled bytecode, the many processes of the tests do not each compile the packages.
UV_INSTALL := pip install -q --python $(PY) --compile-bytecode
# Without bytecode every process compiles the package anew, and the tests start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE

# The tests commit thousands of times. They kill processes, not the machine, so their files may be in
# memory, where a commit does not wait for the disk.
MEMORY := $(shell [ "$$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1)" -ge 4000000 ] \
	2>/dev/null && echo TMPDIR=/dev/shm)

help:  ## show this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

# Without PYTHON on the command line or in the environment, .venv keeps the Python that it has.
VERSION_OF = $(shell $(1) -c 'import sys; print(*sys.version_info[:2])' 2>/dev/null)
ifneq ($(origin PYTHON),file)
ifneq ($(wildcard $(PY)),)
ifneq ($(call VERSION_OF,$(PYTHON)),$(call VERSION_OF,$(PY)))
OUTDATED := another-python
endif
endif
endif

.PHONY: another-python
another-python:
	@command -v $(PYTHON) >/dev/null || { echo 'there is no $(PYTHON) here'; exit 1; }
	@echo '.venv has another Python than $(PYTHON): making it again'
	@rm -rf .venv

.venv/.with-%: pyproject.toml $(OUTDATED)
	@command -v $(PYTHON) >/dev/null || { echo 'there is no $(PYTHON) here'; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed; $(PYTHON) is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	@echo 'installing into .venv, once'
	@# uv needs a fifth of pip's time. pip is used where uv does not reach the packages.
	@if command -v uv >/dev/null; then \
		[ -x $(PY) ] || uv venv -q --seed --python $(PYTHON) .venv; \
		uv $(UV_INSTALL) -e '.[$*]'; \
	else \
		[ -x $(PY) ] || $(PYTHON) -m venv .venv || { [ "$$(id -u)" = 0 ] && rm -rf .venv \
			&& apt-get install -qq -y python3-venv && $(PYTHON) -m venv .venv; } \
			|| { echo '$(PYTHON) can make no virtual environment: install python3-venv'; exit 1; }; \
		$(PIP_INSTALL) uv && $(BIN)/uv $(UV_INSTALL) -e '.[$*]' 2>/dev/null \
			|| $(PIP_INSTALL) -e '.[$*]'; \
	fi
	@touch $(RUNNABLE) $@

run: $(RUNNABLE)  ## run the gateway and ask it something; without a model of yours a small one answers
	@$(BIN)/hermes gateway run --embedded --hello 'Hello! What can you do?'

check: $(STAMP)  ## format, lint, types and imports, without running anything
	@$(BIN)/ruff format --check -q . || { echo 'make format mends this'; exit 1; }
	@$(BIN)/ruff check -q .
	@$(BIN)/mypy --strict
	@$(BIN)/lint-imports | grep -v '^$$' | tail -n 7

# Collecting once fills the cache of rewritten assertions. Otherwise each worker rewrites all of them.
test: $(STAMP)  ## everything that must hold: check, and at the same time the whole suite
	@$(MAKE) -s check >.venv/check.log 2>&1 & check=$$!; suite=0; \
	$(PY) -m pytest -q --collect-only >/dev/null || true; \
	$(MEMORY) $(PY) -m pytest -q -n 4 --dist worksteal || suite=$$?; \
	echo 'make check:'; wait $$check || suite=$$?; cat .venv/check.log; exit $$suite

format: $(STAMP)  ## put the code in its usual form
	@$(BIN)/ruff format -q . && $(BIN)/ruff check -q --fix .

docs: $(STAMP)  ## write docs/reference anew from the code
	@$(PY) docs/generate.py

bench: $(STAMP)  ## measure, in a few minutes
	@$(PY) -m benchmarks

bars: $(STAMP)  ## every long measurement in full
	@$(PY) -m benchmarks --full

crash: $(STAMP)  ## kill the gateway at random and at every point; STORE=postgres on PostgreSQL
	@$(PY) -m hermes.testing.crash --store $(STORE)
	@$(PY) -m hermes.testing.crash --points --store $(STORE)

cluster: $(STAMP)  ## three gateways on one PostgreSQL and NATS, behind a proxy, to try
	@$(PY) -m hermes.testing.cluster_trial

clean:  ## remove what was made here
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
