"""References between tables as JSON: which table and which of its columns a value is found in, and which row a question names."""

from __future__ import annotations

import json
from typing import Any

from overspill.lexical.index import build
from overspill.lexical.select import select

Row = dict[str, Any]
HEIGHTS = ("Upper", "Lower", "Old", "New", "Far")


def ask(document: object, question: str, max_tokens: int = 500) -> str:
    return select(build(json.dumps(document, ensure_ascii=False).encode()), question, max_tokens=max_tokens).text


def test_a_reference_leads_to_the_column_that_has_its_values():
    valleys = [{"id": n, "code": 300 - 3 * n, "title": f"Vale of {n}x"} for n in range(1, 90)]
    farms = [{"id": n, "title": f"Farm {n}y", "valley": valleys[n * 7 % 89]["code"]} for n in range(1, 400)]
    farm = farms[211]
    valley = next(each for each in valleys if each["code"] == farm["valley"])
    assert valley["title"] in ask({"valleys": valleys, "farms": farms}, f"Which valley is {farm['title']} in?", 200)


def test_of_two_tables_with_the_same_key_the_one_that_has_the_values_is_meant():
    clerks = [{"PartyID": n, "Desk": f"Desk{n}"} for n in range(1, 120)]
    mills = [{"PartyID": n, "Title": f"Mill {n}q"} for n in range(500, 620)]
    flours = [{"FlourID": n, "Title": f"Flour {n}w"} for n in range(1, 150)]
    deliveries = [{"FlourID": 1 + n % 149, "PartyID": 500 + n * 7 % 120, "Sacks": n % 9} for n in range(300)]
    asked = {f"Mill {each['PartyID']}q" for each in deliveries if each["FlourID"] == 77}
    tables = {"Clerk": clerks, "Flour": flours, "Delivery": deliveries, "Mill": mills}
    text = ask(tables, "Which mills deliver the flour Flour 77w?")
    assert len(asked) == 2
    assert all(mill in text for mill in asked)


def test_a_name_that_is_part_of_others_is_the_row_with_this_name_alone():
    weirs = [{"id": n, "title": f"{HEIGHTS[n % 5]} Weir Lock {n // 5}"} for n in range(200)]
    weirs[150]["title"] = "Weir Lock"
    keepers = [{"id": 900 + n, "title": f"Keeper{n}z", "weir_id": n} for n in range(200)]
    assert "Keeper150z" in ask({"weirs": weirs, "keepers": keepers}, "Which keepers does the Weir Lock have?", 150)


def test_words_refer_to_the_rows_that_have_them_as_their_name():
    forges = [{"town": f"Town {n}", "owner": f"Smith & Sons {n}"} for n in range(40)]
    blades = [{"sku": f"B{n}", "title": f"Blade {n}k", "forgedBy": f"Smith & Sons {n * 3 % 40}"} for n in range(200)]
    text = ask({"blades": blades, "forges": forges}, "From which town is the forge of Blade 123k?", 150)
    assert f'"Town {123 * 3 % 40}"' in text


def test_a_table_without_an_id_is_referred_to_by_the_column_that_another_table_has_too():
    seeds = [{"batch": f"{n * 31}-{n}", "plant": f"Lupin {n}"} for n in range(90)]
    beds = [{"bed": n, "batch": f"{(n * 7 % 90) * 31}-{n * 7 % 90}", "metres": n % 12} for n in range(150)]
    assert '"Lupin 63"' in ask({"seeds": seeds, "beds": beds}, "Which seeds are in bed 99?", 150)


def test_references_are_followed_whichever_side_their_key_word_is_on():
    kunden = [{"id": n, "firma": f"Firma {n}r"} for n in range(1, 80)]
    werften = [{"id": n, "hafen": f"Hafen {n}"} for n in range(1, 60)]
    boote = [{"id": 700 + n, "fk_kunde": 1 + n * 5 % 79, "codigoWerft": 1 + n % 59, "lange": n} for n in range(200)]
    text = ask({"kunden": kunden, "werften": werften, "boote": boote}, "Welcher Kunde hat das Boot mit der id 850?", 200)
    assert f'"Firma {1 + 150 * 5 % 79}r"' in text


def test_lines_inside_a_row_refer_to_other_rows():
    teas = [{"code": f"T{n}", "blend": f"Blend {n}v"} for n in range(60)]
    orders = [{"id": 4000 + n, "lines": [{"tea": f"T{n * k % 60}", "tins": k} for k in (7, 11)]} for n in range(200)]
    text = ask({"orders": orders, "teas": teas}, "Which teas are in order 4123?", 200)
    assert f'"Blend {123 * 7 % 60}v"' in text
    assert f'"Blend {123 * 11 % 60}v"' in text


