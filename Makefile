# One command, one meaning, here and in CI. `make` alone lists the targets.

SHELL := /bin/sh
BIN := .venv/bin
PYTHON ?=
export PYTHON
# Without its bytecode every process of a test would compile all of the package anew.
unexport PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE

# The targets share one environment and one report: one at a time, in the order written.
.NOTPARALLEL:
.DEFAULT_GOAL := help
.PHONY: help demo test check quick format lint types layers coverage requirements house fix laws mutants agents bench docs lock clean run-env dev-env

# Says nothing when all is well, and everything when it is not.
quietly = said=$$($(1) 2>&1) || { printf '%s\n' "$$said"; exit 1; }

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "make %-14s%s\n", $$1, $$2 }' Makefile

run-env:
	@sh scripts/setup.sh run

dev-env:
	@sh scripts/setup.sh dev

demo: run-env ## see it work in a screenful, with no network and no key
	@$(BIN)/ctx demo

test: check ## everything that CI checks
check: format lint layers coverage requirements ## the same

format: dev-env
	@echo "== format"
	@$(BIN)/ruff format --check --quiet --output-format=concise .

lint: dev-env
	@echo "== lint"
	@$(BIN)/ruff check --quiet .

types: dev-env ## the types alone
	@$(call quietly,$(BIN)/python -m mypy)

layers: dev-env
	@echo "== layers"
	@$(call quietly,$(BIN)/lint-imports --no-logo)

# One more at once than there are cores, for some wait for a disk or a process. Each worker imports every test file first.
AT_ONCE = --numprocesses $$((1 + $$(getconf _NPROCESSORS_ONLN || echo 2))) --maxprocesses 8 --dist worksteal
MEASURED = tests/unit tests/surfaces tests/spec
UNMEASURED = tests/story tests/ports tests/faults tests/laws

# Types are checked beside the tests. What is measured runs within the process of the tests. Stories, ports, faults and
# laws are not measured: they start processes, kill them, or go through the same lines very many times.
coverage: dev-env ## types, all tests (those of units and surfaces under coverage), the gate of coverage-baseline.json
	@echo "== types and tests"
	@rm -rf build/coverage
	@mkdir -p build/coverage
	@$(BIN)/python -m mypy >build/types.txt 2>&1 & types=$$!; \
	$(BIN)/python -m coverage run -m pytest --quiet $(AT_ONCE) $(MEASURED); tests=$$?; \
	wait $$types || { cat build/types.txt; exit 1; }; exit $$tests
	@echo "== tests of stories, ports, faults and laws, not measured"
	@$(BIN)/python -m pytest --quiet $(AT_ONCE) $(UNMEASURED)
	@echo "== coverage of $(MEASURED)"
	@$(BIN)/python -m coverage combine --quiet
	@$(BIN)/python -m coverage json --quiet -o build/coverage/report.json
	@$(BIN)/python scripts/check_coverage.py build/coverage/report.json coverage-baseline.json

# The daemon keeps what it knows of the types; it stops by itself after an hour.
quick: dev-env ## in under a minute: format, lint, types, layers, and the unit tests of what changed
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(call quietly,$(BIN)/dmypy run --timeout 3600 --)
	@$(call quietly,$(BIN)/lint-imports --no-logo)
	@$(BIN)/python scripts/changed_tests.py | xargs $(BIN)/python -m pytest --quiet $(AT_ONCE)

house: dev-env ## the figures of the house, and what breaks its rules
	@$(BIN)/python -m tests.house --figures
	@$(BIN)/python -m tests.house

requirements: dev-env ## count the requirements of the specification, proved and deferred
	@echo "== requirements"
	@$(BIN)/python -m tests.spec.manifest

fix: dev-env ## format, and repair what can be repaired by rule
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

# The tests that take a sample in every other run (tests/support/samples.py).
SAMPLED = $$(grep -rlE '@sample\(|some_of_each_form|PROFILE == "laws"' tests/unit tests/faults --include='test_*.py')

laws: dev-env ## the property tests and the port suites, with a hundred times the cases (ARGS=PATH for some of them)
	@HYPOTHESIS_PROFILE=laws $(BIN)/python -m pytest --quiet --numprocesses auto --dist worksteal $(or $(ARGS),tests/laws tests/ports $(SAMPLED))

mutants: dev-env ## break the laws of the code one at a time, in a copy: a test must notice (ARGS=room for one room)
	@$(BIN)/python scripts/mutants.py $(ARGS)

# Not part of `make test`: it downloads the agents, about a gigabyte, the first time.
agents: dev-env ## drive Codex, Gemini CLI and opencode over a loopback model, and run MCP's own suites (needs npm)
	@sh scripts/agents.sh $(or $(ARGS),tests/agents)

bench: dev-env ## measure; the results go to bench/results
	@$(BIN)/python -m bench.run $(ARGS)

docs: dev-env ## write the generated pages anew
	@$(BIN)/python -m docs.generate

lock: dev-env ## pin the dependencies anew (ARGS=--upgrade for newer ones); needs uv
	@$(BIN)/python requirements/lock.py $(ARGS)

clean: ## remove all that make made, .venv too
	@rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .dmypy.json
	@find src tests scripts docs bench requirements -name __pycache__ -type d -prune -exec rm -rf {} +
