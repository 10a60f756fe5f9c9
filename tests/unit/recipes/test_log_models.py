"""`generate_log` as its callers see it: valid logs, stable seeds, clear refusals."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import UserError
from windrow.model import Log
from windrow.recipes.logs.models import LOG_MODELS, generate_log

COLUMNS = ("job", "submit_s", "nodes", "requested_s", "run_s", "user")
DIGEST = """
import hashlib
from windrow.recipes.logs.models import LOG_MODELS, generate_log
for name in LOG_MODELS:
    log = generate_log(name, seed=5, jobs=300)
    columns = (log.job, log.submit_s, log.nodes, log.requested_s, log.run_s, log.user)
    print(name, hashlib.sha256(b"".join(c.tobytes() for c in columns)).hexdigest())
"""


def check_laws(log: Log) -> None:
    assert log.submit_s[0] == 0
    assert (np.diff(log.submit_s) >= 0).all()
    assert (log.run_s >= 1).all()
    assert (log.run_s <= log.requested_s).all()
    assert (log.nodes >= 1).all()
    assert (log.nodes <= log.machine_nodes).all()
    assert log.job.tolist() == list(range(1, len(log) + 1))
    assert log.repairs.dropped == log.repairs.mended == 0


@pytest.mark.slow
@given(
    model=st.sampled_from(list(LOG_MODELS)),
    seed=st.integers(-(2**70), 2**70),
    jobs=st.one_of(st.none(), st.integers(1, 400)),
    days=st.one_of(st.none(), st.floats(1e-6, 3)),
    extra_nodes=st.integers(0, 300),
    users=st.integers(1, 500),
)
def test_every_log_keeps_the_laws(
    *, model: str, seed: int, jobs: int | None, days: float | None, extra_nodes: int, users: int
) -> None:
    nodes = extra_nodes + (1 if model == "lublin" else LOG_MODELS[model].nodes)
    if jobs is None and days is None:
        days = 1.0
    log = generate_log(
        model, seed=seed, jobs=jobs, days=days, nodes=nodes, parameters={"users": str(users)}
    )
    check_laws(log)
    assert log.machine_nodes == nodes
    assert log.user.max() < users
    if jobs is not None:
        assert len(log) == jobs
    if days is not None:
        assert log.submit_s[-1] <= days * 86_400 + 1


def test_without_a_length_a_model_has_its_own() -> None:
    lublin = generate_log("lublin")
    assert (len(lublin), lublin.machine_nodes, lublin.name) == (10_000, 128, "lublin-0")
    rtc = generate_log("rtc", seed=3)
    assert (len(rtc), rtc.machine_nodes, rtc.name) == (108 * 365, 270, "rtc-3")


@pytest.mark.slow
def test_a_seed_means_the_same_log_in_every_process() -> None:
    outputs = set()
    for hash_seed in ("0", "1", "4242"):
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        run = subprocess.run(
            [sys.executable, "-c", DIGEST],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.add(run.stdout)
    assert len(outputs) == 1
    assert len(set(outputs.pop().split())) == 2 * len(LOG_MODELS)  # and each model has its own


@pytest.mark.parametrize("model", LOG_MODELS)
def test_another_seed_is_another_log(model: str) -> None:
    one, two = (generate_log(model, seed=seed, jobs=200) for seed in (1, 2))
    for column in COLUMNS[1:]:
        assert not np.array_equal(getattr(one, column), getattr(two, column)), column


@pytest.mark.parametrize(
    ("parameter", "value", "changed"),
    [("load", "0.4", "submit_s"), ("overestimate", "5", "requested_s"), ("users", "7", "user")],
)
def test_a_parameter_changes_only_what_it_is_about(
    parameter: str, value: str, changed: str
) -> None:
    plain = generate_log("lublin", jobs=500)
    other = generate_log("lublin", jobs=500, parameters={parameter: value})
    for column in COLUMNS:
        same = np.array_equal(getattr(plain, column), getattr(other, column))
        assert same == (column != changed), column


def test_defaults_given_as_text_change_nothing() -> None:
    for model in LOG_MODELS.values():
        texts = {parameter.name: str(parameter.default) for parameter in model.parameters}
        plain, told = (
            generate_log(model.name, jobs=50),
            generate_log(model.name, jobs=50, parameters=texts),
        )
        for column in COLUMNS:
            np.testing.assert_array_equal(getattr(plain, column), getattr(told, column))


def test_models_describe_themselves() -> None:
    assert list(LOG_MODELS) == ["lublin", "lonestar", "ada", "lemieux", "rtc", "star"]
    for name, model in LOG_MODELS.items():
        assert model.name == name
        assert (model.jobs is None) != (model.days is None)
        for parameter in model.parameters:
            assert parameter.name.islower()
            assert parameter.meaning
            assert parameter.default is not None


@pytest.mark.parametrize(
    ("model", "arguments", "message"),
    [
        (
            "lubin",
            {},
            "no log model 'lubin'; the models are lublin, lonestar, ada, lemieux, rtc, star",
        ),
        (
            "lublin",
            {"parameters": {"lode": "1"}},
            "no parameter lode; it has load, kind, widest, overestimate, users",
        ),
        ("rtc", {"parameters": {"kind": "batch"}}, "no parameter kind; it has load, users"),
        (
            "lublin",
            {"parameters": {"load": "much"}},
            "load must be a number from 0 to 100, not 'much'",
        ),
        ("lublin", {"parameters": {"load": "nan"}}, "load must be a number"),
        ("lublin", {"parameters": {"load": "-0.5"}}, "load must be a number from 0"),
        ("lublin", {"parameters": {"users": "1.5"}}, "users must be a whole number from 1"),
        ("lublin", {"parameters": {"users": "0"}}, "users must be a whole number from 1"),
        ("lublin", {"parameters": {"kind": "grid"}}, "kind must be one of batch, interactive, all"),
        ("star", {"parameters": {"load": "0"}}, "load must be above 0"),
        ("star", {"jobs": 5, "days": 2, "parameters": {"load": "0.5"}}, "contradict"),
        ("lublin", {"jobs": 0}, "at least one job"),
        ("lublin", {"days": 0}, "days above 0"),
        ("lublin", {"days": float("inf")}, "days above 0"),
        ("lublin", {"nodes": 0}, "1 to 10,000,000 nodes"),
        ("lublin", {"jobs": 10**9}, "more than 20,000,000 jobs"),
        ("ada", {"days": 1e6}, "more than 20,000,000 jobs"),
    ],
)
def test_what_cannot_be_done_is_refused_in_words(
    model: str, arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(UserError, match=message.replace("(", r"\(")):
        generate_log(model, **arguments)  # type: ignore[arg-type]
