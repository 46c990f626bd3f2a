"""The words that events, screens and code share: stages, policies, owners, places, outcomes."""

from __future__ import annotations

from enum import StrEnum


class Stage(StrEnum):
    """The protocol's own steps: a span in a trace, a bar on a panel and a block of code share one word."""

    COMPILE = "compile"
    QUEUE = "queue"
    SETUP = "setup"
    SRS = "srs"
    SYNTH = "synth"
    WITNESS = "witness"
    EVAL_ABC = "eval_abc"
    PROVE = "prove"
    PREP_MSM = "prep_msm"
    B_G2_MSM = "b_g2_msm"
    NTT_H = "ntt_h"
    MSM_H = "msm_h"
    BATCH_ADD = "batch_add"
    TAIL_MSM = "tail_msm"
    EPILOGUE = "epilogue"
    RELEASE = "release"
    VERIFY = "verify"


class Policy(StrEnum):
    """How a job's host buffers are given back."""

    SYNC_4K = "sync-4k"
    SYNC_HUGE = "sync-huge"
    ASYNC_4K = "async-4k"
    ASYNC_HUGE = "async-huge"
    RECYCLE = "recycle"


class Outcome(StrEnum):
    PROVED = "proved"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Owner(StrEnum):
    """Whom a buffer belongs to in the memory stack."""

    SRS = "srs"
    ABC = "abc"
    ASSIGNMENT = "assignment"
    SPLIT = "split_vectors"
    TAIL_BASES = "tail_bases"
    SCRATCH = "scratch"
    POOL = "pool"
    SETUP = "setup"


class Place(StrEnum):
    """Where a buffer lives; only `host` counts in anonymous RSS."""

    HOST = "host"
    PINNED = "pinned"
    FILE = "file"
    DEVICE = "device"
