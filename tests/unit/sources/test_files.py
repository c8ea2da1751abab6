"""A folder of jobs: what is in force, what changed, and what keeps its last good version."""

import os
from pathlib import Path
from time import time_ns

import pytest

from everytick.sources import files
from everytick.sources.files import SourceEventKind, job_files, read_all, read_file
from tests.unit.sources.writing import JobFolder

BROKEN = "version: 1\njobs: {a: {schedule: nonsense, command: x}}"


def test_a_folder_is_loaded_with_everything_in_it(folder: JobFolder) -> None:
    """S4-009, S4-012: what was not there before is added; an event names its job and brings the definition."""
    folder.write("b.yaml", two="", three="")
    folder.write("deep/er/a.yml", one="")
    folder.write(".hidden.yaml", four="")
    folder.write(".git/x.yaml", five="")
    folder.text("notes.txt", "no jobs")

    events = folder.events()

    assert [(event.kind, event.name) for event in events] == [
        (SourceEventKind.ADDED, name) for name in ("two", "three", "one")
    ]
    assert [event.job.job.name for event in events if event.job] == ["two", "three", "one"]
    assert list(folder.folder.jobs) == ["two", "three", "one"]


def test_what_did_not_change_is_no_event(folder: JobFolder) -> None:
    """S4-009, S4-012: what was there before is updated; the event brings the new definition."""
    folder.write("a.yaml", a="", b="")
    folder.load()

    folder.write("a.yaml", a="", b="priority: 1")

    [event] = folder.events()
    assert (event.kind, event.name) == (SourceEventKind.UPDATED, "b")
    assert event.job is not None
    assert event.job.job.settings.priority == 1
    assert folder.load() == []


def test_a_deleted_file_deletes_its_jobs(folder: JobFolder) -> None:
    """S4-012: under the name it had."""
    folder.write("a.yaml", a="")
    folder.write("b.yaml", b="")
    folder.load()

    folder.delete("a.yaml")

    [event] = folder.events()
    assert (event.kind, event.name, event.job) == (SourceEventKind.DELETED, "a", None)


def test_a_changed_name_is_a_deleted_job_and_an_added_one(folder: JobFolder) -> None:
    """S4-013; edge case 9."""
    folder.write("a.yaml", old="")
    folder.load()

    folder.write("a.yaml", new="")

    assert folder.load() == [("deleted", "old"), ("added", "new")]


def test_a_renamed_file_is_no_event(folder: JobFolder) -> None:
    """Edge case 8, another way than the seed's: a job is known by its name, not by its file."""
    folder.write("a.yaml", a="")
    folder.load()

    folder.rename("a.yaml", "b.yaml")

    assert folder.load() == []


def test_a_job_may_move_from_file_to_file(folder: JobFolder) -> None:
    folder.write("a.yaml", a="", moved="")
    folder.write("b.yaml", b="")
    folder.load()

    folder.write("a.yaml", a="")
    folder.write("b.yaml", b="", moved="priority: 1")

    assert folder.load() == [("updated", "moved")]


def test_a_broken_file_keeps_its_last_good_version(folder: JobFolder) -> None:
    folder.write("a.yaml", a="", b="")
    folder.load()

    folder.text("a.yaml", BROKEN)

    assert folder.load() == []
    assert list(folder.folder.jobs) == ["a", "b"]
    [mistake] = folder.mistakes
    assert mistake.startswith("a.yaml:2:22: schedule: Invalid cron expression")


def test_a_file_that_was_corrected_counts_again(folder: JobFolder) -> None:
    folder.write("a.yaml", a="", b="")
    folder.load()
    folder.text("a.yaml", BROKEN)
    folder.load()

    folder.write("a.yaml", a="priority: 1")

    assert folder.load() == [("deleted", "b"), ("updated", "a")]
    assert folder.mistakes == []


def test_while_a_file_was_never_understood_nothing_counts_as_deleted(folder: JobFolder) -> None:
    """It may be the one that was renamed."""
    folder.write("a.yaml", a="")
    folder.load()

    folder.delete("a.yaml")
    folder.text("b.yaml", BROKEN)

    assert folder.load() == []
    assert not folder.folder.is_whole
    folder.write("b.yaml", b="")
    assert folder.load() == [("deleted", "a"), ("added", "b")]
    assert folder.folder.is_whole


def test_a_folder_that_is_gone_deletes_nothing(folder: JobFolder) -> None:
    folder.write("a.yaml", a="")
    folder.load()

    folder.path.rename(folder.path.with_name("elsewhere"))

    assert folder.load() == []
    assert list(folder.folder.jobs) == ["a"]
    assert not folder.folder.is_whole
    assert "there is no such folder" in folder.mistakes[0]


def test_one_name_in_two_files_is_a_mistake_in_the_second(folder: JobFolder) -> None:
    folder.write("b.yaml", same="priority: 1")
    folder.load()
    folder.write("a.yaml", same="priority: 2", other="")

    assert folder.load() == []

    assert folder.mistakes == [
        f"a.yaml:3:3: job 'same' stands in {folder.path}/b.yaml:3 already: give one of them another name"
    ]
    assert folder.folder.jobs["same"].job.settings.priority == 1


def test_of_two_new_files_with_one_name_the_first_by_name_counts(folder: JobFolder) -> None:
    folder.write("b.yaml", same="priority: 1")
    folder.write("a.yaml", same="priority: 2")
    folder.load()

    assert folder.folder.jobs["same"].job.settings.priority == 2


