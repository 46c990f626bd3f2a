"""Host and cgroup readings from trees as the kernel lays them out, whole and with parts missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuzktui.collector.host import HostReader, find_cgroup

GIB = 1 << 30


def write(root: Path, files: dict[str, object]) -> str:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return str(root)


def v2(root: Path, **files: object) -> str:
    group = "sys/fs/cgroup/system.slice/cuzk.service"
    base = {
        "proc/7/cgroup": "0::/system.slice/cuzk.service",
        f"{group}/memory.current": 3 * GIB,
        f"{group}/memory.max": "max",
        f"{group}/memory.events": "low 0\nhigh 0\nmax 4\noom 1\noom_kill 2",
        "sys/fs/cgroup/system.slice/memory.current": 5 * GIB,
        "sys/fs/cgroup/system.slice/memory.max": "max",
    }
    return write(root, base | files)


def test_version_two_reads_the_groups_own_files(tmp_path):
    root = v2(tmp_path, **{"sys/fs/cgroup/system.slice/cuzk.service/memory.max": 8 * GIB})
    sample = HostReader(7, root).read()
    assert (sample.cgroup_bytes, sample.cgroup_limit_bytes, sample.oom_kills) == (3 * GIB, 8 * GIB, 2)


def test_the_level_with_the_least_room_is_the_one_that_counts(tmp_path):
    root = v2(tmp_path, **{
        "sys/fs/cgroup/system.slice/cuzk.service/memory.max": 8 * GIB,
        "sys/fs/cgroup/system.slice/memory.max": 6 * GIB,
    })  # fmt: skip
    sample = HostReader(7, root).read()
    assert (sample.cgroup_bytes, sample.cgroup_limit_bytes) == (5 * GIB, 6 * GIB)


def test_no_limit_anywhere_leaves_the_limit_unread(tmp_path):
    sample = HostReader(7, v2(tmp_path)).read()
    assert (sample.cgroup_bytes, sample.cgroup_limit_bytes) == (3 * GIB, None)


@pytest.mark.parametrize("inside", [True, False])
def test_version_one_is_read_at_its_path_or_at_the_mount_of_a_container(tmp_path, inside):
    at = "sys/fs/cgroup/memory/docker/abc" if inside else "sys/fs/cgroup/memory"
    root = write(tmp_path, {
        "proc/7/cgroup": "9:name=systemd:/\n4:memory:/docker/abc\n0::/",
        f"{at}/memory.usage_in_bytes": 2 * GIB,
        f"{at}/memory.limit_in_bytes": 9223372036854771712,
        f"{at}/memory.stat": f"cache 1\nhierarchical_memory_limit {4 * GIB}",
        f"{at}/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1",
    })  # fmt: skip
    sample = HostReader(7, root).read()
    assert (sample.cgroup_bytes, sample.cgroup_limit_bytes, sample.oom_kills) == (2 * GIB, 4 * GIB, 1)


def test_without_a_group_the_hosts_own_count_of_kills_is_used(tmp_path):
    root = write(tmp_path, {"proc/vmstat": "nr_free_pages 1\noom_kill 5"})
    assert find_cgroup(7, root) is None
    assert HostReader(7, root).read().oom_kills == 5


def test_memory_pressure_and_load_are_read_where_they_are(tmp_path):
    root = write(tmp_path, {
        "proc/meminfo": "MemTotal:       25276502 kB\nMemFree: 1 kB\nMemAvailable:   1000 kB",
        "proc/pressure/memory": "some avg10=1.50 avg60=0.00 total=0\nfull avg10=0.00 avg60=0 total=0",
        "proc/pressure/cpu": "some avg10=42.00 avg60=0.00 avg300=0.00 total=0",
        "proc/stat": "cpu  100 0 100 800 0 0 0 0 0 0",
    })  # fmt: skip
    reader = HostReader(7, root)
    first = reader.read()
    write(tmp_path, {"proc/stat": "cpu  175 0 100 825 0 0 0 0 0 0"})
    second = reader.read()
    assert (first.mem_available_bytes, first.mem_total_bytes) == (1000 * 1024, 25276502 * 1024)
    assert (first.mem_pressure_percent, first.cpu_pressure_percent) == (1.5, 42.0)
    assert (first.cpu_busy_percent, second.cpu_busy_percent) == (None, 75.0)


def test_an_empty_host_is_all_none_and_no_error(tmp_path):
    sample = HostReader(7, str(tmp_path)).read()
    assert sample.mem_available_bytes is sample.cgroup_bytes is sample.oom_kills is None
    assert sample.cpu_pressure_percent is sample.cpu_busy_percent is None


@pytest.mark.parametrize("junk", ["", "max", "-3", "9" * 40, "1 2 3", "\x00\xff"])
def test_files_with_junk_are_none_and_no_error(tmp_path, junk):
    root = write(tmp_path, {
        "proc/7/cgroup": "0::/a", "sys/fs/cgroup/a/memory.current": junk, "proc/meminfo": f"MemAvailable: {junk}",
        "proc/pressure/cpu": f"some avg10={junk}", "proc/stat": f"cpu {junk}", "proc/vmstat": f"oom_kill {junk}",
    })  # fmt: skip
    sample = HostReader(7, root).read()
    assert sample.mem_available_bytes is sample.cgroup_bytes is sample.oom_kills is None


def test_the_machine_that_runs_this_says_what_memory_it_has():
    sample = HostReader().read()
    assert sample.mem_available_bytes and sample.mem_total_bytes > sample.mem_available_bytes
