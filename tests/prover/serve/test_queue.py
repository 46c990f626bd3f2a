"""The queue: order, joining, cancelling, bounds, and faults that stay in their job."""

from __future__ import annotations

import threading

import pytest

from prover import wire
from prover.errors import BadRequest, Cancelled, UnsatisfiedWitness
from prover.serve.hub import Hub
from prover.serve.job import Job, Result
from prover.serve.queue import IdTaken, JobQueue, QueueFull
from prover.serve.request import JobRequest, Priority, check
from prover.wire import Outcome, Policy


def make(**bounds: int) -> JobQueue:
    return JobQueue(Hub(wire.Hello(t_ns=1, unix_ns=1), Policy.RECYCLE), Policy.RECYCLE, **bounds)


def ask(job_id: str, circuit: str = "cubic", **more) -> JobRequest:
    return check(JobRequest(job_id=job_id, circuit=circuit, **more))


class Working:
    """A queue's worker for the length of a `with` block."""

    def __init__(self, queue: JobQueue, execute) -> None:
        self.queue, self.thread = queue, threading.Thread(target=queue.work, args=(execute,))

    def __enter__(self) -> JobQueue:
        self.thread.start()
        return self.queue

    def __exit__(self, *_error) -> None:
        self.queue.stop("the test is over")
        self.thread.join(10)
        assert not self.thread.is_alive()


def ended(job: Job) -> Job:
    done = threading.Event()
    job.call_when_ended(done.set)
    assert done.wait(10)
    return job


def test_jobs_run_by_priority_and_then_in_order_of_arrival():
    queue, seen = make(), []
    for job_id, priority in (("a", 2), ("b", 1), ("c", 4), ("d", 2), ("e", 3)):
        queue.submit(ask(job_id, priority=Priority(priority)))
    last, position = queue.submit(ask("f", priority=Priority.LOW))
    assert position == 5

    def execute(job: Job) -> Result:
        seen.append(job.job_id)
        return Result(b"p")

    with Working(queue, execute):
        ended(last)
    assert seen == ["c", "e", "a", "d", "b", "f"]


def test_one_id_is_one_job_while_it_lives_and_after_it_was_proved():
    queue, runs = make(), []
    first, _ = queue.submit(ask("x"))
    again, _ = queue.submit(ask("x"))
    assert again is first

    def execute(job: Job) -> Result:
        runs.append(job.job_id)
        return Result(b"proof")

    with Working(queue, execute):
        ended(first)
        assert queue.submit(ask("x"))[0].result.proof == b"proof"
    assert runs == ["x"]


def test_one_id_for_two_things_is_refused():
    queue = make()
    queue.submit(ask("x", "cubic"))
    with pytest.raises(IdTaken, match="x belongs to another request"):
        queue.submit(ask("x", "sha256-chain:1"))


def test_a_failed_id_may_be_tried_again():
    queue, results = make(), [UnsatisfiedWitness(7), None]

    def execute(_job: Job) -> Result:
        fault = results.pop(0)
        if fault:
            raise fault
        return Result(b"ok")

    with Working(queue, execute):
        failed = ended(queue.submit(ask("x"))[0])
        assert (failed.outcome, failed.error) == (Outcome.FAILED, "witness does not satisfy constraint 7")
        assert ended(queue.submit(ask("x"))[0]).outcome is Outcome.PROVED


def test_a_fault_ends_its_job_and_not_the_worker(capfd):
    queue = make()

    def execute(job: Job) -> Result:
        if job.job_id == "bad":
            raise ZeroDivisionError("oops")
        if job.job_id == "big":
            raise MemoryError("mmap")
        return Result(b"ok")

    with Working(queue, execute):
        bad, big, good = (queue.submit(ask(i))[0] for i in ("bad", "big", "good"))
        assert ended(good).outcome is Outcome.PROVED
    assert bad.error == "internal fault: ZeroDivisionError: oops"
    assert big.error == "out of host memory: mmap"
    assert "ZeroDivisionError" in capfd.readouterr().err
    assert queue.totals.failed["circuit"] == 2 and queue.totals.completed["circuit"] == 1


def test_a_waiting_job_and_the_running_one_can_be_cancelled():
    queue, begun = make(), threading.Event()

    def execute(job: Job) -> Result:
        begun.set()
        while True:
            job.run.check()

    with Working(queue, execute):
        running, _ = queue.submit(ask("running"))
        waiting, position = queue.submit(ask("waiting"))
        assert begun.wait(10) and position <= 1
        assert queue.cancel("nobody") == (False, False)
        assert queue.cancel("waiting") == (False, True)
        assert ended(waiting).outcome is Outcome.CANCELLED
        assert queue.cancel("") == (True, False)
        assert ended(running).outcome is Outcome.CANCELLED
        assert queue.cancel("running") == (False, False)
    assert queue.cancel("") == (False, False)


