# Two commands on a fresh machine: `make demo` and `make test`. Needs make and a Python >= 3.11 that
# has venv; everything else goes into .venv, so an externally managed Python (PEP 668) is no obstacle.

PYTHON ?= python3
VENV   ?= .venv
ARGS   ?=

BIN   := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP   := $(BIN)/python -m pip --quiet --quiet --disable-pip-version-check --no-input

# Set in a person's shell these would lead Python, or pip, past the virtual environment.
unexport PYTHONHOME PYTHONPATH PIP_USER PIP_TARGET PIP_PREFIX

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help venv test test-long demo bench format docs constraints clean-venv FORCE

help:
	@echo 'make test         every check that CI runs; the first failure ends it (ARGS="-k word" goes to pytest)'
	@echo 'make test-long    the tests that take minutes'
	@echo 'make demo         a real plan on a real project, from start to report'
	@echo 'make bench        measure what the documentation says about speed'
	@echo 'make format       format the code and sort its imports'
	@echo 'make docs         make the man page and the tables of README.md anew'
	@echo 'make constraints  resolve all dependencies anew and pin them in constraints.txt'
	@echo 'make clean-venv   remove .venv'
	@echo
	@echo 'PYTHON=python3.12 chooses the interpreter; another one than last time makes .venv anew.'

# --- the virtual environment ----------------------------------------------------------------------

# Say what is wrong before pip or venv say it in their words. Runs on any Python, also on 2.7.
define CHECK_PYTHON
import sys
if sys.version_info < (3, 11):
    sys.exit("error: %s is Python %d.%d; git-batch needs 3.11 or later\nhint: make PYTHON=python3.12 ..."
             % ((sys.executable,) + tuple(sys.version_info[:2])))
try:
    import ensurepip, venv
except ImportError:
    sys.exit("error: %s comes without venv\nhint: install it (Debian, Ubuntu: apt install python3-venv), "
             "or choose another one: make PYTHON=python3.12 ..." % sys.executable)
# One line each: what tells one Python from another, and the interpreter to run. Both of the Python
# below when a virtual environment is active right now, perhaps our own.
print("%s %s" % (sys.version.split()[0], sys.base_prefix))
print(getattr(sys, "_base_executable", None) or sys.executable)
endef
export CHECK_PYTHON

# Which interpreter, and where: a virtual environment can't be moved. The file is written only when
# that changes, so what depends on it isn't remade each time.
$(VENV)/.python: FORCE
	@command -v "$(PYTHON)" >/dev/null || { \
	    echo "error: there is no '$(PYTHON)' in PATH" >&2; \
	    echo "hint: make PYTHON=/path/to/python3 ..." >&2; exit 1; }
	@found=$$("$(PYTHON)" -c "$$CHECK_PYTHON") || exit 1; \
	which=$$(echo "$$found" | sed 1q); run=$$(echo "$$found" | sed 1d); \
	if [ "$$which $(CURDIR)" != "$$(cat $@ 2>/dev/null)" ]; then \
	    echo "== venv: $(VENV) with Python $${which%% *}"; \
	    rm -rf "$(VENV)"; \
	    "$$run" -m venv "$(VENV)" && echo "$$which $(CURDIR)" >$@; \
	fi

# The build backend first and pinned as well: build isolation would fetch the newest one.
$(STAMP): $(VENV)/.python pyproject.toml constraints.txt
	@echo '== install: what pyproject.toml asks for, as pinned in constraints.txt'
	@$(PIP) install -c constraints.txt hatchling
	@$(PIP) install -c constraints.txt --no-build-isolation -e '.[dev]'
	@touch $@

venv: $(STAMP)

clean-venv:
	rm -rf "$(VENV)"

# Everything anew in a venv of its own, so that nothing old is kept; then what is there is pinned.
constraints:
	@scratch=$$(mktemp -d) && trap 'rm -rf "$$scratch"' EXIT && \
	"$(PYTHON)" -c "$$CHECK_PYTHON" >/dev/null && \
	"$(PYTHON)" -m venv "$$scratch/venv" && \
	pip="$$scratch/venv/bin/python -m pip --quiet --quiet --disable-pip-version-check --no-input" && \
	$$pip install hatchling && \
	$$pip install --no-build-isolation -e '.[dev]' && \
	{ sed '/^[^#]/,$$d' constraints.txt; \
	  $$pip freeze --exclude-editable | LC_ALL=C sort -f; } >"$$scratch/new" && \
	cp "$$scratch/new" constraints.txt
	@echo 'constraints.txt is new; run `make test` with each Python that CI uses before you commit it'

# --- checks ---------------------------------------------------------------------------------------

test: $(STAMP)
	@echo '== format'
	@$(BIN)/ruff format --quiet --diff .
	@echo '== lint'
	@$(BIN)/ruff check --quiet .
	@echo '== types'
	@$(BIN)/mypy --no-error-summary
	@echo '== layers'
	@out=$$($(BIN)/lint-imports 2>&1) || { echo "$$out"; exit 1; }
	@echo '== tests'
	@$(BIN)/python -m pytest --quiet -n auto $(ARGS)

# The later -m replaces the one in pyproject.toml. Half an hour for each test instead of a minute.
# Hypothesis tries examples that nobody has tried, see tests/tries.py.
LONG = $(BIN)/python -m pytest --quiet --timeout 1800 --hypothesis-profile search
test-long: $(STAMP)
	@$(LONG) -m long $(ARGS)
	@echo '== search'
	@$(LONG) -n auto tests/core tests/views tests/repo/test_scope_against_git.py

format: $(STAMP)
	@$(BIN)/ruff check --quiet --select I --fix .
	@$(BIN)/ruff format --quiet .

docs: $(STAMP)
	@$(BIN)/python -m tests.docs

# --- to look at -----------------------------------------------------------------------------------

demo: $(STAMP)
	@PATH="$(abspath $(BIN)):$$PATH" fixtures/demo/run

bench: $(STAMP)
	@$(BIN)/python -m tests.bench $(ARGS)
