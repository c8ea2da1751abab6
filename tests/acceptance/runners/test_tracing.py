"""Traces: real spans of OpenTelemetry's SDK, and their place handed to programs and child processes.

Each test is a process of its own: a provider can be set once in a process.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from everytick.domain.trace_ids import trace_id

STORY = """
import asyncio, json, os, sys
from everytick import Everytick, every

tick = Everytick("memory://", name="shop")

@tick.job(every("P1Y"), name="well")
async def well() -> str:
    return current()

@tick.job(every("P1Y"), name="plain")
def plain() -> str:
    return current()

@tick.job(every("P1Y"), name="bad")
async def bad() -> None:
    raise ValueError("boom")

@tick.job(every("P1Y"), name="apart", runner="process")
def apart() -> str:
    return os.environ["TRACEPARENT"]


tick.define("shell", every("P1Y")).command("write", "printf %s $TRACEPARENT > trace")


@tick.job(every("P1Y"), name="logs")
async def logs() -> str:
    import io, logging
    from everytick.cli.logging import JsonLines
    written = logging.StreamHandler(io.StringIO())
    written.setFormatter(JsonLines())
    for name in ("shop", "everytick.node"):
        logger = logging.getLogger(name)
        logger.addHandler(written)
        logger.warning("said", extra={"occurrence": "occ_other"})
        logger.removeHandler(written)
    return written.stream.getvalue()


tick.define("fails", every("P1Y")).command("end", "exit 3")


def current() -> str:
    if "opentelemetry" not in sys.modules:
        return ""
    from opentelemetry import trace
    return f"{trace.get_current_span().get_span_context().trace_id:032x}"
"""

MAIN = """
async def main():
    await tick.start()
    found = {}
    for name in sys.argv[1:]:
        handle = await ask(name)
        ended = await handle.wait()
        whole = await tick.occurrence(handle.id)
        found[name] = {"id": handle.id, "result": [run.result for run in whole.runs]}
    await tick.stop()
    return found
"""

SDK = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
kept = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(kept))
trace.set_tracer_provider(provider)

async def ask(name):
    with trace.get_tracer("test").start_as_current_span(f"ask {name}"):
        return await tick.trigger(name)

def told():
    return [
        {
            "name": span.name,
            "trace": f"{span.context.trace_id:032x}",
            "parent": None if span.parent is None else f"{span.parent.span_id:016x}",
            "attributes": dict(span.attributes),
            "status": span.status.status_code.name,
            "links": [f"{link.context.trace_id:032x}" for link in span.links],
            "took": span.end_time - span.start_time,
        }
        for span in kept.get_finished_spans()
    ]
"""

PLAIN = """
async def ask(name):
    return await tick.trigger(name)

def told():
    return []
"""


