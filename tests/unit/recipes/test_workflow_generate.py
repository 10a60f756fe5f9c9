"""What holds for every workflow recipe: sizes, work, seeds, parameters, files, and refusals."""

from __future__ import annotations

import hashlib
import math
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import UserError
from windrow.model import Workflow
from windrow.recipes import WORKFLOW_RECIPES, generate_workflow
from windrow.recipes.chance import even_parts, near_even_parts, random_parts, seeded
from windrow_lab.stream.workload import draw_workload

MINIMUM = {
    "montage": 15,
    "cybershake": 7,
    "genome": 12,
    "inspiral": 16,
    "sipht": 13,
    "eman": 8,
    "blast": 4,
    "canonical": 5,
    "fft": 5,
    "gauss": 2,
    "fork-join": 3,
    "random": 2,
    "level": 2,
    "choke": 3,
    "pipelines": 2,
}
DEPTHS = {
    "montage": {9},
    "cybershake": {4},
    "genome": {8, 9},
    "inspiral": {6},
    "sipht": {5},
    "eman": {8},
    "blast": {4},
    "fork-join": {3},
    "pipelines": {2},
}
BY_FORMULA = ("canonical", "fft", "gauss")
EXACT = [name for name in MINIMUM if name not in BY_FORMULA]


def digest(workflow: Workflow) -> str:
    """Of everything that a workflow says."""
    text = repr((workflow.name, list(workflow), workflow.files))
    return hashlib.sha256(text.encode()).hexdigest()


def test_the_recipes_are_those_of_the_papers_in_order() -> None:
    assert list(WORKFLOW_RECIPES) == list(MINIMUM)
    for name, recipe in WORKFLOW_RECIPES.items():
        assert recipe.name == name
        assert recipe.summary
        assert recipe.source
        assert "\n" not in recipe.summary
        assert len(generate_workflow(name)) == recipe.default_tasks


def test_the_reference_page_has_every_recipe_and_parameter_as_they_are() -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "recipes.md").read_text(
        encoding="utf-8"
    )
    for name, recipe in WORKFLOW_RECIPES.items():
        met = "nearest" if name in BY_FORMULA else "exactly"
        assert (
            f"| `{name}` | {recipe.summary} | {met}, from {MINIMUM[name]} | "
            f"{recipe.default_tasks} |" in page
        )
        for parameter in recipe.parameters:
            is_word = isinstance(parameter.default, bool | str)
            default = str(parameter.default).lower() if is_word else f"{parameter.default:g}"
            row = rf"\| [^|]*`{name}`[^|]* \| `{parameter.name}` \| {default} \| {re.escape(parameter.meaning)} \|"  # noqa: E501
            assert re.search(row, page), (name, parameter.name)


@given(name=st.sampled_from(EXACT), extra=st.integers(0, 600), seed=st.integers(-5, 5))
def test_any_size_is_met_exactly_with_the_levels_of_the_structure(
    name: str, extra: int, seed: int
) -> None:
    workflow = generate_workflow(name, tasks=MINIMUM[name] + extra, seed=seed)
    assert len(workflow) == MINIMUM[name] + extra
    assert workflow.depth in DEPTHS.get(name, {workflow.depth})
    assert (workflow.runtime_s > 0).all()


@pytest.mark.parametrize("name", MINIMUM)
def test_the_smallest_size_works_and_one_less_is_refused_naming_it(name: str) -> None:
    least = MINIMUM[name]
    assert len(generate_workflow(name, tasks=least)) == least
    with pytest.raises(
        UserError, match=re.escape(f"{name} needs at least {least} tasks, not {least - 1}")
    ):
        generate_workflow(name, tasks=least - 1)


