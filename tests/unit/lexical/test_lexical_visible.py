"""Large pages: scripts, styles and comments are not searched, however many and however short they are."""

import pytest
from slow import slow

from overspill.lexical.cutting import PART_BYTES
from overspill.lexical.index import MAX_WHOLE_BYTES, Index, build
from overspill.lexical.reading import find_hidden
from overspill.lexical.select import select

ROW = b"<p>The worker waits for the payment handler.</p><script>track('worker')</script>\n"


def large_page(*rows: bytes) -> Index:
    return build(b"<!doctype html><html><body>" + ROW * (MAX_WHOLE_BYTES // len(ROW) + 1) + b"".join(rows) + ROW * 99)


@pytest.mark.parametrize("padding", [b"", *slow(b"x" * 5_000)])
@pytest.mark.parametrize(
    "hidden", [b"<script>%b</script>", b"<!-- %b -->", b"<STYLE media=all>%b</STYLE >", b"<svg><p>%b</p></svg>"]
)
def test_what_a_reader_does_not_see_is_not_found(hidden: bytes, padding: bytes):
    assert select(large_page(hidden % (padding + b" zanzibar ")), "zanzibar").matched == 0


@pytest.mark.parametrize("padding", [b"", b"x" * 5_000])
def test_what_is_between_two_scripts_is_found(padding: bytes):
    script = b"<script>f(%b)</script>" % padding
    found = select(large_page(script, b"<b>zanzibar</b>", script), "zanzibar")
    assert found.matched == 1
    assert "zanzibar" in found.text


@pytest.mark.parametrize("padding", [PART_BYTES, PART_BYTES + PART_BYTES // 3, PART_BYTES + 2 * PART_BYTES // 3])
def test_a_tag_in_a_long_comment_hides_nothing_after_it(padding: int):
    comment = b"<!-- %b <script> -->" % (b"x" * padding)
    found = select(large_page(comment, b"<p>zanzibar</p>", b"<script>f()</script>"), "zanzibar")
    assert found.matched == 1
    assert any("zanzibar" in excerpt.shown for excerpt in found.excerpts)


def test_scripts_do_not_crowd_out_what_is_seen():
    scripts = (ROW * 100 + b"<script>fly('kestrel')</script>") * (MAX_WHOLE_BYTES // len(ROW) // 100)
    found = select(large_page(scripts, b"<b>kestrel</b>"), "kestrel")
    assert "kestrel" in found.text
    assert "matched 1 record, all shown" in found.text


@pytest.mark.parametrize(
    ("page", "hidden"),
    [
        (b"a<script>f()</script>b", [b"<script>f()</script>"]),
        (b"a<script>if (a<b) f('<!--')</script >b-->", [b"<script>if (a<b) f('<!--')</script >"]),
        (b"a<!-- <script> -->b</script>", [b"<!-- <script> -->"]),
        (b"a<!-- x <!--> -->b", [b"<!-- x <!-->"]),
        (b"<pre>a<script>b</script></pre><style>c</style>", [b"<style>c</style>"]),
        (b"<script>a<style>b</style>", [b"<style>b</style>"]),
        (b'<script type="application/ld+json">{}</script><script>a</script>', [b"<script>a</script>"]),
    ],
)
def test_an_element_is_hidden_up_to_its_own_end(page: bytes, hidden: list[bytes]):
    assert [page[start:end] for start, end in find_hidden(page)] == hidden
