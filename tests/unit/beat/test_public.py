"""What the beat exports is what its page names."""

import re
import subprocess
import sys
from pathlib import Path

import everytick.beat

PAGE = Path(__file__).resolve().parents[3] / "docs/beat.md"


def test_every_public_name_resolves_and_stands_on_the_page() -> None:
    text = PAGE.read_text()

    assert [name for name in everytick.beat.__all__ if not hasattr(everytick.beat, name)] == []
    assert [name for name in everytick.beat.__all__ if not re.search(rf"\b{name}\b", text)] == []
    assert set(everytick.beat.__all__) <= set(dir(everytick.beat))


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    assert not hasattr(everytick.beat, "Bananas")


def test_the_registry_needs_neither_redis_nor_celery() -> None:
    program = "import sys; from everytick.beat import Registry, Schedule; print({'redis', 'celery'} & set(sys.modules))"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)

    assert said.stdout == "set()\n"
