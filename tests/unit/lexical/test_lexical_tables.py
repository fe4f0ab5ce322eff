"""Questions that one row does not answer by its words: rows by their order, by their keys."""

from __future__ import annotations

import json

import pytest

from overspill.lexical.index import Index, build
from overspill.lexical.query import parse
from overspill.lexical.rank import rank
from overspill.lexical.rows.connect import connect
from overspill.lexical.rows.ordering import find_ordered_rows
from overspill.lexical.select import select

WORKS = """\
Title,Finished,Place,Height
Stone Gate,June 2007,North Park,10
River Song,1994,South Hall,7
Old Bell,1816-1877,Castle,22
Quiet Moon,1994,North Park,3
Iron Tree,May 1931,Harbour,22
Long Wave,2001,Harbour,5
"""
SHIPS = """\
Ship,Year,Country,Crew
Aurora,1999,Norway,120
Borealis,1987,Chile,80
Corona,2004,Norway,95
Delta,1987,Norway,40
Eclipse,2010,Chile,61
Fjord,1991,Peru,33
Gale,2001,Peru,12
"""
NAMES = ("Ada", "Ben", "Cyd", "Dag", "Eve", "Fay", "Gus", "Hal")
SHOP = json.dumps(
    {
        "customers": [{"id": 11 + number, "name": f"{name} Holm", "city": "Oslo"} for number, name in enumerate(NAMES)],
        "orders": [
            {"id": 500 + number, "customer_id": 11 + number % 8, "total": 10 * number, "carrier": ("NB", "PX")[number % 2]}
            for number in range(40)
        ],
        "carriers": [
            {"code": "NB", "company": "Northern Boats"},
            {"code": "PX", "company": "Pack Express"},
            {"code": "QR", "company": "Quick Rail"},
        ],
        "notes": [{"text": f"remark {number}", "weight": number} for number in range(30)],
    }
)


LS = """\
total 96
-rw-r--r-- 1 ann staff     1200 Feb 17  2023 alpha.txt
drwxr-xr-x 9 ann staff     4096 Mar  2 11:40 beta
-rw-r--r-- 1 ann staff 98875896 Mar 24  2026 gamma.bin
-rw-r--r-- 1 ann staff       12 Dec 30 09:01 delta.cfg
"""
DU = "4\tsrc/a.py\n120\tsrc/big\n8\tsrc/c.py\n132\tsrc\n"
FIND = "".join(f"{size} src/module_{size}.py\n" for size in (310, 20, 4410, 77, 9))
ONELINE = "".join(
    f"{number:07x}a Mend the {name}\n" for number, name in enumerate(("roof", "door", "gate", "wall", "pump"), 0xA00)
)
HISTORY = "".join(
    f"commit {number:040x}\nAuthor: Ann\n\n    Mend {name}\n\n" for number, name in enumerate(("roof", "door", "gate"))
)


def rows_for(output: str, question: str) -> list[str]:
    """The rows that stand out by order or by a link, best first."""
    index, query = build(output.encode()), parse(question)
    ranking = rank(index, query)
    linked = connect(index, query, ranking)[1]
    return [_text(index, record) for record in find_ordered_rows(index, query, ranking, linked).rows or linked]


def _text(index: Index, record: int) -> str:
    return bytes(index.text[index.outline.starts[record] : index.outline.ends[record]]).decode().strip()


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("what was the first ship?", "Borealis,1987,Chile,80"),
        ("what was the last ship?", "Eclipse,2010,Chile,61"),
        ("which Norwegian ship, I mean of Norway, has the smallest crew?", "Delta,1987,Norway,40"),
    ],
)
def test_order_is_by_date_or_by_the_measure_that_is_named(question: str, first: str) -> None:
    assert rows_for(SHIPS, question)[0] == first


@pytest.mark.parametrize(("fruit", "first"), [("pears", "South,4,8"), ("plums", "West,9,3")])
def test_of_columns_that_share_a_word_the_one_with_more_of_them_is_meant(fruit: str, first: str) -> None:
    prices = "Shop,Price plums,Price pears\nNorth,5,1\nEast,1,2\nSouth,4,8\nWest,9,3\n"
    assert rows_for(prices, f"which shop has the highest price of {fruit}?")[0] == first


@pytest.mark.parametrize(
    ("output", "question", "first"),
    [
        (LS, "what is the largest file?", "gamma.bin"),
        (LS, "the smallest file", "delta.cfg"),
        (DU, "what takes the most space", "132\tsrc"),
        (FIND, "which module is the biggest", "module_4410.py"),
        (ONELINE, "the most recent commit", "Mend the roof"),
        (ONELINE, "what was the first commit", "Mend the pump"),
        (HISTORY, "what is the last commit about", "    Mend roof"),
    ],
    ids=["ls", "ls, smallest", "du", "find", "newest", "oldest", "history"],
)
def test_listings_without_named_columns_are_ordered_by_size_and_histories_by_age(output: str, question: str, first: str) -> None:
    assert rows_for(output, question)[0].endswith(first)


