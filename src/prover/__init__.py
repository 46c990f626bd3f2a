"""Groth16 over BLS12-381: the prover half. Importing this package loads nothing else."""

__version__ = "0.1.0"
