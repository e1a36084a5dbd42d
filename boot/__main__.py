"""The front of the single file: tell the version, or go through the door.

Every Python reads this, also Python 2, so that an old one says one clear line instead of a syntax error.
"""

import os
import sys

VERSION = ""  # filled in by zipapp.py


def refuse():
    """Say which Python is needed, and return the exit code."""
    here = (sys.executable, sys.version.split()[0], sys.argv[0])
    sys.stderr.write("aj: Python 3.11 or newer is needed, and %s is %s: try `python3.12 %s`\n" % here)
    return 2


def tell_version():
    """Print the version, and return the exit code."""
    try:
        os.write(1, ("aj %s\n" % VERSION).encode("ascii"))
    except BrokenPipeError:
        return 0
    except OSError as error:
        sys.stderr.write("aj: cannot write to standard output: %s\n" % error.strerror)
        return 1
    return 0


def main():
    """Answer at once what needs no program, else start it. Returns the exit code."""
    if sys.version_info < (3, 11):
        return refuse()
    if sys.argv[1:] in (["--version"], ["-V"]):
        return tell_version()
    import door

    return door.start(os.path.dirname(os.path.abspath(__file__)))


if __name__ == "__main__":
    sys.exit(main())
