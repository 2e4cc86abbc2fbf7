# Makes small.sqlite as nsys export writes it: two GPUs of one process, two marked steps of kernels, all-reduces and copies. Times in ns.
import os, sqlite3
if os.path.exists("small.sqlite"): os.remove("small.sqlite")
c = sqlite3.connect("small.sqlite")
c.executescript("""
create table StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT);
create table TARGET_INFO_GPU (vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT);
create table CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,
  streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL);
create table CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,
  streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL);
create table NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT, textId INTEGER, globalTid INTEGER);
""")
names = ["sm90_xmma_gemm_bf16", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "iteration 7"]
c.executemany("insert into StringIds values(?,?)", list(enumerate(names)))
c.executemany("insert into TARGET_INFO_GPU values(0,?,?)", [(0, "NVIDIA H200"), (1, "NVIDIA H200")])
pid = 0x1000000 * 4711
for step in range(2):
    t = 1_000_000 + step * 100_000
    c.execute("insert into NVTX_EVENTS values(?,?,59,?,?,?)", (t, t + 100_000, None if step else "iteration 6", 2 if step else None, pid + 5))
    for gpu in range(2):
        c.execute("insert into CUPTI_ACTIVITY_KIND_KERNEL values(?,?,?,1,7,1,?,0,0)", (t, t + 60_000, gpu, pid))
        c.execute("insert into CUPTI_ACTIVITY_KIND_KERNEL values(?,?,?,1,9,2,?,1,1)", (t + 40_000, t + 80_000, gpu, pid))
        c.execute("insert into CUPTI_ACTIVITY_KIND_MEMCPY values(?,?,?,1,7,3,?,4096,1)", (t + 80_000, t + 90_000, gpu, pid))
c.execute("insert into NVTX_EVENTS values(1,2,59,'forward',NULL,?)", (pid + 5,))
c.commit()
