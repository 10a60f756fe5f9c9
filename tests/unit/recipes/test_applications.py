"""Traces of the seven applications give back the tables that they were made from, and their
roles."""

from functools import cache

import pytest
from tests.examples import some

from windrow.profile.measures import MILLION, Amount, Measures
from windrow.profile.roles import Roles, infer
from windrow.recipes import generate_workflow
from windrow.recipes.workflows.applications import application_trace, applications
from windrow.storage.roles import Role, roles

# Table 2.4, and below it the files, traffic, unique and static MB of all, read and written of table
# 2.2.
PRINTED = """
seti 2 .34 .34 .34 12 75.43 2.68 2.68 0 0 0 0
  14 75.77 3.02 3.02 12 71.62 .72 - 11 4.15 2.36 -
blastp 2 .12 .12 .12 0 0 0 0 9 329.99 323.46 586.09
  11 330.11 323.59 586.21 10 329.99 323.46 586.09 1 .12 .12 .12
ibis 20 179.92 53.97 53.97 99 148.27 12.69 12.69 17 7.89 6.98 6.98
  136 336.08 73.64 73.64 132 140.08 73.48 73.48 118 196 66.66 66.66
cmkin 2 .07 .07 .07 1 7.42 3.81 3.81 1 0 0 0
  4 7.49 3.88 3.88 2 0 0 0 2 7.49 3.88 3.88
cmsim 6 63.5 63.13 63.13 1 5.56 3.81 3.81 9 3729.67 49.04 59.24
  16 3798.74 116 126.18 11 3735.24 52.86 63.05 5 63.5 63.13 63.13
cms 6 63.56 63.2 63.2 2 12.99 7.62 7.62 9 3729.67 49.04 59.24
  17 3806.22 119.88 130.06 11 3735.24 52.86 63.05 6 70.98 67.01 67.01
setup 3 .14 .14 .14 2 8.99 .26 .26 0 0 0 0
  5 9.13 .4 .4 3 5.44 .26 .26 3 3.69 .39 .4
argos 3 1.81 1.81 1.81 2 661.95 661.93 662.17 0 0 0 0
  5 663.76 663.75 663.97 2 .04 .03 .26 4 663.73 663.74 663.97
scf 3 .01 .01 .01 7 3983.39 664.59 664.59 1 0 0 0
  11 3983.4 664.61 664.61 9 3979.33 663.79 664.6 8 4.07 2.5 2.69
hf 3 1.96 1.94 1.94 7 4654.34 664.59 664.59 1 0 0 0
  11 4656.3 666.54 666.54 9 3984.81 663.8 664.6 9 671.49 666.53 666.53
nautilus-1 6 1.18 1.1 1.1 9 266.32 28.66 28.66 2 3.14 3.14 3.14
  17 270.64 32.9 32.9 7 4.25 4.25 4.25 10 266.4 28.66 28.66
bin2coord 1 0 0 0 241 403.25 273.85 273.85 5 .02 .01 .01
  247 403.27 273.87 273.87 123 152.78 152.66 152.66 241 250.49 249.39 249.39
rasmol 119 12.88 12.88 12.88 120 115.79 115.79 115.79 3 .08 .09 .09
  242 128.75 128.76 128.76 124 115.87 115.88 115.88 120 12.88 12.88 12.88
nautilus 124 14.06 13.99 13.99 369 785.37 418.25 418.25 8 3.24 3.24 3.24
  501 802.66 435.48 435.48 - 272.9 272.74 272.74 - 529.76 290.94 290.94
corsika 2 .04 .04 .04 3 23.17 23.17 23.17 3 .75 .75 .75
  8 23.96 23.96 23.96 5 .76 .75 .75 3 23.21 23.21 23.21
corama 3 0 0 0 3 49.37 49.37 49.37 0 0 0 0
  6 49.37 49.37 49.37 3 23.17 23.17 23.17 3 26.2 26.2 26.2
mmc 0 0 0 0 6 151.63 151.63 151.63 5 2.73 2.73 2.73
  11 154.36 154.36 154.36 9 28.92 28.92 28.92 2 125.43 125.43 125.43
amasim2 5 5.31 5.31 5.31 2 40 40 125.43 22 505.04 505.04 505.04
  29 550.35 550.4 635.78 27 545.04 545.09 630.47 3 5.31 5.31 5.31
amanda 6 5.22 5.21 5.21 11 264.31 264.29 349.69 29 508.52 508.52 508.52
  46 778.04 778.09 863.42 - 597.89 597.96 683.32 - 180.14 180.11 180.11
"""
ROWS = {
    name: row
    for name, *row in (line.split() for line in PRINTED.replace("\n  ", " ").strip().splitlines())
}
INSTR_PER_OP_K = {
    "seti": 8737,
    "blast": 144,
    "ibis": 109823,
    "cms": 396,
    "hf": 353,
    "nautilus": 8238,
    "amanda": 551,
}


