"""Protection against input that ends worker after worker.

Such input is a record, a deployment or a stored state.
"""

from .endings import Begun, Endings

__all__ = ["Begun", "Endings"]
