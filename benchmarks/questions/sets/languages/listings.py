"""Eleven more lists, from pods and ranges of addresses to mountains, cocktails, and riders."""

from __future__ import annotations

from benchmarks.questions.material import Listing
from benchmarks.questions.sources import Package, Repository

PODS = Repository("wey-gu/k8s-graph", "77a720f6a117654044d83947feb2d3c4ba3cc1fb", "Apache-2.0")
EARTH = Repository("martynafford/natural-earth-geojson", "0b9a6ceb0a7032713abd9460ac1e995a9c60cd1e", "CC0-1.0")
COCKTAILS = Repository("teijo/iba-cocktails", "5f1e5dd4a2189adc3854a51d7b48640bd86e9f76", "not stated")
VULNERABILITIES = Repository("cisagov/kev-data", "eacf03ec6637cc7be6d3d4ed50785493da5126a2", "CC0-1.0")
ADDRESSES = Repository("seligman/aws-ip-ranges", "84688115d1065a8a948dfe5ea60cff086b94686f", "MIT")
CARDS = Repository("zzorba/arkhamdb-json-data", "07fac087221c80ed51a0c1e0178cb56c91724477", "not stated")
FIGURES = Repository("N3evin/AmiiboAPI", "30ea41882baacfca1d2e59fd0f5ec49fd8e2ef7f", "MIT")
RIDERS = Repository("themm1/procyclingstats", "a24327fd948ab3a4a13b42cc6900551e82a0e62e", "MIT")
RELEASES = Package("electron-releases", "3.1171.0", "MIT")
LANGUAGES = Package("language-subtag-registry", "0.4.2", "CC0-1.0")

LISTINGS = {
    "pods": Listing(PODS, "data/pods.json", inside="items"),
    "mountains": Listing(
        EARTH, "10m/physical/ne_10m_geography_regions_elevation_points.json", is_compact=True, inside="features"
    ),
    "parks": Listing(EARTH, "10m/cultural/ne_10m_parks_and_protected_lands_point.json", inside="features"),
    "cocktails": Listing(COCKTAILS, "recipes.json"),
    "vulnerabilities": Listing(VULNERABILITIES, "known_exploited_vulnerabilities.json", inside="vulnerabilities"),
    "addresses": Listing(ADDRESSES, "ip-ranges.json", is_compact=True, inside="prefixes"),
    "horror-cards": Listing(CARDS, "pack/eoe/eoep.json"),
    "figures": Listing(FIGURES, "database/amiibo.json", is_compact=True, inside="amiibos"),
    "riders": Listing(RIDERS, "tests/fixtures/race_tour-de-france_2022_startlist.json", inside="startlist"),
    "releases": Listing(RELEASES, "lite.json"),
    "languages": Listing(LANGUAGES, "data/json/registry.json", is_compact=True),
}
