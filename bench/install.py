"""Installation of the program as users have it: a compiled wheel in its own environment, not the checkout."""

import subprocess
import sys
from pathlib import Path

__all__ = ["install_wheel"]

_ROOT = Path(__file__).parent.parent


def install_wheel(folder: Path) -> Path:
    """Install the locked dependencies and our wheel into a new environment; return its bin folder."""
    environment = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    wheel = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, _ROOT]
    subprocess.run(wheel, check=True)
    install = [*pip, "--python", environment / "bin" / "python", "install"]
    subprocess.run([*install, "--require-hashes", "-r", _ROOT / "requirements" / "run.txt"], check=True)
    subprocess.run([*install, "--no-deps", *folder.glob("*.whl")], check=True)
    return environment / "bin"
