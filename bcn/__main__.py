"""The `bcn` command, also as `python -m bcn`, which torchrun starts. Ctrl-C is one line, even while it still starts."""

import sys


def main() -> None:
    try:
        from bcn.cli import main as run

        run()
    except KeyboardInterrupt:
        print("bcn: interrupted", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