@given(tasks=st.integers(12, 900))
def test_a_genome_is_the_published_structure_where_that_has_the_size(tasks: int) -> None:
    """Odd sizes and multiples of four can be built of lanes of chunks alone; others need one lane
    without a merge."""
    kinds = Counter(generate_workflow("genome", tasks=tasks).kinds)
    lanes, chunks = kinds["fastqSplit_chr21"], kinds["map_chr21"]
    merges = kinds["mapMerge_chr21"]
    assert tasks == 4 * chunks + lanes + merges + 2
    assert merges in ((1,) if lanes == 1 and tasks % 4 == 0 else (lanes, lanes + 1))
    if tasks in (47, 249, 497):
        assert merges == lanes + 1


@pytest.mark.parametrize("name", MINIMUM)
def test_work_asked_for_is_the_sum_and_changes_nothing_but_run_times(name: str) -> None:
    plain, scaled = (
        generate_workflow(name, seed=3),
        generate_workflow(name, seed=3, work_s=1_800_000),
    )
    assert math.isclose(scaled.work_s, 1_800_000, rel_tol=1e-12)
    assert scaled.ids == plain.ids
    assert scaled.files == plain.files
    assert np.array_equal(scaled.parents.index, plain.parents.index)
    if name != "cybershake":
        assert np.allclose(
            scaled.runtime_s / scaled.work_s, plain.runtime_s / plain.work_s, rtol=1e-12
        )


@given(work_s=st.floats(1e-3, 1e9), square=st.booleans())
def test_cybershake_reaches_any_work_with_peaks_growing_by_the_square(
    work_s: float, square: bool
) -> None:
    parameters = {"square_peaks": str(square)}
    plain = generate_workflow("cybershake", tasks=30, parameters=parameters)
    scaled = generate_workflow("cybershake", tasks=30, work_s=work_s, parameters=parameters)
    assert math.isclose(scaled.work_s, work_s, rel_tol=1e-9)
    peaks = np.array([kind == "PeakValCalcOkaya" for kind in plain.kinds])
    growth = scaled.runtime_s / plain.runtime_s
    factor = growth[~peaks][0]
    assert np.allclose(growth[~peaks], factor, rtol=1e-9)
    assert np.allclose(growth[peaks], factor**2 if square else factor, rtol=1e-9)


@pytest.mark.parametrize("work_s", [0, -1, math.inf, math.nan])
def test_work_that_is_no_amount_is_refused(work_s: float) -> None:
    with pytest.raises(UserError, match="work must be above 0"):
        generate_workflow("montage", work_s=work_s)


@pytest.mark.parametrize("name", MINIMUM)
def test_parents_are_the_writers_of_what_a_task_reads_and_nobody_else(name: str) -> None:
    workflow = generate_workflow(name, seed=2)
    writers = [(file, task.id) for task in workflow for file in task.outputs]
    writer = dict(writers)
    assert len(writers) == len(writer), "a file has two writers"
    for task in workflow:
        assert len(set(task.inputs)) == len(task.inputs), "a file is read twice"
        assert set(task.parents) == {writer[file] for file in task.inputs if file in writer}
    used = {file for task in workflow for file in (*task.inputs, *task.outputs)}
    assert used == {file.id for file in workflow.files}
    assert all(file.size_bytes > 0 for file in workflow.files)


# Chance


@pytest.mark.parametrize("name", MINIMUM)
def test_the_seed_decides(name: str) -> None:
    first = digest(generate_workflow(name, seed=1))
    assert digest(generate_workflow(name, seed=1)) == first
    assert (digest(generate_workflow(name, seed=2)) != first) == (
        name not in ("eman", "gauss", "pipelines")
    )


def test_recipes_do_not_share_a_stream() -> None:
    draws = {name: float(seeded(1, name).uniform()) for name in WORKFLOW_RECIPES}
    assert len(set(draws.values())) == len(draws)


