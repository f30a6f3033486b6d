"""`make fuzz`: every reader over many damaged files, each reader in a process of its own, and a table of what they did.

python -m fuzz --cases 100000             all readers
python -m fuzz --reader checkpoint        one of them
python -m fuzz --reader checkpoint --case 426    one case again, with its traceback
"""

import argparse
import sys
import time

from rich.console import Console
from rich.table import Table

from fuzz.harness import OUTCOMES
from fuzz.process import fuzz_apart
from fuzz.readers import READERS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Damaged files for every reader of bcn.")
    parser.add_argument("--cases", type=int, default=100_000, help="in all (default: 100,000)")
    parser.add_argument("--reader", choices=READERS, help="this one alone")
    parser.add_argument("--case", type=int, help="this one alone, of --reader")
    given = parser.parse_args()
    names = [given.reader] if given.reader else list(READERS)
    first = 0 if given.case is None else given.case
    cases = range(first, first + (1 if given.case is not None else -(-given.cases // len(names))))
    table = Table("reader", *OUTCOMES, "seconds", title=f"{len(cases) * len(names):,} damaged files")
    failures: list[str] = []
    for name in names:
        began = time.perf_counter()
        report = fuzz_apart(name, cases)
        failures += [f"{name}, {failure}" for failure in report.failures]
        counts = (f"{report.outcomes[outcome]:,}" if report.outcomes[outcome] else "" for outcome in OUTCOMES)
        table.add_row(name, *counts, f"{time.perf_counter() - began:.0f}")
        print(f"{name}: {sum(report.outcomes.values()):,} cases, {len(report.failures)} failures", file=sys.stderr)
    console = Console()
    console.width = max(console.width, 150)
    console.print(table)
    if failures:
        print(*failures[:50], sep="\n")
    print(f"{len(failures)} failures" if failures else "no failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
