"""Makes Python modules of Protobuf files, as protoc does: what writes the values that formats read."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType


def generated(folder: Path, files: Mapping[str, str]) -> ModuleType:
    """Write the files into the folder and return the module that protoc generates of the last one."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    protoc = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", f"--python_out={folder}", *files]
    subprocess.run(protoc, check=True, cwd=folder)
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(list(files)[-1].replace(".proto", "_pb2"))
    finally:
        sys.path.remove(str(folder))
