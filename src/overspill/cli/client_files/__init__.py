"""The files of clients that `wrap`, `unwrap` and `doctor` work on."""
