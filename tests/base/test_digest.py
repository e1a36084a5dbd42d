"""The light SHA-256 is the SHA-256."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aj.base.digest import sha256


@given(st.binary(max_size=300))
def test_it_gives_what_everybody_gives(data: bytes) -> None:
    assert sha256(data).hexdigest() == hashlib.sha256(data).hexdigest()


@pytest.mark.usefixtures("programs")
def test_it_loads_no_large_library() -> None:
    code = "import sys; import aj.base.digest; print('_hashlib' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"
