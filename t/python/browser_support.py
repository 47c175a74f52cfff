# Headless Chromium, Debian's: what it measures of pages, for tests.
# SPDX-License-Identifier: LGPL-3.0-only
"""Pages in a browser."""

from __future__ import annotations

import functools
import html
import http.server
import json
import pathlib
import re
import shutil
import subprocess
import threading
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium")


def dumped(url: str, width: int, folder: pathlib.Path, *options: str) -> Any:
    """The JSON that the script of a page has written into its element "told"."""
    result = subprocess.run(
        [
            *(str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu"),
            *(f"--user-data-dir={folder}/profile", f"--window-size={width},900"),
            *(*options, "--dump-dom", url),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    found = re.search(r'<pre id="told">(.*?)</pre>', result.stdout, re.DOTALL)
    assert found and found[1], result.stdout[-500:]
    return json.loads(html.unescape(found[1]))


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Print no line for each request."""


# A frame is as narrow as asked for; a window has a least width.
FRAMES = """<!doctype html><pre id="told"></pre>{frames}<script>
addEventListener("unhandledrejection", event => {{
    document.getElementById("told").textContent = JSON.stringify(String(event.reason));
}});
addEventListener("load", async () => {{
    const told = {{}};
    for (const frame of document.querySelectorAll("iframe")) {{
        const measure = async (doc, win) => {{ {script} }};
        told[frame.name] = await measure(frame.contentDocument, frame.contentWindow);
    }}
    document.getElementById("told").textContent = JSON.stringify(told);
}});
</script>
"""


def in_frames(
    site: pathlib.Path, pages: list[str], width: int, script: str, folder: pathlib.Path
) -> dict[str, Any]:
    """Result of a script for each page of a site, in a frame of that width. The script
    is a function body with the page's `doc` and `win`, and may await."""
    frames = "".join(
        f'<iframe name="{html.escape(page)}" src="{html.escape(page)}" '
        f'style="width:{width}px;height:900px;border:0"></iframe>'
        for page in pages
    )
    name = f"frames-{width}.html"
    (site / name).write_text(
        FRAMES.format(frames=frames, script=script), encoding="utf8"
    )
    handler = functools.partial(_Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/{name}"
        # Virtual time: timers of pages run at once, and none is cut off.
        told = dumped(url, 1280, folder, "--virtual-time-budget=60000")
        server.shutdown()
    assert list(told) == pages, told
    result: dict[str, Any] = told
    return result
