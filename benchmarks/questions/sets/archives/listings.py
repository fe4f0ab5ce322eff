"""Ten more lists, from mobile networks and a profiler's log to ransomware, restaurants, and banks."""

from __future__ import annotations

from benchmarks.questions.material import Listing
from benchmarks.questions.sources import Package, Repository

SAMPLES = Repository("ozlerhakan/mongodb-json-files", "71ff2d5724f0742d9e49c336d8713399c4ae2dfe", "not stated")
THREATS = Repository("MISP/misp-galaxy", "9434ace4eb925c9a1c9b3bccf014a25f9d14f0b0", "CC0-1.0 OR BSD-2-Clause")
BANKS = Repository("PeterNotenboom/SwiftCodes", "c66adfef3527da2a9d7a9df366c59f633af4ca7f", "MIT")
NETWORKS = Package("mcc-mnc-list", "1.1.11", "MIT")
STATIONS = Package("db-stations", "5.0.2", "ISC")
TOKENS = Package("@uniswap/default-token-list", "22.21.0", "GPL-3.0-or-later")
FEATURES = Package("cssdb", "8.12.1", "MIT-0")
NEIGHBOURS = Package("animal-crossing", "8.2.0", "MIT")

LISTINGS = {
    "restaurants": Listing(SAMPLES, "datasets/restaurant.json", is_lines=True),
    "profiler": Listing(SAMPLES, "datasets/profiles.json", is_lines=True),
    "ransomware": Listing(THREATS, "clusters/ransomware.json", inside="values"),
    "threats": Listing(THREATS, "clusters/threat-actor.json", is_compact=True, inside="values"),
    "banks": Listing(BANKS, "AllCountries/CH.json", inside="list"),
    "networks": Listing(NETWORKS, "mcc-mnc-list.json"),
    "stations": Listing(STATIONS, "data.ndjson", is_lines=True),
    "tokens": Listing(TOKENS, "build/uniswap-default.tokenlist.json", is_compact=True, inside="tokens"),
    "features": Listing(FEATURES, "cssdb.json"),
    "neighbours": Listing(NEIGHBOURS, "lib/data/Villagers.json"),
}
