"""Many jobs: finding them under paths and URLs, triaging each, and keeping the answers in one SQLite store."""
