# `make help` lists the commands. PYTHON=python3.13 uses another Python, in a virtual environment of its own.
PYTHON ?= python3
ARGS ?=
VENV := $(if $(filter python3,$(PYTHON)),.venv,.venv-$(patsubst python%,%,$(notdir $(PYTHON))))
RUN := $(VENV)/bin/python
SETUP := sh tools/setup.sh $(PYTHON) $(VENV)
MAKEFLAGS += --no-print-directory

# Each of our processes would compile all that it imports, which takes longer than what it then does.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help up test fuzz chaos lint bench
.SILENT:

help:
	echo "make up      Start the whole host, until Ctrl-C. Settings from the environment or as in:"
	echo "             make up PORT=8001 GRPC_PORT=50052 DATA_DIR=./.data2 (README.md lists them all)"
	echo "make test    Run the test suite, in up to three processes; a part in one, with options for pytest: make test ARGS='-k cancel'"
	echo "make fuzz    Try bad requests for longer, FACTOR times as many as in make test (20), from SEED or a new one"
	echo "make chaos   Break a host under load ROUNDS times (20), from SEED or a new one, and show that nothing is lost"
	echo "make lint    Check style, types, import directions and migrations"
	echo "make bench   Measure the host against the reference and write benchmarks/RESULTS.md"
	echo "Another Python, as in: make test PYTHON=python3.13"

up:
	$(SETUP) requirements.txt
	exec $(RUN) manage.py up

test:
	$(SETUP) requirements-dev.txt
	sh tools/chromium.sh
	sh tools/nginx.sh
	exec $(RUN) -m pytest $(ARGS)

fuzz: FACTOR ?= 20
fuzz:
	$(SETUP) requirements-dev.txt
	seed=$(SEED); seed=$${seed:-$$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}; \
	echo "Again with: make fuzz FACTOR=$(FACTOR) SEED=$$seed"; \
	FUZZ_FACTOR=$(FACTOR) exec $(RUN) -m pytest tests/fuzz --hypothesis-seed=$$seed $(ARGS)

chaos: ROUNDS ?= 20
chaos:
	$(SETUP) requirements-dev.txt
	exec $(RUN) -m tests.chaos --rounds $(ROUNDS) $(if $(SEED),--seed $(SEED))

lint:
	$(SETUP) requirements-dev.txt
	$(RUN) -m ruff check .
	$(RUN) -m mypy
	$(RUN) tools/imports.py
	$(RUN) tools/migrations.py
	$(RUN) -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run

bench:
	$(SETUP) requirements-dev.txt
	exec $(RUN) benchmarks/run.py $(ARGS)
