"""What all tests share: readable failures in the helper modules, and the same Hypothesis examples each time."""

import pytest
from hypothesis import settings

pytest.register_assert_rewrite("helpers", "differential")
settings.register_profile("same", derandomize=True, deadline=None, database=None, max_examples=200)
settings.load_profile("same")
