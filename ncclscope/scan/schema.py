"""The tables of a store. They are an interface: columns may be added, none changes without a new SCHEMA number."""

from __future__ import annotations

__all__ = ["CHILDREN", "COLUMNS", "SCHEMA", "TABLES", "schema_sql"]

SCHEMA = 1

TABLES = """
-- One row: the number of this schema.
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- One row a job. id: a hash of root and name, the same in every store. name: unique under its root. root: absolute path
-- or URL that was scanned. fingerprint: changes with the job's files. category, rule, confidence, title, phase: of the
-- first finding. ranks, hosts: how many. first_time, last_time: as printed, without kernel logs; day: of last_time,
-- else of the newest file. wall_s: seconds between the two. bytes, lines, events: what was read, after decompression.
-- problem: what could not be read. rules: a mark of the rules that judged it. report: the JSON of the report,
-- compressed with zlib.
CREATE TABLE IF NOT EXISTS jobs (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, root TEXT NOT NULL, fingerprint TEXT NOT NULL, tool_version TEXT NOT NULL,
  verdict TEXT NOT NULL, category TEXT, rule TEXT, confidence TEXT, title TEXT, phase TEXT,
  ranks INTEGER, hosts INTEGER,
  first_time TEXT, last_time TEXT, day TEXT, wall_s REAL, stored_bytes INTEGER, bytes INTEGER, lines INTEGER,
  events INTEGER, problem TEXT, report BLOB NOT NULL, rules TEXT, UNIQUE (root, name));

-- Findings in the order of the report. place: counts from 0; parent: the place of the finding that explains this one.
CREATE TABLE IF NOT EXISTS findings (
  job INTEGER NOT NULL, place INTEGER NOT NULL, parent INTEGER, rule TEXT NOT NULL, role TEXT NOT NULL, category TEXT,
  confidence TEXT NOT NULL, title TEXT NOT NULL, phase TEXT, PRIMARY KEY (job, place)) WITHOUT ROWID;

-- Whom a finding blames. rank: global; gpu: four-part PCI address; uuid, serial: where the kernel log printed them.
CREATE TABLE IF NOT EXISTS culprits (
  job INTEGER NOT NULL, finding INTEGER NOT NULL, rank INTEGER, host TEXT, gpu TEXT, uuid TEXT, serial TEXT,
  pid INTEGER);

-- The lines that prove a finding (kind line), and what was expected and not there (kind absence).
CREATE TABLE IF NOT EXISTS evidence (
  job INTEGER NOT NULL, finding INTEGER NOT NULL, number INTEGER NOT NULL, kind TEXT NOT NULL, source TEXT,
  line INTEGER, count INTEGER NOT NULL, time TEXT, text TEXT NOT NULL,
  PRIMARY KEY (job, finding, number)) WITHOUT ROWID;

-- The files. size, mtime (seconds since 1970) and hash (XXH3, 128 bits) are of the bytes as stored, bytes after
-- decompression. Members of an archive have the archive's path in front.
CREATE TABLE IF NOT EXISTS inputs (
  job INTEGER NOT NULL, path TEXT NOT NULL, size INTEGER, mtime REAL, hash TEXT, bytes INTEGER, lines INTEGER,
  events INTEGER, format TEXT, note TEXT);

-- Every host that took part in a job, whether it failed or not.
CREATE TABLE IF NOT EXISTS hosts (job INTEGER NOT NULL, host TEXT NOT NULL, PRIMARY KEY (job, host)) WITHOUT ROWID;

-- Versions that a job's files show. what: nccl, nccl_cuda, torch, driver (NCCL's cudaDriverVersion, the CUDA version of
-- the driver's API: 12040 is 12.4).
CREATE TABLE IF NOT EXISTS versions (
  job INTEGER NOT NULL, what TEXT NOT NULL, version TEXT NOT NULL, PRIMARY KEY (job, what, version)) WITHOUT ROWID;

-- Xids of the kernel logs that were given with a job. count: lines.
CREATE TABLE IF NOT EXISTS xids (
  job INTEGER NOT NULL, host TEXT, gpu TEXT, uuid TEXT, serial TEXT, xid INTEGER NOT NULL, count INTEGER NOT NULL);

-- Lines that tell of trouble and that no finding rests on. kind: the event's, `line` where no parser knows it.
CREATE TABLE IF NOT EXISTS unexplained (
  job INTEGER NOT NULL, kind TEXT NOT NULL, source TEXT, line INTEGER, count INTEGER NOT NULL, text TEXT NOT NULL);

-- Files and directories that could not be listed, and links to directories, which are not followed.
CREATE TABLE IF NOT EXISTS problems (
  root TEXT NOT NULL, path TEXT NOT NULL, reason TEXT NOT NULL, PRIMARY KEY (root, path)) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS culprits_job ON culprits (job);
CREATE INDEX IF NOT EXISTS inputs_job ON inputs (job);
CREATE INDEX IF NOT EXISTS xids_job ON xids (job);
CREATE INDEX IF NOT EXISTS unexplained_job ON unexplained (job);
"""

# Tables whose first column is the job's id, with the number of their other columns.
CHILDREN = {
    "findings": 8, "culprits": 7, "evidence": 8, "inputs": 9, "hosts": 1, "versions": 2, "xids": 6, "unexplained": 5,
}  # fmt: skip

COLUMNS = (
    "id", "name", "root", "fingerprint", "tool_version", "verdict", "category", "rule", "confidence", "title", "phase",
    "ranks", "hosts", "first_time", "last_time", "day", "wall_s", "stored_bytes", "bytes", "lines", "events", "problem",
    "report", "rules",
)  # fmt: skip


def schema_sql() -> str:
    """The schema as `fleet --sql` prints it."""
    return TABLES.strip() + "\n"
