"""A page without its script, to be looked at as text: what remains needs and does nothing."""

from __future__ import annotations

import base64
import hashlib
import re

_DATA = re.compile(r'<script type="application/octet-stream" id="data">[A-Za-z0-9+/=]*</script>\n')
_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')


def still(page: str) -> str:
    """The page without data, script and policy. The policy must allow this script and no other."""
    (policy,) = _POLICY.findall(page)
    assert "default-src 'none'" in policy
    page = _POLICY.sub("", _DATA.sub("", page, count=1))
    found = re.search(r"<script>(.*?)</script>", page, re.DOTALL)
    if found is None:
        assert "script-src 'none'" in policy
        return page
    digest = base64.b64encode(hashlib.sha256(found[1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy
    return page[: found.start()] + page[found.end() :]
