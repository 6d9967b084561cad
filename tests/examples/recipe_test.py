# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The CI recipe: a workflow that GitHub takes, the same steps as the script, and what they run."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

SCRIPT = Path("docs/examples/ci/ci.sh")
WORKFLOW = Path("docs/examples/ci/workflow.yml")
SECRET = "user:s3cret@"  # noqa: S105
# Stands in for bazelw: writes down how it was called.
RECORDER = """#!/bin/sh
for argument in "$@"; do
  case $argument in --bazelrc=*) rc=${argument#--bazelrc=} ;; esac
done
{ echo "argv $*"; sed 's/^/rc /' "$rc"; stat -c 'mode %a' "$rc"
  echo "strict $AITER_ATTN_STRICT"; echo "to ${AITER_ATTN_RELEASE_TO-}"; } >>"$RECORD"
exit "${BAZELW_STATUS:-0}"
"""


@pytest.fixture(scope="module")
def workflow() -> dict[str, Any]:
    return yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    (job,) = workflow["jobs"].values()
    return job["steps"]


def script_steps() -> list[str]:
    match = re.search(r"^STEPS=\((.*)\)$", SCRIPT.read_text(encoding="utf-8"), re.M)
    assert match
    return match[1].split()


def valid(text: str) -> bool:
    # Without importing it: its program's own dependencies are not needed here.
    package = importlib.util.find_spec("check_jsonschema")
    assert package
    assert package.origin
    path = Path(package.origin).parent / "builtin_schemas/vendor/github-workflows.json"
    schema = json.loads(path.read_text(encoding="utf-8"))
    instance = yaml.safe_load(text)
    instance["on"] = instance.pop(True)  # YAML 1.1 takes the key "on" for true
    return jsonschema.Draft7Validator(schema).is_valid(instance)


def test_github_takes_the_workflow() -> None:
    text = WORKFLOW.read_text(encoding="utf-8")
    assert valid(text)
    assert not valid(text.replace("runs-on:", "run-on:"))
    assert not valid(text.replace("    steps:", "    stages:"))


def test_the_workflow_runs_the_steps_of_the_script(workflow: dict[str, Any]) -> None:
    commands = [step["run"] for step in steps(workflow) if "run" in step]
    assert commands == [f"{SCRIPT} {name}" for name in script_steps()]
    described = re.findall(r"^#   ([a-z]+)  ", SCRIPT.read_text(encoding="utf-8"), re.M)
    assert described == script_steps()


def test_the_workflow_sets_what_the_script_reads(workflow: dict[str, Any]) -> None:
    (job,) = workflow["jobs"].values()
    names = set(job["env"]) | {n for step in job["steps"] for n in step.get("env", {})}
    read = set(re.findall(r"^#   (CI_\w+)  ", SCRIPT.read_text(encoding="utf-8"), re.M))
    assert {n for n in names if n.startswith("CI_")} == read - {"CI_FLAGS"}


def test_a_pull_request_gets_no_secret_and_writes_nothing(workflow: dict[str, Any]) -> None:
    on_main = "github.ref == 'refs/heads/main' &&"
    (job,) = workflow["jobs"].values()
    values = [str(v) for v in job["env"].values()]
    secrets = [value for value in values if "secrets." in value]
    assert len(secrets) == 2
    assert all(re.match(rf"\$\{{\{{ {re.escape(on_main)} secrets\.\w+ \|\|", v) for v in secrets)
    assert "secrets." not in json.dumps(job["steps"])
    saving = [step for step in steps(workflow) if "cache/save" in step.get("uses", "")]
    assert saving
    assert all("github.ref == 'refs/heads/main'" in step["if"] for step in saving)
    assert workflow["permissions"] == {"contents": "read"}


def test_what_is_saved_is_what_is_restored(workflow: dict[str, Any]) -> None:
    caches = {
        step["uses"].split("@")[0]: step["with"] for step in steps(workflow) if "uses" in step
    }
    restored, saved = caches["actions/cache/restore"], caches["actions/cache/save"]
    assert restored["path"] == saved["path"]
    assert restored["key"] == saved["key"]
    (kept,) = (
        step["with"] for step in steps(workflow) if "upload-artifact" in step.get("uses", "")
    )
    (collect,) = (step for step in steps(workflow) if step.get("name") == "collect")
    assert kept["path"] == collect["env"]["CI_OUT"]


@dataclasses.dataclass
class Run:
    status: int
    output: str
    calls: list[dict[str, str]]

    def rc(self) -> str:
        return self.calls[0]["rc"]


