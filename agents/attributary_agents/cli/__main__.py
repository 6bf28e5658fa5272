"""`python -m attributary_agents.cli` is the command `attributary`."""

from . import main

main()
