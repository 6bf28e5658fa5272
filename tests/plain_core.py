"""A plugin of pytest that has the core run as plain Python: `python -m pytest -p tests.plain_core tests/explainers`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from types import ModuleType

CORE = "attributary_explainers.core."


class SourcesOfTheCore(MetaPathFinder):
    """Finds the modules of the core as sources alone, passing over what was compiled of them."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where the source of a module of the core is; None for all other modules."""
        if not fullname.startswith(CORE) or path is None:
            return None
        finders = (FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES)) for folder in path)
        return next(filter(None, (finder.find_spec(fullname) for finder in finders)), None)


def pytest_report_header() -> str:
    """Say in which mode the core runs."""
    from attributary_explainers.core import is_compiled

    assert not is_compiled(), "the core was imported before this plugin"
    return "core: plain Python"


sys.meta_path.insert(0, SourcesOfTheCore())
