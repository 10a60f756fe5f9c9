"""A program whose use of files is known to the byte: see `test_tracers.EXPECTED`."""

import contextlib
import mmap
import os
import sys
import threading

NEW = os.O_CREAT | os.O_TRUNC
os.chdir(sys.argv[1])

# In a thread and a fork, which share places: 3,000 bytes, one after another; then 100 of them
# again, from a duplicate.
out = os.open("out", NEW | os.O_RDWR)
thread = threading.Thread(target=os.write, args=(out, b"a" * 1000))
thread.start()
thread.join()
if (child := os.fork()) == 0:
    os.write(out, b"b" * 1000)
    os._exit(0)
os.waitpid(child, 0)
os.writev(out, [b"c" * 600, b"d" * 400])
again = os.dup(out)
os.lseek(again, 500, os.SEEK_SET)
os.lseek(out, 500, os.SEEK_SET)  # stands there already
os.read(out, 100)
os.close(again)
os.close(out)

# Read twice and mapped: 10,000 bytes are there.
data = os.open("data", os.O_RDONLY)
os.read(data, 4000)
os.pread(data, 4000, 2000)
mapped = mmap.mmap(data, 5000, prot=mmap.PROT_READ, offset=4096)
mapped.close()

# Copied by the system, renamed, appended to.
copy = os.open("copy.part", NEW | os.O_WRONLY)
os.sendfile(copy, data, 0, 6000)
os.copy_file_range(data, copy, 500, 1000)  # 500 bytes from there on
os.close(copy)
os.rename("copy.part", "copy")  # noqa: PTH104
more = os.open("copy", os.O_WRONLY | os.O_APPEND)
os.fstat(more)
os.write(more, b"e" * 10)
os.close(more)

# Written and deleted; truncated first.
temporary = os.open("temporary", NEW | os.O_WRONLY)
os.write(temporary, b"f" * 800)
os.ftruncate(temporary, 100)
os.close(temporary)
os.unlink("temporary")  # noqa: PTH108

# There before, and changed in place; opened for both, and only read; not there.
changed = os.open("changed", os.O_RDWR)
os.pwrite(changed, b"g" * 5, 20)
os.close(changed)
both = os.open("both", os.O_RDWR)
os.read(both, 30)
os.close(both)
with contextlib.suppress(FileNotFoundError):
    os.open("missing", os.O_RDONLY)
os.write(1, b"done\n")
