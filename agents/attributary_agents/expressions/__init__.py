"""Expressions in JMESPath that read records, and texts that hold them."""

from .expressions import Expression, is_expression_of_names, parse
from .own import OWN_NAMES, RecordView
from .paths import paths_read
from .texts import Text, parse_text

__all__ = [
    "OWN_NAMES",
    "Expression",
    "RecordView",
    "Text",
    "is_expression_of_names",
    "parse",
    "parse_text",
    "paths_read",
]