def test_a_log_of_events_is_no_listing_of_sizes() -> None:
    log = "".join(f"2026-01-01 10:00:{number:02d} INFO worker {900 - number} ready\n" for number in range(50))
    assert rows_for(log, "which worker took the most memory") == []


def test_top_rows_come_before_rows_that_hold_a_word_of_the_question() -> None:
    rows = [f"city {number},{'ships and more ships' if number % 4 else 'none'},{number * 10}" for number in range(400)]
    found = select(build(("name,remark,tonnage\n" + "\n".join(rows)).encode()), "ships with the top 5 tonnage", max_tokens=200)
    assert [row for row in rows if row in found.text][-5:] == rows[-5:]


def test_what_has_its_key_in_another_table_is_found_there() -> None:
    orders = rows_for(SHOP, "which orders did Ben make?")
    assert [json.loads(row)["id"] for row in orders[:5]] == [500 + number for number in range(40) if number % 8 == 1]


def test_order_counts_among_what_belongs_to_the_row_that_is_named() -> None:
    assert json.loads(rows_for(SHOP, "what is the largest order total of Ben")[0])["id"] == 533


def test_a_key_leads_to_the_table_that_it_is_the_key_of() -> None:
    assert rows_for(SHOP, "which company carried order 501?")[0] == '{"code": "PX", "company": "Pack Express"}'


def test_many_rows_that_hold_as_much_lead_nowhere() -> None:
    assert rows_for(SHOP, "which orders went to Oslo customers, by company") == []


def test_a_question_may_count_in_signs_and_in_numbers_too_long_for_any_table() -> None:
    assert {rows_for(SHIPS, f"top {many} crew")[0] for many in ("²", "9" * 5_000)} == {"Aurora,1999,Norway,120"}


def test_a_row_with_a_cell_too_long_to_be_read_takes_no_part_in_the_order() -> None:
    output = SHIPS + 'Hull,2002,Peru,"' + "x" * 200_000 + '"\n'
    assert rows_for(output, "which ship has the largest crew")[0] == "Aurora,1999,Norway,120"


def test_a_row_of_a_text_inside_json_leads_to_no_other_table() -> None:
    visits = "guest,amount\n" + "".join(f"g{number},{number}{',surplus' * (number == 7)}\n" for number in range(60))
    output = json.dumps({**json.loads(SHOP), "visits": visits})
    assert rows_for(output, "which customers and carriers had g7") == []


@pytest.mark.slow
def test_a_row_of_very_many_cells_is_shortened_to_those_that_were_asked_for() -> None:
    output = SHIPS + "Hull,2002,Peru," + "sail 77," * 200_000 + "anchor\n"
    assert "anchor" in select(build(output.encode()), "sail and anchor of Hull", max_tokens=200).text


PODS = """\
NAME        STATUS    RESTARTS      AGE
front-a1    Running   0             47m
front-b2    Running   12 (3h ago)   212d
back-c3     Pending   0             98s
back-d4     Running   3             3h20m
mail-e5     Running   1             2d4h
"""
JOBS = """\
{"job": "sweep", "created_at": "2026-03-09T08:00:00Z", "ms": 912, "speed": 40}
{"job": "paint", "created_at": "2026-03-10T07:59:59Z", "ms": 48211, "speed": 7}
{"job": "drill", "created_at": "2025-12-31T23:00:00Z", "ms": 77, "speed": 99}
{"job": "weld", "created_at": "2026-03-10T07:30:00Z", "ms": 1300, "speed": 12}
"""
PEOPLE = "Name,Age\nAda,41\nBen,9\nCyd,77\nDag,30\n"
IMAGES = """\
IMAGE     CREATED             SIZE
alpine    2 weeks ago         7MB
debian    About an hour ago   124MB
fedora    3 months ago        190MB
gentoo    5 days ago          1GB
"""
DURATIONS = "= slowest durations =\n" + "".join(f"{took} call tests/test_{took}\n" for took in ("900ms", "1.20s", "0.31s", "2ms"))


@pytest.mark.parametrize(
    ("output", "question", "first"),
    [
        (PODS, "oldest pod", "front-b2"),
        (PODS, "which pod is the newest?", "back-c3"),
        (JOBS, "which job was created last?", '"paint"'),
        (JOBS, "when was the most recent job created", '"paint"'),
        (JOBS, "the oldest job", '"drill"'),
        (JOBS, "which is the slowest job", '"paint"'),
        (JOBS, "fastest job by speed", '"drill"'),
        (PEOPLE, "who is the oldest?", "Cyd"),
        (PEOPLE, "who is the youngest?", "Ben"),
        (IMAGES, "the newest image", "debian"),
        (IMAGES, "the oldest image", "fedora"),
        (DURATIONS, "which test is the slowest", "1.20s"),
        (HISTORY, "the oldest commit", "commit 0000000000000000000000000000000000000002"),
    ],
)
def test_times_are_ordered_by_date_by_age_and_by_how_long_they_took(output: str, question: str, first: str) -> None:
    assert first in rows_for(output, question)[0]


def test_a_column_that_measures_is_meant_before_one_that_names() -> None:
    cities = "City,People\nOslo,700\nBergen,290\nMoss,50\nBodø,52\n"
    assert rows_for(cities, "which is the smallest city by people?")[0] == "Moss,50"


