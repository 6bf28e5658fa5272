"""Reads files of trained models below `artefacts.directory`: whether they are those that are meant, and what is in."""

from .columns import Columns
from .files import read_artefact, sha256_of
from .formats import check_ending, load_artefact

__all__ = ["Columns", "check_ending", "load_artefact", "read_artefact", "sha256_of"]
