"""Well-known projects, sample databases, mailing lists and dialogues."""

from __future__ import annotations

from benchmarks.questions.material import Listing, Manual, QuestionSet
from benchmarks.questions.sets.popular.databases import DATABASES, MINECRAFT
from benchmarks.questions.sets.popular.threads import THREADS
from benchmarks.questions.sources import Package, Repository

VEGA = Package("vega-datasets", "2.11.0", "BSD-3-Clause")
EMOJI = Package("emoji-datasource", "16.0.0", "MIT")
SRD = Repository("5e-bits/5e-database", "bfd3db4bcc31699cce703b46feb9af3f0ff08999", "MIT")
EXERCISES = Repository("yuhonas/free-exercise-db", "acd61f751fe15d618862ee3084f27e839222a28f", "Unlicense")
LICENCES = {
    "aio-libs/aiohttp": "Apache-2.0",
    "axios/axios": "MIT",
    "borgbackup/borg": "BSD-3-Clause",
    "BurntSushi/ripgrep": "MIT OR Unlicense",
    "caddyserver/caddy": "Apache-2.0",
    "celery/celery": "BSD-3-Clause",
    "curl/curl": "curl",
    "gin-gonic/gin": "MIT",
    "pallets/click": "BSD-3-Clause",
    "pallets/werkzeug": "BSD-3-Clause",
    "psf/requests": "Apache-2.0",
    "pytest-dev/pytest": "MIT",
    "redis/jedis": "MIT",
    "scrapy/scrapy": "BSD-3-Clause",
    "sinatra/sinatra": "MIT",
    "tokio-rs/tokio": "MIT",
}
PAGES = {
    repository.name: repository
    for repository in (
        Repository("freelawproject/juriscraper", "8446197f3885164fd337624490cf466d8817d775", "BSD-2-Clause"),
        Repository("hhursev/recipe-scrapers", "d08ddd0240ee0ff73dd9d705e43077a821944716", "MIT"),
        Repository("jaebradley/basketball_reference_web_scraper", "e23e7f8b0b5f27c5a01cd7851a72303492af0ffa", "MIT"),
        Repository("microlinkhq/metascraper", "20423f52ef9b4a07d3b25e56e34d2756b3291250", "MIT"),
        Repository("roclark/sportsipy", "fffb7c8170454720622089cf794ebcb106245e4d", "MIT"),
    )
}
LISTINGS = {
    "movies": Listing(VEGA, "data/movies.json"),
    "cars": Listing(VEGA, "data/cars.json", is_compact=True),
    "emoji": Listing(EMOJI, "emoji.json", is_compact=True),
    "blocks": Listing(MINECRAFT, "minecraft-data/data/pc/1.20/blocks.json"),
    "monsters": Listing(SRD, "src/2014/en/5e-SRD-Monsters.json"),
    "spells": Listing(SRD, "src/2014/en/5e-SRD-Spells.json"),
    "equipment": Listing(SRD, "src/2014/en/5e-SRD-Equipment.json"),
    "exercises": Listing(EXERCISES, "dist/exercises.json"),
}
MANUALS = {
    manual.repository.name: manual
    for manual in (
        Manual(
            Repository("aio-libs/aiohttp", "495e778360d1924da63e16dba0f0d76baf56a56a", "Apache-2.0"),
            ("docs/faq.rst",),
            ("docs/",),
        ),
        Manual(
            Repository("borgbackup/borg", "fc74d5f643d17d5341e303cd5ed4ddeb425660f0", "BSD-3-Clause"),
            ("docs/faq.rst",),
            ("docs/",),
        ),
        Manual(
            Repository("BurntSushi/ripgrep", "3fce3b5bb0236da2df6d99672afb8a719642eca7", "MIT OR Unlicense"),
            ("FAQ.md",),
            ("GUIDE.md", "README.md"),
        ),
        Manual(
            Repository("celery/celery", "5dc781f0bd5f36186bfcc74e0a4f9f654452c69b", "BSD-3-Clause"),
            ("docs/faq.rst",),
            ("docs/userguide/",),
        ),
        Manual(
            Repository("curl/curl", "5c61e168698a72b87437d58ed728bcdea6d5db42", "curl"),
            ("docs/FAQ.md",),
            ("docs/MANUAL.md", "docs/TheArtOfHttpScripting.md", "docs/cmdline-opts/"),
        ),
        Manual(
            Repository("cypress-io/cypress-documentation", "4df0c75e373515c33269176d556219950487e085", "MIT"),
            ("docs/app/faq.mdx", "docs/cloud/faq.mdx", "docs/accessibility/faq.mdx", "docs/ui-coverage/faq.mdx"),
        ),
        Manual(
            Repository("scrapy/scrapy", "11079cb1c85b9e75a39a7269943c69d1a975d485", "BSD-3-Clause"),
            ("docs/faq.rst",),
            ("docs/topics/",),
        ),
        Manual(
            Repository("sqlalchemy/sqlalchemy", "f35da7e2b9349a08b8de1f6bd3b07c8bf8616790", "MIT"),
            tuple(
                f"doc/build/faq/{page}.rst"
                for page in ("connections", "metadata_schema", "ormconfiguration", "performance", "sessions", "sqlexpressions")
            ),
        ),
    )
}

POPULAR = QuestionSet("popular", "question", LICENCES, PAGES, DATABASES, LISTINGS, MANUALS, THREADS)
