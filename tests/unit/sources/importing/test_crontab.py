"""Lines of crontabs, one rule at a time."""

import subprocess
from typing import Any

import pytest

from everytick.sources.importing.crontab import read_crontab
from everytick.sources.importing.findings import UnreadableSource


def parts(text: str) -> dict[str, Any]:
    found = read_crontab(text.encode(), "crontab", timezone="UTC")
    [job] = found.jobs
    return dict(job.parts)


def left(text: str, *, system: bool = False) -> list[str]:
    return [str(each) for each in read_crontab(text.encode(), "c", timezone="UTC", system=system).left]


def run(text: str) -> str:
    """What the imported command writes, run as a node runs it."""
    command = parts(text)["command"]
    arguments = ["sh", "-c", command] if isinstance(command, str) else command
    done: subprocess.CompletedProcess[str] = subprocess.run(arguments, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("echo 50\\%", "50%\n"),
        ("cat%one", "one\n"),
        ("cat%one%two%", "one\ntwo\n"),
        ("cat%%two", "\ntwo\n"),
        ('cat%it\'s 100\\% \\n "done"', 'it\'s 100% \\n "done"\n'),
        ("read a; read b; echo $b $a%one%two", "two one\n"),
    ],
)
def test_a_percent_sign_ends_the_command_and_then_its_lines(command: str, output: str) -> None:
    assert run(f"* * * * * {command}") == output


def test_a_percent_sign_within_quotes_ends_the_command_too() -> None:
    """Cron cuts the quote in half, everytick does the same, and the shell refuses what is left."""
    with pytest.raises(subprocess.CalledProcessError):
        run("* * * * * printf '%%s' x%")


def test_another_shell_runs_the_command_and_its_lines() -> None:
    assert run("SHELL=/bin/bash\n* * * * * echo ${BASH_VERSION:+bash}") == "bash\n"
    assert run("SHELL=/bin/bash\n* * * * * read x; echo ${BASH_VERSION:+$x}%y") == "y\n"


def test_variables_hold_for_the_lines_below_them() -> None:
    found = read_crontab(b"A=1\n@daily one\nA = ' 2 '\nB=\"x y\"\n@daily two\n", "c", timezone="UTC")

    assert [dict(job.parts)["env"] for job in found.jobs] == [{"A": "1"}, {"A": " 2 ", "B": "x y"}]


def test_a_home_is_also_where_the_command_begins() -> None:
    assert parts("HOME=/srv\n@daily x")["cwd"] == "/srv"


def test_a_zone_holds_until_the_next() -> None:
    found = read_crontab(b"CRON_TZ=Asia/Tokyo\n@daily a\nCRON_TZ=Europe/Rome\n@daily b\nCRON_TZ=\n@daily c", "c")

    assert [dict(job.parts).get("timezone") for job in found.jobs] == ["Asia/Tokyo", "Europe/Rome", None]


def test_a_zone_that_there_is_not_leaves_the_job() -> None:
    [only] = left("CRON_TZ=Europe/Berln\n@daily a")

    assert only.startswith("c:2: @daily a: not imported:")
    assert "Europe/Berlin" in only


def test_without_a_zone_it_is_said_that_it_is_missing() -> None:
    found = read_crontab(b"@daily a", "c")

    assert [each.what for each in found.left] == ["the time zone"]


def test_the_user_of_a_system_crontab_is_no_part_of_the_command() -> None:
    found = read_crontab(b"0 1 * * * root /bin/x -y", "c", system=True, timezone="UTC")

    assert dict(found.jobs[0].parts)["command"] == "/bin/x -y"
    assert [each.what for each in found.left] == ["the user root"]


def test_users_that_were_not_announced_are_noticed() -> None:
    text = "0 1 * * * root /bin/x\n0 2 * * * root /bin/y"

    assert any("--system" in each for each in left(text))


@pytest.mark.parametrize("line", ["@reboot x", "@every_minute x", "@nonsense x", "61 * * * * x", "*/0 * * * * x"])
def test_what_is_no_schedule_of_ours_is_left_with_the_reason(line: str) -> None:
    [only] = left(line)

    assert only.startswith(f"c:1: {line}: not imported: ")


def test_a_crontab_of_another_encoding_is_refused() -> None:
    with pytest.raises(UnreadableSource, match="c:2: is not UTF-8"):
        read_crontab("@daily a\n@daily ä".encode("latin-1"), "c")


def test_carriage_returns_and_a_mark_at_the_beginning_are_no_part_of_it() -> None:
    found = read_crontab(b"\xef\xbb\xbf@daily a\r\n@daily b\r\n", "c", timezone="UTC")

    assert [dict(job.parts)["command"] for job in found.jobs] == ["a", "b"]


def test_jobs_with_one_name_are_told_apart() -> None:
    found = read_crontab(b"@daily x\n@hourly x\n@daily x-2\n@weekly x\n", "c", timezone="UTC")

    assert [job.name for job in found.jobs] == ["x", "x-2", "x-2-2", "x-3"]


def test_a_delay_that_is_no_number_of_minutes_is_listed() -> None:
    assert "RANDOM_DELAY=" + "9" * 20 in left("RANDOM_DELAY=" + "9" * 5000 + "\n@daily a")[0]


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("python3 /opt/report.py --all", "report"),
        ("/usr/bin/python3.11 -u -m shop.mail", "shop-mail"),
        ("nice -n 10 bash /usr/local/bin/backup.sh", "backup"),
        ("php -f /var/www/cron.php", "cron"),
        ("bash -c 'echo x'", "bash"),
        ("python3", "python3"),
        ("/usr/local/bin/backup --all", "backup"),
    ],
)
def test_a_job_is_named_after_the_script_and_not_after_its_interpreter(command: str, name: str) -> None:
    """Three lines that begin with python3 were python3, python3-2 and python3-3."""
    found = read_crontab(f"@daily {command}\n".encode(), "c", timezone="UTC")

    assert [job.name for job in found.jobs] == [name]