@pytest.mark.slow
def test_the_hash_seed_of_the_process_does_not_matter() -> None:
    script = (
        "from hashlib import sha256\n"
        "from windrow.recipes import WORKFLOW_RECIPES, generate_workflow\n"
        "made = [generate_workflow(name, tasks=60, seed=7, work_s=1e5) for name in "
        "WORKFLOW_RECIPES]\n"
        "print(sha256(repr([(w.name, list(w), w.files) for w in made]).encode()).hexdigest())\n"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("0", "1", "4242")
    }
    assert len(answers) == 1
    assert len(answers.pop().strip()) == 64


@given(st.integers(1, 60), st.integers(0, 5000), st.floats(0, 0.9), st.integers(0, 99))
def test_near_even_parts_sum_up_and_stay_near(
    parts: int, extra: int, tolerance: float, seed: int
) -> None:
    total = parts + extra
    sizes = near_even_parts(np.random.default_rng(seed), total, parts, tolerance)
    assert (len(sizes), sizes.sum()) == (parts, total)
    assert sizes.min() >= 1
    assert np.abs(sizes - total / parts).max() <= tolerance * total / parts + 1


@given(st.integers(1, 60), st.integers(0, 5000), st.integers(0, 99))
def test_other_parts_sum_up(parts: int, extra: int, seed: int) -> None:
    total = parts + extra
    random, even = random_parts(np.random.default_rng(seed), total, parts), even_parts(total, parts)
    assert random.sum() == even.sum() == total
    assert len(random) == len(even) == parts
    assert random.min() >= 1
    assert np.ptp(even) <= 1


# Refusals


def test_an_unknown_recipe_is_refused_with_the_list() -> None:
    with pytest.raises(
        UserError, match=r"unknown recipe 'montag'; did you mean montage.* cybershake, genome"
    ):
        generate_workflow("montag")


def test_names_that_papers_use_mean_the_same_recipes() -> None:
    for other, name in (("epigenomics", "genome"), ("ligo", "inspiral")):
        one, same = (generate_workflow(each, tasks=40, seed=3) for each in (other, name))
        assert (one.ids, one.runtime_s.tolist()) == (same.ids, same.runtime_s.tolist())
    first, second = (draw_workload(each, workflows=30) for each in ("inspiral", "ligo"))
    assert [w.ids for w in first.workflows] == [w.ids for w in second.workflows]


def test_an_unknown_parameter_is_refused_with_the_list() -> None:
    with pytest.raises(
        UserError, match="random has no parameter beta; it has alpha, eta, epsilon, phi, ccr, range"
    ):
        generate_workflow("random", parameters={"beta": "1"})


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("random", {"alpha": "wide"}, "parameter alpha must be a number, not 'wide'"),
        ("random", {"alpha": "nan"}, "parameter alpha must be a number, not 'nan'"),
        ("random", {"alpha": "0"}, "random: alpha must be above 0"),
        ("level", {"eta": "0.5"}, "level: eta must be at least 1"),
        ("choke", {"epsilon": "2000"}, "choke: 0 <= epsilon <= phi"),
        ("choke", {"ccr": "0"}, "choke: ccr and bandwidth_mb_s must be above 0"),
        ("random", {"range": "1"}, "random: range must be from 0 to below 1"),
        ("fork-join", {"stages": "1.5"}, "parameter stages must be a whole number, not '1.5'"),
        ("fork-join", {"stages": "0"}, "fork-join: stages must be at least 1"),
        ("fork-join", {"stages": "50"}, "fork-join needs at least 101 tasks, not 100"),
        ("fork-join", {"range": "-0.1"}, "fork-join: range must be"),
        (
            "cybershake",
            {"square_peaks": "maybe"},
            "parameter square_peaks must be true or false, not 'maybe'",
        ),
        (
            "cybershake",
            {"extracts": "3"},
            "cybershake of 100 tasks: extracts must be even and 1 to 32, not 3",
        ),
        ("cybershake", {"extracts": "-2"}, "extracts must be even"),
        ("genome", {"lanes": "99"}, "genome: 100 tasks can have 1 to 14 lanes, not 99"),
        ("genome", {"lanes": "-1"}, "genome: 100 tasks can have 1 to 14 lanes, not -1"),
        ("inspiral", {"groups": "40"}, "inspiral: 100 tasks cannot have 40 groups"),
        ("inspiral", {"groups": "-1"}, "inspiral: 100 tasks cannot have -1 groups"),
        ("montage", {"overlaps": "0"}, "montage: overlaps must be above 0"),
        ("sipht", {"patsers": "0"}, "sipht: patsers must be at least 1"),
        ("eman", {"first_share": "1"}, "eman: first_share must be between 0 and 1"),
        ("eman", {"first_s": "0"}, "eman: times must be above 0"),
        ("blast", {"search_s": "-1"}, "blast: times must be above 0"),
        ("fft", {"task_s": "0"}, "fft: task_s must be above 0"),
        ("fft", {"range": "2"}, "fft: range must be"),
        ("gauss", {"task_s": "0"}, "gauss: task_s must be above 0"),
    ],
)
def test_a_parameter_that_cannot_be_is_refused_in_one_sentence(
    name: str, parameters: dict[str, str], message: str
) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        generate_workflow(name, tasks=100, parameters=parameters)


