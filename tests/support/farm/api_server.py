"""Farms on loopback for tests: the real API, and a server that answers whatever a test wants."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.support.farm.http_farm import http_farm


@contextmanager
def served_farm(data_dir: Path) -> Iterator[str]:
    """A farm without agents; yields its address."""
    with http_farm(data_dir) as farm:
        yield farm.url


@contextmanager
def scripted_server(answers: Mapping[str, tuple[int, object]]) -> Iterator[str]:
    """Answers by `METHOD /path`: a status, and a text or a document; other paths close the connection."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = answers.get(f"{self.command} {self.path.partition('?')[0]}", (0, ""))
            if not status:
                self.close_connection = True
                return
            content = (body if isinstance(body, str) else json.dumps(body)).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def problem(code: str, blame: str, *, status: int = 422, **more: object) -> tuple[int, object]:
    """An answer that refuses, with a problem document."""
    document = {
        "title": "No.",
        "status": status,
        "detail": f"{code} happened",
        "code": code,
        "blame": blame,
        "transient": False,
        "hint": "do otherwise",
        **more,
    }
    return status, document