def test_a_second_file_counts_once_the_first_gives_the_name_up(folder: JobFolder) -> None:
    folder.write("a.yaml", same="priority: 1")
    folder.load()
    folder.write("b.yaml", same="priority: 2")
    folder.load()

    folder.delete("a.yaml")

    assert folder.load() == [("updated", "same")]
    assert folder.mistakes == []


def test_a_file_whose_new_version_takes_the_name_of_another_keeps_its_last_good_one(folder: JobFolder) -> None:
    folder.write("a.yaml", a="")
    folder.write("b.yaml", b="")
    folder.load()

    folder.write("b.yaml", a="", c="")

    assert folder.load() == []
    assert sorted(folder.folder.jobs) == ["a", "b"]


@pytest.mark.parametrize("refused", [".", "deep", "deep/a.yaml"])
def test_what_everybody_may_write_to_is_refused(folder: JobFolder, refused: str) -> None:
    folder.write("deep/a.yaml", a="")
    (folder.path / refused).chmod(0o777)

    assert folder.load() == []

    [mistake] = folder.mistakes
    assert "everybody may write to this" in mistake
    assert "chmod o-w" in mistake
    (folder.path / refused).chmod(0o755)
    assert folder.load() == [("added", "a")]


def test_a_file_that_was_opened_to_others_keeps_the_version_from_before(folder: JobFolder) -> None:
    folder.write("a.yaml", a="")
    folder.load()

    folder.write("a.yaml", a="priority: 9")
    (folder.path / "a.yaml").chmod(0o666)

    assert folder.load() == []
    assert folder.folder.jobs["a"].job.settings.priority == 0


def test_what_is_no_plain_file_is_refused_and_not_waited_for(folder: JobFolder) -> None:
    os.mkfifo(folder.path / "a.yaml")
    (folder.path / "b.yaml").symlink_to("nowhere")

    assert folder.load() == []

    assert folder.mistakes == ["a.yaml:1:1: is no plain file", "b.yaml:1:1: cannot be read: No such file or directory"]


def test_a_link_to_a_file_is_read(folder: JobFolder) -> None:
    folder.write("..data/jobs.yaml", a="")
    (folder.path / "jobs.yaml").symlink_to("..data/jobs.yaml")

    assert folder.load() == [("added", "a")]


def test_a_second_change_that_no_clock_tells_from_the_first_is_seen(
    folder: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system counts time in steps, and the other marks of a file may be equal too."""
    just_now = (time_ns(), 0)
    monkeypatch.setattr(files, "_stamp", lambda path: just_now)
    folder.write("a.yaml", a="priority: 1")
    folder.load()

    folder.write("a.yaml", a="priority: 2")

    assert folder.load() == [("updated", "a")]


def test_a_folder_that_was_closed_to_others_is_read_though_no_file_changed(folder: JobFolder) -> None:
    folder.write("deep/a.yaml", a="")
    os.utime(folder.path / "deep/a.yaml", (1_000_000_000, 1_000_000_000))
    (folder.path / "deep").chmod(0o777)
    assert folder.load() == []

    (folder.path / "deep").chmod(0o755)

    assert folder.load() == [("added", "a")]


def test_a_file_that_rests_is_not_read_again(folder: JobFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write("a.yaml", a="")
    os.utime(folder.path / "a.yaml", (1_000_000_000, 1_000_000_000))
    folder.load()
    read = []
    monkeypatch.setattr(files, "read_bytes", lambda path: read.append(path))

    assert folder.load() == []
    assert read == []


def test_edge_case_10_many_files_at_once_are_loaded_together(folder: JobFolder) -> None:
    """S4-050."""
    for number in range(300):
        folder.write(f"{number:03}.yaml", **{f"job_{number}": ""})

    assert len(folder.load()) == 300
    assert folder.mistakes == []


def test_warnings_are_kept_apart_from_mistakes(folder: JobFolder) -> None:
    folder.write("a.yaml", a="recovery: execute_all, late_overlap: skip")

    assert folder.load() == [("added", "a")]
    assert len(folder.folder.warnings) == 1


# ----------------------------------------------------------------------------------------------------- files at once


def test_files_and_folders_are_read_at_once(folder: JobFolder) -> None:
    folder.write("in/a.yaml", a="")
    folder.write("b.yaml", b="")

    found = read_all([folder.path / "in", folder.path / "b.yaml"])

    assert [job.job.name for file in found for job in file.jobs] == ["a", "b"]


def test_a_name_twice_in_what_is_read_at_once_is_a_mistake(folder: JobFolder) -> None:
    folder.write("a.yaml", same="")
    folder.write("b.yaml", same="", other="")

    first, second = read_all([folder.path])

    assert first.mistakes == ()
    assert second.jobs == ()
    assert "job 'same' stands in" in str(second.mistakes[0])


def test_a_file_that_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    [found] = read_all([tmp_path / "nowhere.yaml"])

    assert str(found.mistakes[0]).endswith("nowhere.yaml:1:1: cannot be read: No such file or directory")
    assert list(job_files([tmp_path])) == []


def test_a_named_file_may_have_any_name(folder: JobFolder) -> None:
    folder.write("jobs.txt", a="")

    assert [job.job.name for job in read_file(folder.path / "jobs.txt").jobs] == ["a"]


def test_in_a_folder_that_everybody_may_write_to_only_named_files_are_read(folder: JobFolder) -> None:
    folder.write("a.yaml", a="")
    folder.path.chmod(0o777)

    [named], [found] = read_all([folder.path / "a.yaml"]), read_all([folder.path])

    assert named.mistakes == ()
    assert "everybody may write to this folder" in str(found.mistakes[0])
