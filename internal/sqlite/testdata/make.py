# Makes small.sqlite: python3 make.py
import os, sqlite3
if os.path.exists("small.sqlite"): os.remove("small.sqlite")
c = sqlite3.connect("small.sqlite")
c.execute("pragma page_size=1024")
c.execute('create table numbers (id INTEGER NOT NULL PRIMARY KEY, -- the row\'s id\n n INTEGER, "x" REAL DEFAULT (1.0), CHECK (n < 4e18))')
c.executemany("insert into numbers(n,x) values(?,?)", [(i, i / 2 + .5) for i in range(3000)])
c.execute("alter table numbers add column later TEXT")
c.execute("insert into numbers(n,x,later) values(-4503599627370496, null, 'new')")
c.execute("create table texts (value TEXT)")
c.executemany("insert into texts values(?)", [("hello",), ("long " * 1800,), ("",)])
c.commit()
