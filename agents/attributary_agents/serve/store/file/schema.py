"""Defines the tables of the store."""

from __future__ import annotations

import sqlite3

APPLICATION = 0x41545459
"""By which a file of SQLite is known to be a store of ours: `pragma application_id`."""

VERSION = 2
"""Version of the tables; a file of another one is made anew, since all that it has can be read again."""

PAGE_BYTES = 8192
"""With 4 kB, the events of 200 features would need a page more each, and leave half of it empty."""

_TABLES = (
    # An explainer of a model by one removal and loss. Numbers of observations may begin again: `run` counts that.
    """create table series (
        id integer primary key, model_id text not null, explainer text not null, removal text not null,
        loss text not null, loss_unit text not null, loss_largest real, alpha real not null, mode text,
        run integer not null, taken integer not null, n_events integer not null,
        first_ms integer not null, last_ms integer not null,
        first_observation integer not null, last_observation integer not null,
        floor_ms integer, floor_observation integer, seen_ms integer not null default 0,
        unique (model_id, explainer, removal, loss))""",
    # All events of a series lie together in the order of their times. `numbers` has the importances and then the half
    # widths in the order of the list's names, as float32 times 2 to the power of `scale`; `figures` has those of
    # `SCALARS` that are known.
    """create table events (
        series integer not null, t integer not null, observation integer not null,
        run integer not null, n integer not null, n_observations integer not null, version integer not null,
        list integer not null, scale integer not null, numbers blob not null,
        known integer not null, figures blob not null,
        quality_list integer, quality blob,
        primary key (series, t, observation)) without rowid""",
    # Names of features, or of metrics, in the order of their code points; `n` events use a list.
    # An id is not given twice: whoever reads an older moment may have it.
    """create table lists (
        id integer primary key autoincrement, digest blob not null unique, names text not null, n integer not null)""",
    """create table versions (
        id integer primary key, model_id text not null, version text not null, taken integer not null,
        first_ms integer not null, last_ms integer not null,
        first_observation integer not null, last_observation integer not null,
        unique (model_id, version))""",
    # The newest revision of each incident: `t` and `observation` are of it, `begun` and `since` of the onset.
    # `brief` is what lists need of `value`, which may be a hundred times as long.
    """create table incidents (
        seq integer primary key, id text not null unique, model_id text not null, revision integer not null, t integer,
        begun integer, since integer not null, observation integer not null, is_open integer not null,
        brief blob not null, value blob not null)""",
    "create index incidents_of_model on incidents (model_id, begun)",
    "create index incidents_by_beginning on incidents (begun)",
    "create index incidents_by_time on incidents (t)",
    "create index incidents_that_are_open on incidents (model_id) where is_open",
    """create table statuses (
        model_id text not null, part integer not null, t integer, value blob not null,
        primary key (model_id, part)) without rowid""",
    """create table letters (
        model_id text not null, reason text not null, stage text not null, hour integer not null, n integer not null,
        first_ms integer not null, last_ms integer not null,
        primary key (model_id, reason, stage, hour)) without rowid""",
    "create index letters_by_hour on letters (hour)",
    "create table letter_ids (id integer primary key, seq integer not null)",
    "create index letter_ids_by_seq on letter_ids (seq)",
    """create table dependences (
        model_id text not null, explainer text not null, feature text not null, label text not null,
        t integer, observation integer not null, value blob not null,
        primary key (model_id, explainer, feature, label)) without rowid""",
    """create table positions (
        topic text not null, part integer not null, next integer not null, primary key (topic, part))""",
    "create table topics (name text primary key, topic_id text not null)",
    # A feed: ids grow by one, and go on where they were when the store has been opened again.
    "create table live (id integer primary key, event text not null, model_id text not null, data blob not null)",
    "create table meta (name text primary key, value integer not null)",
)

EMPTIED = (
    "series",
    "events",
    "lists",
    "versions",
    "incidents",
    "statuses",
    "letters",
    "letter_ids",
    "dependences",
    "positions",
    "topics",
    "live",
)
"""Tables of what topics have said; `meta` has what goes on when they are read anew."""


def make_tables(db: sqlite3.Connection) -> None:
    """Make the tables in a file that has none."""
    db.execute("begin immediate")
    for statement in _TABLES:
        db.execute(statement)
    db.execute(f"pragma user_version = {VERSION}")
    db.execute("commit")
