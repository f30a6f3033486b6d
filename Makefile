# Two commands do everything: `make demo` and `make test`. Both make .venv and install what they need.
PYTHON ?= python3
BIN = .venv/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
export PIP_CONSTRAINT = $(CURDIR)/constraints.txt

.PHONY: demo test nightly fuzz install lint docs tutorials site clean lock audit

demo: .venv/base
	$(BIN)/bcn demo

test: .venv/dev lint
	$(BIN)/python -m pytest

# The tests that take minutes: power failures at every moment of a run.
nightly: .venv/dev
	$(BIN)/python -m pytest -m nightly -o faulthandler_timeout=7200

# Damaged files for every reader, and a table of what they did; CASES=1000000 runs more.
CASES ?= 100000
fuzz: .venv/dev
	PYTHONPATH=tests $(BIN)/python -m fuzz --cases $(CASES)

install: .venv/dev

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: .venv/dev
	$(BIN)/python docs/make_api.py

# Runs the notebooks of docs/tutorials and keeps what they show.
tutorials: .venv/dev
	$(BIN)/python docs/make_tutorials.py

# The documentation as a searchable site: open build/site/index.html.
site: .venv/made
	$(BIN)/pip install --quiet sphinx furo myst-nb
	$(BIN)/python -m sphinx -q -W --keep-going -n -c docs -d build/doctrees . build/site

# requirements.lock: a version and its hashes for all that the tests use, on every platform; from constraints.txt.
lock: .venv/made
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		--extra dev --extra tensorboard --extra glove --constraints constraints.txt pyproject.toml -o requirements.lock

# Published vulnerabilities of what is locked; fails where the advisories cannot be read.
audit: .venv/made
	$(BIN)/pip install --quiet pip-audit
	$(BIN)/pip-audit --strict --disable-pip --require-hashes -r requirements.lock

.venv/made:
	$(PYTHON) -m venv .venv
	touch $@

# torch for the CPU where there is no GPU, which is a tenth of the size: a wheel that pip finds on this disk, else the
# build that uv chooses for this machine, else what pip takes.
TORCH = torch==2.13.0
.venv/base: .venv/made pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --no-index --no-deps $(TORCH) 2>/dev/null || ( \
		$(BIN)/pip install --quiet uv && \
		$(BIN)/uv pip install --quiet --python $(BIN)/python --torch-backend=auto $(TORCH) \
	) || $(BIN)/pip install --quiet $(TORCH)
	$(BIN)/pip install --quiet -e .
	touch $@

# It asks for Pillow below 13, and works with 13: what it needs besides is named, and its own demands are left out.
TRACKIO = trackio==0.43.0 gradio-client==2.7.2 orjson==3.13.0 brotli==1.2.1 python-multipart==0.0.34

.venv/dev: .venv/base
	$(BIN)/pip install --quiet -e '.[dev]'
	$(BIN)/pip install --quiet --no-deps $(TRACKIO)
	touch $@

clean:
	rm -rf .venv build dist *.egg-info
