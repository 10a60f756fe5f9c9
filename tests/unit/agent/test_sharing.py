"""Jobs whose nodes share what many tasks read: it comes from home once, and lies once on each
node."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.examples import some
from tests.unit.agent.jobs import Run, shell
from tests.unit.agent.test_nodes import cluster  # noqa: F401  (a fixture)
from tests.waiting import wait_until

from windrow.agent.event_file import AttemptFinished
from windrow.agent.job_file import TaskSpec
from windrow.model.volume import VolumeMount

SIZE = 9 * (4 << 20) + 5


@pytest.fixture
def work(tmp_path: Path, cluster: Run) -> Path:  # noqa: F811
    """Three nodes, by addresses of this machine; a file that all tasks read."""
    for name in ("work", "disk", "db"):
        (tmp_path / name).mkdir()
    (tmp_path / "work" / "genome").write_bytes(b"gene" * (SIZE // 4) + b"!")
    (tmp_path / "work" / "small").write_text("small\n")
    (tmp_path / "db" / "index").write_bytes(b"i" * 5_000_000)
    scontrol = tmp_path / "bin" / "scontrol"
    scontrol.write_text("#!/bin/sh\nprintf '127.0.0.1\\n127.0.0.2\\n127.0.0.3\\n'\n")
    cluster.extra_env["SLURMD_NODENAME"] = "127.0.0.1"
    return tmp_path / "work"


def readers(work: Path, **more: Any) -> list[TaskSpec]:
    command = (
        "cksum < genome > out$N; cat small >> out$N; readlink genome >> out$N || echo "
        "copied >> out$N; sleep 0.2"
    )
    inputs = ("genome", "small")
    return [
        shell(
            n,
            command,
            workdir=str(work),
            env={"N": str(n)},
            inputs=inputs,
            outputs=(f"out{n}",),
            cores=2,
            **more,
        )
        for n in range(6)
    ]


def moved(printed: str) -> tuple[int, int]:
    """Bytes from home and from other nodes, of all nodes."""
    found = re.findall(
        r"windrow: node (\d) has .*; in total (\d+) bytes from home, (\d+) from other nodes",
        printed,
    )
    nodes = {node: (int(home), int(peers)) for node, home, peers in found}
    return sum(home for home, _ in nodes.values()), sum(peers for _, peers in nodes.values())


@pytest.mark.slow
@pytest.mark.parametrize("share", some("peer", ""))
def test_what_many_tasks_read_crosses_once(cluster: Run, work: Path, share: str) -> None:  # noqa: F811
    code, printed = cluster.run(
        *readers(work), nodes=3, scratch=str(work.parent / "disk"), share=share
    )
    assert (code, sorted(cluster.finished())) == (0, list(range(6)))
    texts = [(work / f"out{n}").read_text().splitlines() for n in range(6)]
    assert len({text[0] for text in texts}) == 1
    assert {text[1] for text in texts} == {"small"}
    told = Counter[tuple[str, str]]()
    for file, link, size in [one for done in cluster.of(AttemptFinished) for one in done.of.moved]:
        told[file, link] += size
    crossed = {"home": SIZE, "nodes": 2 * SIZE} if share else {"home": 3 * SIZE}
    assert {link: told["genome", link] for link in ("home", "nodes", "hit")} == {
        "nodes": 0,
        **crossed,
        "hit": 3 * SIZE,
    }
    assert (told["small", "home"], told["small", "nodes"], told["small", "hit"]) == (18, 0, 18)
    if share:
        assert moved(printed) == (SIZE, 2 * SIZE)
        assert all("/shared/" in text[2] for text in texts)
        key = (cluster.folder.path / "peer-key").read_text().strip()
        assert not [
            path
            for path in cluster.path.rglob("*")
            if path.name != "peer-key" and key.encode() in _read(path)
        ]
        assert key not in printed
    else:
        assert {text[2] for text in texts} == {"copied"}
        assert printed == ""
        assert not (cluster.folder.path / "peer-key").exists()
    assert list((work.parent / "disk").iterdir()) == []


def _read(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


@pytest.mark.slow
def test_cache_volumes_lie_once_on_each_node(cluster: Run, work: Path) -> None:  # noqa: F811
    db = str(work.parent / "db")
    mount = VolumeMount("db", "db", db, "", 5_000_000, "lru")
    tasks = [
        shell(
            n,
            f"cksum < $WINDROW_VOLUME_DB/index > out{n}; echo $WINDROW_VOLUME_DB >> out{n}; "
            "sleep 0.2",
            workdir=str(work),
            outputs=(f"out{n}",),
            mounts=(mount,),
            cores=2,
        )
        for n in range(6)
    ]
    code, printed = cluster.run(*tasks, nodes=3, scratch=str(work.parent / "disk"), share="peer")
    assert (code, sorted(cluster.finished())) == (0, list(range(6)))
    assert moved(printed) == (5_000_000, 10_000_000)
    where = {(work / f"out{n}").read_text().splitlines()[1] for n in range(6)}
    assert len(where) == 3
    assert all(path.startswith(str(work.parent / "disk")) for path in where)


@pytest.mark.slow
@pytest.mark.parametrize("is_ahead", some(True, False))
def test_jobs_side_by_side_are_one_cache(cluster: Run, work: Path, *, is_ahead: bool) -> None:  # noqa: F811
    """A job of one node gets all from another, which reads it, too, or has fetched it while this
    one waited."""
    disk, db, other = (str(work.parent / name) for name in ("disk", "db", "work"))
    mount = VolumeMount("db", "db", db, "", 5_000_000, "lru")
    held = mount._replace(volume="other", before=other, size_bytes=SIZE) if is_ahead else mount
    hold = shell(0, "until [ -e ../go ]; do sleep 0.1; done", workdir=str(work), mounts=(held,))
    cluster.write(hold, job=0, nodes=3, scratch=disk, share="peer")
    read = (
        f"cksum < $WINDROW_VOLUME_DB/index > out; cksum < {db}/index >> out; touch {work.parent}/go"
    )
    with cluster.begin(0) as first:
        cluster.wait_for_start(0)
        cluster.write(
            shell(1, read, workdir=str(work), outputs=("out",), mounts=(mount,)),
            job=1,
            scratch=disk,
            share="peer",
        )
        wait_until(
            lambda: any(
                db in json.loads(path.read_bytes()).get("sources", ())
                for path in cluster.folder.caches.glob("0")
            )
        )
        (work.parent / "bin" / "scontrol").write_text("#!/bin/sh\necho 127.0.0.4\n")
        cluster.extra_env["SLURMD_NODENAME"] = "127.0.0.4"
        code, printed = cluster.run(job=1)
        assert code == 0
        assert moved(printed) == (0, 5_000_000)
        assert len(set((work / "out").read_text().splitlines())) == 1
        assert not (cluster.folder.caches / "1").exists()
        first.communicate(timeout=60)
    assert first.returncode == 0
    assert not list(cluster.folder.caches.iterdir())
    assert list((work.parent / "disk").iterdir()) == []
