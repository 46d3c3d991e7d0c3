-- One row a call, from its submission to the end of its result.
CREATE TABLE calls (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT, -- the order in which calls are sent
    id          TEXT    NOT NULL UNIQUE,
    lane        TEXT    NOT NULL,
    tenant      BLOB    NOT NULL, -- digests; no credential stands anywhere in this file
    name        BLOB    UNIQUE,
    state       TEXT    NOT NULL, -- waiting, done or expired
    size        INTEGER NOT NULL, -- in bytes, of what stands in request or result, and a little for the rest
    sends       INTEGER NOT NULL DEFAULT 0,
    strikes     INTEGER NOT NULL DEFAULT 0,
    token       INTEGER NOT NULL DEFAULT 0,
    leased_ms   INTEGER NOT NULL DEFAULT 0, -- until when somebody sends it; times are in ms since 1970
    ends_ms     INTEGER NOT NULL, -- when it expires, or is forgotten
    request     BLOB    NOT NULL,
    result      BLOB    NOT NULL
) STRICT;
CREATE INDEX calls_in_order ON calls (state, lane);
CREATE INDEX calls_by_size ON calls (state, size);
CREATE INDEX calls_by_end ON calls (state, ends_ms);
