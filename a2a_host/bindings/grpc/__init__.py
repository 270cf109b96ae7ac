"""The gRPC binding (§10): the services of A2A 1.0 and 0.3, in a process of their own."""
