"""Snakemake's own tests of executors, on the queue of this machine."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("snakemake", reason="no Snakemake is installed")
pytest.importorskip("snakemake_executor_plugin_windrow", reason="no Snakemake that has the plugin")

from snakemake.common.tests import TestWorkflowsLocalStorageBase

from snakemake_executor_plugin_windrow import ExecutorSettings

pytestmark = pytest.mark.slow


class TestWorkflows(TestWorkflowsLocalStorageBase):
    __test__ = True

    def get_executor(self) -> str:
        return "windrow"

    def get_executor_settings(self) -> ExecutorSettings:
        return ExecutorSettings(on=os.environ.get("WINDROW_TEST_ON", "local"))
