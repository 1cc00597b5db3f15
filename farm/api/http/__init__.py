"""HTTP itself: authorization, bodies, headers, problem documents, the server."""
