"""The text format of Prometheus, version 0.0.4."""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING

from everytick.metrics.catalogue import METRICS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everytick.node.meter import Histogram

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_LONGEST_LABEL_CHARACTERS = 200


class Series:
    """Collects series and writes them, each metric once with its help."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {}

    def add(self, name: str, value: float, *labels: str) -> None:
        """Add one series: the labels in the order of the catalogue."""
        metric = METRICS[name]
        self._of(name).append(f"{name}{_labelled(metric.labels, labels)} {_number(value)}")

    def histogram(self, name: str, counted: Histogram, *labels: str) -> None:
        """Add the buckets of a histogram, its sum and its count. One that has counted nothing is left out."""
        if not any(counted.counts):
            return
        metric, lines, below = METRICS[name], self._of(name), 0
        own = _labelled(metric.labels, labels)
        # The labels of the job are written once, not once for each of seventeen buckets.
        before = f"{name}_bucket{own[:-1]}," if own else f"{name}_bucket{{"
        for bound, count in zip(_bounds_text(counted.bounds), counted.counts, strict=True):
            below += count
            lines.append(f'{before}le="{bound}"}} {below}')
        lines.append(f"{name}_sum{own} {_number(counted.total / timedelta(seconds=1))}")
        lines.append(f"{name}_count{own} {below}")

    def include(self, other: Series) -> None:
        """Add everything that the other has."""
        for name, lines in other._lines.items():
            self._of(name).extend(lines)

    def text(self) -> str:
        """Return everything that was added, in the order of the catalogue."""
        return "".join(line + "\n" for line in self._written())

    def _of(self, name: str) -> list[str]:
        return self._lines.setdefault(name, [])

    def _written(self) -> Iterator[str]:
        for name, metric in METRICS.items():
            if lines := self._lines.get(name):
                yield f"# HELP {name} {metric.help}"
                yield f"# TYPE {name} {metric.kind}"
                yield from lines


@cache
def _bounds_text(bounds: tuple[timedelta, ...]) -> tuple[str, ...]:
    """Return the upper bounds of buckets as labels. There are three such tuples."""
    return (*(_number(bound / timedelta(seconds=1)) for bound in bounds), "+Inf")


def _labelled(names: tuple[str, ...], values: tuple[str, ...]) -> str:
    if not names:
        return ""
    pairs = (f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True))
    return "{" + ",".join(pairs) + "}"


def _escaped(text: str) -> str:
    """Return a label's value: bounded, on one line. Characters that no text file may hold become a question mark."""
    shortened = text[:_LONGEST_LABEL_CHARACTERS].encode("utf-8", "replace").decode()
    return shortened.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
