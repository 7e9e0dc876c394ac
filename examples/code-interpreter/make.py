"""Makes the template `code-interpreter-v1`: a snapshot of a sandbox that has the interpreter. Arguments are packages for its code."""

import sys
from pathlib import Path

from e2b import Sandbox

here = Path(__file__).parent


def make(packages, **more):
    """`more` is for Sandbox.create, such as a network of its own."""
    sandbox = Sandbox.create("base", timeout=1800, **more)
    try:
        for name in ("install.sh", "server.py", "kernel.py"):
            sandbox.files.write(f"/root/code-interpreter/{name}", (here / name).read_text(), user="root")
        command = " ".join(["sh /root/code-interpreter/install.sh", *packages])
        sandbox.commands.run(command, user="root", timeout=1500, on_stdout=print, on_stderr=print)
        return sandbox.create_snapshot(name="code-interpreter-v1")
    finally:
        sandbox.kill()


if __name__ == "__main__":
    print("made", make(sys.argv[1:]).snapshot_id)
