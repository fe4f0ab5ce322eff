"""Credentials as their issuers document them, and the places where they turn up. Written before the rules were read.

A form is a template: `{kind:count}` stands for that many random characters. No complete credential is in this file; each run
generates its own.
"""

from __future__ import annotations

import base64
import random
import re
import string
from collections.abc import Sequence
from typing import NamedTuple

_ALPHABETS = {
    "alnum": string.ascii_letters + string.digits,
    "upper": string.ascii_uppercase + string.digits,
    "base32": string.ascii_uppercase + "234567",
    "lower": string.ascii_lowercase + string.digits,
    "hex": "0123456789abcdef",
    "digit": string.digits,
    "url": string.ascii_letters + string.digits + "-_",
    "b64": string.ascii_letters + string.digits + "+/",
    "word": string.ascii_lowercase,
}


class Form(NamedTuple):
    """`variable`: the name under which the issuer's documentation has people put it. Forms without a telling shape are only
    ever shown with it."""

    issuer: str
    template: str
    variable: str
    has_shape: bool = True


FORMS = [
    Form("AWS access key id", "AKIA{base32:16}", "AWS_ACCESS_KEY_ID"),
    Form("AWS temporary access key id", "ASIA{base32:16}", "AWS_ACCESS_KEY_ID"),
    Form("AWS secret access key", "{b64:40}", "AWS_SECRET_ACCESS_KEY", has_shape=False),
    Form("GitHub personal access token", "ghp_{alnum:36}", "GITHUB_TOKEN"),
    Form("GitHub OAuth token", "gho_{alnum:36}", "GITHUB_TOKEN"),
    Form("GitHub user-to-server token", "ghu_{alnum:36}", "GH_TOKEN"),
    Form("GitHub server-to-server token", "ghs_{alnum:36}", "GITHUB_TOKEN"),
    Form("GitHub refresh token", "ghr_{alnum:76}", "GH_REFRESH_TOKEN"),
    Form("GitHub fine-grained token", "github_pat_{alnum:22}_{alnum:59}", "GH_TOKEN"),
    Form("GitLab personal access token", "glpat-{url:20}", "GITLAB_TOKEN"),
    Form("GitLab deploy token", "gldt-{url:20}", "CI_DEPLOY_PASSWORD"),
    Form("GitLab runner token", "glrt-{url:20}", "RUNNER_TOKEN"),
    Form("Stripe secret key, live", "sk_live_{alnum:24}", "STRIPE_SECRET_KEY"),
    Form("Stripe secret key, live, long", "sk_live_51{alnum:97}", "STRIPE_API_KEY"),
    Form("Stripe secret key, test", "sk_test_{alnum:24}", "STRIPE_SECRET_KEY"),
    Form("Stripe restricted key", "rk_live_{alnum:24}", "STRIPE_API_KEY"),
    Form("Slack bot token", "xoxb-{digit:12}-{digit:13}-{alnum:24}", "SLACK_BOT_TOKEN"),
    Form("Slack user token", "xoxp-{digit:12}-{digit:12}-{digit:12}-{hex:32}", "SLACK_USER_TOKEN"),
    Form("Slack app-level token", "xapp-1-A{upper:10}-{digit:13}-{hex:64}", "SLACK_APP_TOKEN"),
    Form("Slack incoming webhook", "https://hooks.slack.com/services/T{upper:8}/B{upper:8}/{alnum:24}", "SLACK_WEBHOOK_URL"),
    Form("Google API key", "AIza{url:35}", "GOOGLE_API_KEY"),
    Form("Google OAuth client secret", "GOCSPX-{url:28}", "GOOGLE_CLIENT_SECRET"),
    Form("OpenAI project key", "sk-proj-{url:74}T3BlbkFJ{url:74}", "OPENAI_API_KEY"),
    Form("OpenAI key, older", "sk-{alnum:20}T3BlbkFJ{alnum:20}", "OPENAI_API_KEY"),
    Form("Anthropic API key", "sk-ant-api03-{url:93}AA", "ANTHROPIC_API_KEY"),
    Form("Hugging Face token", "hf_{alnum:34}", "HF_TOKEN"),
    Form("npm token", "npm_{alnum:36}", "NPM_TOKEN"),
    Form("PyPI token", "pypi-AgEIcHlwaS5vcmc{url:160}", "TWINE_PASSWORD"),
    Form("RubyGems key", "rubygems_{hex:48}", "GEM_HOST_API_KEY"),
    Form("Docker Hub token", "dckr_pat_{url:27}", "DOCKER_TOKEN"),
    Form("DigitalOcean personal token", "dop_v1_{hex:64}", "DIGITALOCEAN_TOKEN"),
    Form("DigitalOcean OAuth token", "doo_v1_{hex:64}", "DIGITALOCEAN_TOKEN"),
    Form("HashiCorp Vault service token", "hvs.{url:95}", "VAULT_TOKEN"),
    Form("Terraform Cloud token", "{alnum:14}.atlasv1.{url:67}", "TFE_TOKEN"),
    Form("SendGrid key", "SG.{url:22}.{url:43}", "SENDGRID_API_KEY"),
    Form("Mailgun key", "key-{hex:32}", "MAILGUN_API_KEY"),
    Form("Mailchimp key", "{hex:32}-us12", "MAILCHIMP_API_KEY", has_shape=False),
    Form("Twilio API key", "SK{hex:32}", "TWILIO_API_KEY"),
    Form("Twilio auth token", "{hex:32}", "TWILIO_AUTH_TOKEN", has_shape=False),
    Form("Shopify admin token", "shpat_{hex:32}", "SHOPIFY_ACCESS_TOKEN"),
    Form("Square access token", "EAAA{url:60}", "SQUARE_ACCESS_TOKEN"),
    Form("Telegram bot token", "{digit:10}:AA{url:33}", "TELEGRAM_BOT_TOKEN"),
    Form("Discord bot token", "M{alnum:25}.G{alnum:5}.{url:38}", "DISCORD_TOKEN"),
    Form("Datadog API key", "{hex:32}", "DD_API_KEY", has_shape=False),
    Form("New Relic user key", "NRAK-{upper:27}", "NEW_RELIC_API_KEY"),
    Form("Grafana service account token", "glsa_{alnum:32}_{hex:8}", "GRAFANA_TOKEN"),
    Form("Databricks token", "dapi{hex:32}", "DATABRICKS_TOKEN"),
    Form("Linear key", "lin_api_{alnum:40}", "LINEAR_API_KEY"),
    Form("Notion token", "ntn_{digit:11}{alnum:35}", "NOTION_TOKEN"),
    Form("Postman key", "PMAK-{hex:24}-{hex:34}", "POSTMAN_API_KEY"),
    Form("Cloudflare API token", "{url:40}", "CLOUDFLARE_API_TOKEN", has_shape=False),
    Form("Heroku key", "{hex:8}-{hex:4}-{hex:4}-{hex:4}-{hex:12}", "HEROKU_API_KEY", has_shape=False),
    Form("Azure storage account key", "{b64:86}==", "AZURE_STORAGE_KEY", has_shape=False),
    Form("Age secret key", "AGE-SECRET-KEY-1{bech:58}", "SOPS_AGE_KEY"),
    Form("Fly.io token", "fo1_{url:43}", "FLY_API_TOKEN"),
    Form("Supabase access token", "sbp_{hex:40}", "SUPABASE_ACCESS_TOKEN"),
    Form("Perplexity key", "pplx-{alnum:48}", "PPLX_API_KEY"),
    Form("Groq key", "gsk_{alnum:52}", "GROQ_API_KEY"),
    Form("JSON Web Token", "{jwt:0}", "ID_TOKEN"),
    Form("PEM private key", "{pem:0}", "TLS_KEY"),
    Form("PostgreSQL URI password", "postgresql://app:{alnum:18}@db.internal:5432/orders", "DATABASE_URL"),
    Form("MongoDB URI password", "mongodb+srv://app:{alnum:20}@cluster0.internal/test", "MONGODB_URI"),
    Form("Redis URI password", "redis://:{alnum:24}@cache.internal:6379/0", "REDIS_URL"),
    Form("password in an environment", "{alnum:9}!{alnum:8}", "DB_PASSWORD", has_shape=False),
]
LATER_FORMS = [
    Form("OpenRouter key", "sk-or-v1-{hex:64}", "OPENROUTER_API_KEY"),
    Form("xAI key", "xai-{alnum:80}", "XAI_API_KEY"),
    Form("Replicate token", "r8_{alnum:37}", "REPLICATE_API_TOKEN"),
    Form("LangSmith key", "lsv2_pt_{hex:32}_{hex:10}", "LANGSMITH_API_KEY"),
    Form("Sentry organisation token", "sntrys_eyJ{alnum:120}_{b64:43}", "SENTRY_AUTH_TOKEN"),
    Form("Tailscale auth key", "tskey-auth-{alnum:16}-{alnum:32}", "TS_AUTHKEY"),
    Form("Doppler token", "dp.pt.{alnum:43}", "DOPPLER_TOKEN"),
    Form("PlanetScale token", "pscale_tkn_{url:43}", "PLANETSCALE_SERVICE_TOKEN"),
    Form("Pulumi token", "pul-{hex:40}", "PULUMI_ACCESS_TOKEN"),
    Form("Figma token", "figd_{url:40}", "FIGMA_TOKEN"),
    Form("Netlify token", "nfp_{alnum:36}", "NETLIFY_AUTH_TOKEN"),
    Form("Buildkite token", "bkua_{hex:40}", "BUILDKITE_API_TOKEN"),
    Form("Airtable token", "pat{alnum:14}.{hex:64}", "AIRTABLE_API_KEY"),
    Form("Atlassian token", "ATATT3xFfGF0{url:171}={upper:8}", "JIRA_API_TOKEN"),
    Form("Brevo key", "xkeysib-{hex:64}-{alnum:16}", "BREVO_API_KEY"),
    Form("Cloudflare origin key", "v1.0-{hex:24}-{hex:146}", "CF_ORIGIN_CA_KEY"),
    Form("Vercel token", "{alnum:24}", "VERCEL_TOKEN", has_shape=False),
    Form("Cohere key", "{alnum:40}", "CO_API_KEY", has_shape=False),
    Form("SonarQube token", "sqp_{hex:40}", "SONAR_TOKEN"),
    Form("Prefect key", "pnu_{alnum:36}", "PREFECT_API_KEY"),
]
"""Written after the rules, by somebody who did not look them up. No rule was made for them."""
_ALPHABETS["bech"] = "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"

