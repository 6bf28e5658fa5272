"""Model files below `artefacts.directory`: finding, checking, loading."""

from .columns import Columns
from .files import read_artefact, sha256_of
from .formats import check_ending, load_artefact

__all__ = ["Columns", "check_ending", "load_artefact", "read_artefact", "sha256_of"]