def test_parameters_take_effect() -> None:
    def kinds(name: str, **parameters: str) -> Counter[str]:
        return Counter(generate_workflow(name, tasks=100, parameters=parameters).kinds)

    assert kinds("genome", lanes="5")["fastqSplit_chr21"] in (5, 6, 7)
    assert kinds("cybershake", extracts="8")["ExtractSGT"] == 8
    assert kinds("inspiral", groups="3")["Thinca"] == 6
    assert kinds("sipht", patsers="6")["Blast"] == 5
    assert kinds("eman", first_share="0.75")["classesbymra"] == 70
    assert kinds("fork-join", stages="3")["join"] == 3
    few, many = (kinds("montage", overlaps=overlaps) for overlaps in ("2", "6"))
    assert few["mDiffFit"] / few["mProjectPP"] < 2.5
    assert many["mDiffFit"] / many["mProjectPP"] > 4.5


@pytest.mark.parametrize("name", MINIMUM)
def test_a_ratio_of_communication_to_computation_is_met(name: str) -> None:
    plain = generate_workflow(name, tasks=40)
    workflow = generate_workflow(name, tasks=40, ccr=2.5, bandwidth_bytes_s=1e6)
    sizes = {file.id: file.size_bytes for file in workflow.files}
    writer = {file: task.id for task in workflow for file in task.outputs}
    moved_s = sum(sizes[file] for task in workflow for file in task.inputs if file in writer) / 1e6
    assert moved_s / sum(task.runtime_s for task in workflow) == pytest.approx(2.5)
    assert workflow.ccr(1e-6) == pytest.approx(2.5)
    assert np.allclose(workflow.runtime_s / workflow.work_s, plain.runtime_s / plain.work_s)
    assert workflow.files == plain.files
    with pytest.raises(UserError, match="leave one out"):
        generate_workflow(name, tasks=40, ccr=1, work_s=100)


@pytest.mark.parametrize("name", MINIMUM)
def test_even_levels_have_one_run_time_and_one_size_each(name: str) -> None:
    plain = generate_workflow(name, tasks=40)
    workflow = generate_workflow(name, tasks=40, even_levels=True)
    for level in range(workflow.depth):
        here = np.flatnonzero(workflow.levels == level)
        assert np.allclose(workflow.runtime_s[here], plain.runtime_s[here].mean())
        written = [f for v in here.tolist() for f in workflow.outputs.of(v)]
        mean = np.mean([plain.files[f].size_bytes for f in written]) if written else 0
        assert {workflow.files[f].size_bytes for f in written} <= {math.ceil(mean)}
    assert workflow.work_s == pytest.approx(plain.work_s)


def test_no_data_no_ratio() -> None:
    with pytest.raises(UserError, match="moves no data"):
        generate_workflow("eman", ccr=1, parameters={"data_mb": "0"})
