"""What `import pitch_env` leaves alone, so that it stays quick and works without a display."""

import subprocess
import sys

import pytest

HEAVY = ("torch", "pygame", "matplotlib", "tensorboard")


@pytest.mark.parametrize("statement", ["import pitch_env", "from pitch_env import pitch_v0, vector, record, view"])
def test_no_heavy_module_is_imported(statement):
    code = f"{statement}; import sys; print([name for name in {HEAVY} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