def test_members_of_an_object_are_rows_with_their_names_as_keys():
    clans = {f"c{n}": {"title": f"Clan {n}u", "crest": "stag"} for n in range(30)}
    pipers = {f"p{n}": {"title": f"Piper {n}i", "clan": f"c{n * 7 % 30}"} for n in range(120)}
    tunes = [{"tune": f"Reel {n}o", "played_by": f"p{n * 11 % 120}"} for n in range(200)]
    document = {"clans": clans, "pipers": pipers, "tunes": tunes}
    assert f'"Clan {77 * 7 % 30}u"' in ask(document, "Which clan does Piper 77i belong to?", 150)
    played = [tune["tune"] for tune in tunes if tune["played_by"] == "p77"]
    assert played
    assert all(f'"{tune}"' in ask(document, "Which tunes does Piper 77i play?", 200) for tune in played)


def test_the_row_that_refers_to_both_things_of_a_question_comes_first():
    inns = [{"id": n, "title": f"Inn {n}e"} for n in range(1, 40)]
    ales = [{"id": n, "title": f"Ale {n}f"} for n in range(1, 40)]
    prices = [{"inn_id": i, "ale_id": a, "pence": i * 1000 + a} for i in range(1, 40) for a in range(1, 40)]
    tables = {"inns": inns, "ales": ales, "prices": prices}
    assert '"pence": 17023' in ask(tables, "What does Ale 23f cost at Inn 17e?", 150)


def test_rows_that_refer_to_a_row_of_their_own_table_are_shown():
    guilds = [{"code": f"G{n}", "label": f"Guild {n}h", "parent": None if n < 5 else f"G{n // 4}"} for n in range(100)]
    crafts = [{"code": f"K{n}", "craft": f"Craft {n}", "guild": f"G{n}"} for n in range(100)]
    below = [guild["label"] for guild in guilds if guild["parent"] == "G11"]
    text = ask({"guilds": guilds, "crafts": crafts}, "Which guilds are below Guild 11h?", 300)
    assert below
    assert all(label in text for label in below)


def test_rows_of_which_some_have_a_long_text_stay_a_table():
    wells = [{"id": 5000 - 13 * n, "title": f"Well {n}v", "report": "Dug by hand.\nDry."} for n in range(1, 60)]
    for well in wells[::4]:
        well["report"] = "The water was tested.\n" * 150
    visits = [{"well_id": 5000 - 13 * n, "inspector": f"Inspector {n * 7 % 59}h"} for n in range(1, 60)]
    assert f"Inspector {42 * 7 % 59}h" in ask({"wells": wells, "visits": visits}, "Who is the inspector of Well 42v?", 200)


def test_a_reference_may_have_another_word_for_the_table_if_it_has_its_keys():
    people = [{"id": 11 * n, "name": f"Resident {n}k"} for n in range(1, 90)]
    firms = [{"id": 4 + 11 * n, "title": f"Firm {n}m"} for n in range(1, 60)]
    contracts = [{"no": f"C{n}", "person_id": 11 * n, "employer_id": 4 + 11 * (1 + n * 3 % 59)} for n in range(1, 90)]
    text = ask({"people": people, "companies": firms, "contracts": contracts}, "For which company does Resident 61k work?", 200)
    assert f"Firm {1 + 61 * 3 % 59}m" in text


def test_numbered_columns_refer_to_the_same_table():
    nodes = [{"name": 7 * n, "place": f"Knot {n}k"} for n in range(1, 90)]
    ropes = [{"name": n, "node0": 7 * n, "node1": 7 * (1 + n * 5 % 89), "label": f"Rope {n}r"} for n in range(1, 90)]
    text = ask({"nodes": nodes, "ropes": ropes}, 'Which two knots does the rope "Rope 33r" tie?', 200)
    assert "Knot 33k" in text
    assert f"Knot {1 + 33 * 5 % 89}k" in text


def test_references_by_address_are_followed_though_some_are_missing():
    base = "https://example.org/api"
    people = [{"id": f"p{n:03}", "name": f"Resident {n}k"} for n in range(1, 60)]
    towns = [
        {"id": f"t{n:03}", "name": f"Town {n}x", "folk": [f"{base}/people/p{n * m:03}" for m in (1, 2)]} for n in range(1, 30)
    ]
    for town in towns[::15]:
        town["folk"] = ["TODO"]
    text = ask({"people": people, "towns": towns}, "Who lives in Town 21x? Give the names.", 200)
    assert "Resident 21k" in text
    assert "Resident 42k" in text
