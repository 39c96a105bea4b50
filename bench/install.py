"""The program as users install it: a wheel in an environment of its own, compiled; not the checkout."""

import subprocess
import sys
from pathlib import Path

__all__ = ["installed"]

_ROOT = Path(__file__).parent.parent


def installed(folder: Path) -> Path:
    """A fresh environment with the locked dependencies and our wheel, compiled as pip compiles; its bin folder."""
    environment = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    wheel = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, _ROOT]
    subprocess.run(wheel, check=True)
    install = [*pip, "--python", environment / "bin" / "python", "install"]
    subprocess.run([*install, "--require-hashes", "-r", _ROOT / "requirements" / "run.txt"], check=True)
    subprocess.run([*install, "--no-deps", *folder.glob("*.whl")], check=True)
    return environment / "bin"
