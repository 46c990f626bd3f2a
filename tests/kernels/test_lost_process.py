"""What a lost card leaves behind in its process: no destructor runs against a dead context; events are lent again."""

from __future__ import annotations

import subprocess
import sys

import pytest

from prover.backends.cuda.events import Events

PROGRAM = """
import gc, sys
from prover.backends.cuda import device
from prover.backends.cuda.failures import DeviceLost
from prover.errors import BackendError

class Handle:
    def __del__(self):
        print("destroyed", flush=True)

def opened():
    # Opening a real one needs a card.
    made = device.Device.__new__(device.Device)
    made.handle, made.itself = Handle(), made
    device._fate.join(made)
    return made

first, other, not_open = opened(), opened(), device.Device.__new__(device.Device)
device._fate.seal(not_open, DeviceLost("cuda:2 Test", "busy"))
print("lost" if first.lost else "works")
if sys.argv[1] == "lost":
    device._fate.seal(first, DeviceLost("cuda:0 Test", "gone"))
    device._fate.seal(other, DeviceLost("cuda:1 Test", "gone too"))
    print(other.lost)
    try:
        device.Device()
    except BackendError as error:
        print("refused:", error)
other = None
gc.collect()
"""


def end_of(how: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, how], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True,
        timeout=60,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_after_a_loss_no_device_of_the_process_is_destroyed_and_none_can_be_opened():
    works, lost, refused = end_of("lost")
    assert works == "works", "a card that could not be opened is no loss"
    assert lost.startswith("cuda:0 Test was lost (gone), and with one card CUDA gives up all of a process; restart")
    assert refused == f"refused: {lost}"


def test_devices_that_work_are_destroyed_as_ever():
    assert end_of("works") == ["works", "destroyed", "destroyed"]


class Moment:
    made = 0

    def __init__(self) -> None:
        type(self).made += 1


@pytest.fixture
def events() -> Events:
    Moment.made = 0
    return Events(Moment)


def test_events_are_lent_again_and_no_two_borrowers_have_the_same(events):
    first = [events.take() for _ in range(5)]
    assert len(set(first)) == 5
    events.give(*first[:3])
    second = [events.take() for _ in range(4)]
    assert len(set(second + first[3:])) == 6 and Moment.made == 6


def test_events_that_nobody_gave_back_are_there_again_after_all_are_taken_back(events):
    first = {events.take() for _ in range(5)}
    events.take_back()
    assert {events.take() for _ in range(5)} == first and Moment.made == 5
