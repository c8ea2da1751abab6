"""Reads the text format of Prometheus, for tests, with the parser of Prometheus' own client."""

from collections.abc import Mapping

from prometheus_client.parser import text_string_to_metric_families


class Read:
    """The series of a text."""

    def __init__(self) -> None:
        self._found: dict[str, list[tuple[dict[str, str], float]]] = {}

    def add(self, name: str, labels: dict[str, str], value: float) -> None:
        """Keep one series; the same twice is a mistake."""
        own = self._found.setdefault(name, [])
        assert labels not in [each for each, _ in own], f"{name}{labels} stands twice"
        own.append((labels, value))

    def labels(self, name: str) -> list[dict[str, str]]:
        """Return the labels of every series of this name."""
        return [labels for labels, _ in self._found.get(name, [])]

    def all(self, name: str, **wanted: str) -> Mapping[str, float]:
        """Return the values of the series that have these labels."""
        return {str(labels): value for labels, value in self._found.get(name, []) if wanted.items() <= labels.items()}

    def of(self, name: str, **wanted: str) -> float:
        """Return the value of the one series with exactly these labels."""
        [value] = [value for labels, value in self._found.get(name, []) if labels == wanted]
        return value


def read(text: str) -> Read:
    """Return the series of a text; fail on a line that is none."""
    found = Read()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.add(sample.name, dict(sample.labels), sample.value)
    return found
