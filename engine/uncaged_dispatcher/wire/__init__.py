"""Conversations for other programs: JSON-RPC 2.0 over a WebSocket, and a client for Python."""
