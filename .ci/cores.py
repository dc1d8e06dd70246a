"""Print up to two kinds of processor, other than this one, whose kernels OpenBLAS can run here: `make test-cores`.

Sums are rounded differently by each of them, and no test may depend on that.
"""

import os
import subprocess
import sys
from pathlib import Path

# From new to old, each with what the processor at hand must be capable of.
KERNELS = {"SkylakeX": "avx512bw", "Haswell": "avx2", "Sandybridge": "avx", "Nehalem": "sse4_2"}
# Kinds that round as another does.
ALIKE = {"Zen": "Haswell", "Cooperlake": "SkylakeX", "SapphireRapids": "SkylakeX"}
PROGRAM = """
import numpy
from threadpoolctl import threadpool_info
print(*{pool["architecture"] for pool in threadpool_info() if pool["internal_api"] == "openblas"})
"""


def main() -> None:
    """Print the names on one line; an empty one where there is no OpenBLAS or no Linux."""
    about = Path("/proc/cpuinfo")
    capable = set(about.read_text(encoding="utf-8").split()) if about.exists() else set()
    own = used()
    others = [core for core, needs in KERNELS.items() if needs in capable and core != ALIKE.get(own, own)]
    # The two that are furthest apart.
    print(*[core for core in dict.fromkeys([*others[:1], *others[-1:]]) if used(core) == core])


def used(core: str | None = None) -> str:
    """The kind whose kernels NumPy uses, by itself or when asked for one."""
    environment = os.environ | ({} if core is None else {"OPENBLAS_CORETYPE": core})
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, check=True, capture_output=True, text=True)
    return done.stdout.strip()


if __name__ == "__main__":
    main()
