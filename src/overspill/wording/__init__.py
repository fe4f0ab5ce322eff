"""Every short text a model reads. `tests/unit/wording` pins each one whole."""
