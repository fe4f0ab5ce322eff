"""Code in sixteen programming languages, pages and minutes in seven human ones. No other set has these sources."""

from __future__ import annotations

from benchmarks.questions.material import QuestionSet
from benchmarks.questions.sets.languages.databases import DATABASES
from benchmarks.questions.sets.languages.listings import LISTINGS
from benchmarks.questions.sets.languages.manuals import MANUALS
from benchmarks.questions.sets.languages.pages import PAGES
from benchmarks.questions.sets.languages.threads import THREADS

LICENCES = {
    "acmesh-official/acme.sh": "GPL-3.0",
    "Alamofire/Alamofire": "MIT",
    "biopython/biopython": "Biopython OR BSD-3-Clause",
    "composer/composer": "MIT",
    "elixir-ecto/ecto": "Apache-2.0",
    "JamesNK/Newtonsoft.Json": "MIT",
    "jgm/pandoc": "GPL-2.0-or-later",
    "JuliaData/DataFrames.jl": "MIT",
    "Leaflet/Leaflet": "BSD-2-Clause",
    "luarocks/luarocks": "MIT",
    "magit/magit": "GPL-3.0-or-later",
    "mojolicious/mojo": "Artistic-2.0",
    "ocaml/dune": "MIT",
    "ring-clojure/ring": "MIT",
    "rubocop/rubocop": "MIT",
    "tidyverse/dplyr": "MIT",
}

LANGUAGES = QuestionSet("languages", "document", LICENCES, PAGES, DATABASES, LISTINGS, MANUALS, THREADS, least=24)
