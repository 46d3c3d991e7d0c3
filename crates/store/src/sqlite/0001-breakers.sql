-- One row a breaker: its state as it was last published.
CREATE TABLE breakers (
    scope       TEXT    NOT NULL,
    provider    TEXT    NOT NULL,
    part        TEXT    NOT NULL, -- the model or key; empty for providers
    state       TEXT    NOT NULL,
    since_ms    INTEGER NOT NULL, -- wall-clock times are in ms since 1970
    end_ms      INTEGER,
    end_boot_ms INTEGER,          -- in ms since boot_id began
    full_ms     INTEGER,
    taken_ms    INTEGER NOT NULL,
    boot_id     TEXT,
    boot_ms     INTEGER,
    counts      TEXT    NOT NULL, -- JSON; ages are as of taken_ms
    PRIMARY KEY (scope, provider, part)
) STRICT, WITHOUT ROWID;
