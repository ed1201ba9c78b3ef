"""How long a fresh process takes to be ready, with compiled kernels kept from before."""

import subprocess
import sys
import time

from benchmarks.report import Report, Row
from benchmarks.timing import Options, Run, time_in_turn

HEAVY = ("torch", "pygame", "matplotlib", "tensorboard")
_LIST_HEAVY = f"import pitch_env, sys; print(*[name for name in {HEAVY} if name in sys.modules])"
_READY = "from pitch_env import pitch_v0; env = pitch_v0.env(); env.reset(seed=1); env.last(); env.step(0)"


def find_heavy_imports() -> list[str]:
    """Which of the modules that `import pitch_env` must leave alone it imports."""
    result = subprocess.run([sys.executable, "-c", _LIST_HEAVY], capture_output=True, text=True, check=True)
    return result.stdout.split()


def time_process(code: str) -> Run:
    """Whole processes, the interpreter's own start and end counted."""

    def run(seconds: float) -> tuple[float, float]:
        start, num_runs = time.perf_counter(), 0
        while num_runs == 0 or time.perf_counter() < start + seconds:
            subprocess.run([sys.executable, "-c", code], check=True)
            num_runs += 1
        return num_runs, time.perf_counter() - start

    return run


def run(options: Options, report: Report) -> None:
    """Seconds for the import, and up to the first step of an environment."""
    timings = time_in_turn(
        {
            "python": time_process("pass"),
            "import": time_process("import pitch_env"),
            "ready": time_process(_READY),
        },
        options,
    )
    heavy = find_heavy_imports()
    if heavy:
        report.add_note(f"import pitch_env imports {', '.join(heavy)}, which it should not.")
    for what, name, goal in (
        ("Process that imports pitch_env", "import", 1.5),
        ("Process up to the first step of pitch_v0.env()", "ready", None),
    ):
        bare = 1 / timings["python"].rate
        report.add_row(
            Row(
                what,
                1 / timings[name].rate,
                unit="s",
                peer="bare interpreter",
                peer_figure=bare,
                goal=goal,
                others=timings[name].others,
            )
        )
