"""Programs for the first 20 questions of letta-evals and 20 about two public APIs, written before they were run."""

# ruff: noqa: E501  # a line is a program

_TABLES = """\
import re

def read(name):
    rows = []
    for line in load(name + ".txt"):
        if line.startswith("### "):
            title, _, rest = line[4:].rpartition(" (")
            rows.append({"title": title, "person": rest.split(": ")[1].rstrip(")")})
        elif ": " in line:
            for part in line.split(" | "):
                key, _, value = part.partition(": ")
                rows[-1][key] = value
    return rows

def group(rows):
    groups = {}
    for row in rows:
        groups.setdefault(row["person"], []).append(row)
    return groups

NAMES = ["addresses", "bank_accounts", "credit_cards", "employments", "insurance_policies", "internet_accounts",
         "medical_records", "pets", "vehicles"]
tables = {name: read(name) for name in NAMES}
of = {name: group(rows) for name, rows in tables.items()}
people = {row["person"]: row for row in read("people")}

def owner(table, key, value):
    return [row["person"] for row in tables[table] if row[key] == value][0]

def pet(name): return owner("pets", "name", name)
def plate(text): return owner("vehicles", "license_plate", text)
def user(name): return owner("internet_accounts", "username", name)
def count(table, person): return len(of[table].get(person, []))
def balance(person): return sum(float(row["balance"]) for row in of["bank_accounts"].get(person, []))
def salary(person): return max([float(row["salary"]) for row in of["employments"].get(person, [])], default=0.0)
def states(person): return {row["state"] for row in of["addresses"].get(person, [])}
def residents(person): return [other for other in people if states(other) & states(person)]
def most(table, persons): return max(persons, key=lambda person: (count(table, person), balance(person)))
def name(person): return people[person]["title"]
def owned(person, *names): return sum(count(each, person) for each in names)
def more(table, *persons): return name(max(persons, key=lambda person: count(table, person)))
"""

_BODIES = [
    'a = max(residents(pet("Eduardo")), key=balance)\nb = max(residents(pet("Victor")), key=balance)\nprint(more("vehicles", a, b))',
    'print(name(min(residents(pet("Dawn")), key=lambda p: (-count("vehicles", p), people[p]["DOB"]))))',
    'print(", ".join(name(p) for p in residents(plate("7D U3378")) if not count("pets", p)))',
    'top = sorted(people, key=balance, reverse=True)[:15]\nprint(", ".join(name(p) for p in top if p in residents(pet("Dawn"))))',
    'some = [p for p in residents(plate("443-JHD")) if any(e["start_date"].startswith("2025") for e in of["employments"].get(p, []))]\n'
    'some = [p for p in some if count("insurance_policies", p)]\n'
    'print(name(min(some, key=lambda p: min(row["expires"] for row in of["insurance_policies"][p]))))',
    'print(name(min(residents(pet("Adrian")), key=lambda p: (-count("vehicles", p), people[p]["DOB"]))))',
    "print(f\"{balance(most('credit_cards', residents(pet('Betty')))):.2f}\")",
    'blood = {p: rows[0]["blood_type"] for p, rows in of["medical_records"].items()}\nwanted = blood[pet("Randall")]\n'
    'some = [p for p in residents(pet("Isabel")) if count("internet_accounts", p) >= 4 and blood.get(p) == wanted]\n'
    'print(", ".join(name(p) for p in some))',
    'rich = max(residents(pet("Ebony")), key=balance)\nprint(owned(rich, "bank_accounts", "credit_cards", "vehicles", "insurance_policies"))',
    'print(", ".join(name(p) for p in residents(user("reedjustin")) if not count("credit_cards", p)))',
    'a = max(residents(pet("Caleb")), key=salary)\nb = max(residents(pet("Charlotte")), key=salary)\nprint(more("credit_cards", a, b))',
    'some = [p for p in residents(pet("Betty")) if count("employments", p)]\n'
    'print(name(max(some, key=lambda p: max(row["start_date"] for row in of["employments"][p]))))',
    'print(", ".join(name(p) for p in residents(pet("Caleb")) if not count("credit_cards", p)))',
    'a = max(residents(pet("Luis")), key=balance)\nb = max(residents(pet("Alyssa")), key=balance)\nprint(more("vehicles", a, b))',
    'some = [p for p in residents(plate("SMD-631")) if count("insurance_policies", p)]\n'
    "print(f\"{balance(min(some, key=lambda p: people[p]['DOB'])):.2f}\")",
    'holders = [p for p in people if any(row["provider"] == "JCB 16 digit" for row in of["credit_cards"].get(p, []))]\n'
    'fish = [row["person"] for row in tables["pets"] if row["name"] == "Stacey" and row["species"] == "Fish"][0]\n'
    'print(more("credit_cards", most("insurance_policies", holders), most("pets", residents(fish))))',
    'one = most("pets", residents(pet("Julie")))\nprint(owned(one, "bank_accounts", "vehicles", "credit_cards", "insurance_policies"))',
    'print(name(most("credit_cards", residents(pet("Tara")))))',
    'a = max(residents(pet("Tara")), key=balance)\nb = max(residents(pet("Ashlee")), key=balance)\nprint(more("insurance_policies", a, b))',
    'cities = {row["city"] for row in of["addresses"][user("ashleylewis")]}\n'
    'some = [p for p in people if count("pets", p) >= 3 and cities & {row["city"] for row in of["addresses"].get(p, [])}]\n'
    'print(", ".join(name(p) for p in some))',
]
LETTA = [_TABLES + body for body in _BODIES]

