"""Volumes in native files: what tasks mount, in which order, and what is refused before anything
runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.formats.test_native_faults import fault

from windrow.errors import InputError
from windrow.formats.native.reader import read_native
from windrow.records.runnable_file import read_runnable, write_runnable
from windrow.storage.lifetimes import temporary_files
from windrow.storage.roles import roles
from windrow.storage.volumes import VolumeUse, node_bytes, volumes_used

VOLUMES = "volumes: {db: {from: data, size: 6MB}, work: {scratch: 2GB}}\n"
TASKS = """tasks:
  - {id: a, command: x, mounts: {/v/db: db, /v/w: work}}
"""


def test_what_a_task_leaves_in_a_volume_is_a_file_that_the_next_one_reads(tmp_path: Path) -> None:
    (tmp_path / "wf.yaml").write_text("""
home: /shared
volumes:
  genome: { from: db/, size: 600MB, policy: mru }
  work: { scratch: 2GB, per: "{n}" }
tasks:
  - id: refine-{n}
    matrix: { n: [x/y, 2] }
    after: search-{n}
    command: sort {inputs} /w/hits -o {outputs}
    inputs: order.txt
    outputs: log-{n}.txt
    mounts: { /w: work }
    extract: { /w/best: "results/best-{n}" }
    outside: true
  - id: search-{n}
    matrix: { n: [x/y, 2] }
    command: blast
    mounts: { /db: genome, /w/: work }
