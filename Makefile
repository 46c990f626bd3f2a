# Two commands: `make run` opens the console, `make test` checks everything. Both set up .venv by themselves.
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
UV := $(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes
UV_VERSION := 0.13.9

.PHONY: run test lint proto clean screenshots bench

run: .venv/run.stamp
	@$(BIN)/cuzktui

test: .venv/dev.stamp
	@tests/run

lint: .venv/dev.stamp
	@$(BIN)/ruff check src tests benchmarks screenshots
	@$(BIN)/mypy
	@$(BIN)/lint-imports

proto: .venv/dev.stamp
	@cd src && ../$(BIN)/python -m grpc_tools.protoc -I . --python_out=. --pyi_out=. --grpc_python_out=. prover/proto/*.proto

screenshots: .venv/dev.stamp
	@$(BIN)/python screenshots/render.py

bench: .venv/dev.stamp
	@$(BIN)/python benchmarks/bench_cpu.py

.venv/base.stamp:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "cuzktui needs Python 3.11 or newer; name one with: make run PYTHON=python3.12"; exit 1; }
	@echo "[1/3] virtual environment in .venv"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@touch $@

# The lock of the GPU extra is a superset of the plain one; the driver's CUDA version chooses it.
.venv/run.stamp: pyproject.toml requirements/run.lock requirements/cuda12.lock requirements/cuda13.lock | .venv/base.stamp
	@set -e; cuda=$$($(PYTHON) -c 'import ctypes; d = ctypes.CDLL("libcuda.so.1"); v = ctypes.c_int(); d.cuDriverGetVersion(ctypes.byref(v)); print(v.value // 1000)' 2>/dev/null || true); \
	case "$$cuda" in 13|14) lock=cuda13;; 12) lock=cuda12;; *) lock=run;; esac; \
	echo "[2/3] packages from requirements/$$lock.lock"; $(UV) -r requirements/$$lock.lock
	@echo "[3/3] cuzktui itself"
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps -e .
	@touch $@

.venv/dev.stamp: requirements/dev.lock .venv/run.stamp
	@echo "[dev] packages from requirements/dev.lock"
	@$(UV) -r requirements/dev.lock
	@$(BIN)/python -c 'import cupy' 2>/dev/null || { echo "[dev] compiler of the kernels, from requirements/cuda13.lock"; $(UV) -r requirements/cuda13.lock; }
	@touch $@

clean:
	@rm -rf .venv .mypy_cache .ruff_cache .import_linter_cache
