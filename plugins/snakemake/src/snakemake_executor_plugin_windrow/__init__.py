"""Snakemake on Windrow: the whole workflow is handed over at the first submission, and cut into
batch jobs there."""

from dataclasses import dataclass, field
from typing import Optional  # Snakemake makes options of these types, and knows no others

from snakemake_interface_executor_plugins.settings import CommonSettings, ExecutorSettingsBase

from snakemake_executor_plugin_windrow.executor import Executor

__all__ = ["Executor", "ExecutorSettings", "common_settings"]


@dataclass
class ExecutorSettings(ExecutorSettingsBase):
    """The options `--windrow-...`."""

    on: Optional[str] = field(
        default=None,
        metadata={"help": "Where to run: local, slurm, a table of windrow.toml; several: a,b."},
    )
    hold: int = field(
        default=120,
        metadata={
            "help": "For how many seconds nodes may wait for jobs that come later, as after a "
            "checkpoint or a local rule.",
            "type": int,
        },
    )
    objective: Optional[str] = field(
        default=None,
        metadata={"help": "What to aim at: makespan, node-hours, balanced or cost."},
    )
    max_nodes: Optional[int] = field(
        default=None, metadata={"help": "The most nodes that one batch job may have.", "type": int}
    )
    cap: Optional[int] = field(
        default=None,
        metadata={"help": "The most batch jobs queued or running at a time.", "type": int},
    )
    cold: bool = field(
        default=False,
        metadata={
            "help": "Start a Snakemake of its own for each job, instead of forking one that is "
            "loaded once on each node."
        },
    )


common_settings = CommonSettings(
    non_local_exec=True,
    implies_no_shared_fs=False,
    job_deploy_sources=False,
    pass_envvar_declarations_to_cmd=False,
    init_seconds_before_status_checks=0,
)
