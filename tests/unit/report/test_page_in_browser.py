"""The page of a run as people use it: a real browser searches, sorts, zooms and saves."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.browser import Browser, opened
from tests.unit.report import told_runs as run
from tests.waiting import wait_until

from windrow.model import Step, Task, Workflow
from windrow.model.wording import span
from windrow.report.run.about import About
from windrow.report.run.page import run_page
from windrow.report.run.view import run_figures
from windrow.report.script import PARTS, script
from windrow.story.figures import RecordedRun
from windrow.story.journal import PredictedStart, Record

pytestmark = pytest.mark.slow

HOSTILE = '<img src=x onerror="window.hacked=1">'
SHOWN = "document.documentElement.classList.contains('scripted')"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with opened() as found:
        found.size(1280, 900)
        yield found


def genome(count: int, *, failing: int = -1) -> tuple[RecordedRun, About]:
    """Tasks one after the other on two nodes of one job; one of them fails."""
    tasks = [Task(f"align-{i}", 2.0, kind="align", memory_bytes=10**9) for i in range(count - 1)]
    tasks.append(Task(f"merge{HOSTILE}", 2.0, kind="merge", parents=("align-0", "align-1")))
    records = run.one_job(count, nodes=2)
    for task in range(count):
        at_s = 1016 + task // 2
        records.append(run.task_started(at_s, 0, task, task % 2))
        if task == failing:
            records.append(run.failed(at_s + 1, task, at_s, tail=f"no chunk {HOSTILE}"))
        else:
            records.append(run.finished(at_s + 1, task, at_s))
    records.append(run.ended(1020 + count // 2, 0))
    records.sort(key=_at_s)
    told = run.told(
        Workflow.from_tasks("genome", tasks),
        records,
        until_s=1021 + count // 2,
        state="complete" if failing < 0 else "failed",
        predictions=[PredictedStart(0, "twin", 1005, 2, 120, 1020, 1)],
    )
    steps = [Step(("/bin/sh", "-c", f"tool --in '{task.id}'"), "/data/work") for task in tasks]
    logs = frozenset(f"{i}.1" for i in range(count))
    return told, About(steps=steps, out="/data/run/out", logs=logs, provenance=[("user", HOSTILE)])


def _at_s(record: Record) -> float:
    return record.at_s


def show(browser: Browser, folder: Path, told: RecordedRun, known: About, more: str = "") -> None:
    """Open the page of this run."""
    page = folder / "page.html"
    page.write_text(run_page(told, known=known))
    browser.open("about:blank")
    browser.open(f"{page.as_uri()}{more}")


DRAWN = """
const canvas = document.querySelector(".timeline canvas.rows");
const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
let found = 0;
for (let i = 0; i < data.length; i += 4) {
  if (data[i + 3] > 200 && data[i + 2] - data[i] > 80) found += 1;
}
return found / (data.length / 4);
"""
"""Which part of the timeline is blue, as the first kind of tasks is."""


def rows(browser: Browser) -> list[str]:
    found: list[str] = browser.run(
        "return [...document.querySelectorAll('.table .line')].map((row) => "
        "row.querySelector('[role=cell]').textContent);"
    )
    return found


def test_a_task_is_found_by_a_search_and_a_click_with_its_command_and_log(
    browser: Browser, tmp_path: Path
) -> None:
    show(browser, tmp_path, *genome(50_000))
    assert (tmp_path / "page.html").stat().st_size < 2_000_000
    browser.wait(f"{SHOWN} && document.querySelectorAll('.table .line').length > 0")
    assert len(rows(browser)) < 60, "only rows in sight exist"
    browser.wait(f"(() => {{{DRAWN}}})() > 0.2")  # tasks are drawn, however many there are
    browser.type("#find-task", "align-31337")
    browser.wait("document.querySelectorAll('.table .line').length === 1")
    assert rows(browser) == ["align-31337"]
    browser.click(".table .line")
    browser.wait("!document.querySelector('.task-panel').hidden")
    told = browser.run("return document.querySelector('.task-panel').textContent;")
    assert "tool --in" in told
    assert "align-31337" in told
    assert "/data/run/out/31337.1" in told
    assert browser.run("return location.hash;") == "#task=align-31337"
    assert browser.errors() == []


def test_a_link_opens_a_task_and_escape_closes_it(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, *genome(20, failing=3), more="#task=align-3")
    browser.wait("document.querySelector('.task-panel h3')?.textContent === 'align-3'")
    assert "no chunk" in browser.run("return document.querySelector('.task-panel').textContent;")
    browser.type(".task-panel", "\ue00c")
    browser.wait("document.querySelector('.task-panel').hidden")
    assert browser.run("return location.hash;") == ""


def test_a_failed_run_says_what_failed_and_what_to_type(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, *genome(20, failing=3))
    browser.wait(SHOWN)
    head = browser.run("return document.querySelector('.verdict').textContent;")
    for words in ("1 failed", "align-3", "exit code 3", "tool --in", "/data/run/out/3.1"):
        assert words in head
    assert "windrow resume toy-1" in head
    assert rows(browser)[0] == "align-3", "failed tasks stand first"


def test_nothing_that_tasks_say_is_markup_and_no_other_script_runs(
    browser: Browser, tmp_path: Path
) -> None:
    told, known = genome(20, failing=19)
    show(browser, tmp_path, told, known, more="#task=align-1")
    browser.wait("document.querySelector('.task-panel h3')")
    assert browser.run("return document.images.length;") == 0
    browser.run(
        "const made = document.createElement('script'); made.textContent = 'window.hacked = 2';"
        "document.body.append(made); document.body.insertAdjacentHTML('beforeend', arguments[0]);",
        HOSTILE,
    )
    assert browser.run("return window.hacked === undefined;")
    assert all("Content Security Policy" in words for words in browser.errors())
    assert "innerHTML" not in script()


def test_the_keys_zoom_and_move_and_show_all_again(browser: Browser, tmp_path: Path) -> None:
    label = "document.querySelector('.timeline canvas.rows').getAttribute('aria-label')"
    show(browser, tmp_path, *genome(60))
    whole = browser.wait(f"{label} !== null && {label}")
    assert whole == "timeline: 51 s of 51 s, 1 rows"
    browser.type(".timeline .scroller", "w")
    browser.wait(f"{label} === 'timeline: 32 s of 51 s, 1 rows'")
    browser.type(".timeline .scroller", "dd0")
    browser.wait(f"{label} === arguments[0]", whole)
    browser.run(
        "const pick = document.querySelector('.timeline select'); pick.value = 'kinds';"
        "pick.dispatchEvent(new Event('change'));"
    )
    browser.wait(f"{label} === 'timeline: 51 s of 51 s, 2 rows'")


def test_columns_sort_and_filters_combine(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, *genome(30, failing=7))
    browser.wait("document.querySelectorAll('.table .line').length > 0")
    browser.run(
        "[...document.querySelectorAll('.table .head button')]"
        ".find((one) => one.textContent === 'task').click();"
    )
    browser.wait("document.querySelector('.table [aria-sort=ascending]')")
    assert rows(browser)[:3] == ["align-0", "align-1", "align-2"]
    browser.run(
        "const pick = document.querySelector('.tasks select'); pick.value = 'failed';"
        "pick.dispatchEvent(new Event('change'));"
    )
    browser.wait("document.querySelectorAll('.table .line').length === 1")
    assert rows(browser) == ["align-7"]
    assert "1 of 30 tasks" in browser.run("return document.querySelector('.tasks').textContent;")


def test_what_is_saved_is_what_the_run_was(browser: Browser, tmp_path: Path) -> None:
    told, known = genome(12, failing=3)
    browser.command("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    show(browser, tmp_path, told, known)
    browser.wait("document.querySelectorAll('.table .line').length > 0")
    for words in ("CSV", "JSON", "SVG"):
        browser.run(
            "[...document.querySelectorAll('.tasks .tools button')]"
            ".find((one) => one.textContent === arguments[0]).click();",
            words,
        )
        wait_until((tmp_path / f"toy-1.{words.lower()}").exists)
    with (tmp_path / "toy-1.csv").open(newline="") as file:
        listed = {row["task"]: row for row in csv.DictReader(file)}
    assert set(listed) == set(told.story.workflow.ids)
    assert listed["align-3"]["state"] == "failed"
    assert listed["align-3"]["exit"] == "3"
    assert float(listed["align-4"]["started_at"]) == 1018.0
    assert float(listed["align-4"]["ran_s"]) == 1.0
    saved = json.loads((tmp_path / "toy-1.json").read_text())
    for name, value in run_figures(told).items():
        assert saved[name] == value or name in ("tasks", "jobs", "predictions"), name
    assert len(saved["tasks"]) == 12
    assert (tmp_path / "toy-1.svg").read_text().count("<rect") > 12


def test_times_are_written_as_elsewhere(browser: Browser, tmp_path: Path) -> None:
    """The script has a copy of `span`; this is what holds the two together."""
    times = [0, 1, 4, 5, 15, 125, 500, 999, 1000, 1500, 2500, 3500, 119_499, 119_500, 119_999]
    times += [120_000, 123_000, 135_000, 7_199_999, 7_200_000, 9_000_000, 172_800_000, 10**10]
    words = (Path(__file__).parents[3] / "src/windrow/report/script/words.js").read_text()
    browser.open("about:blank")
    found = browser.run(f"{words}\nreturn arguments[0].map(span);", times)
    assert found == [span(ms / 1000) for ms in times]


def test_without_scripts_the_page_is_a_printout(browser: Browser, tmp_path: Path) -> None:
    browser.scripts(on=False)
    try:
        show(browser, tmp_path, *genome(20, failing=3))
    finally:
        browser.scripts(on=True)
    assert not browser.run(f"return {SHOWN};")
    height = "return document.querySelector(arguments[0]).getBoundingClientRect().height;"
    assert browser.run(height, "#the-run-over-time .scroll > svg") > 20
    assert browser.run(height, "#tasks table") > 20
    assert "no chunk" in browser.run("return document.body.innerText;")


@pytest.mark.parametrize("is_dark", [False, True])
def test_a_phone_shows_all_of_it(browser: Browser, tmp_path: Path, is_dark: bool) -> None:
    browser.size(390, 844)
    browser.dark(on=is_dark)
    try:
        show(browser, tmp_path, *genome(20, failing=3))
        browser.wait(f"{SHOWN} && document.querySelectorAll('.table .line').length > 0")
        assert browser.run("return document.documentElement.scrollWidth <= innerWidth;")
        cut = browser.run(
            "return [...document.querySelectorAll('.scroll, .table')].filter((box) => "
            "box.scrollWidth > box.clientWidth + 2 && !box.classList.contains('more')).length;"
        )
        assert cut == 0, "what goes on to the right says so"
    finally:
        browser.size(1280, 900)
        browser.dark(on=False)


def test_every_file_of_the_script_is_in_it() -> None:
    folder = Path(__file__).parents[3] / "src/windrow/report/script"
    assert sorted(path.stem for path in folder.glob("*.js")) == sorted(PARTS)
