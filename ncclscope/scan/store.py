"""The store: one SQLite file that a scan fills, may be stopped at any moment, and goes on with."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ncclscope.scan.files import ScanError, found_twice, nested
from ncclscope.scan.result import JobResult
from ncclscope.scan.schema import CHILDREN, COLUMNS, SCHEMA, TABLES
from ncclscope.sources.inputs import printable
from ncclscope.version import __version__

__all__ = ["BESIDE", "JobStore", "merge"]

# What SQLite keeps beside a store that is open, by the end of the name.
BESIDE = ("-wal", "-shm", "-journal")


# Before a root in the table meta: the key of the pattern that its files are grouped by.
_PATTERN = "job-pattern of "


class JobStore:
    """A store that is open. A `with` that it cannot be read or written in ends with ScanError."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        """create: make the file where there is none, and write to it. Without, a store that cannot be written, or lies
        where nothing can, is read as it is."""
        self.path = path
        self._create = create
        # By which SQLite opens it, here and where it is attached.
        self.name = str(path if str(path) == ":memory:" else path.absolute())
        if not create and not path.is_file():
            raise ScanError(f"{path}: no such store; `ncclscope scan PATH --store {path}` makes one")
        try:
            try:
                self._connect()
            except sqlite3.OperationalError as error:
                if create or "locked" in str(error):
                    raise
                self._connect_read_only()
        except sqlite3.OperationalError as error:
            raise ScanError(self._trouble(error)) from None
        except sqlite3.DatabaseError as error:
            if "malformed" in str(error):
                raise ScanError(self._damaged(str(error))) from None
            raise ScanError(f"{path}: not a store of ncclscope ({error}); name another file") from None

    def _connect(self) -> None:
        # Several readers may look at a store while a scan fills it.
        self.db = sqlite3.connect(self.name, timeout=60, isolation_level=None, uri=True)
        try:
            self._open(create=self._create)
        except BaseException:
            self.db.close()
            raise

    def _connect_read_only(self) -> None:
        """Where SQLite cannot make the file that it keeps beside a store for locks."""
        plain = self.name
        url = self.path.absolute().as_uri()
        try:
            self.name = f"{url}?mode=ro"
            self._connect()
            return
        except sqlite3.OperationalError:
            log = Path(f"{plain}-wal")
            if log.is_file() and log.stat().st_size:
                raise ScanError(
                    f"{plain}: cannot be read where nothing can be written, because {log.name} beside it may hold"
                    " results that are not in it yet: copy both to a directory that can be written"
                ) from None
        # Without a log the file is whole. Locks are not asked, so a scan that writes to it elsewhere goes unnoticed.
        self.name = f"{url}?immutable=1"
        self._connect()

    def _open(self, *, create: bool) -> None:
        tables = {name for (name,) in self.db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if tables and "meta" not in tables:
            raise ScanError(f"{self.path}: an SQLite file of something else; name another file")
        if create:
            # A killed process loses at most what it had not committed; the file itself stays sound.
            self.db.execute("PRAGMA journal_mode = WAL")
            self.db.execute("PRAGMA synchronous = NORMAL")
            self.db.executescript(TABLES)
            if "rules" not in self._columns("main"):  # made before there was this column
                self.db.execute("ALTER TABLE jobs ADD COLUMN rules TEXT")
            self.db.execute("INSERT OR IGNORE INTO meta VALUES ('schema', ?)", (str(SCHEMA),))
        row = self.db.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
        if row is None or row[0] != str(SCHEMA):
            raise ScanError(f"{self.path}: schema {row and row[0]}, this version reads {SCHEMA}: scan into a new store")

    def __enter__(self) -> JobStore:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self.close()
        if isinstance(error, sqlite3.OperationalError):
            raise ScanError(self._trouble(error)) from None
        # The bare class: those below it tell of wrong statements.
        if type(error) is sqlite3.DatabaseError:
            raise ScanError(self._damaged(str(error))) from None

    def _damaged(self, reason: str) -> str:
        return f"{self.path}: the store is damaged ({reason}): take a copy of it from before, or scan into a new one"

    def _trouble(self, error: sqlite3.OperationalError) -> str:
        """What the file system or another process does to the store, and the way out."""
        if "full" in str(error):
            return (
                f"{self.path}: no space left for the store; make some and start again: what is in it stays and is not"
                " read again"
            )
        if "locked" in str(error):
            return f"{self.path}: another process has held the store for a minute; let one scan at a time write to it"
        try:
            with self.path.open("ab" if self._create else "rb"):
                reason = str(error)
        except OSError as why:
            reason = why.strerror or str(why)
        if not self._create:
            return f"{self.path}: cannot read the store: {reason}"
        return f"{self.path}: cannot use the store: {reason}; name one in a directory that exists and can be written"

    def close(self) -> None:
        """Leaves one file: what stood in the log beside it is moved in."""
        self.db.close()

    def _columns(self, database: str) -> set[str]:
        return {row[1] for row in self.db.execute(f"PRAGMA {database}.table_info(jobs)")}

    def jobs(self, root: str) -> list[tuple[int, str, str]]:
        """(id, name, fingerprint that it was read with) of the jobs under a root."""
        return self.db.execute("SELECT id, name, fingerprint FROM jobs WHERE root = ?", (root,)).fetchall()

    def roots(self) -> set[str]:
        """The places that jobs were read from."""
        return {root for (root,) in self.db.execute("SELECT DISTINCT root FROM jobs")}

    def paths(self, root: str) -> list[str]:
        """The paths under a root of all that its jobs were read from."""
        asked = "SELECT path FROM inputs JOIN jobs ON inputs.job = jobs.id WHERE root = ?"
        return [path for (path,) in self.db.execute(asked, (root,))]

    def inputs(self, number: int) -> list[str]:
        """The paths under the root of what a job was read from."""
        return [path for (path,) in self.db.execute("SELECT path FROM inputs WHERE job = ?", (number,))]

    def keep_pattern(self, root: str, pattern: str | None) -> None:
        """Notes how files under a root are grouped; another grouping would count them twice."""
        key, value = f"{_PATTERN}{root}", pattern or ""
        row = self.db.execute("SELECT value FROM meta WHERE key = ?", (printable(key),)).fetchone()
        if row is None:
            self.db.execute("INSERT INTO meta VALUES (?, ?)", (printable(key), value))
        elif row[0] != value:
            was = f"--job-pattern {row[0]!r}" if row[0] else "no --job-pattern"
            raise ScanError(f"{self.path}: {root} was scanned with {was}; repeat it, or name a new store")

    def forget_files(self, ids: Iterable[int]) -> None:
        """Takes back that these jobs were read from the files as they are now: the next scan reads them, whether or not
        this one comes to it. Their answers stay until then."""
        self.db.execute("BEGIN IMMEDIATE")
        self.db.executemany("UPDATE jobs SET fingerprint = '' WHERE id = ?", [(number,) for number in ids])
        self.db.execute("COMMIT")

    def count_older(self, ids: Sequence[int], rules: str) -> tuple[int, int]:
        """How many of these jobs another version of ncclscope read, and how many this one with other rules."""
        made_by = {number: made for number, *made in self.db.execute("SELECT id, tool_version, rules FROM jobs")}
        made = [made_by[number] for number in ids if number in made_by]
        same = [with_ for version, with_ in made if version == __version__]
        return len(made) - len(same), sum(with_ != rules for with_ in same)

    def put(self, results: Iterable[JobResult], rules: str | None = None, gone: Iterable[int] = ()) -> None:
        """Stores the results together: all of them or none, each in place of an older one of the same job. rules: the
        mark of those that they were judged by. gone: the ids of jobs that are taken out with it."""
        self.db.execute("BEGIN IMMEDIATE")
        try:
            for result in results:
                self._put(result, rules)
            for number in gone:
                self._take_out(number)
            self.db.execute("COMMIT")
        except BaseException:
            if self.db.in_transaction:  # a full disk has ended it already
                self.db.execute("ROLLBACK")
            raise

    def _take_out(self, number: int) -> None:
        for table in CHILDREN:
            self.db.execute(f"DELETE FROM {table} WHERE job = ?", (number,))  # noqa: S608 - names from the schema
        self.db.execute("DELETE FROM jobs WHERE id = ?", (number,))

    def _put(self, result: JobResult, rules: str | None) -> None:
        self._take_out(result.id)
        values = {
            "id": result.id,
            "name": result.name,
            **result.job,
            "report": zlib.compress(result.report, 6),
            "rules": rules,
        }
        self.db.execute(
            f"INSERT OR REPLACE INTO jobs ({', '.join(COLUMNS)}) VALUES ({_marks(len(COLUMNS))})",  # noqa: S608
            [_plain(values.get(column)) for column in COLUMNS],
        )
        for table, width in CHILDREN.items():
            rows = [(result.id, *map(_plain, row)) for row in result.rows.get(table, ())]
            if rows:
                self.db.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({_marks(width + 1)})", rows)  # noqa: S608

    def put_problems(self, root: str, problems: Iterable[tuple[str, str]]) -> None:
        """Replaces what is known of what could not be listed under a root."""
        self.db.execute("BEGIN IMMEDIATE")
        self.db.execute("DELETE FROM problems WHERE root = ?", (root,))
        rows = [(root, printable(path), reason) for path, reason in problems]
        self.db.executemany("INSERT OR REPLACE INTO problems VALUES (?, ?, ?)", rows)
        self.db.execute("COMMIT")

    def reports(self, ids: Iterable[int]) -> Iterator[tuple[str, bytes]]:
        """(name, JSON of the report) of these jobs."""
        for number in ids:
            row = self.db.execute("SELECT name, report FROM jobs WHERE id = ?", (number,)).fetchone()
            if row is not None:
                try:
                    report = zlib.decompress(row[1])
                except (zlib.error, TypeError):
                    raise ScanError(self._damaged(f"the report of job {row[0]} cannot be unpacked")) from None
                yield row[0], report


def _marks(count: int) -> str:
    return ", ".join("?" * count)


def _plain(value: object) -> object:
    """A value as the store gives it back: names on disk need not be UTF-8; what cannot be text in SQLite is escaped."""
    if isinstance(value, str):
        return printable(value)
    return value


def merge(into: JobStore, sources: Iterable[Path]) -> int:
    """Copies the jobs of other stores, of one that several hold the last, and how each root was grouped; returns how
    many rows of jobs were copied. Raises ScanError where two stores group a root differently, or hold a file twice."""
    copied = 0
    for source in sources:
        with JobStore(source) as other:
            name = other.name
        into.db.execute("ATTACH DATABASE ? AS other", (name,))
        try:
            copied += _merge_attached(into, source)
        except sqlite3.DatabaseError as error:
            if type(error) is sqlite3.DatabaseError:
                raise ScanError(other._damaged(str(error))) from None
            raise
        into.db.execute("DETACH DATABASE other")
    for inner, outer in nested(into.roots()):
        twice = found_twice(inner, into.paths(inner), outer, into.paths(outer))
        if twice is not None:
            raise ScanError(
                f"{twice} was scanned under {inner} and under {outer}, and its job would count twice: leave one"
                " of the stores out"
            )
    return copied


def _merge_attached(into: JobStore, source: Path) -> int:
    into.db.execute("BEGIN IMMEDIATE")
    differ = into.db.execute(
        "SELECT key, mine.value, theirs.value FROM main.meta AS mine JOIN other.meta AS theirs USING (key)"
        " WHERE substr(key, 1, ?) = ? AND mine.value != theirs.value",
        (len(_PATTERN), _PATTERN),
    ).fetchone()
    if differ is not None:
        key, mine, theirs = differ
        first, second = (f"--job-pattern {pattern!r}" if pattern else "no --job-pattern" for pattern in (mine, theirs))
        raise ScanError(
            f"{source}: {key.removeprefix(_PATTERN)} was scanned with {second}, in a store before it with {first}:"
            " files would be counted twice; scan again with the same one"
        )
    into.db.execute(
        "INSERT OR IGNORE INTO main.meta SELECT * FROM other.meta WHERE substr(key, 1, ?) = ?",
        (len(_PATTERN), _PATTERN),
    )
    for table in CHILDREN:
        into.db.execute(f"DELETE FROM main.{table} WHERE job IN (SELECT id FROM other.jobs)")  # noqa: S608
        into.db.execute(f"INSERT INTO main.{table} SELECT * FROM other.{table}")  # noqa: S608
    columns = ", ".join(sorted(into._columns("other") & set(COLUMNS)))
    done = into.db.execute(f"INSERT OR REPLACE INTO main.jobs ({columns}) SELECT {columns} FROM other.jobs")  # noqa: S608
    into.db.execute("INSERT OR REPLACE INTO main.problems SELECT * FROM other.problems")
    into.db.execute("COMMIT")
    return done.rowcount
