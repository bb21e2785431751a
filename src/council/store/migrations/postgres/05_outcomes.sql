-- How decisions turned out. The row of a removed run stays without its texts, so that track records remain correct.
CREATE TABLE outcomes (run TEXT COLLATE "C" PRIMARY KEY, at DOUBLE PRECISION NOT NULL, label TEXT NOT NULL,
       value TEXT NOT NULL, note TEXT NOT NULL, seats TEXT NOT NULL);
