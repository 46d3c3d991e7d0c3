-- What happened, in the order in which it was published.
CREATE TABLE transitions (
    id       INTEGER PRIMARY KEY,
    at_ms    INTEGER NOT NULL,
    breaker  TEXT    NOT NULL,
    scope    TEXT    NOT NULL,
    run      INTEGER NOT NULL, -- when the process began
    number   INTEGER NOT NULL,
    "from"   TEXT    NOT NULL,
    "to"     TEXT    NOT NULL,
    until_ms INTEGER,
    cause    TEXT    NOT NULL,
    why      TEXT    NOT NULL,
    UNIQUE (run, scope, breaker, number)
) STRICT;
