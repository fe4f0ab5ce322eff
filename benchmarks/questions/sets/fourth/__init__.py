"""The sources of the fourth set, none of which the other three use."""

from __future__ import annotations

from benchmarks.questions.material import QuestionSet
from benchmarks.questions.sets.fourth.databases import DATABASES
from benchmarks.questions.sets.fourth.listings import LISTINGS
from benchmarks.questions.sets.fourth.manuals import MANUALS
from benchmarks.questions.sets.fourth.pages import PAGES
from benchmarks.questions.sets.fourth.threads import THREADS

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

FOURTH = QuestionSet("fourth", "document", LICENCES, PAGES, DATABASES, LISTINGS, MANUALS, THREADS, least=24)
