"""The modes of `get_tool_output` that need no model, one file each. `retrieval/exact.py` registers them."""
