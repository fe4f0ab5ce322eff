from overspill.extraction.report import ModelReport, parse, render


def test_answer_quotes_and_confidence_are_told_apart():
    report = parse("Two requests failed.\n\nQUOTES:\n> GET /a 500\n>  GET /b 502\n\nCONFIDENCE: 80\n", "test/m")
    assert report == ModelReport("Two requests failed.", ("GET /a 500", "GET /b 502"), stated_confidence=0.8, model="test/m")


def test_without_quotes_everything_is_the_answer():
    assert parse("Quotes: 3 per user.\nThat is all.") == ModelReport("Quotes: 3 per user.\nThat is all.")


def test_headings_may_be_decorated():
    assert parse("A\n\n### **Quotes:**\n> x y").quotes == ("x y",)
    assert parse("A\nQUOTES: > x y").quotes == ("x y",)


def test_lines_without_a_mark_count_where_none_has_one():
    assert parse("A\nQUOTES:\n- first line\n2. second line\n```\n").quotes == ("first line", "second line")


def test_what_follows_the_quotes_belongs_to_the_answer():
    assert parse("QUOTES:\n> x y\n\nSo it was x.") == ModelReport("So it was x.", ("x y",))


def test_no_quotes_may_be_said_in_words():
    assert parse("A\nQUOTES:\nNone.") == ModelReport("A")


def test_the_same_quote_counts_once():
    assert parse("A\nQUOTES:\n> x y\n> x y").quotes == ("x y",)


def test_a_confidence_may_be_a_share_or_a_percentage():
    assert [parse(f"A\nCONFIDENCE: {said}").stated_confidence for said in ("0.85", "85 %", "85/100", "250", "1", "1%")] == [
        0.85,
        0.85,
        0.85,
        1.0,
        1.0,
        0.01,
    ]
    assert parse("A\nCONFIDENCE: high").stated_confidence is None


def test_nothing_found_is_recognised_with_what_is_there_instead():
    assert parse("**NO RELEVANT DATA FOUND**\nOnly access logs.") == ModelReport("Only access logs.", found=False)


def test_more_quotes_than_are_looked_at_are_counted():
    report = parse("A\nQUOTES:\n" + "\n".join(f"> line {n}" for n in range(1003)))
    assert (len(report.quotes), report.omitted_quotes) == (1000, 3)


def test_a_report_is_rendered_the_way_it_is_read():
    text = render("Two failed.", ("GET /a 500\nGET /b 502",))
    assert text == "Two failed.\nQUOTES:\n> GET /a 500\n> GET /b 502"
    assert parse(text) == ModelReport("Two failed.", ("GET /a 500", "GET /b 502"))
    assert render("Nothing to quote.", ()) == "Nothing to quote."
