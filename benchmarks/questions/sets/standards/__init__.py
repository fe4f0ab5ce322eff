"""Issues about standards, long dialogues, manuals of libraries and reference tables. No other set has these sources."""

from __future__ import annotations

from benchmarks.questions.material import Listing, Manual, QuestionSet
from benchmarks.questions.sets.standards.databases import DATABASES
from benchmarks.questions.sets.standards.threads import THREADS
from benchmarks.questions.sources import Package, Repository

LICENCES = {
    "clap-rs/clap": "MIT OR Apache-2.0",
    "encode/httpx": "BSD-3-Clause",
    "fmtlib/fmt": "MIT",
    "gohugoio/hugo": "Apache-2.0",
    "gorilla/mux": "BSD-3-Clause",
    "jekyll/jekyll": "MIT",
    "junegunn/fzf": "MIT",
    "koajs/koa": "MIT",
    "nlohmann/json": "MIT",
    "pyinstaller/pyinstaller": "GPL-2.0-or-later with an exception",
    "redis/redis-py": "MIT",
    "sharkdp/bat": "MIT OR Apache-2.0",
    "square/okhttp": "Apache-2.0",
    "tqdm/tqdm": "MIT AND MPL-2.0",
    "yaml/pyyaml": "MIT",
}
PAGES = {
    repository.name: repository
    for repository in (
        Repository("adbar/trafilatura", "e90b0ef51ab026fdb905fb6c5b3c84dd3d784fd5", "Apache-2.0"),
        Repository("apache/any23", "458219e5a396cedcc93b3debf4a6497ce424d167", "Apache-2.0"),
        Repository("public-law/open-gov-crawlers", "87bdeaac38aae3f21c96e87331fb1636dc5ad424", "not stated"),
        Repository("scrapy/scrapely", "31b5881bed01a99be2b65b30b9c81ad65a517eaf", "BSD"),
        Repository("unitedstates/congress", "a2b043342c379800b2c1a91ab11fcf6194fc68a9", "CC0-1.0"),
    )
}
COUNTRIES = Repository("mledoze/countries", "5e9f370050f83ad2ba4cb885f75d66114badf72c", "ODbL-1.0")
ELEMENTS = Repository("Bowserinator/Periodic-Table-JSON", "ea41119626581350fdcdd9c873de233645a43023", "CC-BY-SA-3.0")
FILMS = Repository("prust/wikipedia-movie-data", "91ae721d3672e8ef4f15b213c763a634250ef61a", "MIT")
TIME_ZONES = Package("@vvo/tzdb", "6.202.0", "MIT")
GAME = Package("warframe-items", "1.1269.87", "MIT")
LISTINGS = {
    "countries": Listing(COUNTRIES, "countries.json"),
    "elements": Listing(ELEMENTS, "PeriodicTableJSON.json", inside="elements"),
    "films-1940s": Listing(FILMS, "movies-1940s.json", is_compact=True),
    "films-1970s": Listing(FILMS, "movies-1970s.json"),
    "time-zones": Listing(TIME_ZONES, "raw-time-zones.json", is_compact=True),
    "weapons": Listing(GAME, "data/json/Primary.json"),
    "nodes": Listing(GAME, "data/json/Node.json"),
    "arcanes": Listing(GAME, "data/json/Arcanes.json", is_compact=True),
}
MANUALS = {
    manual.repository.name: manual
    for manual in (
        Manual(
            Repository("ansible/ansible-documentation", "ef72400cc2f70f974ffbb30b63098b31dbd36b07", "GPL-3.0"),
            ("docs/docsite/rst/reference_appendices/faq.rst",),
            tuple(f"docs/docsite/rst/{part}/" for part in ("inventory_guide", "playbook_guide", "reference_appendices")),
        ),
        Manual(
            Repository("godotengine/godot-docs", "174b7033c05ee52067afe758e820ccf92ef045fb", "CC-BY-3.0"),
            ("about/faq.rst",),
            ("about/", "getting_started/", "tutorials/best_practices/", "tutorials/export/", "tutorials/scripting/"),
        ),
        Manual(
            Repository("pnpm/pnpm.io", "4096ad35b19c7d7e0c2c64c704c57daf5bb91668", "MIT"),
            ("docs/faq.md",),
            ("docs/",),
        ),
        Manual(
            Repository("reduxjs/redux", "3084fc33bb23ab4cab4796172eafe342da4e73d9", "MIT"),
            (
                "docs/FAQ.md",
                *(
                    f"docs/faq/{page}.md"
                    for page in ("DesignDecisions", "OrganizingState", "ReactRedux", "Reducers", "StoreSetup")
                ),
            ),
            ("docs/",),
        ),
        Manual(
            Repository("scikit-learn/scikit-learn", "be5a8a8bd493747a5d52c7700dc0f1d47b645be6", "BSD-3-Clause"),
            ("doc/faq.rst",),
            ("doc/computing/", "doc/datasets/", "doc/developers/", "doc/glossary.rst", "doc/modules/"),
        ),
        Manual(
            Repository("syncthing/docs", "766daa6e2b02f68dacc98eccbe49663b6168cbfd", "CC-BY-4.0"),
            tuple(f"users/faq-parts/{part}.rst" for part in ("general", "troubleshooting", "usage")),
            ("advanced/", "dev/", "events/", "intro/", "rest/", "specs/", "users/"),
        ),
    )
}

STANDARDS = QuestionSet("standards", "document", LICENCES, PAGES, DATABASES, LISTINGS, MANUALS, THREADS, least=24)
