"""Made-up tables of the campaigns of foresight, small enough to work out by hand.

One log, SDSC, and two workflows, A and B, each at two times. Makespans in seconds, A then B, at
time 0 and at 100:

    individual   500 500   500 500
    one-job      240 240   240 240
    zhang         90 190   400 300     beats glume on A, by 8.2 % on average
    glume        100 200   400 300     mean 250
    foresight     80 160   400 300     mean 235: 6 % below glume, 2.1 % below one-job
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from windrow.app.strategies import STRATEGIES
from windrow.foresight.strategy import Foresight
from windrow.strategies import Strategy
from windrow_lab.campaign.campaign import BatchRules, Campaign
from windrow_lab.campaign.rows import SCHEMA
from windrow_lab.campaign.sources import LogSource, WorkflowSource
from windrow_lab.reproductions.foresight.decision_times import DecisionTimes
from windrow_lab.reproductions.foresight.oracle import HINDSIGHT, Oracle
from windrow_lab.reproductions.foresight.plan import ABLATIONS, OBJECTIVES, TOLD
from windrow_lab.reproductions.foresight.results import ForesightResults
from windrow_lab.reproductions.paper import PaperPlan

SDSC = LogSource("SDSC", model="lublin", days=1, nodes=128)
A, B = (WorkflowSource(f"{name}-250-short", recipe="montage", tasks=250) for name in "AB")
FIXED = tuple(
    STRATEGIES[name] for name in ("individual", "one-job", "level-by-level", "zhang", "glume")
)
ALL_TIMES, FIRST = (0, 100), (0,)

Spans = Sequence[int]
"""Of A at each time, then of B."""

GRID: Mapping[str, Spans] = {
    "individual": (500, 500, 500, 500),
    "one-job": (240, 240, 240, 240),
    "level-by-level": (300, 300, 300, 300),
    "zhang": (90, 190, 400, 300),
    "glume": (100, 200, 400, 300),
    "foresight": (80, 160, 400, 300),
}
NODE_S: Mapping[str, int] = {"foresight": 1080, "node-hours": 500, "no slack": 2160}
"""What a run of each holds; all others 900."""


def made_up(changes: Mapping[str, Mapping[str, Spans]] | None = None) -> ForesightResults:
    """The results of every campaign; `changes` are other makespans, by campaign and strategy (0:
    the run failed)."""
    plan = PaperPlan("quick", campaigns(), ("A stand-in.",))
    told = beside() | {"noise": {**GRID, TOLD.name: (70, 140, 400, 300)}}
    for name, spans in (changes or {}).items():
        told[name] = {**told.get(name, GRID), **spans}
    tables = [table(campaign, told.get(campaign.name, GRID)) for campaign in plan.campaigns]
    times = [
        DecisionTimes("C-500-medium", 206, 128, (0.5, 0.75)),
        DecisionTimes("S-500-medium", 206, 128, (0.25,)),
    ]
    return ForesightResults(plan, tables, times)


def beside() -> dict[str, Mapping[str, Spans]]:
    """At time 0 alone: hindsight has a mean of 180, the oracle one of 145, and foresight beats the
    oracle on A."""
    return {
        "hindsight": {"hindsight": (60, 300)},
        "oracle": {"oracle": (90, 200)},
        "objectives": {"balanced": (100, 400), "node-hours": (200, 600)},
        "ablation": {strategy.name: (88, 400) for strategy in ABLATIONS},
    }


def campaigns() -> tuple[Campaign, ...]:
    def one(
        name: str,
        strategies: tuple[Strategy, ...],
        times: tuple[int, ...] = ALL_TIMES,
        **more: object,
    ) -> Campaign:
        return Campaign(name, (SDSC,), (A, B), times, strategies, **more)  # type: ignore[arg-type]

    six = (*FIXED, Foresight())
    return (
        one("grid", six, requests=("actual", "accurate")),
        one("easy", six, rules=(BatchRules("easy"),)),
        one("noise", (*six, TOLD), noise=0.2),
        one("hindsight", (HINDSIGHT,), FIRST),
        one("oracle", (Oracle(),), FIRST),
        one("objectives", OBJECTIVES, FIRST),
        one("ablation", ABLATIONS, FIRST),
    )


def table(campaign: Campaign, told: Mapping[str, Spans]) -> pa.Table:
    """The rows of a campaign whose strategies take as long as told."""
    rows = []
    for chunk in campaign.chunks():
        for strategy in chunk.strategies:
            spans = told[strategy.name]
            first = 0 if chunk.workflow == A else len(spans) // 2
            for at, span in zip(chunk.submit_s, spans[first:], strict=False):
                key = {
                    "log": "SDSC",
                    "requests": chunk.requests,
                    "policy": chunk.rules.label,
                    "cap": 16,
                    "seed": 0,
                }
                key |= {"workflow": chunk.workflow.name, "strategy": strategy.name, "submit_s": at}
                done = {"makespan_s": span, "allocated_node_s": NODE_S.get(strategy.name, 900)}
                done |= {"jobs": 3, "killed_jobs": int(strategy.name == "foresight" and at == 100)}
                rows.append(key | (done if span else {"error": "AssertionError"}))
    return pa.Table.from_pylist(rows, schema=SCHEMA)
