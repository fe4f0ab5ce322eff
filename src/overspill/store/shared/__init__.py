"""What the stores on servers have in common: a process's lease, its open sessions, and how they write and read.

Each kind of store adds its requests to the server: in `OutputParts` and `OutputSource` for one output, and in a `SharedShelf` for
one session.
"""