SURROUNDINGS = {
    "env": "HOSTNAME=web-7c9\nPATH=/usr/local/bin:/usr/bin\n{name}={value}\nLANG=C.UTF-8\n",
    "export": '#!/bin/sh\nexport {name}="{value}"\nexec ./serve --port 8080\n',
    "json": '{{"Config": {{"Image": "web:1.4", "{name}": {json}, "Tty": false}}}}\n',
    "yaml": "env:\n  - name: LOG_LEVEL\n    value: info\n  {name}: {value}\nports: [8080]\n",
    "log": "2026-05-04T10:11:12Z INFO start listening on :8080\n2026-05-04T10:11:13Z WARN config {name}={value} overrides file\n",
}
"""Around any form."""

SHAPED_SURROUNDINGS = {
    "header": "> GET /v1/me HTTP/1.1\n> Host: api.example.com\n> Authorization: Bearer {value}\n> Accept: */*\n",
    "argument": "+ curl -fsS -H 'Accept: application/json' --token {value} https://api.example.com/v1/me\n",
    "trace": 'requests.exceptions.HTTPError: 401 for url: https://api.example.com/v1?key={value}\n  File "app.py", line 12\n',
    "prose": "I rotated it this morning, the new one is {value} (expires Friday).\n",
}
"""Only around a form that shows by itself what it is, and that is one line."""

