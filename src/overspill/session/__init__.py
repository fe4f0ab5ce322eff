"""The doors: a session, its blocking twin, and extraction without one."""
