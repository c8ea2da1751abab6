"""What stands in files that people use: each case names where its facts come from.

The importers were run over several hundred such files: the cron.d files and timers of Debian 12, units and manifests
of well-known repositories, and settings of projects that use Celery. These are the ones that taught something, each
cut down to what it is about and written anew.
"""

from typing import Any

import pytest

from everytick.sources.importing.celery_beat import read_beat
from everytick.sources.importing.cronjob import read_manifest
from everytick.sources.importing.crontab import read_crontab
from everytick.sources.importing.findings import Findings, UnreadableSource
from everytick.sources.importing.systemd import read_timer
from everytick.sources.job_files import read_jobs


def schedules(found: Findings) -> dict[str, Any]:
    """The schedule of every job by its name; the file of all of them is one that would be accepted."""
    assert read_jobs(found.text().encode(), "out.yaml").mistakes == ()
    return {job.name: dict(job.parts)["schedule"] for job in found.jobs}


def left(found: Findings) -> list[str]:
    return [each.what for each in found.left]


CRONTABS = [
    (
        "Debian cron: etc/crontab",
        ("17 *\t* * *\troot\tcd / && run-parts --report /etc/cron.hourly\n"
        "47 6\t* * 7\troot\ttest -x /usr/sbin/anacron || { cd / && run-parts --report /etc/cron.weekly; }\n"),
        {"run-parts": "17 * * * *", "run-parts-2": "47 6 * * 7"},
        ["the user root", "the user root"],
    ),
    (
        "Debian php-common: etc/cron.d/php",
        ("09,39 *     * * *     root   [ -x /usr/lib/php/sessionclean ] && if [ ! -d /run/systemd/system ]; "
        "then /usr/lib/php/sessionclean; fi\n"),
        {"sessionclean": "09,39 * * * *"},
        ["the user root"],
    ),
    (
        "Debian sysstat: etc/cron.d/sysstat",
        "PATH=/usr/lib/sysstat:/usr/bin\n\n5-55/10 * * * * root command -v debian-sa1 > /dev/null && debian-sa1 1 1\n",
        {"debian-sa1": "5-55/10 * * * *"},
        ["the user root"],
    ),
    (
        "Debian logcheck: etc/cron.d/logcheck",
        ("MAILTO=root\n@reboot    logcheck    /usr/sbin/logcheck -R\n"
        "2 * * * *  logcheck    if [ -x /usr/sbin/logcheck ]; then nice -n10 /usr/sbin/logcheck; fi\n# EOF\n"),
        {"logcheck": "2 * * * *"},
        ["MAILTO", "@reboot /usr/sbin/logcheck -R", "the user logcheck"],
    ),
    (
        "Debian gup: etc/cron.d/gup",
        "48 17,23,7,12 * * * gup test -x /usr/lib/gup/gupdate && /usr/lib/gup/gupdate",
        {"gupdate": "48 17,23,7,12 * * *"},
        ["the user gup"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("origin", "text", "expected", "rest"), CRONTABS, ids=[each[0] for each in CRONTABS])
def test_crontabs_of_packages(origin: str, text: str, expected: dict[str, str], rest: list[str]) -> None:
    found = read_crontab(text.encode(), origin, system=True, timezone="UTC")

    assert (schedules(found), left(found)) == (expected, rest)


def test_a_percent_sign_of_debians_mdadm_reaches_the_shell_as_one() -> None:
    line = (
        "57 0 * * 0 root if [ -x /usr/share/mdadm/checkarray ] && [ $(date +\\%d) -le 7 ]; then checkarray --cron; fi"
    )

    found = read_crontab(line.encode(), "Debian mdadm: etc/cron.d/mdadm", system=True, timezone="UTC")

    [job] = found.jobs
    assert "$(date +%d) -le 7" in str(dict(job.parts)["command"])


@pytest.mark.parametrize(
    "text",
    [
        # Pi-hole: advanced/Templates/pihole.cron
        '59 1 * * 7   root    PATH="$PATH:/usr/sbin" pihole updateGravity\n00 00 * * *   root    pihole flush once\n',
        # sanoid: packages/gentoo/sys-fs/sanoid/files/sanoid.cron
        "* * * * * root TZ=UTC /usr/bin/sanoid --cron\n",
        # IntelOwl: integrations/malware_tools_analyzers/crontab
        "# minute hour day-of-month month day-of-week user command\n*/15 * * * * analyzers-user fangfrisch refresh\n",
    ],
)
def test_a_user_before_each_command_is_hinted_at_and_not_guessed(text: str) -> None:
    found = read_crontab(text.encode(), "crontab", timezone="UTC")

    [hint] = found.left
    assert "import again with --system" in hint.why


def test_an_anacrontab_is_refused_before_its_delays_become_commands() -> None:
    """cronie: contrib/anacrontab."""
    text = (
        b"RANDOM_DELAY=45\nSTART_HOURS_RANGE=3-22\n1\t5\tcron.daily\tnice run-parts /etc/cron.daily\n@monthly 45 c x\n"
    )

    with pytest.raises(UnreadableSource, match="anacrontab:2: is an anacrontab"):
        read_crontab(text, "anacrontab")


TIMERS = [
    (
        "Debian apt: apt-daily.timer",
        "[Timer]\nOnCalendar=*-*-* 6,18:00\nRandomizedDelaySec=12h\nPersistent=true\n",
        "[Service]\nType=oneshot\nExecStartPre=-/usr/lib/apt-helper wait-online\nExecStart=/usr/lib/apt.daily update\n",
        {"schedule": "0 6,18 * * *; dst_gap=skip", "jitter": "12h", "recovery": "execute_last"},
        ["the - of ExecStartPre"],
    ),
    (
        "util-linux: fstrim.timer",
        ("[Unit]\nDescription=Discard unused filesystem blocks\n[Timer]\nOnCalendar=weekly\nAccuracySec=1h\n"
        "Persistent=true\nRandomizedDelaySec=100min\n[Install]\nWantedBy=timers.target\n"),
        "[Service]\nType=oneshot\nExecStart=/sbin/fstrim --listed-in /etc/fstab --verbose\nPrivateDevices=no\n",
        {"schedule": "0 0 * * 1; dst_gap=skip", "jitter": "1h40m", "recovery": "execute_last"},
        ["AccuracySec=1h", "PrivateDevices=no"],
    ),
    (
        "systemd: units/systemd-tmpfiles-clean.timer",
        "[Timer]\nOnBootSec=15min\nOnUnitActiveSec=1d\n",
        "[Service]\nType=oneshot\nExecStart=systemd-tmpfiles --clean\nSuccessExitStatus=65\nNice=19\n",
        {"schedule": "every 24h", "command": ["systemd-tmpfiles", "--clean"]},
        ["OnBootSec=15min", "OnUnitActiveSec=1d", "SuccessExitStatus=65", "Nice=19"],
    ),
    (
        "Debian mdadm: mdcheck_start.timer",
        "[Timer]\nOnCalendar=Sun *-*-1..7 1:00:00\n",
        "[Service]\nType=oneshot\nExecStart=/usr/share/mdadm/mdcheck --continue --duration 6h\n",
        {"schedule": "0 1 1-7 * 0; dst_gap=skip; day_match=and"},
        [],
    ),
    (
        "Debian mdadm: mdmonitor-oneshot.timer",
        "[Timer]\nOnCalendar= 2:00:00\n[Install]\nWantedBy= mdmonitor.service\n",
        "[Service]\nType=oneshot\nExecStart=/sbin/mdadm --monitor --oneshot --scan\nRestart=no\n",
        {"schedule": "0 2 * * *; dst_gap=skip"},
        [],
    ),
    (
        "Debian anacron: anacron.timer",
        "[Timer]\nOnCalendar=*-*-* 07..23:30\nRandomizedDelaySec=5m\nPersistent=true\n",
        "[Service]\nExecStart=/usr/sbin/anacron -d -q\nEnvironmentFile=-/etc/default/anacron\nKillMode=mixed\n",
        {"schedule": "30 7-23 * * *; dst_gap=skip", "jitter": "5m"},
        ["EnvironmentFile=-/etc/default/anacron", "KillMode=mixed"],
    ),
    (
        "rpm-ostree: src/daemon/rpm-ostree-countme.timer",
        "[Timer]\nOnBootSec=5m\nOnUnitInactiveSec=3d\nAccuracySec=1h\nRandomizedDelaySec=1d\n",
        "[Service]\nType=oneshot\nUser=rpm-ostree\nExecStart=rpm-ostree countme\n",
        {"schedule": "after: 72h", "jitter": "24h"},
        ["OnBootSec=5m", "AccuracySec=1h", "User=rpm-ostree"],
    ),
    (
        "Debian ntpsec: ntpsec-rotate-stats.timer, and Arch Linux: roles with seconds",
        "[Timer]\nOnCalendar=*-*-* *:07:07\n",
        "[Service]\nExecStart=/usr/bin/true\n",
        {"schedule": "quartz: 7 7 0-23 * * ?; dst_gap=skip"},
        [],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("origin", "timer", "service", "expected", "rest"), TIMERS, ids=[each[0] for each in TIMERS])
def test_timers_of_packages(
    origin: str, timer: str, service: str, expected: dict[str, object], rest: list[str]
) -> None:
    found = read_timer(timer.encode(), "x.timer", service=lambda _: ("x.service", service.encode()), timezone="UTC")

    assert schedules(found), left(found)
    parts = dict(found.jobs[0].parts)
    assert ({key: parts.get(key) for key in expected}, left(found)) == (expected, rest)


@pytest.mark.parametrize(
    ("timer", "service", "reason"),
    [
        # SecureDrop: securedrop-submissions-today.timer
        ("OnBootSec=23h", "ExecStart=a", "none of its times can be said here"),
        # Debian fetch-crl and rpki-client: options come from a file
        ("OnCalendar=daily", "EnvironmentFile=-/etc/x\nExecStart=/usr/sbin/x $X_OPTIONS", "$X_OPTIONS is not in"),
        # Debian systemd-cron: cron-daily.timer starts a target
        ("OnCalendar=daily\nUnit=cron-daily.target", "", "has no ExecStart"),
    ],
)  # fmt: skip
def test_timers_that_cannot_be_said_are_left_with_the_reason(timer: str, service: str, reason: str) -> None:
    unit = f"[Service]\n{service}\n".encode()

    found = read_timer(f"[Timer]\n{timer}\n".encode(), "x.timer", service=lambda _: ("x", unit), timezone="UTC")

    assert not found.jobs
    assert reason in found.left[-1].why


BEATS = [
    (
        "Read the Docs: readthedocs/settings/base.py",
        ("class Base:\n    CELERYBEAT_SCHEDULE = {'every-minute': {'task': 'p.tasks.utils.finish', "
        "'schedule': crontab(minute='*'), 'options': {'queue': 'web'}}}"),
        {"every-minute": "* * * * *"},
        ["the names of the tasks"],
    ),
    (
        "Superset: superset/config.py",
        ("class CeleryConfig:\n    beat_schedule = {'reports.scheduler': {'task': 'reports.scheduler', "
        "'schedule': crontab(minute='*', hour='*'), 'options': {'expires': int(CELERY_EXPIRES)}},\n"
        "        'reports.prune_log': {'task': 'reports.prune_log', 'schedule': crontab(minute=0, hour=0)}}"),
        {"reports-scheduler": "* * * * *", "reports-prune_log": "0 0 * * *"},
        ["the name 'reports.scheduler'", "option expires of 'reports.scheduler'", "the names of the tasks",
         "the name 'reports.prune_log'"],
    ),
    (
        "DefectDojo: dojo/settings/settings.dist.py",
        ("CELERY_BEAT_SCHEDULE = {'dedupe': {'task': 'dojo.tasks.dedupe', 'schedule': timedelta(minutes=1), "
        "'options': {'expires': int(60 * 1 * 1.2)}}}"),
        {"dedupe": "every 1m"},
        ["the phase of every 1m of 'dedupe'", "option expires of 'dedupe'", "the names of the tasks"],
    ),
    (
        "GOV.UK Notify: app/config.py",
        ("class QueueNames:\n    PERIODIC = 'periodic-tasks'\nclass Config:\n    CELERY = {'timezone': 'UTC', "
        "'beat_schedule': {'x': {'task': 'a.b', 'schedule': crontab(hour=0, minute=5), "
        "'options': {'queue': QueueNames.PERIODIC}}}}"),
        {"x": "5 0 * * *"},
        ["the names of the tasks"],
    ),
    (
        "Dify: api/extensions/ext_celery.py",
        ("def init_app(app):\n  beat_schedule = {}\n  if config.ENABLE_X:\n    beat_schedule['x'] = {'task': 'a.b', "
        "'schedule': timedelta(minutes=config.X)}\n  if config.ENABLE_Y:\n    beat_schedule['y'] = {'task': 'a.c', "
        "'schedule': crontab(minute='0', hour='10', day_of_week='1')}\n  app.conf.update(beat_schedule=beat_schedule)"),
        {"y": "0 10 * * 1"},
        ["entry 'x'", "the condition 'if config.ENABLE_Y' of 'y'", "the names of the tasks"],
    ),
    (
        "Saleor: saleor/settings.py",
        ("CELERY_BEAT_SCHEDULE = {'a': {'task': 'p.a', 'schedule': crontab(hour=0, minute=0)}, "
        "'b': {'task': 'p.b', 'schedule': initiated_schedule}, "
        "'c': {'task': 'p.c', 'schedule': timedelta(seconds=parse(os.environ.get('C')))}}"),
        {"a": "0 0 * * *"},
        ["entry 'b'", "entry 'c'", "the names of the tasks"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("origin", "text", "expected", "rest"), BEATS, ids=[each[0] for each in BEATS])
def test_beat_schedules_of_projects(origin: str, text: str, expected: dict[str, str], rest: list[str]) -> None:
    found = read_beat(text.encode(), "settings.py")

    assert schedules(found) == expected
    assert sorted(left(found)) == sorted(rest)


def test_a_table_that_comes_from_elsewhere_is_left_with_its_name() -> None:
    """kitsune: kitsune/settings.py; paperless-ngx: src/paperless/settings."""
    found = read_beat(b"from x import ALL\nCELERY_BEAT_SCHEDULE = dict(ALL)\nCELERY_BEAT_SCHEDULE |= MORE\n", "s.py")

    assert [(each.line, each.why.split(":")[0]) for each in found.left] == [(2, "not imported"), (3, "not imported")]


POD = """\
apiVersion: batch/v1
kind: CronJob
metadata: {{name: x}}
spec:
  schedule: "{schedule}"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: OnFailure
          containers: [{{name: c, image: i, {container}}}]
"""
FROM_SECRET = "env: [{name: TOKEN, valueFrom: {secretKeyRef: {name: s, key: k}}}]"


@pytest.mark.parametrize(
    ("when", "container", "command"),
    [
        # Kubernetes: content/en/examples/application/job/cronjob.yaml
        ("* * * * *", 'command: [/bin/sh, -c, "date; echo Hello"]', ["/bin/sh", "-c", "date; echo Hello"]),
        # Ministry of Justice: a redrive of a queue; $(date) is the shell's, for no variable has that name
        ("*/10 * * * *", f'command: [sh, -c, "echo $(date)"], {FROM_SECRET}', ["sh", "-c", "echo $(date)"]),
        # Argo CD: resource_customizations/batch/CronJob
        ("0 */2 * * 1-5", "command: [echo], args: [a, b]", ["echo", "a", "b"]),
    ],
)  # fmt: skip
def test_cronjobs_of_projects(when: str, container: str, command: list[str]) -> None:
    found = read_manifest(POD.format(schedule=when, container=container).encode(), "m.yaml", timezone="UTC")

    assert schedules(found), left(found)
    parts = dict(found.jobs[0].parts)
    assert parts["command"] == command
    assert str(parts["schedule"]) == f"{when}; dst_gap=skip; dst_fold=both"


@pytest.mark.parametrize(
    ("container", "reason"),
    [
        # Kubernetes test-infra: label_sync/cluster/label_sync_cron_job.yaml
        ("args: [--config=/etc/config/labels.yaml]", "its command is the image's own"),
        # Ministry of Justice: a command that names a secret
        (f'command: [sh, -c, "psql $(TOKEN)"], {FROM_SECRET}', "the value of $(TOKEN) is not in the manifest"),
        # any variable may come from elsewhere
        ('command: [sh, -c, "echo $(date)"], envFrom: [{secretRef: {name: s}}]', "$(date) is not in the manifest"),
    ],
)
def test_cronjobs_that_cannot_be_known_are_left_with_the_reason(container: str, reason: str) -> None:
    found = read_manifest(POD.format(schedule="0 1 * * *", container=container).encode(), "m.yaml", timezone="UTC")

    assert not found.jobs
    assert reason in found.left[-1].why
