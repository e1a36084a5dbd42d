"""SHA-256 of small things: names of files, keys, requests.

`hashlib` loads OpenSSL, which costs a process 3 ms and 3.6 MiB (measured with 3.11); Python's own SHA-256 gives
the same and is slower only where there are megabytes to read. Who hashes files takes `hashlib`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import sha256 as sha256
else:
    try:
        from _sha2 import sha256  # since 3.12
    except ImportError:
        try:
            from _sha256 import sha256
        except ImportError:  # a Python that was built without it
            from hashlib import sha256

__all__ = ["sha256"]