@cache
def measured(name: str) -> tuple[Measures, Roles]:
    """Two pipelines, so that batch data can be told."""
    measures = Measures(application_trace(name, 2))
    return measures, infer(measures, "/pipeline-1")


def near(found: Amount, printed: list[str], name: str) -> None:
    for value, text in zip((found.traffic, found.unique, found.static), printed[1:], strict=True):
        # Printed with two digits, of sums of which each is rounded; and AMANDA's totals move 0.13
        # MB between roles.
        assert text == "-" or abs(value / 1e6 - float(text)) < (
            0.15 if name == "amanda" else 0.06
        ), (name, text)
    assert printed[0] in ("-", str(found.files)), name


def check(name: str) -> None:
    measures, inferred = measured(name)
    wanted = {group["name"]: group["role"] for group in applications()[name]["files"]}
    for number, role in inferred.of.items():
        assert (
            role == wanted[measures.trace.files.paths[number].rpartition("/")[2].rpartition("-")[0]]
        )
    first = measures.pipeline == 0
    stages = [stage.name for stage in measures.trace.stages if stage.pipeline == 0]
    rows = [
        ("nautilus-1" if stage == "nautilus" else stage, measures.stage == n)
        for n, stage in enumerate(stages)
    ]
    for row, chosen in [*rows, *([(name, first)] if len(stages) > 1 else [])]:
        for i, role in enumerate((Role.ENDPOINT, Role.PIPELINE, Role.BATCH)):
            near(
                measures.amount(chosen & inferred.uses(measures, role)),
                ROWS[row][4 * i : 4 * i + 4],
                row,
            )
        for i, way in enumerate(
            (chosen, chosen & ~measures.is_write, chosen & measures.is_write), 3
        ):
            near(measures.amount(way), ROWS[row][4 * i : 4 * i + 4], row)
    for number, stage in enumerate(stages):
        counts = applications()[name]["stages"][stage]["ops"]
        assert list(measures.kinds([number]).values()) == counts, stage
    minstr = sum(stage.minstr for stage in measures.trace.stages if stage.pipeline == 0)
    operations = sum(measures.kinds(range(len(stages))).values())
    assert minstr * MILLION / operations / 1000 == pytest.approx(
        INSTR_PER_OP_K[name], rel=0.005
    )  # printed truncated


@pytest.mark.parametrize(
    "names", some(("blast", "nautilus"), ("seti", "ibis", "cms", "hf", "amanda"))
)
def test_traces_give_back_the_tables_and_the_roles(names: tuple[str, ...]) -> None:
    for name in names:
        check(name)


@pytest.mark.parametrize(
    ("name", "role", "mb", "share"),
    some(
        ("nautilus", Role.BATCH, 3.5, (0.49, 0.8)),
        ("cms", Role.BATCH, 1.0, (0.95, 1.0)),  # of little use to keep more
        (
            "amanda",
            Role.BATCH,
            400.0,
            (0.0, 0.05),
        ),  # read once by each pipeline: kept whole, or of no use
        ("amanda", Role.BATCH, 520.0, (0.49, 0.52)),
        ("amanda", Role.PIPELINE, 1.0, (0.9, 1.0)),  # a million short writes
    ),
)
def test_what_caches_do_for_the_applications(
    name: str, role: Role, mb: float, share: tuple[float, float]
) -> None:
    """Figures 2.3 and 2.4: the share of accesses to blocks that hit in an LRU cache of this
    size."""
    measures, inferred = measured(name)
    _, rates = measures.cache_curve(inferred.uses(measures, role))
    low, high = share
    assert low <= rates[min(len(rates), int(mb * 1e6) // 4096) - 1] <= high


def test_pipelines_are_chains_that_share_batch_data() -> None:
    workflow = generate_workflow(
        "pipelines", tasks=9, parameters={"application": "amanda", "length": "2"}
    )
    assert workflow.depth == 4
    assert len(workflow) == 9
    assert [workflow.kinds.count(kind) for kind in ("corsika", "corama", "mmc", "amasim2")] == [
        3,
        2,
        2,
        2,
    ]
    found, against = roles(workflow)
    sizes = dict.fromkeys(Role, 0)
    for role, file in zip(found, workflow.files, strict=True):
        sizes[role] += file.size_bytes
    assert not against
    assert sizes[Role.BATCH] == round((0.75 + 2.73 + 505.04) * 1e6)
    assert sizes[Role.PIPELINE] == round(2 * 2 * (23.17 + 26.2 + 125.43) * 1e6)
    assert workflow.runtime_s[0] == 2 * 2187.5
