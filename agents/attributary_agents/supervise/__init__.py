"""Several workers of one group on one machine: forked from one process, started again, stopped and scraped as one."""

from .asking import Workers
from .forking import Ending, Fault, Role, is_forkable, run_once, set_aside, shared_numbers
from .restarts import Restarts
from .supervisor import Supervisor
from .together import AUTO, as_one_of, count_workers
from .web import WorkersWeb

__all__ = [
    "AUTO",
    "Ending",
    "Fault",
    "Restarts",
    "Role",
    "Supervisor",
    "Workers",
    "WorkersWeb",
    "as_one_of",
    "count_workers",
    "is_forkable",
    "run_once",
    "set_aside",
    "shared_numbers",
]
