"""gRPC over HTTP/2 for servers, on the `h2` library: connections, calls, messages. It knows nothing of A2A.

`server.py` listens and stops, `connection.py` reads frames, `sending.py` writes them, `call.py` is what handlers get.
"""
