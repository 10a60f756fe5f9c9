"""Which part files play, rule by rule."""

from windrow.model.trace import MAP_READ, READ, WRITE, Files, Records, Stage, Trace
from windrow.profile.measures import Measures
from windrow.profile.roles import Roles, infer

Story = list[tuple[int, str, str]]


def roles_of(
    story: Story, *, made: str = "", gone: str = "", declared: dict[str, str] | None = None
) -> tuple[dict[str, str], Roles]:
    """Of a story: pipeline, `r`, `w` or `x` (executed), and the name of a file, in order."""
    records, files = Records(), Files()
    pipelines = sorted({pipeline for pipeline, *_ in story})
    for pipeline in pipelines:
        records.begin()
        for number, way, name in story:
            if number == pipeline:
                path = name if name.startswith("/") else f"/w/{name}"
                op = {"r": READ, "w": WRITE, "x": MAP_READ}[way]
                records.add(0.0, 1, op, files.number(path, made=name in made.split()), 0, 10)
    for name in gone.split():
        files.removed(f"/w/{name}")
    trace = Trace.of(records, [Stage("s", pipeline) for pipeline in pipelines], files)
    found = infer(Measures(trace), "/w", declared)
    return {
        files.paths[number].removeprefix("/w/"): role for number, role in found.of.items()
    }, found


def test_one_pipeline_is_a_guess_for_what_it_only_reads() -> None:
    story: Story = [
        (0, "r", "in"),
        (0, "x", "/bin/sh"),
        (0, "r", "/data/db"),
        (0, "w", "tmp"),
        (0, "r", "tmp"),
    ]
    story += [(0, "w", "scratch"), (0, "w", "out"), (0, "x", "lib/mine.so")]
    roles, found = roles_of(story, made="tmp scratch out", gone="scratch")
    batch = dict.fromkeys(("/bin/sh", "/data/db", "lib/mine.so"), "batch")
    assert roles == {
        "in": "endpoint",
        "tmp": "pipeline",
        "scratch": "pipeline",
        "out": "endpoint",
        **batch,
    }
    assert len(found.guessed) == 4


def test_two_pipelines_tell_batch_from_endpoint() -> None:
    story: Story = [(p, "r", name) for p in (0, 1) for name in ("db", f"in{p}")]
    story += [(p, "w", f"out{p}") for p in (0, 1)]
    roles, found = roles_of(story, made="out0 out1")
    assert roles == {"db": "batch", **dict.fromkeys(("in0", "in1", "out0", "out1"), "endpoint")}
    assert not found.guessed
    assert not found.warnings


def test_what_one_writes_and_another_reads_is_shared() -> None:
    roles, found = roles_of(
        [(0, "w", "x"), (1, "r", "x"), (0, "w", "y"), (1, "w", "y"), (1, "r", "y")], made="x y"
    )
    assert roles == {"x": "shared", "y": "pipeline"}
    assert "/w/x is written by pipeline 1 and read by pipeline 2: shared" in found.warnings
    assert "/w/y is written by 2 pipelines: they cannot run at the same time" in found.warnings


def test_what_was_there_before_and_changes_is_told() -> None:
    roles, found = roles_of([(0, "r", "log"), (0, "w", "log"), (0, "r", "old")], gone="old")
    assert roles == {"log": "endpoint", "old": "endpoint"}
    assert [line.partition(":")[0] for line in found.warnings] == [
        "/w/log was there before and is changed in place",
        "/w/old was there before and is deleted",
    ]


def test_what_is_declared_wins_and_contradictions_are_told() -> None:
    story: Story = [(0, "w", "out"), (0, "r", "in")]
    roles, found = roles_of(story, made="out", declared={"/w/out": "pipeline", "/w/in": "batch"})
    assert roles == {"out": "pipeline", "in": "batch"}
    assert found.warnings == ["/w/out is declared as pipeline data, but was used as endpoint data"]
