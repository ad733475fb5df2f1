# Needs python3 (3.11 or later, with venv), git and make; everything else is installed into .venv from requirements.lock.
# `make demo` shows the system at work, `make test` runs the whole suite, `make check` runs what CI runs.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
BIN := .venv/bin
PIP_FLAGS := --quiet --disable-pip-version-check --require-hashes
PROTOS := $(wildcard proto/fairlead_proto/v1/*.proto)
# One more than CI has cores: many tests wait for processes and for time to pass.
TEST_PROCESSES ?= 3
PYTEST_ARGS ?=
GOLDENS_ARGS ?=

# No grpc code of ours forks; grpc's fork handlers only add a lock that a fork elsewhere could wait on for ever.
export GRPC_ENABLE_FORK_SUPPORT := 0

.PHONY: help setup demo test goldens goldens-update check checks format lint types contracts tidy protos baseline protos-venv lock bench clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

setup: .venv/.ready ## make .venv from requirements.lock (does nothing when it is up to date)

.venv/.ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "setup: needs Python 3.11 or later with venv, got $$($(PYTHON) --version 2>&1); choose one by make PYTHON=python3.12" >&2; exit 1; }
	@echo "setup: installing requirements.lock into .venv"
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	@$(BIN)/python -m pip install $(PIP_FLAGS) -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	@touch $@

demo: setup ## run the demonstration on a local cluster (ends by itself)
	@$(BIN)/python -m fairlead_cli.main demo

test: setup protos-venv ## run the whole test suite
	@$(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist worksteal $(PYTEST_ARGS)

goldens: setup ## hold every command's output to what was kept (GOLDENS_ARGS=simulate for a part)
	@$(BIN)/python -m tests.goldens $(GOLDENS_ARGS)

goldens-update: setup ## keep the outputs as they are now; see CONTRIBUTING.md
	@$(BIN)/python -m tests.goldens --update $(GOLDENS_ARGS)

check: checks test ## run what CI runs

checks: format lint types contracts tidy

format: setup ## fail if a file is not formatted
	@$(BIN)/ruff format --check .

lint: setup ## fail on a lint finding
	@$(BIN)/ruff check .

types: setup ## check the types, strictly
	@$(BIN)/mypy

contracts: setup ## check that roles stay apart and cores pure
	@$(BIN)/lint-imports --no-cache

tidy: setup ## check the house rules no linter knows
	@$(BIN)/python -m pytest -q tests/tidy

protos: setup .venv-protos/.ready ## regenerate the committed stubs from the schema
	@.venv-protos/bin/python tests/proto/generate_stubs.py proto
	@$(BIN)/python -m tests.proto.schema_record
	@echo "protos: regenerated from $(words $(PROTOS)) schema files"

baseline: setup ## make COMMIT the protocol's baseline; CONTRIBUTING.md says when
	@then=$$(mktemp -d) && trap "rm -rf $$then" EXIT && git archive $(COMMIT) proto | tar -x -C $$then && \
	  PYTHONPATH=$$then/proto:. $(BIN)/python -m tests.proto.schema_record --print-baseline $$(git rev-parse $(COMMIT)) >$$then/record && \
	  cp $$then/record tests/proto/baseline.txt

# The suite can do without the schema compiler (the drift test then skips and says so); it has no wheel for the newest Pythons.
protos-venv: setup
	@$(MAKE) --no-print-directory .venv-protos/.ready || \
	  echo "test: the schema compiler cannot be installed here; the stub drift test will be skipped" >&2

.venv-protos/.ready: requirements-protos.lock
	@echo "protos: installing requirements-protos.lock into .venv-protos"
	@.venv-protos/bin/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv-protos
	@.venv-protos/bin/python -m pip install $(PIP_FLAGS) --only-binary :all: -r requirements-protos.lock
	@touch $@

# The lock holds versions and hashes and no address: see docs/adr/0002-lock-file-without-addresses.md.
LOCK := .venv-lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
  --no-annotate --no-header --no-emit-index-url --no-emit-find-links

lock: ## bring the lock files up to date with pyproject.toml (LOCK_ARGS=--upgrade for newer versions)
	@test -x .venv-lock/bin/uv || { $(PYTHON) -m venv --clear .venv-lock && .venv-lock/bin/python -m pip install --quiet 'uv>=0.5'; }
	@$(LOCK) $(LOCK_ARGS) --extra plot --extra report --extra solve --extra mqtt --extra metrics --group dev pyproject.toml --output-file requirements.lock
	@$(LOCK) --extra mqtt --extra metrics pyproject.toml --constraint requirements.lock --output-file requirements-runtime.lock
	@$(LOCK) $(LOCK_ARGS) --group pyproject.toml:protos --output-file requirements-protos.lock
	@echo "lock: wrote requirements.lock, requirements-runtime.lock and requirements-protos.lock"

bench: setup ## measure allocation and cluster throughput (BENCH_ARGS=--json for figures)
	@$(BIN)/fairlead bench allocation $(BENCH_ARGS)
	@$(BIN)/fairlead bench cluster $(BENCH_ARGS)

clean: ## remove what make created
	@rm -rf .venv .venv-* build dist .coverage .coverage.* htmlcov .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