""")
    found = read_native(tmp_path / "wf.yaml")
    refine, search = found.steps[0], found.steps[2]
    state = f"{tmp_path}/.windrow-volumes/wf/work-x%2Fy"
    assert sorted(tuple(m) for m in search.mounts) == [
        ("/db", "genome", "/shared/db", "", 600_000_000, "mru"),
        ("/w", "work-x%2Fy", "", f"{state}.1", 2_000_000_000, ""),
    ]
    assert [tuple(m) for m in refine.mounts] == [
        ("/w", "work-x%2Fy", f"{state}.1", f"{state}.2", 2_000_000_000, "")
    ]
    assert refine.extracts == (("work-x%2Fy", "best", "/shared/results/best-x/y"),)
    assert refine.command[-1] == "sort order.txt /w/hits -o log-x/y.txt", (
        "the files of volumes are not its business"
    )
    assert len(refine.elsewhere) == 1
    assert set(temporary_files(found.workflow)[0].values()) == {0, 1, 2, 3}, (
        "what is left in volumes is not kept"
    )
    assert roles(found.workflow)[1] == []
    assert volumes_used(step.mounts for step in found.steps) == [
        VolumeUse("work", 2, 2_000_000_000, 4),
        VolumeUse("genome", 1, 600_000_000, 2, "/shared/db"),
    ]
    assert (node_bytes(search.mounts), node_bytes(refine.mounts)) == (2_600_000_000, 4_000_000_000)
    write_runnable(tmp_path / "kept.json", found)
    assert read_runnable(tmp_path / "kept.json").steps == found.steps


FAULTS = [
    ("volumes: {2: {scratch: 1GB}}\n" + TASKS, "1: the volume '2'; name it by letters"),
    ("volumes: {w: 5}\n" + TASKS, "1: volume w is '5'; write {from: db/"),
    ("volumes: {w: {from: x}}\n" + TASKS, "1: volume w without size"),
    ("volumes: {w: {size: 1GB}}\n" + TASKS, "1: volume w without from"),
    (
        "volumes: {w: {scratch: 1GB, size: 1GB}}\n" + TASKS,
        "1: volume w has no key 'size'; the keys are scratch, per",
    ),
    (
        "volumes: {w: {from: x, size: 1GB, policy: fifo}}\n" + TASKS,
        "1: volume w has 'fifo'; write one of lru",
    ),
    (TASKS, "2: a mounts db, which is not a volume; write volumes: above tasks:"),
    (
        VOLUMES + TASKS.replace("work", "wrok"),
        "3: a mounts wrok, which is not a volume; the volumes are db, work",
    ),
    (
        "volumes: {db: {from: d, size: 1MB}, work: {scratch: 1GB}, old: {scratch: 1GB}}\n" + TASKS,
        "1: no task mounts the",
    ),
    (
        VOLUMES + TASKS.replace("/v/db", "v/db"),
        "3: mounts has the path 'v/db'; write absolute paths",
    ),
    (VOLUMES + TASKS.replace("/v/w", "/v/db/w"), "3: a mounts db twice, or another volume in it"),
    (VOLUMES + TASKS.replace("/v/w: work", "/v/w: work, /x: work"), "3: a mounts work twice"),
    (
        VOLUMES + TASKS.replace("/v/w", "/usr"),
        "3: a mounts work at /usr; use a path that the system",
    ),
    (
        VOLUMES + TASKS.replace("/v/w", "/proc/x"),
        "3: a mounts work at /proc/x; use a path that the system",
    ),
    (VOLUMES + TASKS.replace("/v/w", "/.."), "3: mounts has the path '/..'"),
    (
        VOLUMES + TASKS.replace("command: x", "command: x, outside: true, outputs: /v/w/o"),
        "3: a names /v/w/o, which is in the volume wo",
    ),
    (
        VOLUMES + TASKS.replace("command: x", "command: x, inputs: /v/db/o"),
        "3: a names /v/db/o, which is in the volume d",
    ),
    (
        VOLUMES + TASKS.replace("command: x", "command: x, outputs: data/o"),
        "3: a writes .*data/o in the cache volume db",
    ),
    (
        VOLUMES + TASKS.replace("}}", "}, extract: {/v/x: o}}"),
        "3: a extracts /v/x, which is in none of its volumes; name",
    ),
    (
        VOLUMES + TASKS.replace("}}", "}, extract: {/v/db/x: o}}"),
        "3: a extracts /v/db/x, which is in a cache volume",
    ),
    (
        VOLUMES + TASKS.replace("}}", "}, extract: {/v/w/x: o, /v/w/y: ./o}}"),
        "3: a makes o twice; give each extract",
    ),
    (VOLUMES + TASKS.replace("}}", "}, outputs: o, extract: {/v/w/x: o}}"), "3: a makes o twice"),
    (
        VOLUMES + TASKS.replace("}}", "}, extract: {'/v/w/{n}': o}}"),
        "3: {n} stands for nothing here",
    ),
    (
        VOLUMES + TASKS + "  - {id: b, command: x, mounts: [work]}\n",
        "4: a and b mount the scratch volume work, and neith",
    ),
    (
        VOLUMES.replace("2GB", "2GB, per: '{n}'") + TASKS,
        "3: there is a volume work for each {n}, but a has no such name",
    ),
]


@pytest.mark.parametrize(("text", "message"), FAULTS, ids=[message[:40] for _, message in FAULTS])
def test_mistakes_are_refused(text: str, message: str, tmp_path: Path) -> None:
    told = fault(tmp_path, text)
    pattern = re.escape(message).replace(r"\.\*", ".*")
    assert re.match(f"wf.yaml:{pattern}", told), told


def test_a_volume_must_not_hide_the_folder_in_which_its_task_runs(tmp_path: Path) -> None:
    above = str(tmp_path.parent)
    told = fault(tmp_path, VOLUMES + TASKS.replace("/v/w", above))
    assert f"a runs in {tmp_path}, which work at {above} would hide" in told


@given(
    st.integers(2, 6).flatmap(
        lambda n: st.tuples(st.lists(st.sets(st.integers(0, n - 1)), min_size=n, max_size=n))
    )
)
def test_the_tasks_of_a_scratch_volume_are_ordered_by_edges(
    tmp_path: Path, drawn: tuple[list[set[int]]]
) -> None:
    after = [{p for p in parents if p < task} for task, parents in enumerate(drawn[0])]
    lines = [
        f"  - {{id: t{task}, command: x, after: [{', '.join(f't{p}' for p in sorted(parents))}], "
        f"mounts: [work]}}"
        for task, parents in enumerate(after)
    ]
    (tmp_path / "wf.yaml").write_text(
        "volumes: {work: {scratch: 1MB}}\ntasks:\n" + "\n".join(lines) + "\n"
    )
    above: list[set[int]] = []
    for parents in after:
        above.append(parents.union(*(above[p] for p in parents)))
    if all(task in above[task + 1] for task in range(len(after) - 1)):
        steps = read_native(tmp_path / "wf.yaml").steps
        assert [step.mounts[0].after[-2:] for step in steps] == [
            f".{task + 1}" for task in range(len(after))
        ]
        assert [step.mounts[0].before for step in steps[1:]] == [
            step.mounts[0].after for step in steps[:-1]
        ]
    else:
        with pytest.raises(InputError, match="neither comes after the other"):
            read_native(tmp_path / "wf.yaml")
