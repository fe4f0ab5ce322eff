"""element on XML: the outline is well-formed, made of the source, and says what it leaves out."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from overspill.truncate import Shape, truncate


def element(text: str, limit: int, **options: int) -> str:
    cut = truncate(text, limit, "element", Shape(**options))
    assert cut.strategy == "element"
    assert len(cut.text) <= limit
    ElementTree.fromstring(cut.text)  # noqa: S314
    return cut.text


def test_the_first_and_last_children_stay_with_a_comment_between() -> None:
    text = "<?xml version='1.0'?>\n<list>\n" + "".join(f"  <item id='{n}'>é &amp; {n}</item>\n" for n in range(50)) + "</list>\n"
    assert (
        element(text, 300, first_elements=2, last_elements=1)
        == """<?xml version='1.0'?>
<list>
  <item id='0'>é &amp; 0</item>
  <item id='1'>é &amp; 1</item>
  <!-- 47 elements omitted -->
  <item id='49'>é &amp; 49</item>
</list>
"""
    )


def test_an_element_deeper_than_the_depth_shows_how_many_it_holds() -> None:
    text = "<a><b><c><d><e>1</e><e>2</e></d><leaf>text</leaf></c></b></a>" + " " * 99
    assert element(text.replace("1</e>", "1</e>" + "<e/>" * 90), 180) == (
        "<a><b><c><d><!-- 92 elements omitted --></d><leaf>text</leaf></c></b></a>" + " " * 99
    )


def test_long_text_loses_its_middle_but_no_half_of_a_reference() -> None:
    assert element("<a>" + "&amp;" * 400 + "</a>", 130) == (
        "<a>" + "&amp;" * 11 + "<!-- 1,910 chars omitted -->" + "&amp;" * 7 + "</a>"
    )


def test_long_text_with_markup_of_its_own_is_left_out_whole() -> None:
    assert element("<a><![CDATA[" + "<&]] >" * 100 + "]]></a>", 60) == "<a><!-- 612 chars omitted --></a>"


def test_tags_may_hold_what_looks_like_their_end() -> None:
    odd = """<a b="1>2" c='/>'><d/><e f="/>"/><g>/></g><h >x</h ></a >"""
    assert (
        element(f"<r>{odd * 30}</r>", 300, first_elements=4, last_elements=0) == f"<r>{odd * 4}<!-- 26 elements omitted --></r>"
    )
    assert element(f"<r>{odd * 30}</r>", 100, first_elements=1, last_elements=0) == (
        """<r><a b="1>2" c='/>'><d/><!-- 3 elements omitted --></a ><!-- 29 elements omitted --></r>"""
    )


def test_a_child_with_an_endless_tag_is_left_out() -> None:
    assert element(f"<svg><path d='{'M0 ' * 900}'/><g/></svg>", 90) == "<svg><!-- 1 element omitted --><g/></svg>"


def test_in_the_end_only_the_count_is_shown() -> None:
    text = "<r>" + "<long-element-name/>" * 1500 + "</r>"
    assert element(text, 45) == "<r><!-- 1,500 elements omitted --></r>"


def test_a_document_type_without_entities_stays() -> None:
    text = "<!DOCTYPE r SYSTEM 'r.dtd'>\n<r>" + "<a/>" * 100 + "</r>"
    assert element(text, 90, first_elements=1, last_elements=1) == (
        "<!DOCTYPE r SYSTEM 'r.dtd'>\n<r><a/><!-- 98 elements omitted --><a/></r>"
    )


def test_another_declared_encoding_does_not_matter() -> None:
    text = "<?xml version='1.0' encoding='utf-16'?><r>" + "<a>é</a>" * 100 + "</r>"
    assert truncate(text, 120, "element", Shape(first_elements=1, last_elements=1)).text == (
        "<?xml version='1.0' encoding='utf-16'?><r><a>é</a><!-- 98 elements omitted --><a>é</a></r>"
    )


def test_deep_nesting_is_outlined_like_any_other() -> None:
    assert element("<a>" * 100_000 + "</a>" * 100_000, 100) == "<a><a><a><a><!-- 1 element omitted --></a></a></a></a>"


BILLION_LAUGHS = """<!DOCTYPE r [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]><r>&b;</r>"""


@pytest.mark.parametrize(
    "text",
    [
        BILLION_LAUGHS + " " * 99,
        "<!DOCTYPE r [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><r>&x;</r>" + " " * 99,
        "<!DOCTYPE r SYSTEM 'r.dtd'><r>&nbsp;</r>" + " " * 99,
        "<p>not closed" * 50,
        "<r>\ud800</r>" + " " * 99,
        "<r " + "a" * 200 + "='1'/>",
        "<a/><b/>" * 50,
    ],
)
def test_what_has_entities_or_does_not_parse_or_fit_falls_back_to_head_tail(text: str) -> None:
    assert truncate(text, 80, "element") == truncate(text, 80, "head_tail")


def test_depth_beyond_the_stack_falls_back_to_head_tail() -> None:
    text = "<a>" * 5000 + "</a>" * 5000
    assert truncate(text, 30_000, "element", Shape(depth=9000)).strategy == "head_tail"
