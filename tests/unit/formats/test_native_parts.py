"""Files that include others, tables, defaults by kind, values from the command line, and what tasks
run in."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.unit.formats.test_native_faults import fault

import windrow
from windrow.cli.main import main
from windrow.errors import InputError
from windrow.formats import read_runnable
from windrow.story.states import RunState


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return folder / "w.yaml"


def test_a_file_has_the_tasks_values_and_limits_of_those_that_it_includes(tmp_path: Path) -> None:
    more = (
        "vars: {ref: old.fa, kind: x}\nlimits: {net: 2}\ndefaults: {cores: 3}\n"
        'tasks: [{id: get, command: "echo {ref} {kind}", takes: net, outputs: got}]\n'
    )
    own = (
        "include: more.yaml\nvars: {ref: new.fa}\n"
        "tasks: [{id: use, command: cat got, inputs: got, takes: net}]\n"
    )
    runnable = read_runnable(write(tmp_path, more_yaml=more, w_yaml=own))
    workflow = runnable.workflow
    assert workflow.ids == ("get", "use")
    assert workflow.cores.tolist() == [3, 1]
    assert runnable.steps[0].command[-1] == "echo new.fa x"
    assert workflow.parents.of(1).tolist() == [0]
    assert workflow.rules[1].takes[0].most == 2


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        ("tasks:\n  - {id: a, command: x, cores: two}\n", "more.yaml:2: cores is 'two'"),
        ("tasks:\n  - {id: a, command: 'x {y}'}\n", "more.yaml:2: {y} stands for nothing"),
        ("tasks:\n  - {id: a, command: x, after: b}\n", "more.yaml:2: a comes after b, which is"),
        ("name: x\n", "more.yaml:1: a file that is included has no key 'name'"),
        ("include: w.yaml\n", "more.yaml:1: w.yaml includes itself"),
        ("limits: {net: 1}\n", "w.yaml:1: net is in limits here and in a file that is included"),
        ("[]\n", "more.yaml:1: no part of a workflow"),
    ],
)
def test_faults_of_included_files_name_them(more: str, wanted: str, tmp_path: Path) -> None:
    own = "{include: more.yaml, limits: {net: 2}, tasks: [{id: z, command: x}]}\n"
    path = write(tmp_path, more_yaml=more, w_yaml=own)
    with pytest.raises(InputError) as caught:
        read_runnable(path)
    assert str(caught.value).startswith(f"{tmp_path}/{wanted}")


def test_a_table_gives_combinations_that_belong_together(tmp_path: Path) -> None:
    table = "sample,lane\nanna,1\nbert, 2\n"
    text = (
        'tasks: [{id: "{sample}-{lane}-{k}", matrix: {table: s.csv, k: 1..2, '
        'exclude: [{sample: bert, k: 2}]}, command: "x {sample}"}]\n'
    )
    ids = read_runnable(write(tmp_path, s_csv=table, w_yaml=text)).workflow.ids
    assert ids == ("anna-1-1", "anna-1-2", "bert-2-1")
    alone = 'tasks: [{id: "{sample}", matrix: s.csv, command: "x {lane}"}]\n'
    assert read_runnable(write(tmp_path, w_yaml=alone)).workflow.ids == ("anna", "bert")


@pytest.mark.parametrize(
    ("table", "wanted"),
    [
        ("a,b\n1\n", "row 2 of s.csv has 1 values, not 2"),
        ("a\n", "s.csv has no rows"),
        ("a,a\n1,2\n", "s.csv has a name twice"),
        ("a b\n1\n", "the matrix name 'a b'"),
        ("id\n1\n", "the matrix name 'id' is reserved"),
        ("a\n1\n1\n", "s.csv has the row 1 twice"),
        ("k\n1\n", "k is in the table, too"),
    ],
)
def test_faults_of_tables(table: str, wanted: str, tmp_path: Path) -> None:
    text = "tasks: [{id: a, matrix: {table: s.csv, k: [1]}, command: x}]\n"
    with pytest.raises(InputError, match=r"w\.yaml:1") as caught:
        read_runnable(write(tmp_path, s_csv=table, w_yaml=text))
    assert wanted in str(caught.value)


def test_kinds_have_values_of_their_own(tmp_path: Path) -> None:
    text = (
        "defaults: {cores: 2, env: {A: 1}}\n"
        "kinds: {align: {cores: 4, env: {B: 2}}, b: {memory: 1GiB}}\n"
        "tasks:\n"
        "  - {id: 'align-{i}', matrix: {i: [1]}, command: x}\n"
        "  - {id: b, command: x, cores: 7}\n"
        "  - {id: c, kind: align, command: x}\n"
    )
    runnable = read_runnable(write(tmp_path, w_yaml=text))
    assert runnable.workflow.cores.tolist() == [4, 7, 4]
    assert runnable.workflow.memory_bytes.tolist() == [0, 1 << 30, 0]
    assert dict(runnable.steps[0].env) == {"A": "1", "B": "2"}
    wrong = "kinds: {algin: {cores: 4}}\ntasks: [{id: align, command: x}]\n"
    assert fault(tmp_path, wrong) == "wf.yaml:1: no task is of the kind algin; did you mean align?"
    wrong = "kinds: {align: {id: 4}}\ntasks: [{id: align, command: x}]\n"
    assert fault(tmp_path, wrong).startswith("wf.yaml:1: kind align has no key 'id'")


def test_values_from_the_command_line_count_and_are_kept(tmp_path: Path) -> None:
    text = "vars: {ref: a.fa}\ntasks: [{id: t, command: 'x {ref}'}]\n"
    path = write(tmp_path, w_yaml=text)
    assert read_runnable(path, {"ref": "b.fa"}).steps[0].command[-1] == "x b.fa"
    with pytest.raises(InputError, match="there is no rff in vars to be set; did you mean ref"):
        read_runnable(path, {"rff": "b.fa"})


@pytest.mark.slow
def test_other_values_run_again_what_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (
        "vars: {n: 1}\ndefaults: {runtime: 1s}\ntasks:\n"
        "  - {id: a, command: 'echo {n} > a', outputs: a}\n"
        "  - {id: b, command: 'echo b > b', outputs: b}\n"
    )
    write(tmp_path, w_yaml=text)
    assert main(["run", "w.yaml", "--set", "n=2"]) == 0
    assert (tmp_path / "a").read_text() == "2\n"
    assert main(["run", "w.yaml"]) == 0, "up to date with the values of its run"
    assert main(["run", "w.yaml", "--set", "n=3"]) == 2
    assert "runs 1 of 2 tasks: 1 finished task runs again: a" in capsys.readouterr().err
    assert main(["run", "w.yaml", "--set", "n=3", "--resume"]) == 0
    assert (tmp_path / "a").read_text() == "3\n"
    assert main(["run", "w.yaml", "--set", "n"]) == 2


def run_of(folder: Path, task: str) -> windrow.api.Run:
    (folder / "w.yaml").write_text(f"defaults: {{runtime: 1s}}\ntasks:\n  - {{id: t, {task}}}\n")
    return windrow.run("w.yaml", wait=True, again=True)


def program(folder: Path, name: str, code: str) -> None:
    path = folder / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/bash\n{code}\n")
    path.chmod(0o755)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    return tmp_path


@pytest.mark.slow
def test_lines_of_a_shell_run_before_the_command(here: Path) -> None:
    task = 'setup: ["A=\'x y\'", "export A"], command: \'echo "$A" > {outputs}\', outputs: o.txt'
    assert run_of(here, task).state is RunState.COMPLETE
    assert (here / "o.txt").read_text() == "x y\n"
    failed = run_of(here, "setup: 'false', command: touch never")
    assert failed.state is RunState.FAILED
    assert not (here / "never").exists()


@pytest.mark.slow
def test_a_venv_is_made_once_and_named_after_what_is_in_it(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (here / "requirements.txt").write_text("# nothing\n")
    task = (
        "venv: requirements.txt, outputs: o.txt, "
        "command: [python, -c, \"import sys; open(sys.argv[1], 'w').write(sys.prefix)\", "
        '"{outputs}"]'
    )
    assert run_of(here, task).state is RunState.COMPLETE
    assert "making an environment (venv)" in capfd.readouterr().err
    first = (here / "o.txt").read_text()
    assert first.startswith(f"{here}/data/windrow/")
    assert run_of(here, task).state is RunState.COMPLETE
    assert "making" not in capfd.readouterr().err
    (here / "requirements.txt").write_text("no-such-package-of-windrow @ file:///nowhere\n")
    with pytest.raises(windrow.WindrowError, match="cannot be created"):
        run_of(here, task)


@pytest.mark.slow
def test_modules_are_loaded_where_there_are_any(here: Path) -> None:
    program(here, "nothing", "exit 0")
    (here / "init").mkdir()
    (here / "init/bash").write_text(
        "module() { [ $2 != nosuch ] || return 1; export LOADED=$LOADED:$2; }\n"
    )
    os.environ["MODULESHOME"] = str(here)
    try:
        task = "modules: [gcc/12, hdf5], command: 'echo $LOADED > {outputs}', outputs: o.txt"
        assert run_of(here, task).state is RunState.COMPLETE
        assert (here / "o.txt").read_text() == ":gcc/12:hdf5\n"
        assert run_of(here, "modules: nosuch, command: 'true'").state is RunState.FAILED
    finally:
        del os.environ["MODULESHOME"]


@pytest.mark.slow
def test_the_words_for_conda_against_a_stand_in(here: Path) -> None:
    program(here, "conda", 'echo "$@" > conda.log; shift 4; exec "$@"')
    task = 'conda: bio, command: [sh, -c, \'echo ran > "$0"\', "{outputs}"], outputs: o.txt'
    assert run_of(here, task).state is RunState.COMPLETE
    assert (here / "o.txt").read_text() == "ran\n"
    words = (here / "conda.log").read_text()
    assert words.startswith("run --no-capture-output -n bio sh -c echo ran")


@pytest.mark.slow
def test_the_words_for_containers_against_stand_ins(here: Path) -> None:
    for tool in ("podman", "apptainer"):
        program(here, tool, f'printf "%s\\n" "$@" > {tool}.log; touch o.txt')
    task = (
        "container: {image: 'debian:12', runtime: podman, options: [--network=none]}, "
        "env: {LEVEL: 3}, command: [x, 'a b'], outputs: o.txt"
    )
    assert run_of(here, task).state is RunState.COMPLETE
    words = (here / "podman.log").read_text().splitlines()
    assert words[:4] == ["run", "--rm", "-w", str(here)]
    assert words[4] == "--network=none"
    assert {"LEVEL", "WINDROW_ATTEMPT"} <= set(words)
    assert f"{here}:{here}" in words
    assert words[-3:] == ["debian:12", "x", "a b"]
    task = "container: 'debian:12', gpus: 0, command: [x], outputs: o.txt"
    assert run_of(here, task).state is RunState.COMPLETE
    words = (here / "apptainer.log").read_text().splitlines()
    assert words == ["exec", "--pwd", str(here), "--bind", str(here), "docker://debian:12", "x"]


@pytest.mark.slow
@pytest.mark.skipif(
    not shutil.which("module") and not Path("/etc/profile.d/modules.sh").exists(),
    reason="no environment modules: apt-get install environment-modules",
)
def test_real_environment_modules(here: Path) -> None:
    (here / "mods/toy").mkdir(parents=True)
    (here / "mods/toy/1.0").write_text("#%Module1.0\nsetenv TOY hello\n")
    task = (
        f"env: {{MODULEPATH: {here}/mods}}, modules: toy/1.0, "
        "command: 'echo $TOY > {outputs}', outputs: o.txt"
    )
    assert run_of(here, task).state is RunState.COMPLETE
    assert (here / "o.txt").read_text() == "hello\n"


def busybox() -> str | None:
    found = shutil.which("busybox")
    if found and subprocess.run(["ldd", found], capture_output=True, check=False).returncode:
        return found  # it needs no libraries
    return None


@pytest.mark.slow
@pytest.mark.skipif(
    not shutil.which("ch-run") or not busybox(),
    reason="no charliecloud: apt-get install charliecloud busybox-static",
)
def test_a_real_container(here: Path) -> None:
    image = here / "image"
    for name in ("bin", "dev", "proc", "sys", "etc", "tmp", "home", "root", "usr", "var", "run"):
        (image / name).mkdir(parents=True)
    for name in ("passwd", "group", "hosts", "resolv.conf"):
        (image / "etc" / name).touch()
    shutil.copy(str(busybox()), image / "bin/busybox")
    (image / "bin/sh").symlink_to("busybox")
    task = (
        "container: {image: image, runtime: ch-run}, "
        'command: [/bin/sh, -c, \'test ! -e /etc/os-release && echo in > "$0"\', "{outputs}"], '
        "outputs: o.txt"
    )
    if not str(here).startswith("/tmp/"):
        pytest.skip(
            "charliecloud shows /tmp to every container, and other folders only if they exist"
        )
    assert run_of(here, task).state is RunState.COMPLETE
    assert (here / "o.txt").read_text() == "in\n"


@pytest.mark.parametrize(
    ("task", "wanted"),
    [
        ("venv: r.txt, conda: x", "a task with venv and conda; keep one of them"),
        ("container: {runtime: podman}", "a container without image"),
        ("container: {image: x, runtime: lxc}", "container has 'lxc'; write one of apptainer"),
        ("modules: {a: b}", "modules is a mapping, not text"),
        ("setup: ''", "setup is empty"),
        ("image: x", "a task has no key 'image'; write container: with an image"),
        ("module: x", "a task has no key 'module'; write modules: with a list"),
    ],
)
def test_faults_of_what_tasks_run_in(task: str, wanted: str, tmp_path: Path) -> None:
    text = f"tasks: [{{id: a, command: x, {task}}}]\n"
    assert fault(tmp_path, text).startswith(f"wf.yaml:1: {wanted}")
