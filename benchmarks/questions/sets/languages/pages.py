"""Saved web pages: reports, books, invoices, a job, a person, concerts, and goods, in seven languages."""

from __future__ import annotations

from benchmarks.questions.sources import Repository

PAGES = {
    repository.name: repository
    for repository in (
        Repository("desktop7788/kyujin-scraper", "267e63b77fbef7c59d3ccd1fa8c80cb5f3ef13e9", "not stated"),
        Repository("disclaimer8/aviation-safety-scrapers", "f7f4e903c377ec3e883c4237ef47bd8b9a0807dc", "Apache-2.0"),
        Repository("DotNetAge/douban", "2a03f2f306332f64464d2679b2822fe0724330fc", "not stated"),
        Repository("jroquejr/nfe-reader", "277379bfb9865b2656c2576d8ccf8c3e1f3cacd1", "MIT"),
        Repository("pgrimaud/gibert-jeune", "166b306ef077496f31ec6aaf6db6fb25ad3c537e", "MIT"),
        Repository("scrapinghub/extruct", "a31daaadb82ec684b7d468d3b15734b8ae3b7265", "BSD-3-Clause"),
        Repository("YashTotale/goodreads-user-scraper", "b355c9242c94e7d8ff5e93a10c90b13253d3a510", "MIT"),
        Repository("yatishmehta27/linkedin-scraper", "d7b46064cec782e71543f7fd0c59a537f9d5c544", "MIT"),
    )
}
