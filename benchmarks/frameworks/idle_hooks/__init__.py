"""The hooks that each adapter uses, doing nothing: what a framework itself takes for them. Each file has the agent of its driver
with such hooks in place of Overspill."""