@pytest.fixture
def run(tmp_path: Path):
    """Runs the script in a checkout whose bazelw writes down its calls."""
    script = tmp_path / "tree" / SCRIPT
    script.parent.mkdir(parents=True)
    shutil.copy(SCRIPT, script)
    bazelw = tmp_path / "tree/bazelw"
    bazelw.write_text(RECORDER)
    bazelw.chmod(0o755)
    record = tmp_path / "record"
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    def start(*arguments: str, **environ: str) -> Run:
        record.write_text("")
        done = subprocess.run(
            ["bash", str(script), *arguments],
            env={
                "PATH": os.environ["PATH"],
                "RECORD": str(record),
                "TMPDIR": str(scratch),
                **environ,
            },
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert not list(scratch.iterdir()), "the file with the URL is gone"
        calls: list[dict[str, str]] = []
        for line in record.read_text().splitlines():
            key, _, value = line.partition(" ")
            if key == "argv":
                calls.append({"rc": ""})
            calls[-1][key] = calls[-1].get(key, "") + value + ("\n" if key == "rc" else "")
        return Run(done.returncode, done.stdout, calls)

    return start


@pytest.mark.parametrize(("event", "config"), [("main", "ci"), ("pull-request", "remote-cache")])
def test_who_writes_to_the_cache(run, event: str, config: str) -> None:
    done = run("build", CI_EVENT=event, CI_CACHE=f"https://{SECRET}cache.example/attn")
    assert done.status == 0, done.output
    url = f"https://{SECRET}cache.example/attn"
    assert f"build --config={config} --remote_cache={url}\n" in done.rc()
    assert done.calls[0]["strict"] == "1"
    assert done.calls[0]["mode"] == "600"
    assert "s3cret" not in done.calls[0]["argv"] + done.output


def test_without_a_server_the_disk_cache_is_used(run) -> None:
    done = run("build", CI_EVENT="main", CI_FLAGS="--//kernels:variants=smoke")
    assert done.rc() == "build --config=cache\nbuild --//kernels:variants=smoke\n"


def test_all_steps_in_their_order(run, tmp_path: Path) -> None:
    done = run(
        CI_EVENT="main",
        CI_OUT=f"{tmp_path}/out",
        CI_PUBLISH=f"https://{SECRET}host.example/attn",
        CI_BUILDER="https://ci.example/x",
    )
    assert done.status == 0, done.output
    assert re.findall("^=== (.*)", done.output, re.M) == script_steps()
    commands = [call["argv"].split(" ", 1)[1] for call in done.calls]
    assert commands == [
        "run //:lint",
        "test //...",
        "build //:release",
        "run //:release -- --builder=https://ci.example/x",
        "run //:release -- --builder=https://ci.example/x",
    ]
    targets = [call["to"] for call in done.calls[3:]]
    assert targets == [f"{tmp_path}/out", f"https://{SECRET}host.example/attn"]


def test_a_pull_request_publishes_nothing(run) -> None:
    done = run("publish", CI_EVENT="pull-request", CI_PUBLISH="https://host.example/attn")
    assert done.status == 0
    assert not done.calls
    assert "a pull request publishes nothing" in done.output


def test_a_step_that_fails_ends_it(run) -> None:
    done = run("build", "publish", CI_EVENT="main", CI_PUBLISH="/x", BAZELW_STATUS="3")
    assert done.status == 3
    assert len(done.calls) == 1


@pytest.mark.parametrize(
    ("arguments", "environ", "words"),
    [
        ((), {}, ("CI_EVENT is ''", "main or pull-request")),
        ((), {"CI_EVENT": "tag"}, ("CI_EVENT is 'tag'",)),
        ((), {"CI_EVENT": "main", "CI_CACHE": "s3://u:s3cret@b"}, ("'s3'", "grpcs")),
        ((), {"CI_EVENT": "main", "CI_CACHE": "cache.example"}, ("'cache.example'", "https")),
        (("build", "deploy"), {"CI_EVENT": "main"}, ("no step 'deploy'", "lint test build")),
        (("collect",), {"CI_EVENT": "main"}, ("CI_OUT",)),
    ],
)
def test_wrong_input(run, arguments: tuple[str, ...], environ: dict[str, str], words) -> None:
    done = run(*arguments, **environ)
    assert done.status != 0
    assert not done.calls, "nothing was run"
    assert "s3cret" not in done.output
    for word in words:
        assert word in done.output


def test_every_night_proves_the_next_part(tmp_path: Path) -> None:
    folder = tmp_path / "docs/examples/ci"
    folder.mkdir(parents=True)
    shutil.copy(SCRIPT.with_name("prove.sh"), folder)
    tools = tmp_path / "tools"
    tools.mkdir()
    for path, text in {
        tmp_path / "bazelw": '#!/bin/sh\necho "$@"\n',
        tools / "date": '#!/bin/sh\necho "$((86400 * DAY))"\n',
    }.items():
        path.write_text(text)
        path.chmod(0o755)
    said = []
    for day in range(20000, 20004):
        environment = {
            "PATH": f"{tools}:{os.environ['PATH']}",
            "DAY": str(day),
            "PROVE_SHARDS": "3",
            "PROVE_VARIANTS": "core",
        }
        command = [folder / "prove.sh"]
        got = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert "//kernels/ck_fmha:prove_groups -- --variants=core --archs=gfx942,gfx950" in (
            got.stdout
        )
        assert got.stdout.endswith(" --budget=60\n")
        match = re.search(r"--shard=(\d)/3 ", got.stdout)
        assert match
        said.append(match[1])
    assert sorted(said[:3]) == ["1", "2", "3"]
    assert said[3] == said[0]


@pytest.mark.parametrize("failing", ["nothing", "test", "run"])
def test_a_night_has_the_soak_tests_and_the_proof(tmp_path: Path, failing: str) -> None:
    folder = tmp_path / "docs/examples/ci"
    folder.mkdir(parents=True)
    for name in ("nightly.sh", "prove.sh"):
        shutil.copy(SCRIPT.with_name(name), folder)
    bazelw = tmp_path / "bazelw"
    bazelw.write_text(f'#!/bin/sh\necho "$@"\n[ "$1" != {failing} ] || exit 3\n')
    bazelw.chmod(0o755)
    done = subprocess.run(
        [folder / "nightly.sh"], capture_output=True, text=True, check=False,
        env={"PATH": os.environ["PATH"]},
    )  # fmt: skip
    assert done.returncode == (0 if failing == "nothing" else 3), done
    tests, proof = done.stdout.splitlines()
    assert tests == "test --config=cache --config=soak --keep_going //..."
    assert "//kernels/ck_fmha:prove_groups" in proof