HARMLESS = [
    "commit {hex:40}\nAuthor: A <a@example.com>\n",
    "sha256:{hex:64}  layer.tar\n",
    '"integrity": "sha512-{b64:86}==",\n',
    "request_id={hex:8}-{hex:4}-4{hex:3}-a{hex:3}-{hex:12} status=200\n",
    "customer cus_{alnum:14} paid invoice in_{alnum:24} by charge ch_{alnum:24}\n",
    "arn:aws:iam::{digit:12}:role/deploy (AROA{base32:17})\n",
    'ETag: "{hex:32}"\n',
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5{b64:48} me@host\n",
    "DB_PASSWORD=\nAPI_KEY=<your key here>\nTOKEN=${TOKEN}\n",
    'password = os.environ["DB_PASSWORD"]\ntoken = request.headers.get("Authorization")\n',
    "<img src='data:image/png;base64,{b64:400}'>\n",
    "the tokens per second were 812, the key was KeyError: 'user_id'\n",
    "go.sum h1:{b64:43}=\n",
    "node_id: MDQ6VXNlcjE{digit:4}, U{upper:10} joined #C{upper:10}\n",
    "https://example.com/reset?state={word:6}&page=2&sort=asc\n",
    "-----BEGIN CERTIFICATE-----\n{b64:64}\n{b64:64}\n-----END CERTIFICATE-----\n",
    "-----BEGIN PUBLIC KEY-----\n{b64:64}\n-----END PUBLIC KEY-----\n",
]


