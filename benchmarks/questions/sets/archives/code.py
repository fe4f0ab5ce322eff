"""Repositories whose fixes this set asks about, and their licences. No other set has most of their languages."""

from __future__ import annotations

LICENCES = {
    "alacritty/alacritty": "Apache-2.0 OR MIT",
    "apache/commons-lang": "Apache-2.0",
    "catchorg/Catch2": "BSL-1.0",
    "cfug/dio": "MIT",
    "fortran-lang/fpm": "MIT",
    "http4s/http4s": "Apache-2.0",
    "koalaman/shellcheck": "GPL-3.0",
    "networkx/networkx": "BSD-3-Clause",
    "nim-lang/nimble": "BSD-3-Clause",
    "ninenines/cowboy": "ISC",
    "SDWebImage/SDWebImage": "MIT",
    "square/kotlinpoet": "Apache-2.0",
    "terraform-aws-modules/terraform-aws-eks": "Apache-2.0",
    "tmux/tmux": "ISC",
    "tpope/vim-fugitive": "Vim",
    "twbs/bootstrap": "MIT",
}
