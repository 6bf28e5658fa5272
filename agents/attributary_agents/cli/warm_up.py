"""`attributary warm-up`: compile all kernels ahead, as the image does."""

from __future__ import annotations

import click
from rich.console import Console

from ..errors import AttributaryError


@click.command("warm-up")
def warm_up() -> None:
    """Compile all kernels now, once on this machine, so that nothing waits for it later.

    Takes about half a minute the first time. Kernels are kept in the folder that NUMBA_CACHE_DIR names, or else
    beside the installed package.

    \b
        attributary warm-up
    """
    # They take a second to import: only where they are needed.
    from attributary_explainers.compiled import cache_folder, is_compiling

    from ..models.compiling import compile_kernels

    if not is_compiling():
        raise AttributaryError("NUMBA_DISABLE_JIT is set: kernels are not compiled, and there is nothing to do")
    folder = cache_folder()
    if folder is None:
        raise AttributaryError(
            "no folder can be written to keep compiled kernels in: set NUMBA_CACHE_DIR to one that can"
        )
    done = compile_kernels(Console(stderr=True))
    if done.n_compiled:
        click.echo(f"compiled {done.n_compiled} kernels in {done.seconds:.0f} s, kept in {folder}")
    else:
        click.echo(f"all kernels are compiled, kept in {folder}")
