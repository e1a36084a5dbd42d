"""Every figure of this house in one run: `python -m tests.bench`, with AJ_BENCH_PEER naming another tool's command.

Start-up, selection and archive, the queue and the daemon, one after the other; each prints its ratios.
"""

from __future__ import annotations

import sys

from tests.bench import daemon, pack, queue, start


def main() -> int:
    for room in (start, pack, queue, daemon):
        print(f"\n== {(room.__doc__ or '').splitlines()[0].split(':')[0]}", flush=True)
        if code := room.main():
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