class Case(NamedTuple):
    """`secret` is None if there is nothing to find."""

    name: str
    text: str
    secret: str | None


def fill(template: str, source: random.Random) -> str:
    """The template with random characters."""

    def choose(match: re.Match[str]) -> str:
        kind, count = match[1], int(match[2])
        if kind == "jwt":
            return _jwt(source)
        if kind == "pem":
            return _pem(source)
        return "".join(source.choice(_ALPHABETS[kind]) for _ in range(count))

    return re.sub(r"\{(\w+):(\d+)\}", choose, template)


def _jwt(source: random.Random) -> str:
    parts = (b'{"alg":"HS256","typ":"JWT"}', b'{"sub":"%d","name":"A"}' % source.randrange(10**9), source.randbytes(32))
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


def _pem(source: random.Random) -> str:
    body = base64.encodebytes(source.randbytes(600)).decode()
    label = source.choice(["RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY", "EC PRIVATE KEY"])
    return f"-----BEGIN {label}-----\n{body}-----END {label}-----"


def secret_in(form: Form, value: str) -> str:
    """What of the value must not be shown: of a URI only its password."""
    found = re.search(r"://\w*:(\w+)@", value) if "URI" in form.issuer else None
    return found[1] if found else value


def make_cases(seed: int, forms: Sequence[Form] = FORMS) -> list[Case]:
    """Each form in each surrounding, and as many harmless texts."""
    source, cases = random.Random(seed), list[Case]()  # noqa: S311
    for form in forms:
        shaped = form.has_shape and "{pem" not in form.template
        for name, surrounding in {**SURROUNDINGS, **(SHAPED_SURROUNDINGS if shaped else {})}.items():
            value = fill(form.template, source)
            quoted = '"' + value.replace("\n", "\\n") + '"'
            text = surrounding.format(name=form.variable, value=value, json=quoted)
            secret = secret_in(form, value)
            secret = secret.replace("\n", "\\n") if name == "json" else secret
            cases.append(Case(f"{form.issuer} in {name}", text, secret))
    while len(cases) % 1000:
        template = source.choice(HARMLESS)
        cases.append(Case("harmless", fill(template, source), None))
    return cases
