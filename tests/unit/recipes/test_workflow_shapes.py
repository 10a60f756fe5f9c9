"""The formulas and properties of FFT, Gaussian elimination, fork-join, and of random, level and
choke graphs."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.model import Workflow
from windrow.recipes import generate_workflow

SHAPES = ("random", "level", "choke")


def widths(workflow: Workflow) -> list[int]:
    counts: list[int] = np.bincount(workflow.levels).tolist()
    return counts


def edges(workflow: Workflow) -> tuple[np.ndarray, np.ndarray]:
    """Parents and children, edge by edge."""
    return workflow.parents.index, workflow.parents.sources()


def graph(workflow: Workflow) -> networkx.DiGraph:
    built = networkx.DiGraph()
    built.add_nodes_from(range(len(workflow)))
    built.add_edges_from(zip(*(side.tolist() for side in edges(workflow)), strict=True))
    return built


def test_canonical_workloads_are_chains_that_read_their_own_and_one_batch_file() -> None:
    workflow = generate_workflow(
        "canonical", tasks=12, parameters={"depth": "3", "batch_mb": "7", "private_mb": "2"}
    )
    assert widths(workflow) == [4, 4, 4]
    assert workflow.parents.edges == 8
    sizes = {file.id: file.size_bytes for file in workflow.files}
    assert [size for name, size in sizes.items() if name.startswith("batch")] == [7_000_000] * 3
    assert sum(sizes.values()) == 3 * 7_000_000 + 4 * 4 * 2_000_000
    assert (workflow.inputs.degrees() == 2).all()
    assert (workflow.outputs.degrees() == 1).all()


# FFT


@pytest.mark.parametrize("k", range(1, 9))
def test_fft_has_the_counts_of_topcuoglu(k: int) -> None:
    m = 2**k
    workflow = generate_workflow("fft", tasks=2 * m - 1 + m * k)
    assert workflow.kinds.count("recurse") == 2 * m - 1
    assert workflow.kinds.count("butterfly") == m * k
    assert widths(workflow) == [2**d for d in range(k + 1)] + [m] * k
    assert workflow.parents.edges == 2 * (m - 1) + 2 * m * k
    parents, children = edges(workflow)
    assert (workflow.levels[children] == workflow.levels[parents] + 1).all()
    for level in range(2 * k + 1):
        assert len(set(workflow.runtime_s[workflow.levels == level])) == 1, (
            "so every path is critical"
        )


def test_every_result_of_the_fft_depends_on_every_point() -> None:
    workflow = generate_workflow("fft", tasks=95)  # 16 points
    built = graph(workflow)
    points = {i for i in range(len(workflow)) if workflow.levels[i] == 4}
    results = [i for i in range(len(workflow)) if built.out_degree(i) == 0]
    assert len(results) == len(points) == 16
    assert all(points <= networkx.ancestors(built, result) for result in results)


@given(st.integers(5, 1500))
def test_fft_takes_the_nearest_size(tasks: int) -> None:
    possible = [2 * 2**k - 1 + 2**k * k for k in range(1, 10)]
    assert abs(len(generate_workflow("fft", tasks=tasks)) - tasks) == min(
        abs(size - tasks) for size in possible
    )


# Gaussian elimination


@pytest.mark.parametrize("n", [2, 3, 5, 20, 56])
def test_gauss_has_the_counts_of_topcuoglu(n: int) -> None:
    workflow = generate_workflow("gauss", tasks=(n * n + n - 2) // 2)
    assert len(workflow) == (n * n + n - 2) // 2
    assert workflow.depth == 2 * (n - 1)
    assert widths(workflow) == [width for step in range(1, n) for width in (1, n - step)]
    assert workflow.parents.edges == sum(n - k for k in range(1, n)) + (n - 2) + sum(
        n - k - 1 for k in range(1, n - 1)
    )


def test_gauss_in_any_order_that_its_edges_allow_eliminates_a_matrix() -> None:
    """The tasks are carried out on numbers, in random topological orders: too few edges would give
    wrong numbers."""
    n, rng = 7, np.random.default_rng(1)
    workflow = generate_workflow("gauss", tasks=(n * n + n - 2) // 2)
    steps = [
        (k, j) for k in range(n - 1) for j in range(k, n)
    ]  # in the workflow's order: pivot first, then updates
    assert [workflow.kinds[i] for i in range(len(steps))] == [
        "pivot" if j == k else "update" for k, j in steps
    ]
    matrix = rng.uniform(1, 2, (n, n)) + n * np.eye(n)
    expected = matrix.copy()
    for k in range(n - 1):
        expected[k + 1 :] -= np.outer(expected[k + 1 :, k] / expected[k, k], expected[k])
    for _ in range(20):
        result, factors = matrix.copy(), {}
        for task in random_order(workflow, rng):
            k, j = steps[task]
            if j == k:
                factors[k] = result[k + 1 :, k] / result[k, k]
            else:
                result[k + 1 :, j] -= factors[k] * result[k, j]
        assert np.allclose(np.triu(result), np.triu(expected))


def random_order(workflow: Workflow, rng: np.random.Generator) -> list[int]:
    waiting = {i: set(workflow.parents.of(i).tolist()) for i in range(len(workflow))}
    order: list[int] = []
    while waiting:
        ready = [task for task, parents in waiting.items() if not parents]
        task = int(rng.choice(ready))
        del waiting[task]
        order.append(task)
        for parents in waiting.values():
            parents.discard(task)
    return order


@pytest.mark.slow
@given(st.integers(2, 1200))
def test_gauss_takes_the_nearest_size(tasks: int) -> None:
    possible = [(n * n + n - 2) // 2 for n in range(2, 90)]
    assert abs(len(generate_workflow("gauss", tasks=tasks)) - tasks) == min(
        abs(size - tasks) for size in possible
    )


# Zhang-paper, section IV


def test_the_papers_extremes_can_be_made() -> None:
    """The longest elimination: over 100 levels, at most 55 wide. The others: 5 to 256 wide, always
    as many levels."""
    gauss = generate_workflow("gauss", tasks=1595)
    assert gauss.depth > 100
    assert max(widths(gauss)) == 55
    assert max(widths(generate_workflow("fft", tasks=2559))) == 256
    for name, few, many in (("eman", 16, 518), ("blast", 12, 514)):
        small, large = generate_workflow(name, tasks=few), generate_workflow(name, tasks=many)
        assert (max(widths(small)), max(widths(large))) == (5, 256)
        assert small.depth == large.depth


def test_eman_is_two_parallel_phases_connected_by_single_steps_of_equal_tasks() -> None:
    workflow = generate_workflow("eman", tasks=106)
    assert widths(workflow) == [1, 1, 1, 50, 1, 50, 1, 1]
    for level in range(8):
        assert len(set(workflow.runtime_s[workflow.levels == level])) == 1


def test_blast_is_a_sequence_of_parallel_executions() -> None:
    workflow = generate_workflow("blast", tasks=100)
    assert widths(workflow) == [1, 49, 49, 1]
    for number, kind in enumerate(workflow.kinds):
        if kind == "parse_blast":
            (parent,) = workflow.parents.of(number).tolist()
            assert workflow.kinds[parent] == "blastall"


@given(stages=st.integers(1, 12), extra=st.integers(0, 200))
def test_fork_join_alternates_single_tasks_and_even_stages(stages: int, extra: int) -> None:
    workflow = generate_workflow(
        "fork-join", tasks=2 * stages + 1 + extra, parameters={"stages": str(stages)}
    )
    found = widths(workflow)
    assert found[::2] == [1] * (stages + 1)
    assert len(found) == 2 * stages + 1
    assert max(found[1::2]) - min(found[1::2]) <= 1
    assert workflow.parents.edges == 2 * sum(found[1::2])


# Montage


@given(st.integers(15, 600), st.integers(0, 20))
def test_montage_compares_every_pair_once_and_leaves_no_image_out(tasks: int, seed: int) -> None:
    workflow = generate_workflow("montage", tasks=tasks, seed=seed)
    compared = [
        tuple(workflow.parents.of(i).tolist())
        for i, kind in enumerate(workflow.kinds)
        if kind == "mDiffFit"
    ]
    assert all(len(pair) == 2 for pair in compared)
    assert len(set(compared)) == len(compared)
    images = workflow.kinds.count("mProjectPP")
    if len(compared) >= images - 1:
        overlaps = networkx.Graph(compared)
        assert len(overlaps) == images
        assert networkx.is_connected(overlaps)


# Ilyushkin, section III-B


def test_parallelism_grows_with_size_as_ilyushkin_found() -> None:
    """LIGO: slightly less than 200 at 800 tasks; Montage and SIPHT: 200 is reached below 400."""
    ligo = [max(widths(generate_workflow("inspiral", tasks=800, seed=seed))) for seed in range(20)]
    assert 180 <= np.mean(ligo) <= 200
    for name in ("montage", "sipht"):
        assert max(widths(generate_workflow(name, tasks=398))) >= 200


# Random, level and choke graphs


@given(
    name=st.sampled_from(SHAPES),
    tasks=st.integers(3, 300),
    alpha=st.floats(0.2, 6),
    eta=st.floats(1, 6),
    seed=st.integers(0, 99),
)
def test_levels_are_as_drawn_and_nothing_dangles(
    name: str, tasks: int, alpha: float, eta: float, seed: int
) -> None:
    parameters = {"alpha": str(alpha), "eta": str(eta)}
    workflow = generate_workflow(name, tasks=tasks, seed=seed, parameters=parameters)
    parents, children = edges(workflow)
    level = workflow.levels
    assert (np.diff(level) >= 0).all(), "tasks are numbered level by level"
    has_near_parent = np.zeros(tasks, dtype=bool)
    has_near_parent[children[level[parents] == level[children] - 1]] = True
    assert (has_near_parent | (level == 0)).all()
    assert ((workflow.children.degrees() > 0) == (level < level.max())).all()
    if name == "level":
        assert (level[children] == level[parents] + 1).all()


@pytest.mark.slow
@given(tasks=st.integers(3, 300), alpha=st.floats(0.2, 6), seed=st.integers(0, 99))
def test_everything_passes_through_the_choke_point(tasks: int, alpha: float, seed: int) -> None:
    workflow = generate_workflow("choke", tasks=tasks, seed=seed, parameters={"alpha": str(alpha)})
    choke = workflow.kinds.index("choke")
    level = int(workflow.levels[choke])
    assert workflow.kinds.count("choke") == 1
    assert widths(workflow)[level] == 1
    above, below = (np.flatnonzero(workflow.levels == level + step).tolist() for step in (-1, 1))
    assert sorted(workflow.parents.of(choke).tolist()) == above
    assert sorted(workflow.children.of(choke).tolist()) == below
    built = graph(workflow)
    assert (
        len(networkx.ancestors(built, choke)) + len(networkx.descendants(built, choke)) == tasks - 1
    )


def test_random_graphs_also_point_past_the_next_level() -> None:
    workflow = generate_workflow("random", tasks=300)
    parents, children = edges(workflow)
    assert (workflow.levels[children] > workflow.levels[parents] + 1).any()


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("alpha", [0.5, 1.0, 5.0])
def test_a_large_alpha_is_wide(name: str, alpha: float) -> None:
    """Over 40 seeds the mean height is √n / α: uniform on ±50 %, its standard error is 0.29 / √40 =
    5 %."""
    made = [
        generate_workflow(name, tasks=400, seed=s, parameters={"alpha": str(alpha)})
        for s in range(40)
    ]
    heights = np.array([workflow.depth for workflow in made])
    expected = 20 / alpha
    assert abs(heights.mean() / expected - 1) < 0.15
    assert expected * 0.5 - 1 <= heights.min()
    assert heights.max() <= expected * 1.5 + 1
    assert np.mean(400 / heights) == pytest.approx(20 * alpha, rel=0.25)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["random", "level"])
@pytest.mark.parametrize("eta", [1.0, 2.0, 5.0])
def test_out_degrees_are_uniform_with_mean_eta(name: str, eta: float) -> None:
    """Within 10 % (40 % at η = 1, where levels that widen need more edges than there are)."""
    out = []
    for seed in range(5):
        workflow = generate_workflow(name, tasks=3000, seed=seed, parameters={"eta": str(eta)})
        out.append(workflow.children.degrees()[workflow.levels < workflow.levels.max()])
    degrees = np.concatenate(out)
    assert degrees.mean() == pytest.approx(eta, rel=0.4 if eta == 1 else 0.1)
    if eta == 5:
        share = np.bincount(degrees)[1:10] / len(degrees)
        assert share[1:8].min() > 0.08
        assert share[1:8].max() < 0.16


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("ccr", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("spread", [0.15, 0.4, 0.85])
def test_run_times_follow_from_data_and_ratio(name: str, ccr: float, spread: float) -> None:
    parameters = {"ccr": str(ccr), "range": str(spread), "epsilon": "100", "bandwidth_mb_s": "5"}
    workflow = generate_workflow(name, tasks=300, parameters=parameters)
    sizes = np.array([file.size_bytes for file in workflow.files])
    assert len(sizes) == workflow.parents.edges, "one file for each edge"
    assert sizes.min() >= 100e6
    assert sizes.max() <= 1000e6 + 1
    mean_s = sizes.sum() / 5e6 / (300 * ccr)
    assert (np.abs(workflow.runtime_s - mean_s) <= spread * mean_s * (1 + 1e-6)).all()
    assert workflow.runtime_s.max() > mean_s * (1 + 0.8 * spread)
    assert workflow.runtime_s.min() < mean_s * (1 - 0.8 * spread)


def test_data_between_two_levels_are_equal_in_level_graphs_only() -> None:
    assert all(
        len(sizes) == 1 for sizes in sizes_by_level(generate_workflow("level", tasks=300)).values()
    )
    assert all(
        len(sizes) > 1 for sizes in sizes_by_level(generate_workflow("random", tasks=300)).values()
    )


def sizes_by_level(workflow: Workflow) -> dict[int, set[int]]:
    sizes: dict[int, set[int]] = {}
    for task in range(len(workflow)):
        for file in workflow.outputs.of(task).tolist():
            sizes.setdefault(int(workflow.levels[task]), set()).add(workflow.files[file].size_bytes)
    return sizes
