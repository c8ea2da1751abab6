"""The requests of `test_fuzz_api.py` in a dose of hundreds for each route: `-m slow`."""

from typing import Any

import pytest
import schemathesis
from hypothesis import Phase

from tests.unit.web.api.test_fuzz_api import HELD, budget, schema


@pytest.mark.slow
@schema.parametrize()
@budget(300, Phase.explicit, Phase.generate)
def test_no_request_among_hundreds_breaks_a_route(case: schemathesis.Case[Any]) -> None:
    case.call_and_validate(checks=HELD)