def test_commits_that_are_asked_for_by_their_order_are_shown_whole() -> None:
    history = "".join(f"commit {number:040x}\nAuthor: Ann\n\n    Mend {number} doors\n\n" for number in range(60))
    found = select(build(history.encode()), "what are the last 2 commits", max_tokens=200)
    assert found.text.splitlines()[:10] == [
        "[L1]",
        f"commit {0:040x}",
        "Author: Ann",
        "",
        "    Mend 0 doors",
        "",
        f"commit {1:040x}",
        "Author: Ann",
        "",
        "    Mend 1 doors",
    ]


def test_what_is_not_so_is_told_by_what_stands_there_instead() -> None:
    crowd = "".join(f"host-{number}    Running   0             9d\n" for number in range(200))
    found = select(
        build((PODS + crowd + "last-f6     Failed    2             1h\n").encode()), "which pods are not running?", max_tokens=120
    )
    assert [name for name in ("back-c3", "last-f6") if name in found.text] == ["back-c3", "last-f6"]


def test_order_counts_among_what_is_not_so() -> None:
    found = select(
        build((SHIPS + "Hull,2002,Norway,64\n" * 40).encode()), "largest crew of a country that is not Norway", max_tokens=40
    )
    assert "Borealis,1987,Chile,80" in found.text


def test_fields_of_an_object_inside_a_row_are_fields_of_the_row() -> None:
    pods = [
        {
            "metadata": {"name": f"pod-{number}"},
            "status": {"phase": ("Running", "Lost")[number == 3], "restartCount": number * 7 % 31},
        }
        for number in range(31)
    ]
    assert '"pod-22"' in rows_for(json.dumps({"items": pods}), "which pod has the highest restart count?")[0]
    found = select(build(json.dumps({"items": pods}).encode()), "which pods are not running", max_tokens=60)
    assert '"pod-3"' in found.text


@pytest.mark.slow
def test_of_more_rows_than_are_compared_the_last_line_tells() -> None:
    rows = b"".join(b"%d,%d\n" % (number, number % 997) for number in range(200_010))
    found = select(build(b"name,weight\n" + rows), "the highest weight", max_tokens=100)
    assert found.text.endswith("; only the first 200,000 rows compared)")
    sizes = b"".join(b"%d src/module_%d.py\n" % (number % 997, number) for number in range(200_010))
    listed = select(build(sizes), "which module is the largest", max_tokens=100)
    assert listed.text.endswith("; only the first 200,000 rows compared)")
    few = select(build(b"name,weight\n" + rows[:2_000]), "the highest weight", max_tokens=100)
    assert "compared" not in few.text


@pytest.mark.parametrize(
    "above",
    [
        "Ships of the north\n",
        "Ships of the north\n\nAs of May, June\n",
        "Ships of the north,,,\n,built,,people\n",
        "  \nShips of the north\n \t\n",
    ],
)
def test_a_title_above_the_header_is_no_header(above: str) -> None:
    index = build((above + SHIPS).encode())
    assert index.kind == "csv"
    shown = select(index, "ship with the largest crew", max_tokens=60).text.splitlines()
    assert shown[1:3] == ["Ship,Year,Country,Crew", "Aurora,1999,Norway,120"]
    assert "above the header left out: Ships of the north" in shown[-1]
    assert "Ships of the north" in select(index, "where are the ships of the north", max_tokens=100).text


def test_the_first_row_is_the_header_though_most_of_its_names_are_empty() -> None:
    index = build(("Ship,,,\n" + SHIPS.partition("\n")[2]).encode())
    (table,) = index.outline.tables
    assert (table.first, table.last, len(index.outline)) == (0, 7, 7)


SALES = "Shop,Sold,Rent\n" + "".join(f"Shop {name},{number},{90 - number}\n" for number, name in enumerate(NAMES, 3))


def test_a_row_that_sums_up_others_is_not_the_largest_of_them() -> None:
    shown = select(build(f"{SALES}Total,52,\n".encode()), "Which shop has sold the most?", max_tokens=60).text
    assert "Shop Hal,10,80" in shown
    assert "the last row sums up others: Total 52" in shown.splitlines()[-1]


def test_rows_that_cannot_be_compared_are_counted() -> None:
    shown = select(build(f"{SALES}{SALES[15:]}Shop Ida,99\nShop Jo\n".encode()), "Which shops have sold more than 8?").text
    assert shown.splitlines()[-1].endswith("2 rows with more or fewer cells than the header)")


def test_a_number_of_rows_may_be_in_words() -> None:
    rows = rows_for(SHIPS, "the three smallest crews of Norway")
    assert [row.split(",")[2] for row in rows[:3]] == ["Norway"] * 3


def test_the_last_line_counts_the_rows_within_a_bound() -> None:
    rows = json.dumps([{"ship": f"S{number}", "age": number, "crew": 30 - number} for number in range(30)])
    assert "(matched 3 records, all shown" in select(build(rows.encode()), "Which ships have an age over 26?").text
