"""A sub-agent searches the stored file itself, with Read and Grep, for a limited number of turns, and then reports."""

from __future__ import annotations

import anyio

from overspill.errors import OverspillError
from overspill.extraction import wrapper
from overspill.extraction.chunks import Span
from overspill.extraction.document import ExtractionFailed, limit_output
from overspill.extraction.file_tools import FileTools
from overspill.extraction.findings import conclude_alone
from overspill.extraction.inquiry import Inquiry, run_in_thread
from overspill.models.conversation import converse, run_in_parallel
from overspill.models.protocol import Message, Request
from overspill.types import Extraction

SEARCHED = "Searched: the output of {tool} ({bytes:,} bytes, {lines:,} lines), with Read and Grep."
START = "Begin. The file is {handle}."
LAST_TURN = "This is your last turn, and there are no more tools. Give your final report in its wrapper now."
LAST_PLAIN_TURN = "This is your last turn, and there are no more tools. Answer now."
NOTHING_SEEN = "The sub-agent reported without having seen anything of the output."
OUT_OF_TIME = "The sub-agent had not finished after {seconds:g} s."


async def extract_read_grep(inquiry: Inquiry) -> Extraction:
    document, nonce = inquiry.document, wrapper.new_nonce()
    is_plain = inquiry.policy.contract == "plain"
    request = Request(
        inquiry.prompts.build_explore_prompt(nonce),
        (Message("user", inquiry.prompts.remind(START.format(handle=document.handle))),),
        FileTools.define(has_file=not is_plain),
        tool_choice="required",
        max_output_tokens=limit_output(inquiry.model),
    )
    tools = FileTools(inquiry, nonce, inquiry.measure_room(request))
    response = None
    with anyio.CancelScope(deadline=inquiry.deadline):
        try:
            response = await converse(
                tools,
                request,
                run_in_parallel(tools.answer),
                max_turns=inquiry.policy.max_turns,
                final_hint=inquiry.prompts.remind(LAST_PLAIN_TURN) if is_plain else LAST_TURN,
                insist=tools.insist_on_looking,
            )
        except OverspillError as error:
            raise ExtractionFailed(str(error)) from error
    if response is None:
        raise ExtractionFailed(OUT_OF_TIME.format(seconds=inquiry.policy.within_secs))
    if is_plain and not tools.has_seen_text:
        raise ExtractionFailed(NOTHING_SEEN)
    report = await run_in_thread(lambda: inquiry.parse_report(response, nonce, tools if is_plain else None))
    searched_where = SEARCHED.format(tool=document.tool, bytes=document.size.bytes, lines=document.size.lines)
    return await conclude_alone(inquiry, report, None, [Span(0, document.reader.size)], searched_where)
