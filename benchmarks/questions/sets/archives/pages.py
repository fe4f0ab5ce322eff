"""Saved web pages: homes in six countries, players, a person, and goods, in four languages."""

from __future__ import annotations

from benchmarks.questions.sources import Repository

PAGES = {
    repository.name: repository
    for repository in (
        Repository("b-jayesh9/SPTAssignment", "67637d7b24f6d2f7b88a37bf651b4644ff8e90f0", "not stated"),
        Repository("dev1029/parser", "f2d7641e4691b5c7603c501d8d79da39e48724c5", "MIT"),
        Repository("eaton/parse-amazon", "52ec0c75a0430c6f508099e6e98b82363b64b36a", "MIT"),
        Repository("julianbei/linkedin-public-profile", "0dd3acc65327d597a508e4d17c53f81314acd0e8", "MIT"),
        Repository("mcMickJuice/football-player-api", "5cacee10a80c78482fbab6a4d4ae4bf86a304dcf", "MIT"),
        Repository("RealEstateWebTools/property_web_scraper", "8c971f4eba6e34078eac9f2c364d09ef511fe068", "MIT"),
    )
}
