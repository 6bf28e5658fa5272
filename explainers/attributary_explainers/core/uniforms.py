"""A numpy generator's uniform numbers, drawn singly without Python calls."""

from __future__ import annotations

from typing import Any

import numpy as np

try:
    import cython
except ImportError:
    from . import _cython as cython

if cython.compiled:
    from cython.cimports.attributary_explainers.core.uniforms import attributary_bitgen  # type: ignore[import-not-found]
    from cython.cimports.cpython.pycapsule import PyCapsule_GetPointer  # type: ignore[import-not-found]


@cython.cclass
class Uniforms:
    """Uniform numbers of `generator.random()`, singly and in the same order.

    Compiled, it calls the generator's own C function: numpy's interface for extensions, `bit_generator.capsule`.
    """

    def __init__(self, generator: np.random.Generator) -> None:
        self.generator, self._bits = generator, generator.bit_generator
        if cython.compiled:
            self._of_c = cython.cast(
                cython.pointer[attributary_bitgen], PyCapsule_GetPointer(self._bits.capsule, b"BitGenerator")
            )

    def __reduce__(self) -> Any:
        return Uniforms, (self.generator,)

    def next(self) -> float:
        """Return the next number."""
        if cython.compiled:
            return self._of_c.next_double(self._of_c.state)
        return self.generator.random()

    # hot
    def permute(self, orders: cython.Py_ssize_t[:, ::1]) -> None:
        """Write random permutations of 0, 1, …, each followed by its reverse.

        By Fisher and Yates, from the end.

        Parameters
        ----------
        orders
            Shape (permutations, numbers). Rows 0, 2, … are drawn; each row after one of these is its reverse.
        """
        o: cython.Py_ssize_t
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        size: cython.Py_ssize_t = orders.shape[1]
        for o in range(orders.shape[0]):
            if o % 2:
                for i in range(size):
                    orders[o, i] = orders[o - 1, size - 1 - i]
                continue
            for i in range(size):
                orders[o, i] = i
            for i in range(size - 1, 0, -1):
                j = int(self.next() * (i + 1))
                orders[o, i], orders[o, j] = orders[o, j], orders[o, i]


def uniforms_of(generator: np.random.Generator, before: Uniforms | None) -> Uniforms:
    """Return `before` if it is of this generator, else a new `Uniforms`."""
    return before if before is not None and before.generator is generator else Uniforms(generator)