def run(tmp_path: Path, how: str, *names: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return what became of these jobs, and the spans that were recorded."""
    script = tmp_path / "story.py"
    end = "\nfound = asyncio.run(main())\nprint(json.dumps([found, told()]))\n"
    script.write_text(STORY + how + MAIN + 'if __name__ == "__main__":' + end.replace("\n", "\n    ") + "\n")
    environment = {key: value for key, value in os.environ.items() if key != "TRACEPARENT"}
    done = subprocess.run(
        [sys.executable, str(script), *names], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    found, spans = json.loads(done.stdout.splitlines()[-1])
    return found, spans


def test_occurrences_and_attempts_are_spans_of_one_trace(tmp_path: Path) -> None:
    found, spans = run(tmp_path, SDK, "well", "plain", "bad")
    for name in ("well", "plain"):
        trace = trace_id(found[name]["id"])
        assert found[name]["result"] == [trace], "the span of the attempt is the current one in the task"
        own = {span["name"]: span for span in spans if span["trace"] == trace}
        assert set(own) == {name, f"{name} {name}"}
        whole = own[name]
        assert whole["attributes"]["everytick.occurrence.id"] == found[name]["id"]
        assert whole["attributes"]["everytick.status"] == "completed"
        assert own[f"{name} {name}"]["attributes"]["everytick.attempt"] == 1
        assert {span["status"] for span in own.values()} == {"UNSET"}
        assert {span["parent"] for span in own.values()} == {whole["parent"]}
        assert whole["took"] >= 0


def test_a_failure_is_an_error_with_its_type(tmp_path: Path) -> None:
    found, spans = run(tmp_path, SDK, "bad")
    own = [span for span in spans if span["trace"] == trace_id(found["bad"]["id"])]
    assert {span["status"] for span in own} == {"ERROR"}
    assert [span["attributes"]["error.type"] for span in own if " " in span["name"]] == ["ValueError"]


def test_a_json_line_in_a_task_has_the_id_of_its_trace(tmp_path: Path) -> None:
    found, _ = run(tmp_path, SDK, "logs")
    lines = [json.loads(line) for line in found["logs"]["result"][0].splitlines()]
    assert [line["trace_id"] for line in lines] == [trace_id(found["logs"]["id"])] * 2
    found, _ = run(tmp_path, PLAIN, "logs")
    assert all("trace_id" not in line for line in map(json.loads, found["logs"]["result"][0].splitlines()))


def test_a_json_line_about_an_occurrence_has_the_id_of_its_trace(tmp_path: Path) -> None:
    """Written by the node, where no span is the current one. What an application says in `extra` stays."""
    script = """
import json, logging, sys
from everytick.cli.logging import JsonLines
def written(**extra):
    record = logging.makeLogRecord({"name": "everytick.node", "msg": "ended", **extra})
    return json.loads(JsonLines().format(record)).get("trace_id")
id_ = "occ_0b5f2a4e-0000-4000-8000-000000000001"
before = written(occurrence=id_)
import opentelemetry.sdk.trace
others = [written(occurrence=each) for each in ("", "nightly", "run_" + id_[4:], id_ + "0", 7, None)]
print(json.dumps([before, written(occurrence=id_), others, written(), written(trace_id="mine")]))
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [None, "0b5f2a4e000040008000000000000001", [None] * 6, None, "mine"]


def test_the_span_of_a_command_says_which_process_it_was(tmp_path: Path) -> None:
    found, spans = run(tmp_path, SDK, "shell", "fails")
    for name, code in (("shell", 0), ("fails", 3)):
        [attempt] = [span for span in spans if span["trace"] == trace_id(found[name]["id"]) and span["name"] != name]
        own = {key: each for key, each in attempt["attributes"].items() if key.startswith("process.")}
        assert own.pop("process.pid") > 1
        assert own == {"process.executable.name": "sh", "process.exit.code": code}


def test_the_span_that_asks_is_linked_to_the_trace_of_the_run(tmp_path: Path) -> None:
    found, spans = run(tmp_path, SDK, "well")
    [asking] = [span for span in spans if span["name"] == "ask well"]
    assert asking["links"] == [trace_id(found["well"]["id"])]


def test_a_child_process_continues_the_trace_also_without_an_sdk(tmp_path: Path) -> None:
    for how in (SDK, PLAIN):
        found, _ = run(tmp_path, how, "apart")
        [header] = found["apart"]["result"]
        assert header.split("-")[1] == trace_id(found["apart"]["id"])
        assert header.endswith("-01")


def test_a_program_finds_its_place_in_its_environment(tmp_path: Path) -> None:
    for how in (SDK, PLAIN):
        found, spans = run(tmp_path, how, "shell")
        _, trace, parent, flags = (tmp_path / "trace").read_text().split("-")
        assert (trace, flags) == (trace_id(found["shell"]["id"]), "01")
        assert len(parent) == 16
        assert parent.strip("0")
        assert all(span["parent"] != parent for span in spans)


def test_without_an_sdk_nothing_of_opentelemetry_is_loaded(tmp_path: Path) -> None:
    found, spans = run(tmp_path, PLAIN, "well")
    assert (found["well"]["result"], spans) == ([""], [])
