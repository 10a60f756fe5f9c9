"""Means over the rows of a sweep, by strategy and by whatever else one asks for.

All strategies of a chunk are finished together, so means of an unfinished sweep compare like with
like too. Trials that failed have no figures: they are counted, and left out of the means.
"""

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import unknown_name
from windrow.story.figures import NODE_TIME
from windrow_lab.campaign.sweep import SWEEP_KEY

Summary = dict[str, object]

_HOUR_S = 3600
_MEANS = ("makespan_s", "visible_wait_s", "queue_wait_s", *(f"{part}_node_s" for part in NODE_TIME))
_COUNTS = ("jobs", "killed_jobs", "node_failures")


def summarize(rows: pa.Table, by: Sequence[str] = ()) -> list[Summary]:
    """One dict for each strategy within each combination of the columns `by`, sorted by those.

    Strategies come by mean makespan, the least first. UserError if there is no such column.
    """
    check_columns(by)
    keys = [*by, "strategy"]
    counted = rows.append_column("failed", pc.cast(pc.is_valid(rows.column("error")), pa.int64()))
    means = [(name, "mean") for name in (*_MEANS, *_COUNTS)]
    grouped = counted.group_by(keys).aggregate(
        [("error", "count", pc.CountOptions("all")), ("failed", "sum"), *means]
    )
    found = [_summary(row, keys) for row in grouped.to_pylist()]
    return sorted(found, key=lambda one: (*(one[key] for key in by), *_rank(one)))


def _rank(summary: Summary) -> tuple[float, object]:
    """Strategies whose trials all failed come last."""
    mean = summary["makespan_s_mean"]
    return mean if isinstance(mean, float) else float("inf"), summary["strategy"]


def check_columns(by: Sequence[str]) -> None:
    """UserError if rows cannot be grouped by these columns."""
    known = [key for key in SWEEP_KEY if key != "strategy"]
    for column in by:
        if column not in known:
            raise unknown_name("column to group by", column, known)


def _summary(row: dict[str, object], keys: Sequence[str]) -> Summary:
    def means(names: Iterable[str]) -> Summary:
        return {f"{name}_mean": row[f"{name}_mean"] for name in names}

    node_h: Summary = {}
    for name in NODE_TIME:
        value = row[f"{name}_node_s_mean"]
        node_h[f"{name}_node_h_mean"] = value / _HOUR_S if isinstance(value, float) else None
    told = {key: row[key] for key in keys} | {
        "runs": row["error_count"],
        "failed": row["failed_sum"],
    }
    return told | means(_MEANS[:3]) | node_h | means(_COUNTS)
