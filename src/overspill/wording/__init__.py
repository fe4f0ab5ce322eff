"""Every short text a model reads. `tests/unit/wording` pins each one whole."""

# Others use what is imported here.
# ruff: noqa: F401
# pyright: reportUnusedImport=false

from overspill.wording.cards import NextStep, next_calls
from overspill.wording.names import prefixed, tool_name
from overspill.wording.replies import (
    CANCELLED,
    CANCELLED_ITSELF,
    NO_OUTPUT,
    NOT_STORED_YET,
    binary_message,
    brief_error,
    handle_message,
    image,
    incomplete_output,
    lost_output,
    more_images,
    not_a_chunk,
    not_searched,
    not_serialisable,
    nothing_found,
    partly_searched,
    passages,
    preview,
    ready_message,
    reference,
    reference_hints,
    repeated_output,
    shortened_reference,
    stored_message,
    stream_failure,
    timeout_reason,
    tool_failure,
    unknown_tool,
)
from overspill.wording.retrieval import (
    BUILTIN_ANSWERED,
    EXPANDED,
    NEAREST,
    NONE_FITS,
    NULL,
    PASSAGES,
    QUERY_REQUIRED,
    UNSUPPORTED,
    abstract,
    citations,
    continuation,
    decoding,
    decoding_notes,
    extraction_failure,
    grep_place,
    incomplete,
    lost_bytes,
    not_ready,
    partial,
    place,
    retrieval_failure,
    too_large,
    unknown_handle,
)
from overspill.wording.slow_tools import (
    INTERRUPTED,
    NONE_RUNNING,
    JobStatus,
    completed_jobs,
    left_too_long,
    notice,
    options,
    running_message,
    still_running,
    too_many_left_jobs,
)
from overspill.wording.sql import SQL_REQUIRED, STILL_LOADING, no_table, sql_rows