_C, _H = 'countries = load("countries.json")\n', 'heroes = load("heroes.json")\n'
_STATS = "('intelligence', 'strength', 'speed', 'durability', 'power', 'combat')"
APIS = [
    (
        _C + 'print(sum(1 for c in countries if c["landlocked"] and c["region"] == "Africa"))',
        "SELECT count(*) FROM countries WHERE (json->>'landlocked') = 'true' AND (json->>'region') = 'Africa'",
    ),
    (
        _C + 'some = [c for c in countries if c["subregion"] == "South America"]\n'
        'print(", ".join(c["name"]["common"] for c in sorted(some, key=lambda c: -c["area"])[:3]))',
        "SELECT string_agg(n, ', ' ORDER BY a DESC) FROM (SELECT (json->>'$.name.common') n, (json->>'area')::DOUBLE a FROM countries "
        "WHERE (json->>'subregion') = 'South America' ORDER BY a DESC LIMIT 3)",
    ),
    (
        _C + 'print(len([c for c in countries if "EUR" in c["currencies"]]))',
        "SELECT count(*) FROM countries WHERE (json->'$.currencies.EUR') IS NOT NULL",
    ),
    (
        _C + 'print(min(countries, key=lambda c: (-len(c["borders"]), c["name"]["common"]))["name"]["common"])',
        "SELECT (json->>'$.name.common') n FROM countries ORDER BY json_array_length(json->'borders') DESC, n LIMIT 1",
    ),
    (
        _C + 'print(sum("fra" in c["languages"] for c in countries))',
        "SELECT count(*) FROM countries WHERE (json->'$.languages.fra') IS NOT NULL",
    ),
    (
        _C + 'print(round(sum(c["area"] for c in countries if c["unMember"] and c["region"] == "Europe")))',
        "SELECT round(sum((json->>'area')::DOUBLE))::BIGINT FROM countries WHERE (json->>'unMember') = 'true' AND (json->>'region') = 'Europe'",
    ),
    (
        _C + 'print(sum(1 for c in countries if c["capital"] and c["capital"][0][:1] == c["name"]["common"][0]))',
        "SELECT count(*) FROM countries WHERE left(json->>'$.capital[0]', 1) = left(json->>'$.name.common', 1)",
    ),
    (
        _C + "from collections import Counter\n"
        'found = Counter(c["region"] for c in countries if c["independent"] is False)\n'
        "print(min(found, key=lambda region: (-found[region], region)))",
        "SELECT (json->>'region') r FROM countries WHERE (json->>'independent') = 'false' GROUP BY 1 ORDER BY count(*) DESC, r LIMIT 1",
    ),
    (
        _C + 'near = {c["cca3"]: set(c["borders"]) for c in countries}\nsecond = set()\n'
        'for code in near["CHE"]:\n    second |= near[code]\nprint(len(second - near["CHE"] - {"CHE"}))',
        "WITH b AS (SELECT (json->>'cca3') a, unnest(json_extract_string(json, '$.borders[*]')) x FROM countries) SELECT count(DISTINCT f.x) "
        "FROM b n JOIN b f ON n.x = f.a WHERE n.a = 'CHE' AND f.x <> 'CHE' AND f.x NOT IN (SELECT x FROM b WHERE a = 'CHE')",
    ),
    (
        _C + 'counts = [len(c["borders"]) for c in countries if c["landlocked"]]\nprint(f"{sum(counts) / len(counts):.2f}")',
        "SELECT printf('%.2f', avg(json_array_length(json->'borders'))) FROM countries WHERE (json->>'landlocked') = 'true'",
    ),
    (
        _H + 'from collections import Counter\nprint(*Counter(h["biography"]["publisher"] for h in heroes).most_common(1)[0])',
        "SELECT (json->>'$.biography.publisher') || ' ' || count(*) FROM heroes GROUP BY (json->>'$.biography.publisher') ORDER BY count(*) DESC LIMIT 1",
    ),
    (
        _H + 'print(min(heroes, key=lambda h: (-sum(h["powerstats"].values()), h["name"]))["name"])',
        "SELECT (json->>'name') n FROM heroes ORDER BY list_sum([(json->('$.powerstats.' || s))::INT FOR s IN ['intelligence', 'strength', "
        "'speed', 'durability', 'power', 'combat']]) DESC, n LIMIT 1",
    ),
    (
        _H
        + 'for side in ("good", "bad"):\n    found = [h["powerstats"]["strength"] for h in heroes if h["biography"]["alignment"] == side]\n'
        '    print(side, f"{sum(found) / len(found):.1f}")',
        "SELECT string_agg(t, chr(10) ORDER BY t DESC) FROM (SELECT (json->>'$.biography.alignment') || ' ' || printf('%.1f', "
        "avg((json->'$.powerstats.strength')::INT)) t FROM heroes WHERE (json->>'$.biography.alignment') IN ('good', 'bad') "
        "GROUP BY (json->>'$.biography.alignment'))",
    ),
    (
        _H + "def centimetres(h):\n    number, unit = h['appearance']['height'][1].split(' ')\n"
        "    return float(number) * (100 if unit == 'meters' else 1)\nprint(max(heroes, key=centimetres)['name'])",
        "SELECT (json->>'name') FROM heroes ORDER BY split_part(json->>'$.appearance.height[1]', ' ', 1)::DOUBLE * "
        "CASE WHEN (json->>'$.appearance.height[1]') LIKE '%meters' THEN 100 ELSE 1 END DESC LIMIT 1",
    ),
    (
        _H
        + 'print(sum(1 for h in heroes if h["appearance"]["gender"] == "Female" and h["appearance"]["eyeColor"].lower() == "blue"))',
        "SELECT count(*) FROM heroes WHERE (json->>'$.appearance.gender') = 'Female' AND lower(json->>'$.appearance.eyeColor') = 'blue'",
    ),
    (
        _H + 'print(sum(h["name"] == h["biography"]["fullName"] for h in heroes))',
        "SELECT count(*) FROM heroes WHERE (json->>'name') = (json->>'$.biography.fullName')",
    ),
    (
        _H
        + "found = {}\nfor h in heroes:\n    race = h['appearance']['race']\n    if h['biography']['alignment'] == 'bad' and race:\n"
        "        found[race] = found.get(race, 0) + 1\nprint(sorted(found, key=lambda race: (-found[race], race))[0])",
        "SELECT (json->>'$.appearance.race') r FROM heroes WHERE (json->>'$.biography.alignment') = 'bad' AND r IS NOT NULL GROUP BY 1 "
        "ORDER BY count(*) DESC, r LIMIT 1",
    ),
    (
        _H + 'found = sorted(h["powerstats"]["intelligence"] for h in heroes)\nprint(found[len(found) // 2])',
        "SELECT median((json->'$.powerstats.intelligence')::INT)::INT FROM heroes",
    ),
    (
        _H + 'print(len({h["appearance"]["hairColor"].lower() for h in heroes}))',
        "SELECT count(DISTINCT lower(json->>'$.appearance.hairColor')) FROM heroes",
    ),
    (
        _H + f'print(", ".join(sorted(h["name"] for h in heroes if all(h["powerstats"][s] >= 75 for s in {_STATS}))))',
        "SELECT string_agg(json->>'name', ', ' ORDER BY (json->>'name')) FROM heroes WHERE list_min([(json->('$.powerstats.' || s))::INT FOR s "
        "IN ['intelligence', 'strength', 'speed', 'durability', 'power', 'combat']]) >= 75",
    ),
]
"""Each with SQL for DuckDB itself, over the text of the objects, which says what is right."""
