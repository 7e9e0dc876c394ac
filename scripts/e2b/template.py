"""Makes the template code-interpreter-v1. Its sandbox may reach the addresses that are given, where a mirror stands in for PyPI."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "../../examples/code-interpreter"))
from make import make

mirrors = sys.argv[1:]
make(["pandas"], **({"network": {"deny_out": ["0.0.0.0/0"], "allow_out": mirrors}} if mirrors else {}))
