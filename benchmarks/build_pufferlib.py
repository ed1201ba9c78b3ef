"""Build the one environment of PufferLib that is timed: ``python -m benchmarks.build_pufferlib FOLDER``.

PufferLib cannot be installed beside PettingZoo 1.27, for it asks for older NumPy and Gymnasium; its C code and the thin
Python around it run all the same.
"""

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from pathlib import Path

import numpy as np

_PACKAGE = "pufferlib==3.0.0"
_NEEDED = ("gym==0.26.2", "gym_notices", "psutil")
_FLAGS = "-shared -fPIC -O2 -flto -fwrapv -DPLATFORM_DESKTOP -DNPY_NO_DEPRECATED_API=NPY_1_7_API_VERSION"  # its own
_ENVIRONMENT = "pufferlib/ocean/tripletriad"


def unpack_source(folder: Path) -> Path:
    """Download the source package and unpack it.

    pip runs the package's setup file to learn its name, which fails without access to GitHub, when the source has
    already been unpacked.
    """
    with tempfile.TemporaryDirectory() as place:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-clean", "--no-deps", "--no-build-isolation"]
        subprocess.run(
            [*pip, "--no-binary", ":all:", "--dest", place, _PACKAGE],
            env={**os.environ, "TMPDIR": place},
            capture_output=True,
        )
        for archive in Path(place).glob("pufferlib*.tar.gz"):
            with tarfile.open(archive) as file:
                file.extractall(place)
        found = sorted(path.parent for path in Path(place).glob("**/setup.py") if (path.parent / _ENVIRONMENT).is_dir())
        if not found:
            raise SystemExit(f"pip could not download the source of {_PACKAGE}")
        target = folder / "source"
        if target.exists():
            shutil.rmtree(target)
        shutil.move(found[0], target)
        return target


def build(folder: Path) -> None:
    """Compile the environment in place, with the flags of PufferLib's setup file."""
    source = unpack_source(folder)
    raylib = next(source.glob("raylib-*_linux_amd64"), None) or next(source.glob("raylib-*_macos"))
    code = source / _ENVIRONMENT
    subprocess.run(
        [
            os.environ.get("CC", "cc"),
            *_FLAGS.split(),
            *(f"-I{path}" for path in (np.get_include(), sysconfig.get_path("include"), raylib / "include")),
            "-Wno-implicit-function-declaration",
            str(code / "binding.c"),
            str(raylib / "lib" / "libraylib.a"),
            "-o",
            str(code / f"binding{sysconfig.get_config_var('EXT_SUFFIX')}"),
            "-lm",
            "-lpthread",
        ],
        check=True,
    )
    needed = folder / "needed"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade"]
    subprocess.run([*pip, "--target", str(needed), *_NEEDED], check=True)
    print(f"done; now: PYTHONPATH={source}{os.pathsep}{needed} python -m benchmarks")


def main() -> None:
    """Read the folder from the command line and build there."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path, help="where the source and the packages that it needs go")
    folder = parser.parse_args().folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    build(folder)


if __name__ == "__main__":
    main()
