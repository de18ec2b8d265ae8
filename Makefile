# `make` lists what there is. Needs python3 (3.11 or newer) and nothing else; uses uv where it is installed.
.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.PHONY: help run demo test check format docs bench bars crash clean

BIN := .venv/bin
PY := $(BIN)/python
STAMP := .venv/.installed

help:  ## show this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

$(STAMP): pyproject.toml
	@python3 -c 'import sys; sys.exit("Python 3.11 or newer is needed; python3 is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	@if command -v uv >/dev/null; then \
		[ -x $(PY) ] || uv venv -q --python python3 .venv; \
		uv pip install -q --python $(PY) -e '.[dev]'; \
	else \
		[ -x $(PY) ] || python3 -m venv .venv || { [ "$$(id -u)" = 0 ] && rm -rf .venv \
			&& apt-get install -qq -y python3-venv && python3 -m venv .venv; } \
			|| { echo 'python3 can make no virtual environment: install python3-venv'; exit 1; }; \
		$(PY) -m pip install -q --disable-pip-version-check -e '.[dev]'; \
	fi
	@touch $@

run: $(STAMP)  ## run the gateway; it says how to point it at a model. `make demo` needs none
	@$(BIN)/hermes gateway run

demo: $(STAMP)  ## run the gateway against a scripted model in a throw-away home, and ask it something
	@home=$$(mktemp -d); jobs=; \
	end() { trap - EXIT INT TERM; kill $$jobs 2>/dev/null || true; wait || true; rm -rf "$$home"; exit $${1:-0}; }; \
	trap end INT TERM; trap 'end $$?' EXIT; \
	$(PY) -m hermes.testing.model --delay 0.05 >"$$home/model" & jobs=$$!; \
	until [ -s "$$home/model" ]; do sleep 0.05; done; \
	export HERMES_HOME="$$home/hermes" HERMES_MODEL=scripted HERMES_CUSTOM_BASE_URL="$$(sed 's/.* //' "$$home/model")"; \
	$(BIN)/hermes gateway run --port $${PORT:-0} >"$$home/gateway" 2>"$$home/log" & jobs="$$jobs $$!"; \
	until grep -qs ^try: "$$home/gateway"; do kill -0 $$! || { cat "$$home/log"; exit 1; }; sleep 0.05; done; \
	cat "$$home/gateway"; \
	printf '\nAsked over HTTP:\n'; \
	bash -c "$$(sed -n 's/^try: *//p' "$$home/gateway")" | sed -n 's/.*"delta":{"content":"\([^"]*\)".*/\1/p' | tr -d '\n'; \
	printf '\n\nThe scripted model repeats what it is told. Ctrl-C ends the demo.\n'; \
	wait

check: $(STAMP)  ## format, lint, types and imports, without running anything
	@$(BIN)/ruff format --check -q . || { echo 'make format mends this'; exit 1; }
	@$(BIN)/ruff check -q .
	@$(BIN)/mypy --strict
	@$(BIN)/lint-imports | grep -v '^$$' | tail -n 7

test: check  ## everything that must hold: check, then the whole suite
	@$(PY) -m pytest -q

format: $(STAMP)  ## put the code in its usual form
	@$(BIN)/ruff format -q . && $(BIN)/ruff check -q --fix .

docs: $(STAMP)  ## write docs/reference anew from the code
	@$(PY) docs/generate.py

bench: $(STAMP)  ## measure, in a few minutes
	@$(PY) -m benchmarks

bars: $(STAMP)  ## every long measurement in full
	@$(PY) -m benchmarks --full

crash: $(STAMP)  ## kill the gateway at random and at every point, and check what people see
	@$(PY) -m hermes.testing.crash
	@$(PY) -m hermes.testing.crash --points

clean:  ## remove what was made here
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