def test_stopping_cancels_everything_and_takes_nothing_more():
    queue, begun = make(), threading.Event()

    def execute(job: Job) -> Result:
        begun.set()
        while not job.run.is_cancelled:
            begun.wait(0.001)
        raise Cancelled("x")

    with Working(queue, execute):
        jobs = [queue.submit(ask(i))[0] for i in "abc"]
        assert begun.wait(10)
    assert [j.outcome for j in jobs] == [Outcome.CANCELLED] * 3
    with pytest.raises(QueueFull, match="shutting down"):
        queue.submit(ask("d"))


def test_the_queue_is_bounded_in_jobs_and_in_bytes():
    queue = make(max_waiting=3, max_waiting_bytes=100)
    porep = {"circuit": "", "kind": "porep-c2"}
    queue.submit(ask("a", **porep, c1=b"x" * 60))
    with pytest.raises(QueueFull, match="60 bytes and this one has 60"):
        queue.submit(ask("b", **porep, c1=b"x" * 60))
    queue.submit(ask("c"))
    queue.submit(ask("d"))
    with pytest.raises(QueueFull, match="3 jobs wait"):
        queue.submit(ask("e"))


def test_the_payload_of_an_ended_job_is_not_kept():
    queue = make()
    with Working(queue, lambda _job: Result(b"ok")):
        job = ended(queue.submit(ask("big", "", kind="porep-c2", c1=b"x" * 1000))[0])
        assert job.request.c1 is None and job.request.kind == "porep-c2"
        assert queue.submit(ask("big", "", kind="porep-c2", c1=b"x" * 1000))[0] is job


def test_results_are_kept_up_to_a_bound():
    queue = make(kept_results=4)
    with Working(queue, lambda _job: Result(b"ok")):
        for i in range(10):
            ended(queue.submit(ask(f"j{i}"))[0])
    assert [j.job_id for j in queue.ended()] == ["j6", "j7", "j8", "j9"]
    assert queue.find("j5") is None and queue.find("j6") is not None


def test_the_policy_is_taken_when_the_job_starts():
    queue, seen = make(), []

    def execute(job: Job) -> Result:
        seen.append(job.policy)
        return Result(b"ok")

    queue.submit(ask("own", policy=Policy.ASYNC_4K))
    last, _ = queue.submit(ask("theirs"))
    queue.set_policy(Policy.SYNC_4K)
    with Working(queue, execute):
        ended(last)
    assert seen == [Policy.ASYNC_4K, Policy.SYNC_4K]


def test_a_job_has_one_beginning_and_one_end_in_the_stream():
    queue = make()
    _, watcher = queue.hub.watch()
    queue.submit(ask("gone"))
    queue.cancel("gone")
    with Working(queue, lambda _job: Result(b"\1" * 192, [["35"]], True, {"total_ms": 1.0})):
        ended(queue.submit(ask("done"))[0])
    watcher.close()
    events = [wire.decode(line) for line in watcher.lines()]
    assert [(type(e).__name__, getattr(e, "job_id", "")) for e in events] == [
        (kind, job_id)
        for job_id in ("gone", "done")
        for kind in ("JobSubmitted", "StageBegan", "StageEnded", "JobEnded")
    ]
    assert events[2].ok is False and events[6].ok is True
    assert (events[3].outcome, events[7].outcome) == (Outcome.CANCELLED, Outcome.PROVED)
    assert events[7].proof_hex == "01" * 192 and events[7].public_inputs == [["35"]]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"circuit": ""}, "a job is one of"),
        ({"zkey_path": "/a", "wtns_path": "/b"}, "a job is one of"),
        ({"circuit": "", "zkey_path": "/a"}, "go together"),
        ({"num_circuits": 0}, "num_circuits is 0"),
        ({"num_circuits": 5000}, "num_circuits is 5000"),
        ({"circuit": "", "zkey_path": "a", "wtns_path": "/b"}, "not absolute"),
        ({"client": "\x1b[2J"}, "unprintable"),
        ({"backend": "tpu"}, "backend tpu is unknown"),
        ({"job_id": "x" * 300}, "printable characters"),
        ({"job_id": "a\nb"}, "printable characters"),
    ],
)
def test_a_bad_request_is_refused_with_its_field(fields, text):
    with pytest.raises(BadRequest, match=text):
        check(JobRequest(**{"job_id": "j", "circuit": "cubic"} | fields))
