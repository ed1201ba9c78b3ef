"""What all tests share: readable failures in the helper modules, and Hypothesis that gives the same examples each time."""

import pytest
from hypothesis import settings

pytest.register_assert_rewrite("helpers", "differential")
settings.register_profile("same", derandomize=True, deadline=None, database=None)
settings.load_profile("same")
