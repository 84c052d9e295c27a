"""Executors carry chunks to where they are computed, and nothing else; their interface is `running.chunk.Executor`."""
